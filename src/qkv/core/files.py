"""Read arrays from .npz, .npy, .csv, .json and .safetensors files; write files atomically."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from qkv.core.documents import is_saved, named_arrays
from qkv.core.interrupts import interrupts_delayed
from qkv.core.json_files import parse_json
from qkv.errors import QkvError

try:
    import fcntl
except ImportError:  # not on Windows: temporary files are then neither locked nor removed after a kill
    fcntl = None  # type: ignore[assignment]

LABEL_COLUMN_NAMES = {"name", "label", "item", "token", "id", "key"}
"""Headers that mark the first column of a .csv file as labels."""
READABLE_SUFFIXES = (".npz", ".npy", ".csv", ".json", ".safetensors")
MAX_UNPACKED_BYTES = 2**30
"""Most bytes that a compressed file may unpack to; a file that is larger itself may have its own size."""
MAX_TEXT_BYTES = 2**28
"""Largest .json or .csv file: as Python objects, its numbers take many times the memory of their digits."""
ROLES = frozenset({"keys", "values", "labels", "query", "queries", "weights"})
"""Names of arrays that mean one thing only: a file with `values` alone has no keys."""
TEMPORARY_PREFIX = ".qkv-tmp-"
_TEMPORARY_NAME = re.compile(
    rf"{re.escape(TEMPORARY_PREFIX)}[0-9a-f]{{12}}(\.[^.]+)?"
)  # as _create_temporary makes them
_CLAIMED_SUFFIX = re.compile(r"[a-z0-9_]{8}")  # as tempfile.mkdtemp makes them
Writing = Callable[[Path], AbstractContextManager[Path]]
"""`replacing`, `creating`, or a function like them: how a finished file comes to its name."""
_UNFINISHED: set[Path] = set()  # temporary files that this process is writing


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The arrays of a file by name; the single array of a file without names is returned under ''."""
    if not isinstance(path, str | Path):
        raise QkvError("reading arrays from a file", f"the path is {path!r}", "Give a path")
    path = Path(path)
    request = f"reading arrays from {path}"
    if path.is_dir():
        raise QkvError(request, "it is a folder", f"Give a file: {', '.join(READABLE_SUFFIXES)}")
    if path.suffix not in READABLE_SUFFIXES:
        raise QkvError(request, f"'{path.suffix}' is not a format qkv reads", f"Use {', '.join(READABLE_SUFFIXES)}")
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Check the path")
    if not os.access(path, os.R_OK):
        raise QkvError(request, "it may not be read", "Change its permissions, or give a copy")
    try:
        return _READERS[path.suffix](path)
    except QkvError:
        raise
    except Exception as why:  # whatever a parser raises means that the file is damaged
        detail = str(why).splitlines()[0] if str(why) else type(why).__name__
        raise QkvError(request, f"it is damaged or not what its name says ({detail})", "Write the file again") from None


def read_bounded(path: Path, encoding: str = "utf-8") -> str:
    """The text that a file, a pipe or a device gives; more than MAX_TEXT_BYTES is refused, since it may never end."""
    with path.open("rb") as handle:
        content = handle.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise QkvError(f"reading {path}", f"it has more than {MAX_TEXT_BYTES:,} bytes", "Give a smaller file")
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()  # which reads all ends of lines as "\n"


def pick(arrays: dict[str, Any], name: str, path: str | Path) -> Any:
    """The array called `name`, or the file's only one, unless its name says that it is something else."""
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1 and not ROLES & arrays.keys():
        return next(iter(arrays.values()))
    raise QkvError(
        f"reading '{name}' from {path}",
        f"the file holds {', '.join(sorted(arrays)) or 'nothing'}",
        f"Name one '{name}'",
    )


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it is renamed to `path` on success and removed on failure.

    A new file gets the permissions that the umask leaves, and one that replaces another gets that one's. Temporary
    files that killed processes left in the folder are removed first.
    """
    path = Path(path)
    check_output_path(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    with temporary_file(path, 0o666 if mode is None else 0o600) as temporary:
        yield temporary
        if mode is not None:
            temporary.chmod(mode & 0o777)
        temporary.replace(path)


@contextmanager
def creating(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to, as `replacing` does; but whatever appears at `path` meanwhile is kept.

    Raises:
        QkvError: There is something at `path`: before the file is written, or once it is to get its name.
    """
    path = Path(path)
    refuse_existing(path)
    check_output_path(path)
    with temporary_file(path) as temporary:
        yield temporary
        place(temporary, path)


def place(temporary: Path, path: Path) -> None:
    """Give a finished temporary file its name, at which there must be nothing.

    A hard link fails where the name is taken, in one operation. On a file system without links, an empty file reserves
    the name, and is replaced: what another process writes into it in between is lost, and a kill leaves it.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        refuse_existing(path)
        raise
    except (OSError, NotImplementedError):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            refuse_existing(path)
            raise
        try:
            temporary.replace(path)
        except BaseException:
            path.unlink()
            raise


def refuse_existing(path: Path) -> None:
    """Refuse a name at which there is a file, a folder or a link, even one that leads nowhere."""
    if os.path.lexists(path):
        raise QkvError(f"writing {path}", "it is there already", "Give another path, or move it away")


@contextmanager
def temporary_file(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """A locked temporary file beside `path`, which is removed in the end, if it still has its name."""
    remove_abandoned(path.parent)
    made: list[tuple[Path, int]] = []
    try:
        with interrupts_delayed():  # until it is known what to remove
            made.append(_create_temporary(path, mode))
            _UNFINISHED.add(made[0][0])
        yield made[0][0]
    finally:
        for temporary, handle in made:
            temporary.unlink(missing_ok=True)
            _UNFINISHED.discard(temporary)
            os.close(handle)


def remove_unfinished() -> None:
    """Remove the temporary files that this process is writing, because it is about to end without finishing them."""
    for temporary in list(_UNFINISHED):
        temporary.unlink(missing_ok=True)


def check_output_path(path: str | Path) -> None:
    """Check that a file can be written to `path`, before any work is done.

    Raises:
        QkvError: The folder does not exist or cannot be written to, or there is something that is not a file.
    """
    path = Path(path)
    request = f"writing {path}"
    if not path.parent.is_dir():
        raise QkvError(request, f"the folder {path.parent} does not exist", "Create it first")
    if path.exists() and not path.is_file():
        raise QkvError(request, f"it is a {'folder' if path.is_dir() else 'device'}, not a file", "Give another path")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise QkvError(request, f"the folder {path.parent} cannot be written to", "Give another path")


def _create_temporary(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside `path`, and its handle, which holds a lock on it that ends with this process."""
    while True:
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}{path.suffix}")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        if fcntl is None:
            return temporary, handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:  # a file system without locks, on which no other process can take it for abandoned either
            return temporary, handle
        if temporary.exists():
            return temporary, handle
        os.close(handle)  # another process removed it before it was locked


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files whose lock is free: the process that was writing them has ended.

    They are regular files of this user with exactly such a name as `_create_temporary` makes, without another name
    outside the folder: a process that was killed inside `place` leaves both names. The limit: a user who gives a file
    such a name loses it. On Windows and on file systems without locks nothing is removed.
    """
    if fcntl is None:
        return
    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
        if not _TEMPORARY_NAME.fullmatch(leftover.name):
            continue
        try:
            handle = os.open(leftover, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_abandoned(os.fstat(handle), leftover):
                leftover.unlink(missing_ok=True)
        except OSError:
            pass
        finally:
            os.close(handle)


def _is_abandoned(found: os.stat_result, path: Path) -> bool:
    """Whether what was opened is a file of this user that still has this name, and no other one outside its folder."""
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or not os.path.samestat(found, path.lstat()):
        return False
    if found.st_nlink == 1:
        return True
    names = 0
    for other in path.parent.iterdir():
        with suppress(OSError):
            names += os.path.samestat(found, other.lstat())
    return names == found.st_nlink


class ClaimedFolder:
    """A new folder in the system's temporary folder, locked until it is removed or this process ends.

    Folders of the same prefix whose lock is free are removed first: the processes that claimed them were killed. They
    have names and permissions as `tempfile.mkdtemp` gives them; a user who gives a folder both loses it.

    Attributes:
        path: The folder.
    """

    def __init__(self, prefix: str) -> None:
        for other in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            if not _CLAIMED_SUFFIX.fullmatch(other.name.removeprefix(prefix)):
                continue
            if (handle := _lock_folder(other, wait=False)) is not None:
                if stat.S_IMODE(os.fstat(handle).st_mode) == 0o700:
                    shutil.rmtree(other, ignore_errors=True)
                os.close(handle)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            self._handle = _lock_folder(self.path, wait=True)
            if self.path.exists():
                return
            if self._handle is not None:  # another process removed the folder before it was locked
                os.close(self._handle)

    def remove(self) -> None:
        """Remove the folder and release its lock; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def _lock_folder(folder: Path, wait: bool) -> int | None:
    """The handle of one of this user's folders, locked; None if it cannot be locked."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def write_text(path: str | Path, text: str, writing: Writing = replacing) -> None:
    """Write a text file atomically."""
    with writing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_tensors(temporary: Path, content: bytes) -> None:
    """Write the content of a safetensors file, with sorted metadata, into the temporary file of `replacing`.

    The library's own `save_file` writes another file beside it and renames that one: it would have neither the lock nor
    the permissions of the temporary file, and a killed process would leave it behind for ever.
    """
    temporary.write_bytes(content)
    sort_metadata(temporary)


def sort_metadata(path: Path) -> None:
    """Sort the metadata in the header of a safetensors file by name, so that equal contents are equal bytes.

    The library writes metadata in a random order. The sorted header has the same characters, hence the same length.
    """
    with path.open("r+b") as handle:
        size = int.from_bytes(handle.read(8), "little")
        header = json.loads(handle.read(size))
        if "__metadata__" not in header:
            return
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode().ljust(size)
        if len(text) != size:
            raise RuntimeError(f"the header of {path} is not in the form that safetensors writes")
        handle.seek(8)
        handle.write(text)


def _npz(path: Path) -> dict[str, Any]:
    """The arrays of a zip archive; their sizes are added up from its table and their headers before any is unpacked."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)
        if total > max(MAX_UNPACKED_BYTES, path.stat().st_size):
            raise QkvError(
                f"reading arrays from {path}",
                f"it unpacks to {total:,} bytes, more than the limit of {MAX_UNPACKED_BYTES:,}",
                "Save it uncompressed, with np.savez or as .npy or .safetensors, which have no such limit",
            )
        for entry in entries:
            with archive.open(entry) as stream:
                magic = stream.read(len(np.lib.format.MAGIC_PREFIX))
            if magic == np.lib.format.MAGIC_PREFIX:  # NumPy returns an entry of another kind as bytes
                with archive.open(entry) as stream:
                    _check_npy_size(stream, entry.file_size, entry.filename)
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def _npy(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        _check_npy_size(stream, path.stat().st_size, path.name)
    return {"": np.load(path, allow_pickle=False)}


def _check_npy_size(stream: Any, size: int, name: str) -> None:
    """Refuse an array whose header promises more than the bytes that follow: NumPy would allocate it all first."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:  # 3.0 only differs in the field names of structured arrays, which hold no vectors
        raise ValueError(f"{name} has version {version[0]}.{version[1]} of the .npy format")
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are never loaded")
    promised = math.prod(shape) * dtype.itemsize
    if promised > size - stream.tell():
        raise ValueError(f"{name} promises {promised:,} bytes and has {size - stream.tell():,}")


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors import safe_open
    from safetensors.torch import load_file  # numpy has no bfloat16, which models are often saved in

    with interrupts_delayed():
        found = dict(load_file(path))
        with safe_open(path, framework="pt") as handle:
            metadata = handle.metadata() or {}
    if not is_saved(metadata):
        return found
    own = {name.removeprefix("0.data."): value for name, value in found.items() if name.startswith("0.data.")}
    result = parse_json(metadata.get("result", "{}"))
    data = {"format": metadata["format"], "certificates": [{"data": own}], "result": result}
    return named_arrays(f"reading arrays from {path}", data)


def _json(path: Path) -> dict[str, Any]:
    _check_text_size(path)
    data = parse_json(path.read_text(encoding="utf-8"))
    return named_arrays(f"reading arrays from {path}", data) if isinstance(data, dict) else {"": data}


def _csv(path: Path) -> dict[str, Any]:
    """Rows of numbers, perhaps with a header and labels.

    A first line without any number is a header. A first column of words, or one whose header is in
    LABEL_COLUMN_NAMES, holds the labels. Every other cell must be a number.
    """
    _check_text_size(path)
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


def _check_text_size(path: Path) -> None:
    if (size := path.stat().st_size) > MAX_TEXT_BYTES:
        raise QkvError(
            f"reading arrays from {path}",
            f"{size:,} bytes are too many for {path.suffix}",
            "Save it as .npy or .safetensors",
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_READERS = {".npz": _npz, ".npy": _npy, ".csv": _csv, ".json": _json, ".safetensors": _safetensors}
