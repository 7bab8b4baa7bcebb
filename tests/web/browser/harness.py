"""`qkv serve` as a process and a browser for it; used by the tests, the benchmark and the screenshots."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# The shell is the same engine without what only a window needs; it takes a third of the processor's time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing() -> str:
    """Why no browser can be used; empty if one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the browser tests need playwright: pip install 'qkv[dev]'"
    return "" if CHROMIUM else "the browser tests need chromium: apt-get install chromium"


@contextlib.contextmanager
def serving(model: Path | None = None, runs: Path | None = None) -> Iterator[str]:
    """The address of `qkv serve` on a free port, until the block ends; kept models go to `runs`, or are removed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "qkv", "serve", "--port", "0", "--no-open", "--runs", str(runs or folder)]
        command += ["--model", f"tiny={model}"] if model else []
        with _started(command) as address:
            yield address


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[str]:
    """The address that a server prints, until the block ends."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        assert server.stdout is not None
        first = server.stdout.readline()
        found = re.search(r"http://\S+", first)
        assert found, f"the server said {first!r}"
        yield found[0].rstrip("/")
    finally:
        server.terminate()
        server.wait(15)


def downloaded(page, name: str, kind: str) -> bytes:
    """Clicks a download button, and gives the content of the file, whose name and format are checked."""
    with page.expect_download() as found:
        page.get_by_role("button", name=f"as {kind}").click()
    assert found.value.suggested_filename == f"qkv-{name}.{kind.lower()}"
    content = found.value.path().read_bytes()
    assert content.startswith({"SVG": b"<svg", "PNG": b"\x89PNG", "JSON": b"{"}[kind]) and len(content) > 300
    if kind == "SVG":
        assert b"var(" not in content and b"</svg>" in content
    return content


def violations(page, colours: bool | None = None) -> list[tuple[str, str]]:
    """What axe-core finds on a page: each rule that is violated, with the first element that violates it.

    The contrast of colours takes most of the time: with True it alone is tested, with False all but it.
    """
    import axe_playwright_python

    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    options = {
        None: "",
        True: ", runOnly: ['color-contrast']",
        False: ", rules: { 'color-contrast': { enabled: false } }",
    }[colours]
    found = page.evaluate(f"axe.run(document, {{ resultTypes: ['violations']{options} }})")["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
