"""Feedback on answer sheets as self-contained HTML: one sheet annotated in place, and the overview of a class."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import PurePath

from qkv.core.display import html_text
from qkv.errors import with_full_stop
from qkv.sheets.classes import ClassGrade, Mistake, Place, question_labels
from qkv.sheets.feedback import MEANINGS, SIGNS, Grade, GradedAnswer, Statement, counted, words
from qkv.sheets.source_view import SourceView
from qkv.viz.html_report import derivation, disclosure, document, heading, sentence, with_formulas
from qkv.viz.mathml import mathml

LEAD = (
    "Feedback, not a mark. Each answer was put to its question's goal and each formula was decided as a claim; what "
    "was not understood says so, and nothing is called wrong unless every reading of it is refuted."
)
MAX_QUIET_LINES = 8
"""Lines of a sheet without feedback that stay open; of a longer run, the middle is behind a disclosure."""
KEPT_LINES = 2
"""Lines beside feedback that stay open where a run is folded."""
MAX_LISTED = 400
"""Entries of the list of what was not read; further ones are counted."""
QUIET = ("right", "limit", "choice")
"""Verdicts whose reasons are behind a disclosure."""
TONES = {
    "right": "proved", "meets": "proved", "limit": "conditional", "wrong": "refuted", "misses": "refuted",
    "choice": "malformed", "not_read": "malformed", "prose": "malformed", "none": "malformed",
}  # fmt: skip
"""The colour of the theme for each verdict."""


def sheet_page(grade: Grade) -> str:
    """One sheet as an HTML document: its answers, then the sheet with the feedback in place.

    Args:
        grade: The feedback, with the text of the sheet.
    """
    title = PurePath(grade.file).name or "Answer sheet"
    chapters = [("Answers", heading("Answers") + _overview(grade))]
    chapters.append(("The sheet", heading("The sheet") + annotated_sheet(grade)))
    chapters.append(("What the verdicts mean", heading("What the verdicts mean") + legend()))
    return document(title, LEAD, chapters, style())


def class_page(found: ClassGrade) -> str:
    """A class as an HTML document: the commonest mistakes, all sheets by question, alike answers, what was not read.

    Args:
        found: The graded sheets.
    """
    names = _Names(found)
    chapters = [
        ("Commonest mistakes", heading("Commonest mistakes") + _mistakes(found.mistakes, names)),
        ("Sheets by question", heading("Sheets by question") + _tables(found, names)),
        ("Answers that are alike", heading("Answers that are alike") + _alike(found, names)),
        ("Not read", heading("Not read") + _not_read(found, names)),
        ("Sheet by sheet", heading("Sheet by sheet") + _sheets(found, names)),
        ("What the verdicts mean", heading("What the verdicts mean") + legend()),
    ]
    graded = sum(not g.is_empty for g in found)
    title = f"{len(found)} answer sheets"
    lead = f"{graded} of {len(found)} sheets were read. {LEAD}"
    return document(title, lead, chapters, style()).replace("<body>", '<body class="wide">', 1)


class _Names:
    """How the sheets of a class are named on its page, and how their formulas are set."""

    def __init__(self, found: ClassGrade) -> None:
        self._sheets = found.sheets
        self._files = shown_names([grade.file for grade in found])
        self._views: dict[int, SourceView] = {}

    def file(self, sheet: int) -> str:
        return self._files[sheet]

    def view(self, sheet: int) -> SourceView:
        if sheet not in self._views:
            self._views[sheet] = SourceView.of(self._sheets[sheet])
        return self._views[sheet]


def shown_names(files: list[str]) -> list[str]:
    """File names without the folder that all of them share."""
    folders = [PurePath(file).parts[:-1] for file in files]
    shared = 0
    while folders and all(len(parts) > shared and parts[shared] == folders[0][shared] for parts in folders):
        shared += 1
    return [str(PurePath(*PurePath(file).parts[shared:])) for file in files]


def style() -> str:
    """Rules for sheets, beside those of the theme."""
    return resources.files("qkv.viz").joinpath("sheets.css").read_text(encoding="utf-8")


def legend() -> str:
    """What each verdict means."""
    rows = "".join(
        f'<li><b class="{TONES[kind]}">{SIGNS[kind]} {words(kind)}</b> {html_text(meaning)}</li>'
        for kind, meaning in MEANINGS.items()
    )
    return f'<ul class="legend">{rows}</ul>'


def _overview(grade: Grade) -> str:
    """Counts, notation and remarks, then one note for each question."""
    out = [f"<p>{html_text(grade.summary())}</p>"]
    facts = [with_full_stop(f"Problem: {grade.problem}")] if grade.problem else []
    if grade.notation:
        facts.append("Read " + ", ".join(f"{letter} as {role}" for letter, role in grade.notation) + ".")
    out += [f'<p class="facts">{html_text(fact)}</p>' for fact in [*facts, *grade.remarks]]
    view = SourceView.of(grade)
    out += [_answer_note(answer, view, linked=True) for answer in grade.answers]
    return "".join(out)


def annotated_sheet(grade: Grade, only_notes: bool = False, prefix: str = "") -> str:
    """The sheet line by line, with the feedback below each line.

    Args:
        grade: The feedback, with the text of the sheet.
        only_notes: Whether to leave out lines without feedback.
        prefix: Put before the ids of the lines, where a page holds several sheets.
    """
    view = SourceView.of(grade)
    notes: dict[int, list[Statement | GradedAnswer]] = {}
    every: list[Statement | GradedAnswer] = [*grade.answers, *grade.statements]
    for one in every:
        if one.line:
            notes.setdefault(one.line, []).append(one)
    shown = {number for number, _ in view.lines}
    rows = [*view.lines, *((number, "") for number in sorted(notes.keys() - shown))]
    out: list[str] = []
    quiet: list[tuple[int, str]] = []
    for number, source in rows:
        if number in notes:
            out += [] if only_notes else _folded(quiet, is_first=not out)
            out.append(_line(number, source, notes.pop(number), view, prefix, brief=only_notes))
            quiet = []
        else:
            quiet.append((number, source))
    out += [] if only_notes else _folded(quiet, is_first=not out)
    return f'<ol class="sheet">{"".join(out)}</ol>' if out else "<p>There is no text to show.</p>"


def _folded(quiet: list[tuple[int, str]], is_first: bool) -> list[str]:
    """Lines without feedback; the middle of a long run opens on a click."""
    rows = [_plain_line(number, text) for number, text in quiet]
    if len(quiet) <= MAX_QUIET_LINES:
        return rows
    head, tail = (0 if is_first else KEPT_LINES), len(rows) - KEPT_LINES
    text = f"lines {quiet[head][0]} to {quiet[tail - 1][0]}"
    inner = f'<ol class="sheet">{"".join(rows[head:tail])}</ol>'
    fold = f'<li><details class="fold"><summary>{text}</summary>{inner}</details></li>'
    return [*rows[:head], fold, *rows[tail:]]


def _plain_line(number: int, source: str) -> str:
    return (
        f'<li><span class="number">{number}</span><code class="source">{html.escape(source) or "&#8203;"}</code></li>'
    )


def _line(
    number: int, source: str, notes: list[Statement | GradedAnswer], view: SourceView, prefix: str, brief: bool
) -> str:
    """A line with its formulas underlined by verdict, and the notes below; `brief` leaves out most derivations."""
    statements = [one for one in notes if isinstance(one, Statement)]
    shown = "".join(_answer_note(one, view) for one in notes if isinstance(one, GradedAnswer))
    shown += "".join(_statement_note(one, view) for one in statements if one.verdict not in QUIET)
    if kept := [one for one in statements if one.verdict in QUIET]:
        kinds = ", ".join(
            f"{count} {counted(kind, count)}" for kind in QUIET if (count := sum(one.verdict == kind for one in kept))
        )
        many = "they were" if len(kept) > 1 else "it was"
        inner = "".join(_statement_note(one, view, derived=not brief) for one in kept)
        inner = f'<ul class="notes">{inner}</ul>'
        shown += f"<li>{disclosure(f'{kinds}: how {many} read', inner)}</li>"
    code = f'<code class="source">{_marked(source, statements) or "&#8203;"}</code>'
    return (
        f'<li id="{prefix}line-{number}"><span class="number">{number}</span>{code}<ul class="notes">{shown}</ul></li>'
    )


def _marked(source: str, statements: Iterable[Statement]) -> str:
    """A line of the sheet as HTML, its formulas marked with their verdicts."""
    spans: list[tuple[int, int, str]] = []
    at = 0
    for one in statements:
        formula = one.formula.strip().split("\n")[0].strip()
        found = source.find(formula, at) if formula else -1
        if found < 0:
            continue
        spans.append((found, found + len(formula), one.verdict))
        at = found + len(formula)
    out, done = [], 0
    for start, end, kind in spans:
        text = html.escape(source[start:end])
        out.append(f'{html.escape(source[done:start])}<mark class="{TONES[kind]}" title="{words(kind)}">{text}</mark>')
        done = end
    return "".join(out) + html.escape(source[done:])


def _answer_note(answer: GradedAnswer, view: SourceView, linked: bool = False) -> str:
    """The verdict on an answer, with what was asked, what was given, and the claim behind a disclosure."""
    where = f'<a href="#line-{answer.line}">line {answer.line}</a>' if linked and answer.line else ""
    head = f"{html.escape(answer.part)}, {with_formulas(answer.asked)}" if answer.asked else html.escape(answer.part)
    given = f'<p class="written">{formula(answer.given, view)}</p>' if answer.given else ""
    body = f"{given}{_reason(answer)}{_reading(answer.claim, 'The goal with this answer put in')}"
    tag = "section" if linked else "li"
    return f'<{tag} class="note {TONES[answer.verdict]}"><p>{_word(answer.verdict)} {head} {where}</p>{body}</{tag}>'


def _statement_note(statement: Statement, view: SourceView, derived: bool = True) -> str:
    """The verdict on a formula, with its reason; reading and derivation behind disclosures."""
    body = f'<p class="written">{_word(statement.verdict)} {formula(statement.formula, view)}</p>{_reason(statement)}'
    body += _reading(statement.claim, "How it was read")
    for other in statement.readings:
        body += _reading(other, "Another reading, which disagrees")
    body += derivation(statement.derivation) if statement.derivation and derived else ""
    return f'<li class="note {TONES[statement.verdict]}">{body}</li>'


def _word(verdict: str) -> str:
    title = html.escape(MEANINGS[verdict])
    return f'<b class="word {TONES[verdict]}" title="{title}">{SIGNS[verdict]} {words(verdict)}</b>'


def _reason(one: Statement | GradedAnswer) -> str:
    follows = ""
    if one.follows_from is not None:
        follows = f'Follows from <a href="#line-{one.follows_from}">line {one.follows_from}</a>. '
    return f"<p>{follows}{sentence(one.because)}</p>" if follows or one.because else ""


def _reading(claim: str, summary: str) -> str:
    return disclosure(summary, f'<pre class="claim">{html.escape(claim)}</pre>') if claim else ""


def formula(text: str, view: SourceView) -> str:
    """What an author wrote as HTML: a formula as MathML, words with their formulas; else as it was written."""
    plain = " ".join(text.split())
    if "$" in text or re.search(
        r"[A-Za-z]{4,},? +[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]+(?:\{[^{}]*\})?", "", text)
    ):  # words
        return with_formulas(plain)
    latex = view.latex(text).replace("&", " ")
    looks_like_latex = re.search(r"[\\_^=<>+]", latex) and "\\\\" not in latex
    return (mathml(latex) if looks_like_latex else "") or f"<code>{html.escape(plain)}</code>"


def _mistakes(mistakes: tuple[Mistake, ...], names: _Names) -> str:
    if not mistakes:
        return "<p>No mistake was found.</p>"
    rows = []
    for one in mistakes:
        many = f"{one.n_sheets} sheet{'s' * (one.n_sheets != 1)}"
        kind = "answer misses its goal" if one.kind == "answer" else "formula is wrong"
        where = f"{html.escape(one.part)}, " if one.part else ""
        written = formula(one.written, names.view(one.places[0].sheet))
        rows.append(
            f'<li class="note refuted"><p><b class="refuted">✗ {many}</b>: {where}{kind}</p>'
            f'<p class="written">{written}</p><p>{sentence(one.because)}</p>{_places(one.places, names)}</li>'
        )
    return f'<ol class="mistakes">{"".join(rows)}</ol>'


def _places(places: tuple[Place, ...], names: _Names) -> str:
    shown = [
        f'<a href="#s{p.sheet}-line-{p.line}">{html.escape(names.file(p.sheet))}:{p.line}</a>'
        if p.line
        else f'<a href="#s{p.sheet}">{html.escape(names.file(p.sheet))}</a>'
        for p in places
    ]
    text = ", ".join(shown)
    if len(shown) > 12:
        return disclosure(f"On {len(shown)} lines", f'<p class="places">{text}</p>')
    return f'<p class="places">{text}</p>'


def _tables(found: ClassGrade, names: _Names) -> str:
    """One table for each problem: sheets as rows, questions as columns; equal numbers are alike answers."""
    groups = found.group_numbers()
    out = ["<p>Answers to a question with the same number say the same, in other letters perhaps.</p>"]
    place = {id(grade): i for i, grade in enumerate(found)}
    for problem in found.problems:
        questions = found.questions(problem)
        head = "".join(
            f'<th scope="col" title="{html.escape(asked)}">{html.escape(label)}</th>'
            for label, (_, asked) in zip(question_labels(questions), questions, strict=True)
        )
        rows = []
        for grade, answers in found.table(problem):
            i = place[id(grade)]
            cells = "".join(_cell(a, groups.get((i, a.part, a.asked)) if a else None) for a in answers)
            counts = grade.counts()
            cells += f"<td>{counts.get('wrong', 0) or ''}</td><td>{counts.get('not_read', 0) or ''}</td>"
            rows.append(f'<tr><th scope="row"><a href="#s{i}">{html.escape(names.file(i))}</a></th>{cells}</tr>')
        title = f"{problem}: {len(rows)} sheets"
        out.append(
            f'<h3>{html.escape(title)}</h3><table class="class-table" tabindex="0" aria-label="{html.escape(title)}">'
            f'<thead><tr><th scope="col">sheet</th>{head}<th scope="col">wrong formulas</th>'
            f'<th scope="col">not read</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )
    return "".join(out) if found.problems else "<p>No sheet was read.</p>"


def _cell(answer: GradedAnswer | None, group: int | None) -> str:
    if answer is None:
        return "<td></td>"
    number = f" <small>{group}</small>" if group is not None else ""
    title = html.escape(f"{words(answer.verdict)}: {' '.join(answer.given.split())}")
    sign = f'{SIGNS[answer.verdict]}<span class="unseen"> {words(answer.verdict)}</span>'
    return f'<td title="{title}"><b class="{TONES[answer.verdict]}">{sign}</b>{number}</td>'


def _alike(found: ClassGrade, names: _Names) -> str:
    """Questions with the groups of their answers, the largest first."""
    out = []
    groups = found.alike
    for question in dict.fromkeys((g.part, g.asked) for g in groups):
        mine = [g for g in groups if (g.part, g.asked) == question]
        rows = "".join(
            f'<li class="note {TONES[g.verdict]}"><p><b class="{TONES[g.verdict]}">{SIGNS[g.verdict]} '
            f"{words(g.verdict)}</b> group {i}, {len(g.places)} sheet{'s' * (len(g.places) != 1)}</p>"
            f'<p class="written">{formula(g.given, names.view(g.places[0].sheet))}</p>{_places(g.places, names)}</li>'
            for i, g in enumerate(mine, 1)
        )
        title = f"{question[0]}, {question[1]}: {len(mine)} kind{'s' * (len(mine) != 1)} of answer"
        out.append(disclosure(title, f'<ol class="mistakes">{rows}</ol>'))
    return "".join(out) or "<p>No answer was found.</p>"


def _not_read(found: ClassGrade, names: _Names) -> str:
    entries = found.not_read
    if not entries:
        return "<p>Everything was read.</p>"
    rows = []
    for one in entries[:MAX_LISTED]:
        written = formula(one.written, names.view(one.place.sheet)) if one.written else ""
        cells = (_link(one.place, names), html.escape(one.part), written, html_text(one.because))
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    more = f"<p>And {len(entries) - MAX_LISTED} more.</p>" if len(entries) > MAX_LISTED else ""
    table = (
        '<table tabindex="0" aria-label="What was not read"><thead><tr><th>where</th><th>part</th><th>written</th>'
        f"<th>why</th></tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
    )
    intro = "<p>Look at these yourself: nothing is said about whether they are right.</p>"
    return intro + (disclosure(f"{len(entries)} entries", table) if len(entries) > 20 else table)


def _link(place: Place, names: _Names) -> str:
    name = html.escape(names.file(place.sheet))
    return f'<a href="#s{place.sheet}-line-{place.line}">{name}:{place.line}</a>' if place.line else name


def _sheets(found: ClassGrade, names: _Names) -> str:
    """Every sheet behind a disclosure: the lines that got feedback."""
    out = []
    for i, grade in enumerate(found):
        why = "".join(f"<p>{html_text(remark)}</p>" for remark in grade.remarks)
        inner = why + (annotated_sheet(grade, only_notes=True, prefix=f"s{i}-") if not grade.is_empty else "")
        inner = inner.replace('href="#line-', f'href="#s{i}-line-')
        out.append(f'<div id="s{i}">{disclosure(f"{names.file(i)}: {grade.summary()}", inner)}</div>')
    return "".join(out)
