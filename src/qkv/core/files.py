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

READABLE = (".npz", ".npy", ".csv", ".json", ".safetensors")


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The named arrays in a file; a file that holds one nameless array gives it under ''."""
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
    """Rows of numbers; a header line is skipped, and a first column of words becomes the labels."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.reader(handle) if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError("it has no rows")
    worded = all(not _is_number(row[0]) for row in rows) and len(rows[0]) > 1
    if not all(_is_number(cell) for cell in rows[0][1 if worded else 0 :]):
        rows = rows[1:]
    width = {len(row) for row in rows}
    if len(width) != 1:
        raise ValueError(f"its rows have {min(width, default=0)} to {max(width, default=0)} cells")
    out: dict[str, Any] = {"": np.array([[float(c) for c in row[1 if worded else 0 :]] for row in rows])}
    return {"keys": out[""], "labels": [row[0] for row in rows]} if worded else out


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_READERS = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".json": _json, ".safetensors": _safetensors}
