"""The site that `make docs` builds: no warning, no dead link, no other host, every command and every public name."""

import html
import inspect
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import qkv

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [name for name in qkv.__all__ if inspect.ismodule(getattr(qkv, name))]
POLICY = "; ".join(["default-src 'none'", *(f"{kind}-src 'self'" for kind in ("script", "style", "font", "connect"))])
POLICY += "; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")


def build(source, out):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(out.parent / "doctrees")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, str(source), str(out)], capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "html"
    done = build(ROOT / "docs", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


class Page(HTMLParser):
    """The links, loaded files and anchors of a page, and what a strict Content-Security-Policy would block."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors, self.inline = [], [], set(), []
        self.script = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("next", "prev", "index", "search", "canonical"):
            self.loads.append(given["href"])
        self.loads += [given[name] for name in ("src", "srcset", "data", "poster") if given.get(name)]
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)


@pytest.fixture(scope="module")
def pages(site):
    return {p: Page(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}


@pytest.mark.slow
def test_every_document_is_a_page(site):
    for document in (ROOT / "docs").rglob("*.md"):
        if "_build" not in document.parts:
            assert (site / document.relative_to(ROOT / "docs")).with_suffix(".html").is_file(), document


@pytest.mark.slow
def test_every_internal_link_and_anchor_exists(site, pages):
    checked = 0
    for path, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            assert not parts.path.startswith("/"), f"{path.name}: {target} is not relative"
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert to.is_file() and to.is_relative_to(site.resolve()), f"{path.name}: {target}"
            if parts.fragment and to.suffix == ".html":
                anchors = pages[site / to.relative_to(site.resolve())].anchors
                assert unquote(parts.fragment) in anchors, f"{path.name}: {target}"
            checked += 1
    assert checked > 1000


@pytest.mark.slow
def test_no_page_loads_from_another_host_or_needs_inline_code(site, pages):
    for path, page in pages.items():
        assert not [load for load in page.loads if urlsplit(load).scheme not in ("", "data")], path
        assert page.inline == [], path
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?https?:|@import", text), sheet


@pytest.mark.slow
def test_licences_of_the_theme_and_the_scripts_lie_beside_them(site):
    for part in ("furo", "pygments", "sphinx", "sphinx-basic-ng"):
        text = (site / "_static" / "licences" / f"{part}.txt").read_text(encoding="utf-8")
        assert "Permission is hereby granted" in text or "Redistribution and use" in text, part


@pytest.mark.slow
def test_formulas_are_mathml(site, pages):
    text = (site / "mathematics.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 100
    assert not [load for load in pages[site / "mathematics.html"].loads if re.search("(?i)mathjax|katex", load)]


@pytest.mark.slow
def test_every_public_name_has_its_place_in_the_reference(site, pages):
    for package in PACKAGES:
        anchors = pages[site / "reference" / f"{package}.html"].anchors
        for name in getattr(qkv, package).__all__:
            assert f"qkv.{package}.{name}" in anchors
    text = html.unescape((site / "reference" / "qkv.html").read_text(encoding="utf-8"))
    assert all(f"qkv.{name}" in text for name in qkv.__all__ if name not in PACKAGES)


@pytest.mark.slow
def test_every_command_and_every_option_has_its_place_in_the_reference(site):
    import typer

    from qkv.cli import app

    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    sections = {}
    for section in re.split(r"<h[2-4]>", text)[1:]:
        plain = html.unescape(re.sub(r"<[^>]+>", "", section))
        sections[plain.partition("¶")[0].partition("#")[0].strip().splitlines()[0]] = plain
    commands = [("qkv", typer.main.get_command(app))]
    for name, command in commands:
        commands += [(f"{name} {child}", found) for child, found in getattr(command, "commands", {}).items()]
        options = {option for p in command.params for option in p.opts if option.startswith("-")}
        assert name in sections, sorted(sections)
        assert not {option for option in options if option not in sections[name]}, name
    assert len(commands) > 20


def test_a_document_that_no_page_links_stops_the_build(tmp_path):
    source = tmp_path / "docs"
    source.mkdir()
    conf = (ROOT / "docs" / "conf.py").read_text().replace('html_favicon = "../src/qkv/web/static/icon.svg"\n', "")
    (source / "conf.py").write_text(conf.replace("HERE.parent", f"Path({str(ROOT)!r})"))
    (source / "extensions").symlink_to(ROOT / "docs" / "extensions")
    (source / "static").symlink_to(ROOT / "docs" / "static")
    (source / "index.md").write_text("# Title\n\n[nowhere](missing.md) and $\\nonsense{x}$\n")
    (source / "lost.md").write_text("# Lost\n")
    done = build(source, tmp_path / "html")
    assert done.returncode != 0
    assert "lost.md" in done.stderr and "missing.md" in done.stderr


class Strict(SimpleHTTPRequestHandler):
    """A server with the policy of the explorer."""

    def end_headers(self):
        self.send_header("content-security-policy", POLICY)
        super().end_headers()

    def log_message(self, *args):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_in_a_browser_under_a_strict_policy(site, pages, scheme, width):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if chromium is None and os.environ.get("QKV_BROWSER") != "required":
        pytest.skip("there is no chromium")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Strict, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, problems = f"http://127.0.0.1:{server.server_port}", []
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium)
        page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("request", lambda r: r.url.startswith((address, "data:")) or problems.append(r.url))
        for path in pages:
            page.goto(f"{address}/{path.relative_to(site)}")
            problems += [f"{path.name}: {problem}" for problem in page.evaluate(UNREADABLE)]
        page.set_viewport_size({"width": 1280, "height": 800})  # the field is in the drawer of a phone
        page.goto(f"{address}/index.html")
        page.locator(".sidebar-search").fill("blend")
        page.locator(".sidebar-search").press("Enter")
        playwright.expect(page.locator("#search-results li").first).to_be_visible()
        browser.close()
    server.shutdown()
    assert problems == []


# What a reader would stumble over: a page wider than the window, broken pictures, text that hardly shows.
UNREADABLE = """() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push("wider than the window");
  for (const img of document.images) if (img.complete && !img.naturalWidth) found.push("broken " + img.src);
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
  };
  const page = light(getComputedStyle(document.body).backgroundColor);
  const text = light(getComputedStyle(document.querySelector("article p") ?? document.body).color);
  if (Math.abs(page - text) < 0.5) found.push("too little contrast");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (dark !== page < 0.5) found.push("not in the colours that were asked for");
  return found;
}"""
