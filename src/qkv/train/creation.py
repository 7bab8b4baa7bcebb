"""Create the files of a run or an export: nothing is replaced, and what a kill leaves is known by its checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from qkv.core.files import Writing, creating, remove_abandoned, replacing
from qkv.core.json_files import read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.train.run_files import CONFIG_FILE, write_json

CREATION_FILE, CREATION_FORMAT = ".qkv-creating", "qkv-creating-2"
"""A file with the checksums of those that are being created beside it: after a kill they are known to be qkv's own."""
CREATED_FILES = frozenset({
    CONFIG_FILE, "tokenizer.json", "model.safetensors", "optimizer-0.safetensors", "log.jsonl", "text.txt",
    "tokenizer_config.json", "generation_config.json", "README.md",
})  # fmt: skip
"""The files of new runs, imports and exports: what a killed creation left under another name is not touched."""
_NAMES_ONLY = "qkv-creating-1"  # of versions whose record had no checksums


class Creation:
    """The files that one call creates in a folder whose lock it holds.

    Attributes:
        folder: The folder.
        checksums: The SHA-256 of each file that is written, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checksums: dict[str, str] = {}

    @contextmanager
    def writing(self, path: Path) -> Iterator[Path]:
        """`qkv.core.files.creating`, with the checksum of the finished file recorded before it gets its name."""
        assert path.name in CREATED_FILES, path.name
        with creating(path) as temporary:
            yield temporary
            self.checksums[path.name] = _checksum(temporary)
            self.record(replacing)

    def record(self, writing: Writing) -> None:
        """Write the checksums to CREATION_FILE."""
        record = {"format": CREATION_FORMAT, "files": self.checksums}
        write_json(self.folder / CREATION_FILE, with_checksum(record), writing)

    def rewritten(self, name: str) -> None:
        """Take a file as it is now for what this call wrote."""
        self.checksums[name] = _checksum(self.folder / name)

    def remove(self) -> None:
        """Remove the files that are still as this call wrote them."""
        _remove(self.folder, self.checksums)


@contextmanager
def creation(folder: Path) -> Iterator[Creation]:
    """Create files in a folder, after `check_names_free`: a failure removes those that were written.

    What a creation that was killed has left is removed first.
    """
    remove_killed(folder)
    made = Creation(folder)
    made.record(creating)
    try:
        yield made
    except BaseException:
        made.remove()
        raise
    finally:
        _forget(folder)


def check_names_free(folder: Path, patterns: Collection[str], request: str) -> None:
    """Refuse to create files in a folder that holds others of these names, unless a killed creation wrote them."""
    left = _left(folder)
    for name in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
        if name == CREATION_FILE:
            foreign = left is None
        else:
            foreign = any(fnmatchcase(name, each) for each in patterns) and not _is_own(folder / name, left or {})
        if foreign:
            hint = "Give another folder, or move that file away"
            raise QkvError(request, f"{folder / name} is there already, and would be replaced", hint)


def remove_killed(folder: Path) -> None:
    """Remove the files that a killed creation has left, as it wrote them, and its record; the caller holds the lock."""
    left = _left(folder) or {}
    _remove(folder, {name: checksum for name, checksum in left.items() if name in CREATED_FILES})
    _forget(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes, and the record of a creation that was killed after its last file."""
    if CONFIG_FILE in (_left(folder) or {}) and os.path.lexists(folder / CONFIG_FILE):
        _forget(folder)
    remove_abandoned(folder)


def _left(folder: Path) -> dict[str, str] | None:
    """The checksums of the files whose creation was killed, by name; None if CREATION_FILE is not qkv's."""
    path = folder / CREATION_FILE
    if not os.path.lexists(path):
        return {}
    try:
        record = verified(read_json(path), by_hand=False) if path.is_file() and not path.is_symlink() else {}
        if record.get("format") == _NAMES_ONLY:
            return dict.fromkeys(map(str, record["files"]), "")
        if record.get("format") != CREATION_FORMAT:
            return None
        return {str(name): str(checksum) for name, checksum in dict(record["files"]).items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _forget(folder: Path) -> None:
    """Remove the record of a creation, if it is one."""
    if _left(folder) is not None:
        (folder / CREATION_FILE).unlink(missing_ok=True)


def _remove(folder: Path, checksums: dict[str, str]) -> None:
    for name in checksums:
        if _is_own(folder / name, checksums):
            (folder / name).unlink(missing_ok=True)


def _is_own(path: Path, checksums: dict[str, str]) -> bool:
    """Whether a file has the content that was written under its name."""
    try:
        is_file = path.is_file() and not path.is_symlink()
        return is_file and path.name in checksums and _checksum(path) == checksums[path.name]
    except OSError:
        return False


def _checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
