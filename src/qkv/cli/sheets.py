"""qkv grade: feedback on answer sheets as people write them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qkv.cli.common import JSON, check_page_path, progress, say, working
from qkv.cli.exit_codes import BAD_INPUT, exit_if_negative
from qkv.cli.json_documents import document_text
from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.sheets.classes import ClassGrade
    from qkv.sheets.feedback import Grade, GradedAnswer, Statement

WIDTH = 100
"""Columns of the annotated sheet."""
MAX_FORMULA = 160
"""Characters of a formula; of a longer one, the beginning is shown."""
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
"""Endings of the file of --csv."""
_INSTANCES = re.compile(r"; \d+ of \d+ numerical instances agree, none disagrees$")
"""What a proof was tested on, which is left out unless it is asked for."""
Files = Annotated[
    list[Path] | None,
    typer.Argument(help="Sheets in LaTeX, Markdown, Typst or plain text, and notebooks, as their authors wrote them."),
]


def grade(
    files: Files = None,
    problem: Annotated[
        str | None, typer.Option(help="Name of a shipped problem, or a problem file; recognised if not given.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page: the sheet with feedback in place, or a class.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a table: one row a sheet, one column a question.")] = None,
    claims: Annotated[
        Path | None, typer.Option(help="Write how each formula was read, as claim blocks for qkv check.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; as many as help, if not given.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print derivations and how each line was read too.")] = False,
    as_json: JSON = False,
) -> None:
    """Give feedback on answer sheets: exit 0 if nothing is wrong, 1 if something is, 2 if a sheet cannot be read.

    It gives no mark: each answer meets its question's goal or misses it, each formula is right or wrong, with the
    reason; what was not understood is listed, not guessed.
    """
    from qkv.sheets.classes import ClassGrade
    from qkv.sheets.sheet_files import grade_files

    if not files:
        raise QkvError("grading sheets", "no file was given", "Give the file of a sheet, or several")
    _check_paths(html, csv, claims)
    if len(files) == 1 and not as_json:
        found = ClassGrade((_told(files[0], problem, show),))
    else:
        with progress(f"grading {len(files)} sheet{'s' * (len(files) != 1)}") as step:
            found = ClassGrade(grade_files(files, problem, processes=processes, callback=step))
    _write(found, html, csv, claims)  # before the document of --json, so that a refusal is the only one
    if as_json:
        say(document_text(found.to_json()))
    elif len(files) > 1:
        say(_class_text(found))
    for sheet in found:
        if sheet.is_empty:
            why = " ".join(sheet.remarks) or "Nothing in it was read as an answer or a formula."
            typer.echo(f"{sheet.file}: {why}", err=True)
    if any(sheet.is_empty for sheet in found):
        raise typer.Exit(BAD_INPUT)
    exit_if_negative(all(sheet.nothing_wrong for sheet in found))


def _check_paths(html: Path | None, csv: Path | None, claims: Path | None) -> None:
    """Refuse unusable output paths, before any work is done."""
    from qkv.core.files import check_output_path

    check_page_path(html)
    if csv is not None and csv.suffix.lower() not in TABLE_SUFFIXES:
        problem = f"'{csv.suffix}' is not the ending of a table of text"
        raise QkvError(f"--csv {csv}", problem, f"Use {', '.join(TABLE_SUFFIXES)}")
    for path in (csv, claims):
        if path is not None:
            check_output_path(path)


def _write(found: ClassGrade, html: Path | None, csv: Path | None, claims: Path | None) -> None:
    from qkv.core.files import write_text

    if html is not None:
        from qkv.viz.sheets_report import class_page, sheet_page

        write_text(html, sheet_page(found.sheets[0]) if len(found) == 1 else class_page(found))
    if csv is not None:
        write_text(csv, found.to_csv())
    if claims is not None:
        from qkv.sheets.claim_blocks import claim_document

        write_text(claims, claim_document(found))


def _told(path: Path, problem: str | None, show: bool) -> Grade:
    """The feedback on one sheet, printed as it becomes known: the problem, the answers, then line by line."""
    from qkv.sheets.problems import editions
    from qkv.sheets.sheet_files import SECONDS_PER_SHEET, grade_file

    if problem is not None:
        editions(problem)  # refuses what is no problem, before the sheet is read
    printed = 0

    def tell(so_far: Grade) -> None:
        nonlocal printed
        parts = _parts(so_far, show)[: 2 if so_far.answers else 1]
        say("".join(parts[printed:]))
        printed = len(parts)

    with working(f"grading {path}"):
        found = grade_file((problem, SECONDS_PER_SHEET), str(path), tell)
    say("".join(_parts(found, show)[printed:]))
    return found


def annotated(grade: Grade, show: bool = False) -> str:
    """The feedback on one sheet: the answers first, then every formula in the order of the sheet.

    Args:
        grade: The feedback.
        show: Whether to print derivations, and how each line was read.
    """
    return "".join(_parts(grade, show))


def _parts(grade: Grade, show: bool) -> list[str]:
    """The heading, the answers, and the formulas with the summary."""
    head = grade.file + (f": {grade.problem}" if grade.problem else "") + "\n"
    answers = [line for answer in grade.answers for line in _answer(answer, show)]
    lines = [""]
    if grade.statements:
        lines.append("Line by line")
        if grade.notation:
            lines.append("       read " + ", ".join(f"{letter} as {role}" for letter, role in grade.notation))
        lines += [line for statement in grade.statements for line in _statement(statement, show)]
        lines.append("")
    lines.append(grade.summary())
    if (first := grade.mistakes[:1]) and first[0].line:
        lines.append(f"Look at line {first[0].line} first.")
    lines += [] if grade.failed else list(grade.remarks)
    return [head, "\n".join(["", "Answers", *answers, ""]) if answers else "", "\n".join(lines) + "\n"]


def _answer(answer: GradedAnswer, show: bool) -> list[str]:
    from qkv.sheets.feedback import SIGNS, said, words

    where = f"line {answer.line}" if answer.line else ""
    written = _short(answer.given or answer.asked)
    head = f"{SIGNS[answer.verdict]} {words(answer.verdict):<9} {answer.part:<8} {where:<9}{written}"
    lines = [head.rstrip(), *([] if answer.verdict == "none" else _wrapped(said(answer)))]
    return lines + (_claim(answer.claim) if show else [])


def _statement(statement: Statement, show: bool) -> list[str]:
    from qkv.sheets.feedback import SIGNS, said, words

    kind = statement.verdict
    lines = [f"{statement.line:>4} {SIGNS[kind]} {words(kind):<9}{_short(statement.formula)}"]
    if kind in ("wrong", "limit", "not_read") or show:
        lines += _wrapped(said(statement) if show else _INSTANCES.sub("", said(statement)))
        lines += [line for reading in statement.readings for line in _wrapped(f"or read as: {reading}")]
    if show:
        lines += _claim(statement.claim)
        lines += [f"         . {step.text}" for step in statement.derivation]
    return lines


def _claim(claim: str) -> list[str]:
    return [f"         | {line}" for line in claim.splitlines() if line.strip()]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7, break_on_hyphens=False)


def _short(text: str) -> str:
    """A formula on one line."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_FORMULA else f"{line[: MAX_FORMULA - 1]}…"


def _class_text(found: ClassGrade) -> str:
    """The sheets one after the other in a line each, then the class as a whole."""
    from rich.console import Console

    out = []
    for sheet in found:
        first = sheet.mistakes[:1]
        more = f" First mistake: line {first[0].line}." if first and first[0].line else ""
        out.append(f"{sheet.file}: {' '.join(sheet.remarks) if sheet.failed else sheet.summary() + more}")
    console = Console(highlight=False, soft_wrap=False)
    with console.capture() as table:
        console.print(found)
    return "\n".join(out) + "\n\n" + table.get()
