"""Scripts and styles of the theme, moved from pages to files: a strict Content-Security-Policy can serve the site."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from sphinx.application import Sphinx

INLINE = re.compile(r"<(script|style)>(.*?)</\1>", flags=re.S)
STYLED = re.compile(r'<([a-zA-Z][^<>]*?) style="([^"]*)"([^<>]*)>')
STYLES = "inline.css"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_css_file(STYLES)
    app.connect("build-finished", _externalise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _externalise(app: Sphinx, problem: Exception | None) -> None:
    if problem is None and app.builder.format == "html":
        externalise(Path(app.outdir))


def externalise(site: Path) -> None:
    """Move every inline script, style and style attribute of a built site to files under _static."""
    rules: dict[str, str] = {}
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        root = "../" * len(page.relative_to(site).parts[:-1])
        changed = INLINE.sub(lambda m, root=root: _file(site, root, m[1], m[2]), text)
        changed = STYLED.sub(lambda m: _with_class(m, rules), changed)
        if changed != text:
            page.write_text(changed, encoding="utf-8")
    lines = [f".{name} {{ {rule} }}" for name, rule in sorted(rules.items())]
    (site / "_static" / STYLES).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _file(site: Path, root: str, kind: str, content: str) -> str:
    name = f"inline-{_digest(content)}.{'js' if kind == 'script' else 'css'}"
    (site / "_static" / name).write_text(content.strip() + "\n", encoding="utf-8")
    if kind == "script":
        return f'<script src="{root}_static/{name}"></script>'
    return f'<link rel="stylesheet" href="{root}_static/{name}">'


def _with_class(match: re.Match[str], rules: dict[str, str]) -> str:
    """The tag with a class in place of its style attribute."""
    name = f"inline-{_digest(match[2])}"
    rules[name] = match[2]
    tag = f"{match[1]}{match[3]}"
    if ' class="' in tag:
        return "<" + tag.replace(' class="', f' class="{name} ', 1) + ">"
    start, _, rest = tag.partition(" ")
    return f'<{start} class="{name}"{" " + rest if rest else ""}>'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
