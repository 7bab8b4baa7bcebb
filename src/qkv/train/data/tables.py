"""Delimited tables: tab, semicolon or comma, quoted or not; and question files in any of these forms."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

DELIMITERS = ("\t", ";", ",")
"""In the order in which they are tried: a sentence holds commas more often than the others."""
MIN_REGULAR_FRACTION = 0.5  # of the lines that a delimiter must cut into the same number of cells
MAX_LINES_PER_ROW = 1000  # of a quoted cell with line ends inside
MAX_LINES_LOOKED_AT = 2000  # to find the delimiter
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by how a file begins; the marks of UTF-32 first, because one of them begins with one of UTF-16."""
QUESTION_HEADERS, ANSWER_HEADERS = ("question", "prompt", "query"), ("answer", "expected", "target")
SECOND_WORDS = ("text", "string", "value", "question", "answer", "asked", "given", "expected", "input", "output")
"""What may follow such a word in a header ("expected answer"); "Question one" is the first row of a table."""


class Row(NamedTuple):
    """Cells of a row, without quotes and white space around them, and the number of its first line."""

    line: int
    cells: tuple[str, ...]


class BadLine(NamedTuple):
    """A line that cannot be used, and why."""

    line: int
    why: str


NumberedLines = Sequence[tuple[int, str]]


def text_lines(data: bytes, errors: str = "strict") -> list[str]:
    """The lines of a file: UTF-8, or what its byte order mark says; they end with LF, CR LF, or all with CR.

    Only these end a line: texts may hold the other characters that Python's splitlines cuts at.

    Raises:
        UnicodeDecodeError: The bytes are not of this encoding, and `errors` is "strict".
    """
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), "utf-8-sig")
    text = data.decode(encoding, errors)
    return [line.rstrip("\r") for line in text.split("\n" if "\n" in text else "\r")]


def without_separator_line(lines: NumberedLines) -> NumberedLines:
    """The lines of a table without a first line such as `sep=;`, by which spreadsheets name the delimiter."""
    first = lines[0][1].strip(' "') if lines else ""
    return lines[1:] if first.lower().startswith("sep=") and len(first) <= len("sep=;") else lines


def split_rows(lines: NumberedLines, delimiter: str) -> list[Row]:
    """Rows of a table. Quotes are those of a spreadsheet: around a whole cell, doubled inside of it.

    Of lines whose quotes are not of this form, tabs still separate cells; one with another delimiter is a single cell.
    """
    rows, place = [], 0
    while place < len(lines):
        cells, used = _quoted_row(lines[place : place + MAX_LINES_PER_ROW], delimiter)
        rows.append(Row(lines[place][0], tuple(" ".join(cell.split()) for cell in cells)))
        place += used
    return rows


def _quoted_row(lines: NumberedLines, delimiter: str) -> tuple[list[str], int]:
    """(cells of a row, number of lines that it takes)."""
    first = lines[0][1]
    if '"' not in first:
        return first.split(delimiter), 1
    text = ""
    for used, (_, line) in enumerate(lines, 1):
        text += line + "\n"
        if used > 1 and '"' not in line:
            continue  # it cannot end a quoted cell
        try:
            cells = next(csv.reader([text], delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t"))
        except csv.Error as why:
            if "unexpected end" not in str(why):
                break
            continue
        if delimiter == "\t" and any(delimiter in cell for cell in cells):
            break  # a lone quote, and not a cell that holds other rows
        return cells, used
    return first.split("\t") if delimiter == "\t" else [first], 1


def tab_separated(cells: Sequence[str]) -> str:
    """Cells as a line that `parse_questions` reads back.

    A cell that begins with a quote is quoted; and so is a single one with a comma or semicolon, which might separate.
    """
    alone = len(cells) == 1 and any(delimiter in cells[0] for delimiter in DELIMITERS)
    return "\t".join('"' + cell.replace('"', '""') + '"' if alone or cell.startswith('"') else cell for cell in cells)


def find_delimiter(lines: NumberedLines) -> tuple[str, int] | None:
    """(delimiter, number of columns) of a table, or None if no delimiter cuts most lines into as many cells.

    Tabs stand in no sentence, so they are preferred. Of semicolon and comma, the one that cuts the first line (perhaps
    a header) into as many cells is preferred; then the one that cuts more of the lines so; then the semicolon.
    """
    some, found = lines[:MAX_LINES_LOOKED_AT], []
    for delimiter in DELIMITERS:
        rows = split_rows(some, delimiter)
        counts = Counter(len(row.cells) for row in rows)
        counts.pop(1, None)
        columns, regular = counts.most_common(1)[0] if counts else (1, 0)
        if regular >= MIN_REGULAR_FRACTION * len(rows) > 0:
            fits = (delimiter == "\t", len(rows[0].cells) == columns, regular / len(rows))
            found.append((fits, delimiter, columns))
    if not found:
        return None
    _, delimiter, columns = max(found, key=lambda each: each[0])  # the first of equal ones
    return delimiter, columns


def parse_questions(lines: NumberedLines, answered: bool = True) -> tuple[list[tuple[int, str, str]], list[BadLine]]:
    """Questions with their answers out of the lines of a file, and the lines that are left out.

    A file has lines `question<TAB>answer`, or is a table as spreadsheets export it: with another delimiter, with
    quotes, with a header that names the columns of question and answer.

    Args:
        lines: Lines that are not empty, with their numbers.
        answered: If False, a line may hold a question alone; its answer is then "".

    Returns:
        (line number, question, answer) of each row that can be used, and the other rows.
    """
    lines = without_separator_line([(number, line) for number, line in lines if line.strip()])
    delimiter = _question_delimiter(lines, answered)
    rows = split_rows(lines, delimiter)
    columns = _question_columns(rows[0], answered) if rows else None
    good, bad = [], []
    for row in rows[columns is not None :]:
        cells = row.cells
        if columns is not None and any(cells[len(rows[0].cells) :]):
            bad.append(BadLine(row.line, f"it has {len(cells)} cells, and the header {len(rows[0].cells)}"))
            continue
        if columns is not None:
            cells = tuple(cells[i] if i < len(cells) else "" for i in columns)
        if any("\N{REPLACEMENT CHARACTER}" in cell for cell in cells):
            bad.append(BadLine(row.line, "it is not UTF-8 text"))
        elif len(cells) == 1 and cells[0] and not answered:
            good.append((row.line, cells[0], ""))
        elif len(cells) == 2 and cells[0] and (cells[1] or not answered):
            good.append((row.line, cells[0], cells[1]))
        else:
            why = f"it has {len(cells)} cells, not question<TAB>answer" if len(cells) != 2 else "a cell is empty"
            bad.append(BadLine(row.line, why))
    return good, bad


def _question_delimiter(lines: NumberedLines, answered: bool) -> str:
    """The delimiter of a file of questions; questions alone may hold commas.

    Where answers are optional, commas and semicolons cut only below a header, inside quotes, or after question marks.
    """
    found = find_delimiter(lines)
    if found is None:
        return "\t"
    delimiter, columns = found
    if delimiter != "\t" and not _question_columns(split_rows(lines[:1], delimiter)[0], answered):
        quoted = sum(line.lstrip().startswith('"') for _, line in lines)
        cut = sum(len(r.cells) == 2 and r.cells[0].endswith("?") for r in split_rows(lines, delimiter))
        if columns != 2 or (not answered and max(quoted, cut) < MIN_REGULAR_FRACTION * len(lines)):
            return "\t"
    return delimiter


def _question_columns(header: Row, answered: bool) -> tuple[int, ...] | None:
    """Columns of question and answer, if the row is a header that names them."""
    found = []
    for names in (QUESTION_HEADERS, ANSWER_HEADERS):
        named = [i for i, cell in enumerate(header.cells) if _is_header(cell, names)]
        found += named[:1]
        if not named and (answered or names is QUESTION_HEADERS):
            return None
    return tuple(found)


def _is_header(cell: str, names: Sequence[str]) -> bool:
    words = cell.strip(" :").lower().split()
    known = bool(words) and words[0].rstrip("s") in names
    return known and (len(words) == 1 or (len(words) == 2 and words[1] in SECOND_WORDS))
