"""Read texts and question<TAB>answer files; errors name the lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from qkv.errors import QkvError

T_co = TypeVar("T_co", covariant=True)


class SizedIterable(Protocol[T_co]):
    """A list, a `qkv.knowledge.Texts` or the like; not a generator, since training reads its data several times."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


def read_texts(source: str | Path | SizedIterable[str]) -> list[str]:
    """Texts, one per line of a file or per item of a list; empty ones are left out."""
    lines = _lines(source) if isinstance(source, str | Path) else list(source)
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise QkvError(f"reading texts from {_name_of(source)}", "there are none", "Give one text per line")
    return texts


def read_questions(source: str | Path | SizedIterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Questions with their answers, `question<TAB>answer` lines of a file, or pairs."""
    request = f"reading questions from {_name_of(source)}"
    rows = (
        [tuple(line.split("\t")) for line in _lines(source)]
        if isinstance(source, str | Path)
        else [tuple(pair) for pair in source]
    )
    filled = [(number, row) for number, row in enumerate(rows, 1) if row != ("",)]
    bad = [number for number, row in filled if len(row) != 2 or not all(str(part).strip() for part in row)]
    if bad:
        some = ", ".join(map(str, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise QkvError(request, f"line {some} is not question<TAB>answer", "Correct or remove these lines")
    if not filled:
        raise QkvError(request, "there are none", "Give lines of the form question<TAB>answer")
    return [(str(row[0]).strip(), str(row[1]).strip()) for _, row in filled]


def _lines(source: str | Path) -> list[str]:
    path = Path(source)
    request = f"reading {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    try:
        # Only \n ends a line: texts may hold the other characters that Python's splitlines cuts at.
        return [line.rstrip("\r") for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError as why:
        raise QkvError(request, f"it is not UTF-8 text ({why})", "Convert it to UTF-8") from None
    except OSError as why:
        raise QkvError(request, str(why), "Check the file") from None


def _name_of(source: object) -> str:
    return str(source) if isinstance(source, str | Path) else "a list"
