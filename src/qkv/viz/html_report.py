"""Self-contained HTML report: paragraphs, figures and result cards on one page."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from qkv import __version__
from qkv.claims.verdict import SIGNS, Step, Verdict, Verdicts
from qkv.core.display import Card, Displayable, html_text, number_spans
from qkv.core.files import write_text
from qkv.viz.formulas import GREEK, pieces
from qkv.viz.mathml import mathml
from qkv.viz.theme import css

MAX_ROWS = 8
"""Rows of a table; a longer one is behind a disclosure, which prints closed."""
MAX_FACTS = 9
"""Facts of a card; further ones are behind a disclosure."""

_NUMERIC = re.compile(r"(?:[≤≥<>±+−-] ?)*(?:1 − )?\d[\d.,]*(?:e[-+]?\d+)?(?: ?%)?|[–-]?")
"""A cell that holds a number, or nothing."""

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
    return document(title, lead, [(c.title, _chapter(c)) for c in chapters])


def document(title: str, lead: str, chapters: list[tuple[str, str]], style: str = "") -> str:
    """An HTML document of chapters that are HTML already, each beginning with its heading.

    Args:
        title: The title of the page.
        lead: One paragraph; `code` in backticks.
        chapters: Titles, from which anchors are made, and contents.
        style: Rules beside those of the theme.
    """
    contents = "".join(f'<li><a href="#{anchor(name)}">{html_text(name)}</a></li>' for name, _ in chapters)
    body = "\n".join(content for _, content in chapters)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>
{css()}{style}</style>
</head>
<body>
<header><h1>{html_text(title)}</h1>
<p class="lead">{paragraph(lead)}</p>
<nav aria-label="Chapters"><ol>{contents}</ol></nav></header>
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


def heading(title: str) -> str:
    """The heading of a chapter, with the anchor that the contents link to."""
    return f'<h2 id="{anchor(title)}">{html_text(title)}</h2>'


def _chapter(chapter: Chapter) -> str:
    parts = [heading(chapter.title)]
    for number, block in enumerate(chapter.blocks):
        if isinstance(block, Picture):
            caption, command = paragraph(block.caption), html.escape(block.command)
            drawn = _prefix_ids(block.svg, f"{anchor(chapter.title)}-{number}")
            parts.append(f"<figure>{drawn}<figcaption>{caption}<pre>{command}</pre></figcaption></figure>")
        elif isinstance(block, Verdict):
            parts.append(_verdict(block))
        elif isinstance(block, Verdicts):
            parts.append(_verdicts(block))
        elif isinstance(block, Displayable):
            parts.append(_card(block.card()))
        else:
            parts.append(f"<p>{paragraph(block)}</p>")
    return "\n".join(parts)


def _card(card: Card) -> str:
    """A result: its title and facts; what would fill a page is behind a disclosure."""
    facts = [f"<dt>{html_text(name)}</dt><dd>{paragraph(value)}</dd>" for name, value in card.facts]
    out = [f'<section class="qkv-card"><h3>{html_text(card.title)}</h3>']
    if facts:
        out.append(f"<dl>{''.join(facts[:MAX_FACTS])}</dl>")
    if len(facts) > MAX_FACTS:
        out.append(disclosure(f"{len(facts) - MAX_FACTS} more", f"<dl>{''.join(facts[MAX_FACTS:])}</dl>"))
    if card.rows:
        numeric = {i for i in range(len(card.columns)) if all(_NUMERIC.fullmatch(row[i]) for row in card.rows)}
        rows = [
            "<tr>" + "".join(f"<td{_right(i in numeric)}>{_cell(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
            for row in card.rows
        ]
        out.append(_table(card.columns, rows, card.title, numeric))
    if card.note:
        out.append(f"<p>{paragraph(card.note)}</p>")
    return "".join(out) + "</section>"


def _cell(text: str) -> str:
    """The text of a cell; what an author wrote in LaTeX is set as a formula."""
    formula = mathml(text.replace("&", " ")) if re.search(r"\\[A-Za-z]", text) else ""
    return formula or html_text(text)


def _verdict(verdict: Verdict) -> str:
    """A verdict: the statement and the reason with their formulas set; derivation and numbers behind disclosures."""
    kind = verdict.verdict
    head = f'<h3><span class="{kind}">{SIGNS[kind]} {html.escape(verdict.words)}</span>: {html.escape(verdict.id)}</h3>'
    if kind == "malformed":
        stated, because = f"<code>{html_text(verdict.says)}</code>", html_text(verdict.because)
    else:
        stated, because = with_formulas(verdict.says), sentence(verdict.because)
    out = [f'<section class="qkv-card {kind}">{head}<p class="stated">{stated}</p><p>{because}</p>']
    if verdict.kernel is not None:
        out.append(f'<p class="kernel">{html_text(verdict.kernel.text)}</p>')
        if verdict.kernel.theorem:
            theorem = f'<pre tabindex="0" aria-label="Theorem">{html.escape(verdict.kernel.theorem)}</pre>'
            out.append(disclosure("Theorem, as Coq reads it", theorem))
    if verdict.derivation:
        out.append(derivation(verdict.derivation))
    if verdict.counterexample:
        lines = "<br>".join(html_text(line) for line in verdict.counterexample.split("\n"))
        out.append(disclosure("Numbers, as Python", f"<p><code>{lines}</code></p>"))
    return "".join(out) + "</section>"


def _verdicts(verdicts: Verdicts) -> str:
    """How many verdicts of each kind there are, and a table of all of them behind a disclosure."""
    counts = "".join(
        f'<li><span class="{kind}">{SIGNS[kind]} {kind}</span> {count}</li>'
        for kind, count in verdicts.counts().items()
    )
    rows = []
    for v in verdicts:
        plain = v.verdict == "malformed"
        cells = [html_text(part) if plain else with_formulas(part) for part in (v.says, v.because)]
        kind = f'<span class="{v.verdict}">{SIGNS[v.verdict]} {html.escape(v.words)}</span>'
        rows.append(f"<tr><td>{html.escape(v.id)}</td><td>{kind}</td><td>{cells[0]}</td><td>{cells[1]}</td></tr>")
    many = f"{len(verdicts)} statement{'s' * (len(verdicts) != 1)}"
    table = _table(("claim", "verdict", "says", "because"), rows, many) if rows else ""
    return f'<section class="qkv-card"><h3>{many}</h3><ul class="counts">{counts}</ul>{table}</section>'


def _right(is_numeric: bool) -> str:
    return ' class="n"' if is_numeric else ""


def _table(columns: tuple[str, ...], rows: list[str], title: str, numeric: Collection[int] = ()) -> str:
    """A table that scrolls where it is too wide, and that is behind a disclosure where it is long.

    Args:
        columns: Its headers.
        rows: Its rows, as HTML.
        title: What it shows, for screen readers.
        numeric: Which columns hold numbers only.
    """
    head = "".join(f"<th{_right(i in numeric)}>{html_text(column)}</th>" for i, column in enumerate(columns))
    text = f'<table tabindex="0" aria-label="{html.escape(title)}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}'
    text += "</tbody></table>"
    return text if len(rows) <= MAX_ROWS else disclosure(f"All {len(rows)} rows", text)


def derivation(steps: Sequence[Step]) -> str:
    """The steps of a derivation behind a disclosure."""
    lines = "".join(f"<li>{_step(step.text, step.latex)}</li>" for step in steps)
    return disclosure(f"Derivation, {len(steps)} step{'s' * (len(steps) != 1)}", f"<ol>{lines}</ol>")


def disclosure(summary: str, content: str) -> str:
    """HTML that opens on a click."""
    return f"<details><summary>{html_text(summary)}</summary>{content}</details>"


def _step(text: str, latex: str) -> str:
    """A line of a derivation: its words, unless they only repeat the formula, and the formula."""
    formula = "" if re.fullmatch(r"\\text\{(?:[^{}\\]|\\.)*\}", latex) else mathml(latex, display=True)
    words = not formula or re.search(r"[A-Za-z]{4}", text)
    return (with_formulas(text) if words else "") + formula


def with_formulas(text: str) -> str:
    """A sentence as HTML, its formulas as MathML; one that MathML cannot say stays as it was written."""
    out = []
    for piece in pieces(text):
        formula = mathml(piece.latex) if piece.latex else ""
        out.append(formula or (f"<code>{html_text(piece.text)}</code>" if piece.latex else _with_code(piece.text)))
    return "".join(out)


def sentence(text: str) -> str:
    """A reason as HTML, with its formulas set; a first word that is no formula gets a capital letter."""
    word = re.match(r"(?:a|[a-z]{2,})(?=[ ,:] ?[a-z])", text)
    plain = word is not None and word[0] not in GREEK
    return with_formulas(text[:1].upper() + text[1:] if plain else text)


def _with_code(text: str) -> str:
    """A text as HTML, in which what stands in backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html_text(text))


def paragraph(text: str) -> str:
    """HTML of a paragraph: text in backticks becomes code; elsewhere the index of v_a becomes a subscript."""
    parts = [number_spans(part) for part in html.escape(text).split("`")]
    text_parts = [re.sub(r"(\b[A-Za-z]|[α-ω])_([a-z0-9])(?![A-Za-z0-9_])", r"\1<sub>\2</sub>", part) for part in parts]
    return "".join(f"<code>{parts[i]}</code>" if i % 2 else text_parts[i] for i in range(len(parts)))


def anchor(title: str) -> str:
    """The anchor of a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _prefix_ids(svg: str, prefix: str) -> str:
    """Prefix all ids of an SVG element and the references to them: two figures may define clip paths of one name."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    return re.sub(r'href="#', f'href="#{prefix}-', svg)
