"""Self-contained HTML report: paragraphs, figures and result cards on one page."""

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

CLAIMS_LEAD = (
    "Each claim was parsed from its document, examined symbolically and tested on numbers. `proved` holds for all "
    "values in range, `conditional` under the stated condition; `refuted` is contradicted by the computation or the "
    "counterexample beside it; `holds` was tested on numbers only."
)


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure with a caption and the command that draws it.

    Attributes:
        svg: The figure as an SVG element.
        caption: One sentence; `code` in backticks.
        command: The shell command that draws the figure again.
    """

    svg: str
    caption: str
    command: str


@dataclasses.dataclass(frozen=True)
class Chapter:
    """One section of a report.

    Attributes:
        title: Its heading, from which the anchor is made.
        blocks: Paragraphs (`code` in backticks), figures and results, in order.
    """

    title: str
    blocks: tuple[str | Picture | Displayable, ...]


def page(title: str, lead: str, chapters: list[Chapter]) -> str:
    """The HTML document; it refers to no other file and fetches nothing."""
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
<p class="lead">{_paragraph(lead)}</p>
<nav><ol>{contents}</ol></nav></header>
<main>
{body}
</main>
<footer>Made by qkv {__version__}. Every number above was computed for this page.</footer>
</body>
</html>
"""


def claims_page(parts: list[tuple[str, Verdicts]]) -> str:
    """A report with one chapter per document of claims: a table of its verdicts, then each verdict in full."""
    chapters = []
    for name, verdicts in parts:
        counts = ", ".join(f"{count} {kind}" for kind, count in verdicts.counts().items()) or "no claims"
        chapters.append(Chapter(name, (f"{len(verdicts)} claims: {counts}.", verdicts, *verdicts)))
    return page("Claims about attention", CLAIMS_LEAD, chapters)


def write(path: str | Path, title: str, lead: str, chapters: list[Chapter]) -> None:
    """Write the report atomically."""
    write_text(path, page(title, lead, chapters))


def _chapter(chapter: Chapter) -> str:
    parts = [f'<h2 id="{_anchor(chapter.title)}">{html.escape(chapter.title)}</h2>']
    for number, block in enumerate(chapter.blocks):
        if isinstance(block, Picture):
            caption, command = _paragraph(block.caption), html.escape(block.command)
            drawn = _prefix_ids(block.svg, f"{_anchor(chapter.title)}-{number}")
            parts.append(f"<figure>{drawn}<figcaption>{caption}<pre>{command}</pre></figcaption></figure>")
        elif isinstance(block, Displayable):
            parts.append(block._repr_html_())
        else:
            parts.append(f"<p>{_paragraph(block)}</p>")
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    """HTML of a paragraph: text in backticks becomes code; elsewhere the index of v_a becomes a subscript."""
    parts = html.escape(text).split("`")
    text_parts = [re.sub(r"(\b[A-Za-z]|[α-ω])_([a-z0-9])(?![A-Za-z0-9_])", r"\1<sub>\2</sub>", part) for part in parts]
    return "".join(f"<code>{parts[i]}</code>" if i % 2 else text_parts[i] for i in range(len(parts)))


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _prefix_ids(svg: str, prefix: str) -> str:
    """Prefix all ids of an SVG element and the references to them: two figures may define clip paths of one name."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    return re.sub(r'href="#', f'href="#{prefix}-', svg)
