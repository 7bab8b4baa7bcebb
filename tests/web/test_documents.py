"""The documents as pages: safe HTML in which every link leads to something that is served."""

import html
import re
from pathlib import Path

import pytest

from qkv.web import documents
from qkv.web.documents import document_files, render

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES, PICTURES = ["readme", "noise", "claims"], ["pictures/a.png"]


def body(text, name="noise"):
    return render(name, text, NAMES, PICTURES).body


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("claims.md", "claims"), ("claims.md#limits", "claims#limits"), ("#limits", "#limits"),
        ("../README.md", "readme"), ("../docs/noise.md", "noise"), ("../noise.md", None), ("noise", None),
        ("pictures/a.png", "pictures/a.png"), ("https://x.org/y", "https://x.org/y"), ("nothing.md", None),
        ("../src/qkv/core.py", None), ("pictures/b.png", None), ("javascript:alert(1)", None), ("//x.org/y", None),
        ("data:text/html,1", None), ("file:///etc/passwd", None), ("../../claims.md", None), ("/claims.md", None),
    ],
)  # fmt: skip
def test_links_lead_to_what_is_served_or_become_text(link, target):
    found = re.findall(r'href="([^"]*)"', body(f"See [this]({link})."))
    assert found == ([] if target is None else [target]) and "this" in body(f"See [this]({link}).")


def test_links_of_the_readme_are_relative_to_the_root():
    assert 'href="claims"' in body("[x](docs/claims.md)", "readme") and 'src="pictures/a.png"' in body(
        "![x](docs/pictures/a.png)", "readme"
    )
    assert "href" not in body("[x](claims.md)", "readme")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a <b onclick='x'>b</b>",
        "![x](https://x.org/a.png)", "![<script>](javascript:x)",
    ],
)  # fmt: skip
def test_no_html_of_a_text_and_no_picture_from_elsewhere_is_passed_on(text):
    found = body(text)
    assert not re.findall(r"<(?!/?p>)", found)


def test_headings_have_the_anchors_that_links_use():
    found = body("# A & *b*\n\n## Limits\n\n## Limits\n\n## `x_1`: √d!\n")
    assert re.findall(r'id="([^"]*)"', found) == ["a--b", "limits", "limits-1", "x_1-d"]


def test_what_may_scroll_can_be_reached_by_the_keyboard_and_directives_are_left_out():
    found = body("```py\nx\n```\n\n    y\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```{toctree}\nnoise\n```\n")
    assert found.count('<pre tabindex="0">') == 2 and '<table tabindex="0">' in found and "toctree" not in found


def test_every_document_is_served_and_listed_and_no_link_is_dead(monkeypatch):
    monkeypatch.setattr(documents, "SITE", ("nowhere",))
    files = document_files()
    written = {path.stem.lower() for path in DOCS.glob("*.md")}
    assert written | {"readme"} <= files.keys() and files["index"] == files[""]
    anchors = {name: set(re.findall(r'id="([^"]*)"', page.decode())) for name, page in files.items() if "." not in name}
    index = files[""].decode()
    for name, ids in anchors.items():
        text = files[name].decode()
        assert f'href="{name or "./"}"' in index or name == "index"
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            if link.startswith(("http", "../", "./")):
                continue
            target, _, fragment = link.partition("#")
            assert not target or target in files, f"{name}: {link}"
            assert not fragment or fragment in (anchors[target] if target else ids), f"{name}: {link}"


@pytest.mark.parametrize("path", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda p: p.name)
def test_no_document_has_html_which_would_be_shown_as_text(path):
    text = re.sub(r"^(`{3,}).*?^\1`*$|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert not re.search(r"</?(sub|sup|br|b|i|p|div|img|span|details|summary)\b[^>]*>", text)


def listed(monkeypatch):
    """Name, title and summary of every document on the served list, in its order."""
    monkeypatch.setattr(documents, "SITE", ("nowhere",))
    index = document_files()[""].decode()
    return re.findall(r'<li><a href="([^"]*)">([^<]*)</a>(?:<p>(.*?)</p>)?</li>', index)


def test_documents_are_listed_once_in_the_order_of_the_site(monkeypatch):
    names, titles, _ = zip(*listed(monkeypatch), strict=True)
    assert len(set(names)) == len(names) and len(set(titles)) == len(titles)
    tables = re.findall(r"```\{toctree\}(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    site = [name for name in " ".join(tables).split() if name in names]
    assert list(names) == [site[0], "readme", *site[1:]]


def test_every_document_has_one_line_that_says_what_it_is_for(monkeypatch):
    rows = listed(monkeypatch)
    assert {name for name, _, _ in rows} == {path.stem.lower() for path in DOCS.glob("*.md")} - {"index"} | {"readme"}
    lines = [html.unescape(re.sub("<[^>]*>", "", line)) for _, _, line in rows]
    assert len(set(lines)) == len(lines)
    for line in lines:
        assert line[0].isupper() and line.endswith(".") and 25 <= len(line) <= 125, line
        assert ". " not in line and line.count("`") == 0


def test_a_document_without_a_line_is_listed_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_folder", lambda: tmp_path)
    (tmp_path / "index.md").write_text(
        "# I\n\n- [A](a.md): about <b>.\n- [gone](gone.md): none.\n\nSee [c](c.md): no.\n"
    )
    for name in "abc":
        (tmp_path / f"{name}.md").write_text(f"# Title of {name}\n\nText. More.\n")
    found = document_files()[""].decode()
    assert '<li><a href="a">A</a><p>About &lt;b&gt;.</p></li>' in found and "gone" not in found
    assert '<h2>More</h2>\n<ul class=documents>\n<li><a href="b">Title of b</a></li>' in found
    assert found.count("<p>") == 1


def test_formulas_are_mathml_and_not_changed_by_markdown(monkeypatch):
    found = body("Weights $\\alpha_i \\le a_*$ and $b_*$.\n\n$$\n\\sum_{i} x\n= 1\n$$\n")
    assert found.count("<math") == 3 and "$" not in found and "<em>" not in found and "<h" not in found
    assert '<math display="block">' in found and "<mi>α</mi>" in found
    assert body("It costs $5 and $6, or `$x$`, or $ y$.").count("<math") == 0
    assert "<code>\\unknown{&lt;b&gt;}</code>" in body("So $\\unknown{<b>}$.")
    monkeypatch.setattr(documents, "SITE", ("nowhere",))
    files = document_files()
    for name, page in files.items():
        if "." not in name:
            text = re.sub(r"<(code|pre)\b.*?</\1>", "", page.decode(), flags=re.DOTALL)
            assert "$" not in text and "\\" not in text, name
    assert files["mathematics"].count(b"<math") > 100 and b"\\alpha" not in files["add-variant"]


def test_a_built_site_is_served_in_place_of_the_texts(tmp_path, monkeypatch):
    site = tmp_path / "_build" / "html"
    (site / "guide").mkdir(parents=True)
    (site / "_static").mkdir()
    for name in ("index.html", "guide/index.html", "guide/a.html", "_static/a.css", ".buildinfo"):
        (site / name).write_text(name)
    (tmp_path / "a.md").write_text("# A")
    monkeypatch.setattr(documents, "_folder", lambda: tmp_path)
    found = document_files()
    assert found[""] == b"index.html" and found["guide/"] == b"guide/index.html"
    assert found["guide/a"] == b"guide/a.html"  # the address that the text has without a site
    pages = {"index", "index.html", "guide/index", "guide/index.html", "guide/a", "guide/a.html"}
    assert set(found) == {"", "guide/", "_static/a.css"} | pages


def test_without_documents_nothing_is_served(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_folder", lambda: None)
    assert document_files() == {}


def test_the_documents_have_their_types(client):
    assert client.get("/docs").status_code == 307 and client.get("/docs").headers["location"] == "docs/"
    served = {f"/docs/{name}" for name in document_files()}
    assert "/docs/" in served
    for path in sorted(served)[:40]:
        kind = {"svg": "image/svg+xml", "png": "image/png"}.get(path.rsplit(".", 1)[-1])
        found = client.get(path)
        assert found.status_code == 200 and found.headers["content-type"].startswith(kind or ""), path
    assert client.get("/docs/").headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/docs/noise.md").status_code == client.get("/docs/../pyproject.toml").status_code == 404
