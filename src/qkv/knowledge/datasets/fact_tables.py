"""load_facts: facts from triples (subject, relation, object) or from a table with a header, in any common delimiter."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby
from pathlib import Path
from typing import Literal

from qkv.core.json_files import parse_json
from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import Facts, Person, Problem, no_usable_row, numbered_lines
from qkv.train.data.tables import Row, find_delimiter, split_rows, without_separator_line

RELATION_NAMES = {
    "city": ("birthplace", "place of birth", "born in", "birth city", "birthcity", "city of birth"),
    "country": ("birth country", "country of birth"),
    "year": ("birth year", "year of birth", "birthyear"),
    "occupation": ("occupation", "profession", "job", "works as"),
}
"""Relations that only people have, by the fields of `Person` that they are stored in; `born` is a year or a place."""
PEOPLE_RELATIONS = {name: field for field, names in RELATION_NAMES.items() for name in names} | {"born": "year"}
PEOPLE_HEADERS = ("person", "people", "human")
TRIPLE_HEADERS = (
    ("subject", "entity", "item", "head"),
    ("relation", "property", "predicate", "attribute"),
    ("object", "value", "tail"),
)
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl")
FIRST_COLUMNS = ("name", "title", "person", "subject", "item", "entity", "thing", "id")
MIN_REPETITIONS = 2  # of the first subject or relation, which tell triples from a table
PLAIN_YEAR = re.compile(r"-?\d{1,4}( ?(AD|BC|CE|BCE))?", re.IGNORECASE)
MISSING = frozenset(  # not Na, which is sodium
    ["NA", "na", "N/A", "n/a", "n.a.", "N.A.", "#N/A", "#N/A N/A", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null",
     "(null)", "<null>", "[null]", "\\N", "undefined", "missing", "unknown", "Unknown", "UNKNOWN", "(unknown)",
     "#VALUE!", "#REF!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "-", "--", "–", "—", "?", "."]
)  # fmt: skip
"""What R, pandas, SQL and spreadsheets write for a value that is not known."""
FORMS = ("auto", "triples", "table")
FORMAT_HINT = "subject, relation, object, or a table with a header, in .csv, .tsv, .txt or .jsonl"


def load_facts(
    path: str | Path, people: bool | None = None, *, form: Literal["auto", "triples", "table"] = "auto"
) -> Facts:
    """Load facts from triples of subject, relation and object, or from a table with a header.

    A .csv, .tsv or .txt file has commas, semicolons or tabs between its cells, with or without quotes around them. It
    holds triples, with or without the header `subject,relation,object`, which may name the three in any order; or it
    has a header such as `title,author,year`: the first column is the subject, each other one a relation. A first column
    without a name that numbers the rows (an index of pandas) is left out. A .jsonl file has one object with the keys
    subject, relation and object per line.

    A subject is a person if one of its relations is one that only people have (birthplace, profession and the like),
    if the header calls the first column `person`, or if `people` is true. Place, country and year of birth of a person
    (`birthplace`, `country of birth`, `year of birth` and the like) and the occupation have sentences of their own in
    `biographies` and `questions`. Every other relation is kept under its own name, and nothing is said of it but that:
    a column `city`, `country` or `year` may mean anything, unless `people` is true, which makes these facts of birth.
    Where a file has such a relation beside one of birth, both are kept under their own names. Somebody is `born` (in) a
    year if that is all the cell says, and at a place if it has no digits. Empty cells are facts that are not known, and
    so are those that say so (NA, NULL, NaN and the like), which are listed in `missing`. Rows that cannot be read, or
    that contradict an earlier row, are left out and listed in `problems`.

    Args:
        path: The file, in UTF-8.
        people: Whether the subjects are people, and `city`, `country` and `year` those of their birth; None decides for
            each subject as above.
        form: `triples`, `table`, or `auto` to find out.

    Returns:
        One person (or thing) per subject, and the rows that were left out.

    Raises:
        QkvError: The file has another suffix or does not exist, or no row of it can be used.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from qkv.knowledge import load_facts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "facts.csv")
        ...     _ = path.write_text("Ada Lovelace,birthplace,London\\nAda Lovelace,pet,Puff\\n")
        ...     load_facts(path).people
        (Person(name='Ada Lovelace', city='London', country='', year='', occupation='', more=(('pet', 'Puff'),)),)
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise QkvError(f"reading facts from {path}", f"'{path.suffix}' is not a format of facts", f"Give {FORMAT_HINT}")
    if form not in FORMS:
        raise QkvError(f"reading facts from {path}", f"form is {form!r}", f"Use {', '.join(FORMS)}")
    lines, bad = _decoded(numbered_lines(path))
    of_birth = people is True  # city, country and year
    columns: tuple[str, ...] = ()
    if path.suffix.lower() == ".jsonl":
        triples = list(_json_triples(lines, bad))
    else:
        if lines and bad and bad[0].line == 1:  # it may be the header, and the second line is none
            problem = "its first line is not UTF-8 text"
            raise QkvError(f"reading facts from {path}", problem, "Save the file as UTF-8")
        lines = list(without_separator_line(lines))
        found = find_delimiter(lines)
        rows = _without_empty_end(split_rows(lines, found[0] if found else ","))
        rows = _roles_in_order(_without_index(rows))
        if form == "triples" or (form == "auto" and _holds_triples(rows)):
            triples = list(_cell_triples(rows, bad))
        else:
            triples = list(_table_triples(path, rows, bad))
            if people is None and rows:  # one kind for all rows, whichever cells of a row are empty
                of_people = any(_plain_relation(relation) in PEOPLE_RELATIONS for _, _, relation, _ in triples)
                people = _is_header(rows[0].cells[0], PEOPLE_HEADERS) or of_people
            columns = tuple(rows[0].cells) if rows else ()
    missing = tuple(value for _, _, _, value in triples if value in MISSING)
    triples = [each for each in triples if each[3] not in MISSING]
    apart = _kept_apart({relation for _, _, relation, _ in triples})
    fields = {} if people is False else _fields(apart, of_birth)
    by_subject = _by_subject(triples, bad, fields)
    if not by_subject:
        raise no_usable_row(path, sorted(bad), FORMAT_HINT)
    subjects = tuple(_person(name, known, people, fields) for name, known in by_subject.items())
    return Facts(subjects, tuple(sorted(bad)), columns, missing)


Triple = tuple[int, str, str, str]


def _decoded(lines: Sequence[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[Problem]]:
    bad = [Problem(number, "it is not UTF-8 text") for number, line in lines if "\N{REPLACEMENT CHARACTER}" in line]
    wrong = {each.line for each in bad}
    kept = [(number, line.lstrip("\ufeff")) for number, line in lines if number not in wrong]
    return [(number, unicodedata.normalize("NFC", line)) for number, line in kept], bad


def _without_empty_end(rows: list[Row]) -> list[Row]:
    """Rows without last columns that are empty in all of them, as some spreadsheets write."""
    n = len(rows[0].cells) if rows else 0
    while n > 1 and all(len(row.cells) == len(rows[0].cells) and not row.cells[n - 1] for row in rows):
        n -= 1
    return [Row(row.line, row.cells[:n]) for row in rows] if rows and n < len(rows[0].cells) else rows


def _without_index(rows: list[Row]) -> list[Row]:
    """Rows without a first column that has no name and numbers most of them, as pandas writes its index."""
    if len(rows) < 2 or rows[0].cells[0] or len(rows[0].cells) < 3:
        return rows
    numbered = 2 * sum(row.cells[0].isdecimal() for row in rows[1:]) >= len(rows) - 1
    return [Row(row.line, row.cells[1:]) for row in rows] if numbered else rows


def _roles_in_order(rows: list[Row]) -> list[Row]:
    """Rows of triples whose header names the three roles in another order, as subject, relation, object."""
    header = [cell.strip().lower() for cell in rows[0].cells] if rows else []
    places = [next((i for i, cell in enumerate(header) if cell in names), -1) for names in TRIPLE_HEADERS]
    if len(header) != 3 or sorted(places) != [0, 1, 2]:
        return rows
    return [Row(line, tuple(cells[i] for i in places) if len(cells) == 3 else cells) for line, cells in rows]


def _holds_triples(rows: Sequence[Row]) -> bool:
    """Whether rows are triples: by their header, because their first subject or relation comes again, or as written.

    The names of columns in a header are written alike and do not come again below it, except in a copy of the whole
    header, or by chance.
    Where nothing comes again, rows below `Dune,author,Herbert` are triples if each has words in small letters in the
    middle: hardly a header has such words between two with capitals.
    """
    if not rows or len(rows[0].cells) != 3 or Counter(len(row.cells) for row in rows).most_common(1)[0][0] != 3:
        return False
    if _is_triple_header(rows[0]):
        return True
    head, others = rows[0].cells, [row.cells for row in rows[1:] if row.cells != rows[0].cells]
    plain = all(cell.replace("_", " ").replace(" ", "").isalpha() for cell in head)
    if not others:  # three names of columns are written alike, a triple hardly ever
        return not plain or len({cell[0].isupper() for cell in head}) > 1
    lower = plain and all(cell.islower() for cell in head)
    again = sum(len(row) == 3 and (row[1] == head[1] or (row[0] == head[0] and not lower)) for row in others)
    written_alike = len({cell[:1].islower() for cell in head}) == 1  # as the names of columns are
    if again >= (MIN_REPETITIONS if written_alike else 1) or again >= len(others) / 2:
        return True
    mixed = not any(cell[:1].islower() for cell in (head[0], head[2])) and head[0].lower() not in FIRST_COLUMNS
    return mixed and all(len(row) == 3 and _in_small_letters(row[1]) for row in (head, *others))


def _in_small_letters(cell: str) -> bool:
    words = cell.replace("_", " ").replace("-", " ").split()
    return bool(words) and all(word.isalpha() and word.islower() for word in words)


def _is_triple_header(row: Row) -> bool:
    return len(row.cells) == 3 and all(map(_is_header, row.cells, TRIPLE_HEADERS))


def _is_header(cell: str, names: Sequence[str]) -> bool:
    return cell.strip().lower() in names


def _cell_triples(rows: Sequence[Row], bad: list[Problem]) -> Iterator[Triple]:
    for line, cells in rows[bool(rows) and _is_triple_header(rows[0]) :]:
        if _is_triple_header(Row(line, cells)):
            bad.append(Problem(line, "it repeats the header"))
        elif len(cells) != 3 or not all(cells) or cells[0] in MISSING:
            bad.append(Problem(line, f"it has {len(cells)} cells, not 3" if len(cells) != 3 else "a cell is empty"))
        else:
            yield line, *cells


def _table_triples(path: Path, rows: Sequence[Row], bad: list[Problem]) -> Iterator[Triple]:
    """Triples out of a table whose header names the relations; an empty cell is a fact that is not known."""
    if not rows:
        return
    header = rows[0].cells
    names = header[1:]
    wrong = [name for name in names if not any(c.isalpha() for c in name)]
    if not names or wrong or len(set(names)) != len(names):
        problem = f"{wrong[0]!r} is not the name of a column" if wrong else f"the header is {', '.join(header)!r}"
        raise QkvError(f"reading facts from {path}", problem, "Give a header with different names, or three columns")
    if len(rows) == 1:
        bad.append(Problem(rows[0].line, "it is a header, and no row follows"))
    for line, cells in rows[1:]:
        if cells == header:
            bad.append(Problem(line, "it repeats the header"))
            continue
        if len(cells) != len(header) or not cells[0] or cells[0] in MISSING:
            why = "a cell is empty" if len(cells) == len(header) else f"it has {len(cells)} cells, not {len(header)}"
            bad.append(Problem(line, why))
            continue
        if not any(cell and cell not in MISSING for cell in cells[1:]):
            bad.append(Problem(line, f"it says nothing about {cells[0]}"))
        for relation, value in zip(names, cells[1:], strict=True):
            if value:
                yield line, cells[0], relation, value


def _json_triples(lines: Sequence[tuple[int, str]], bad: list[Problem]) -> Iterator[Triple]:
    names = ("subject", "relation", "object")
    for number, line in lines:
        try:
            data = parse_json(line)
            if not isinstance(data, dict) or set(data) != set(names):
                raise ValueError("it is not an object with subject, relation and object")
            cells = [" ".join(str(data[name]).split()) for name in names]
            right = all(isinstance(data[n], str | int) and not isinstance(data[n], bool) for n in names)
            if not all(cells) or not right:
                raise ValueError("subject, relation or object is empty, or neither a string nor an integer")
            if any(c in "\0\N{REPLACEMENT CHARACTER}" or "\ud800" <= c <= "\udfff" for cell in cells for c in cell):
                raise ValueError("it holds a character that stands for no text")
        except (ValueError, RecursionError) as why:
            bad.append(Problem(number, str(why)))
        else:
            yield number, cells[0], cells[1], cells[2]


def _kept_apart(relations: Set[str]) -> frozenset[str]:
    """Fields of a person such as `city` of which a file has a relation of this name beside one such as `birthplace`."""
    named = {_plain_relation(relation) for relation in relations}
    names = {field: {name for name, own in PEOPLE_RELATIONS.items() if own == field} for field in RELATION_NAMES}
    names["city"].add("born")
    return frozenset(field for field in RELATION_NAMES if field in named and named & (names[field] - {field}))


def _plain_relation(relation: str) -> str:
    """A relation as the tables here write it: `Year_of_Birth` is "year of birth"."""
    return relation.lower().replace("_", " ")


def _fields(apart: frozenset[str], of_birth: bool) -> dict[str, str]:
    """The fields of a person, by the relations that are stored in them."""
    every = {**PEOPLE_RELATIONS, **({field: field for field in RELATION_NAMES} if of_birth else {})}
    return {relation: field for relation, field in every.items() if field not in apart}


def _by_subject(triples: Sequence[Triple], bad: list[Problem], fields: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Facts of each subject by relation; a row that contradicts an earlier one is left out, all of it."""
    out: dict[str, dict[str, str]] = {}
    for line, row in groupby(triples, lambda triple: triple[0]):
        new: dict[str, str] = {}
        subject = ""
        for _, subject, relation, value in row:
            known = out.get(subject, {}) | new
            same = _field(relation, value, fields)
            name = next((r for r, other in known.items() if _field(r, other, fields) == same), relation)
            if known.get(name, value) != value:
                bad.append(Problem(line, f"{subject} has {same} {known[name]} already, but {value} here"))
                break
            new[name] = value
        else:
            out.setdefault(subject, {}).update(new)
    return out


def _field(relation: str, value: str, fields: Mapping[str, str]) -> str:
    """What a relation is stored as: a field of a person, or its own name; somebody is born in a year or at a place."""
    own = _plain_relation(relation)
    if own in ("born", "born in"):
        if PLAIN_YEAR.fullmatch(value):
            return fields.get("birth year", own)
        return own if any(c.isdigit() for c in value) else fields.get("birthplace", own)
    return fields.get(own, own)


def _person(name: str, known: dict[str, str], people: bool | None, fields: Mapping[str, str]) -> Person:
    """A subject with its facts: by the fields of a person if it is one, else each under its own name."""
    if people is None:
        people = any(_plain_relation(relation) in PEOPLE_RELATIONS for relation in known)
    if not people:
        return Person(name, more=tuple(known.items()))
    own: dict[str, str] = {}
    rest: list[tuple[str, str]] = []
    for relation, value in known.items():
        field = _field(relation, value, fields)
        if _plain_relation(relation) in fields and field in RELATION_NAMES:
            own[field] = value
        else:
            rest.append((relation, value))
    return Person(name, **own, more=tuple(rest))
