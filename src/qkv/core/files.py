"""Read arrays from .npz, .npy, .csv, .json and .safetensors files; write files atomically."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from qkv.errors import QkvError

LABEL_COLUMN_NAMES = {"name", "label", "item", "token", "id", "key"}
"""Headers that mark the first column of a .csv file as labels."""
READABLE_SUFFIXES = (".npz", ".npy", ".csv", ".json", ".safetensors")


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The arrays of a file by name; the single array of a file without names is returned under ''."""
    if not isinstance(path, str | Path):
        raise QkvError("reading arrays from a file", f"the path is {path!r}", "Give a path")
    path = Path(path)
    request = f"reading arrays from {path}"
    if path.suffix not in READABLE_SUFFIXES:
        raise QkvError(request, f"'{path.suffix}' is not a format qkv reads", f"Use {', '.join(READABLE_SUFFIXES)}")
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    try:
        return _READERS[path.suffix](path)
    except QkvError:
        raise
    except Exception as why:  # whatever a parser raises means that the file is damaged
        detail = str(why).splitlines()[0] if str(why) else type(why).__name__
        raise QkvError(request, f"it is damaged or not what its name says ({detail})", "Write the file again") from None


def pick(arrays: dict[str, Any], name: str, path: str | Path) -> Any:
    """The array called `name`, or the file's only one."""
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise QkvError(
        f"reading '{name}' from {path}",
        f"the file holds {', '.join(sorted(arrays)) or 'nothing'}",
        f"Name one '{name}'",
    )


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` on success and removed on failure."""
    path = Path(path)
    if not path.parent.is_dir():
        raise QkvError(f"writing {path}", f"the folder {path.parent} does not exist", "Create it first")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _npy(path: Path) -> dict[str, Any]:
    return {"": np.load(path, allow_pickle=False)}


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file  # numpy has no bfloat16, which models are often saved in

    return dict(load_file(path))


def _json(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_text(encoding="utf-8"))
    return data if isinstance(data, dict) else {"": data}


def _csv(path: Path) -> dict[str, Any]:
    """Rows of numbers, perhaps with a header and labels.

    A first line without any number is a header. A first column of words, or one whose header is in
    LABEL_COLUMN_NAMES, holds the labels. Every other cell must be a number.
    """
    with path.open(newline="", encoding="utf-8-sig") as handle:
        lines = [(n, [cell.strip() for cell in row]) for n, row in enumerate(csv.reader(handle), 1) if any(row)]
    header = lines[0][1] if lines and not any(_is_number(cell) for cell in lines[0][1]) else [""]
    rows = lines[1:] if header != [""] else lines
    if not rows:
        raise ValueError("it has no rows of numbers")
    named = header[0].lower() in LABEL_COLUMN_NAMES or all(not _is_number(row[0]) for _, row in rows)
    start = 1 if named else 0
    width = len(rows[0][1])
    for n, row in rows:
        if len(row) != width:
            raise ValueError(f"line {n} has {len(row)} cells, line {rows[0][0]} has {width}")
        odd = [cell for cell in row[start:] if not _is_number(cell)]
        if odd or len(row) == start:
            raise ValueError(f"line {n} has {odd[0]!r} where a number should be" if odd else f"line {n} has no numbers")
    numbers = np.array([[float(cell) for cell in row[start:]] for _, row in rows])
    return {"keys": numbers, "labels": [row[0] for _, row in rows]} if named else {"": numbers}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_READERS = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".json": _json, ".safetensors": _safetensors}
