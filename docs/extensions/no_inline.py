"""Scripts and styles that the theme writes into each page, moved to files, so that a strict Content-Security-Policy can serve the site."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from sphinx.application import Sphinx

INLINE = re.compile(r"<(script|style)>(.*?)</\1>", flags=re.S)
STYLE_ATTRIBUTE = re.compile(r'(<[a-z][^<>]*?) style="([^"]*)"([^<>]*>)')


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("build-finished", _externalise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _externalise(app: Sphinx, problem: Exception | None) -> None:
    if problem is None and app.builder.format == "html":
        externalise(Path(app.outdir))


def externalise(site: Path) -> None:
    """Replace every inline script and style of a built site by a file of its content under _static."""
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        root = "../" * len(page.relative_to(site).parts[:-1])
        if INLINE.search(text):
            page.write_text(INLINE.sub(lambda m, root=root: _file(site, root, m[1], m[2]), text), encoding="utf-8")


def _file(site: Path, root: str, kind: str, content: str) -> str:
    name = f"inline-{hashlib.sha256(content.encode()).hexdigest()[:12]}.{'js' if kind == 'script' else 'css'}"
    (site / "_static" / name).write_text(content.strip() + "\n", encoding="utf-8")
    if kind == "script":
        return f'<script src="{root}_static/{name}"></script>'
    return f'<link rel="stylesheet" href="{root}_static/{name}">'
