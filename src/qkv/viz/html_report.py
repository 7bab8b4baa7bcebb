"""One self-contained HTML page from results: words, pictures and cards."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

from qkv import __version__
from qkv.claims.verdict import Verdicts
from qkv.core.display import Displayable
from qkv.core.files import write_text
from qkv.viz.theme import css

CLAIMS = (
    "Each claim was read from its document, argued about symbolically and tried on numbers. `proved` holds for all "
    "values in range, `conditional` under the condition stated, `refuted` comes with numbers to paste into Python."
)


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture with what it says, and the command that draws it again."""

    svg: str
    caption: str
    command: str


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A part of a report: paragraphs (with `code` in backticks), pictures and results."""

    title: str
    blocks: tuple[str | Picture | Displayable, ...]


def page(title: str, lead: str, chapters: list[Chapter]) -> str:
    """The whole document; it needs no other file and no network."""
    contents = "".join(f'<li><a href="#{_anchor(c.title)}">{html.escape(c.title)}</a></li>' for c in chapters)
    body = "\n".join(_chapter(c) for c in chapters)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>
{css()}</style>
</head>
<body>
<header><h1>{html.escape(title)}</h1>
<p class="lead">{_words(lead)}</p>
<nav><ol>{contents}</ol></nav></header>
<main>
{body}
</main>
<footer>Made by qkv {__version__}. Every number above was computed for this page.</footer>
</body>
</html>
"""


def claims_page(parts: list[tuple[str, Verdicts]]) -> str:
    """A chapter for each document of claims: a table of its verdicts, then each of them in full."""
    chapters = []
    for name, verdicts in parts:
        counts = ", ".join(f"{count} {kind}" for kind, count in verdicts.counts().items()) or "no claims"
        chapters.append(Chapter(name, (f"{len(verdicts)} claims: {counts}.", verdicts, *verdicts)))
    return page("Claims about attention", CLAIMS, chapters)


def write(path: str | Path, title: str, lead: str, chapters: list[Chapter]) -> None:
    """Write the page, whole or not at all."""
    write_text(path, page(title, lead, chapters))


def _chapter(chapter: Chapter) -> str:
    parts = [f'<h2 id="{_anchor(chapter.title)}">{html.escape(chapter.title)}</h2>']
    for number, block in enumerate(chapter.blocks):
        if isinstance(block, Picture):
            caption, command = _words(block.caption), html.escape(block.command)
            drawn = _own_names(block.svg, f"{_anchor(chapter.title)}-{number}")
            parts.append(f"<figure>{drawn}<figcaption>{caption}<pre>{command}</pre></figcaption></figure>")
        elif isinstance(block, Displayable):
            parts.append(block._repr_html_())
        else:
            parts.append(f"<p>{_words(block)}</p>")
    return "\n".join(parts)


def _words(text: str) -> str:
    """A paragraph: `code` in backticks, and the index of v_a set low wherever it is not code."""
    parts = html.escape(text).split("`")
    low = [re.sub(r"(\b[A-Za-z]|[α-ω])_([a-z0-9])(?![A-Za-z0-9_])", r"\1<sub>\2</sub>", part) for part in parts]
    return "".join(f"<code>{parts[i]}</code>" if i % 2 else low[i] for i in range(len(parts)))


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _own_names(svg: str, prefix: str) -> str:
    """Ids made unique on the page: two pictures may define clip paths of one name."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    return re.sub(r'href="#', f'href="#{prefix}-', svg)
