"""read_sheet: the text of an answer sheet to formulas with their parts, lines and words."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from qkv.sheets.reading.forms import Document, expanded, read_document
from qkv.sheets.reading.kets import without_kets
from qkv.sheets.reading.parts import Stretch, stretches
from qkv.sheets.reading.regions import answer_regions
from qkv.sheets.reading.sentences import around, cleaned, following, previous
from qkv.sheets.reading.sheet import Formula, Passage, Sheet
from qkv.sheets.reading.spans import Span, plain_formulas, rows, spans
from qkv.sheets.reading.typst import as_latex

MAX_FORMULAS = 1500
MAX_NEARBY = 1000  # characters on each side that are looked at for the sentences next to a formula
_ABOUT = re.compile(r"k_|v_|\\mu|\\alpha|alpha_|mu_|q_|q\b")
_DISTRIBUTED = re.compile(
    r"(?<!\\)~(?=\s*(?:\\(?:mathcal|cal|mathscr|mathrm)\s*\{?\s*)?N\s*\}?\s*(?:\\left\s*)?\()"
)  # x ~ N(0, 1)
_FONT = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|pmb|vec|symbf|mathit|bold)(?:\s*\{\s*(\\?[A-Za-z]+(?:_\{?\w\}?)?)\s*\}|\s*(?=\\[A-Za-z])|\s+(?=[A-Za-z]))"
)  # \mathbf{k}, \boldsymbol\mu, \vec q
_INDEX = re.compile(r"_\s*\{\s*([A-Za-z0-9])\s*\}(?=[^A-Za-z0-9]|$)")
_TAG = re.compile(r"\\(?:label|tag)\*?\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")


def read_sheet(
    text: str,
    file: str = "",
    *,
    titles: Mapping[str, tuple[str, ...]] | None = None,
    numbered: bool = False,
) -> Sheet:
    """Read an answer sheet.

    Args:
        text: The text of the sheet: LaTeX, Markdown, Typst, a notebook as JSON, or plain text.
        file: Its name, whose ending tells the form; without one the form is told by the text.
        titles: Phrases by which the parts of the problem are told where they have no label, for each part.
        numbered: Whether numbers at the beginning of lines count the parts under a letter.

    Returns:
        The sheet with every formula in reading order. Whatever the text, nothing is raised.

    Example:
        >>> from qkv.sheets.reading import read_sheet
        >>> sheet = read_sheet("(a) We have $k_a^T q = 1$ here.\\n\\n(b) Take $q = k_a$.")
        >>> [(f.part, f.line, f.math) for f in sheet.formulas]
        [('a', 1, 'k_a^T q = 1'), ('b', 3, 'q = k_a')]
    """
    document = read_document(text, file)
    body = document.text
    found = spans(body, document.form)
    if not any(_ABOUT.search(s.math) for s in found):
        found = sorted([*found, *_apart(plain_formulas(body), found)], key=lambda s: s.start)
    where = stretches(body, document.form, titles or {}, numbered)
    names = _names(where, found)
    regions = answer_regions(body, document.form, [s.at for s in where])
    formulas: list[Formula] = []
    said = [replace(span, math=_latex(document, span.math)) for span in found]
    for index, span in enumerate(found):
        if len(formulas) >= MAX_FORMULAS:
            break
        place = bisect_right(names[0], span.start) - 1
        part = names[1][max(place, 0)]
        before, after = around(body, said, index)
        own = bool(regions) and not any(start <= span.start < end for start, end in regions)
        lead = previous(body, said, index)
        near = _nearby(body, said, index, _bounds(body, names[0], regions, span.start))
        formulas += [
            replace(f, previous=lead, nearby=near) for f in _formulas(document, span, part, before, after, own, index)
        ]
    passages = _passages(document, names, regions)
    parts = [p for p in dict.fromkeys([*(x.part for x in passages), *(x.part for x in formulas)]) if p]
    return Sheet(file, document.form, body, tuple(formulas), tuple(passages), tuple(parts), document.cut)


def _bounds(body: str, starts: list[int], regions: list[tuple[int, int]], at: int) -> tuple[int, int]:
    """Where the stretch of a part, or the answer in it, begins and ends that holds a place of the text."""
    place = bisect_right(starts, at)
    begin, end = starts[place - 1] if place else 0, starts[place] if place < len(starts) else len(body)
    inside = next(((first, last) for first, last in regions if first <= at < last), (begin, end))
    return max(begin, inside[0]), min(end, inside[1])


def _nearby(body: str, said: list[Span], index: int, bounds: tuple[int, int]) -> tuple[str, ...]:
    """The sentence of a span and those next to it, within the bounds."""
    begin, end = bounds
    span = said[index]
    low, high = max(begin, span.start - MAX_NEARBY), min(end, span.end + MAX_NEARBY)
    first = bisect_left(said, low, key=lambda one: one.start)
    mine = [
        replace(one, start=one.start - low, end=one.end - low, inner=one.inner - low)
        for one in itertools.takewhile(lambda one: one.end <= high, said[first:])
    ]
    text, here = body[low:high], index - first
    if here >= len(mine):
        return ()
    before, after = around(text, mine, here)
    own = f"{before} ${' '.join(span.math.split())}$ {after}"
    return own, previous(text, mine, here), following(text, mine, here)


def _apart(more: list[Span], found: list[Span]) -> list[Span]:
    return [m for m in more if not any(s.start < m.end and m.start < s.end for s in found)]


def _names(where: list[Stretch], found: list[Span]) -> tuple[list[int], list[str]]:
    """Where each stretch begins and what its part is called; the question about attention goes without a number."""
    starts = [s.at for s in where]
    votes: Counter[int] = Counter()
    for span in found:
        stretch = where[max(bisect_right(starts, span.start) - 1, 0)]
        if stretch.part and _ABOUT.search(span.math) and "mathbf" not in span.math:
            votes[stretch.question] += 1
    for stretch in where:
        if re.search(r"attention\s+(?:exploration|mech)", stretch.title, re.I):
            votes[stretch.question] += 100
    main = votes.most_common(1)[0][0] if votes else 1
    names = []
    for stretch in where:
        if stretch.question == main:
            names.append(stretch.part)
        else:
            names.append(f"{stretch.question}.{stretch.part}" if stretch.part else str(stretch.question))
    return starts, names


def _line(document: Document, at: int) -> int:
    row = bisect_right(document.starts, at) - 1
    return document.lines[min(row, len(document.lines) - 1)]


def _formulas(
    document: Document, span: Span, part: str, before: str, after: str, own: bool, index: int
) -> list[Formula]:
    """The formulas of a span, one for each row."""
    math = span.math
    pieces = _typst_rows(math) if document.form == "typst" else [(row.at, row.text) for row in rows(math)]
    out = []
    single = len(pieces) == 1
    for number, (at, source) in enumerate(pieces):
        lead = len(source) - len(source.lstrip())
        latex = _latex(document, source)
        latex = re.sub(r"\s+", " ", _TAG.sub("", latex)).strip()
        line = _line(document, span.inner + at + lead)
        written = source.strip()
        last = number == len(pieces) - 1
        out.append(
            Formula(
                line,
                written,
                latex,
                part,
                number,
                -1 if single and not span.display else index,
                before,
                after if last else "",
                own,
            )
        )
    return out


def _latex(document: Document, math: str) -> str:
    """Math in LaTeX with the author's macros put in; vectors lose their fonts, indices of one letter their braces."""
    latex = as_latex(math) if document.form == "typst" else expanded(math, document.macros)
    latex = without_kets(_INDEX.sub(r"_\1", _FONT.sub(_without_font, latex)))
    return _DISTRIBUTED.sub(r"\\sim ", latex)


def _without_font(found: re.Match[str]) -> str:
    """The letter by itself, apart from a command before it."""
    letter = found[1] or ""
    gap = found.start() > 0 and found.string[found.start() - 1].isalpha() and not letter.startswith("\\")
    return f" {letter}" if gap else letter


def _typst_rows(math: str) -> list[tuple[int, str]]:
    out, start = [], 0
    for found in re.finditer(r"\\[ \t]*(?=\n|$)", math):
        out.append((start, math[start : found.start()]))
        start = found.end()
    out.append((start, math[start:]))
    return [(at, piece) for at, piece in out if piece.strip()] or [(0, math)]


def _passages(document: Document, names: tuple[list[int], list[str]], regions: list[tuple[int, int]]) -> list[Passage]:
    """The words of each stretch, answers and the problem's own text apart."""
    out: list[Passage] = []
    starts, parts = names
    body = document.text
    cuts = sorted({0, len(body), *starts, *(p for region in regions for p in region)})
    for begin, end in itertools.pairwise(cuts):
        part = parts[max(bisect_right(starts, begin) - 1, 0)]
        own = bool(regions) and not any(start <= begin < stop for start, stop in regions)
        words = cleaned(body[begin:end])
        if not words or re.fullmatch(r"[\W_]*", words):
            continue
        lead = len(body[begin:end]) - len(body[begin:end].lstrip())
        out.append(Passage(part, _line(document, begin + lead), words, own))
    return out
