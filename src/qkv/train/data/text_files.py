"""Read texts and files of questions with answers; errors name the lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from qkv.errors import QkvError, kind_of
from qkv.train.data.tables import parse_questions, text_lines

T_co = TypeVar("T_co", covariant=True)


class SizedIterable(Protocol[T_co]):
    """A list, a `qkv.knowledge.Texts` or the like; not a generator, since training reads its data several times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


def read_texts(source: str | Path | SizedIterable[str]) -> list[str]:
    """Texts, one per line of a file or per item of a list; empty ones are left out."""
    lines = _lines(source) if isinstance(source, str | Path) else list(source)
    foreign = next((i for i, line in enumerate(lines) if not isinstance(line, str)), None)
    if foreign is not None:
        problem = f"item {foreign} is {kind_of(lines[foreign])}, not a text"
        raise QkvError(f"reading texts from {_name_of(source)}", problem, "Give one text per item")
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise QkvError(f"reading texts from {_name_of(source)}", "there are none", "Give one text per line")
    return texts


def read_questions(source: str | Path | SizedIterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Questions with their answers: pairs, or a file of `question<TAB>answer` lines or of another form.

    `qkv.train.data.tables.parse_questions` says which forms a file may have.
    """
    request = f"reading questions from {_name_of(source)}"
    if isinstance(source, str | Path):
        lines = _lines(source)
        if any("\0" in line for line in lines):
            raise QkvError(request, "it holds zero bytes, which text does not", "Save it as UTF-8 text")
        found, problems = parse_questions(list(enumerate(lines, 1)))
        bad, pairs = [each.line for each in problems], [(question, answer) for _, question, answer in found]
    else:
        rows = [tuple(str(part).strip() for part in pair) for pair in source]
        bad = [number for number, row in enumerate(rows, 1) if len(row) != 2 or not all(row)]
        pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
    if bad:
        some = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise QkvError(request, f"line {some} is not question<TAB>answer", "Correct or remove these lines")
    if not pairs:
        raise QkvError(request, "there are none", "Give lines of the form question<TAB>answer")
    return pairs


def _lines(source: str | Path) -> list[str]:
    path = Path(source)
    request = f"reading {path}"
    if not path.is_file():
        problem = "it is a folder" if path.is_dir() else "there is no such file"
        raise QkvError(request, problem, "Name a file" if path.is_dir() else "Check the path")
    try:
        return text_lines(path.read_bytes())
    except UnicodeDecodeError as why:
        raise QkvError(request, f"it is not {why.encoding.upper()} text ({why})", "Convert it to UTF-8") from None
    except OSError as why:
        raise QkvError(request, str(why), "Check the file") from None


def _name_of(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else "a list"
