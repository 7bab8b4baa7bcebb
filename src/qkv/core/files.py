"""Arrays from .npz, .npy, .csv, .json and .safetensors; files that appear whole or not at all."""

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

NAMES = {"name", "label", "item", "token", "id", "key"}
READABLE = (".npz", ".npy", ".csv", ".json", ".safetensors")


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The named arrays in a file; a file that holds one nameless array gives it under ''."""
    if not isinstance(path, str | Path):
        raise QkvError("reading arrays from a file", f"the path is {path!r}", "Give a path")
    path = Path(path)
    asked = f"reading arrays from {path}"
    if path.suffix not in READABLE:
        raise QkvError(asked, f"'{path.suffix}' is not a format qkv reads", f"Use {', '.join(READABLE)}")
    if not path.is_file():
        raise QkvError(asked, "there is no such file", "Check the path")
    try:
        return _READERS[path.suffix](path)
    except QkvError:
        raise
    except Exception as why:  # any parser's complaint means one thing to the user: the file is not whole
        detail = str(why).splitlines()[0] if str(why) else type(why).__name__
        raise QkvError(asked, f"it is damaged or not what its name says ({detail})", "Write the file again") from None


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
    """A temporary path to write to, renamed to `path` on success and removed on failure."""
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
    """Write text whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _npy(path: Path) -> dict[str, Any]:
    return {"": np.load(path, allow_pickle=False)}


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file  # numpy has no bfloat16, and models are often saved in it

    return dict(load_file(path))


def _json(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_text(encoding="utf-8"))
    return data if isinstance(data, dict) else {"": data}


def _csv(path: Path) -> dict[str, Any]:
    """Rows of numbers. A first line without any number is a header; a first column of words, or one that the header
    calls a name, holds the labels. Everything else must be a number: nothing is dropped in silence."""
    with path.open(newline="", encoding="utf-8-sig") as handle:
        lines = [(n, [cell.strip() for cell in row]) for n, row in enumerate(csv.reader(handle), 1) if any(row)]
    header = lines[0][1] if lines and not any(_is_number(cell) for cell in lines[0][1]) else [""]
    rows = lines[1:] if header != [""] else lines
    if not rows:
        raise ValueError("it has no rows of numbers")
    named = header[0].lower() in NAMES or all(not _is_number(row[0]) for _, row in rows)
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
