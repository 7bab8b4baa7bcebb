"""Replace a set of files in a folder by another, all or none, also after a failure; a later call mends a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple

from qkv.core.files import creating, place, refuse_existing, remove_abandoned, temporary_file, write_text
from qkv.core.interrupts import interrupts_delayed
from qkv.core.json_files import content_checksum, read_json, verified, with_checksum
from qkv.errors import QkvError

PENDING_FILE, PENDING_FORMAT = ".qkv-replacing", "qkv-replacing-1"
"""The checksums of the files that are being replaced, and of those in their place, for the call after a kill."""
ASIDE_PREFIX = ".qkv-old-"


class _Exchange(NamedTuple):
    """Checksums by name of the files that are replaced, and of those that replace them."""

    old: dict[str, str]
    new: dict[str, str]


def replace_files(folder: Path, old: Mapping[str, str], contents: Mapping[str, str]) -> None:
    """Replace the files of a folder whose checksums are given by files of these contents.

    The old ones are set aside until the new ones have their names, and are put back on any failure. Nothing else is
    replaced: neither a file that appears meanwhile nor an old one that changes. A kill is mended by `recover_files`.

    Args:
        folder: The folder, whose lock the caller holds.
        old: `content_checksum` of the files that may be replaced or removed, by name.
        contents: Text of the new files, by name.
    """
    exchange = _Exchange(dict(old), {name: content_checksum(text.encode()) for name, text in contents.items()})
    with ExitStack() as stack:
        ready: dict[str, Path] = {}
        for name, text in contents.items():  # all are written before any gets its name
            ready[name] = stack.enter_context(temporary_file(folder / name))
            ready[name].write_text(text, "utf-8")
            if name in old:
                ready[name].chmod(S_IMODE((folder / name).stat().st_mode) & 0o777)
        with interrupts_delayed():
            try:
                record = with_checksum({"format": PENDING_FORMAT, **exchange._asdict()})
                write_text(folder / PENDING_FILE, json.dumps(record) + "\n", creating)
                for name, checksum in exchange.old.items():
                    _set_aside(folder / name, checksum)
                for name, temporary in ready.items():
                    place(temporary, folder / name)
            except BaseException:
                _put_back(folder, exchange)
                raise
            _forget(folder, exchange)


def recover_files(folder: Path, names: Collection[str]) -> None:
    """Finish what a killed `replace_files` left, if all new files have their names; if not, put the old ones back.

    A record that speaks of other files than those of `names` is refused.
    """
    path = folder / PENDING_FILE
    if not os.path.lexists(path):
        return
    remove_abandoned(folder)
    exchange = _pending(path)
    if exchange is None or not {*exchange.old, *exchange.new} <= set(names):
        problem = f"{path} is there already, and qkv did not write it"
        raise QkvError(f"writing to {folder}", problem, "Give another folder, or move that file away")
    if all(_checksum(folder / name) == checksum for name, checksum in exchange.new.items()):
        _forget(folder, exchange)
        return
    _put_back(folder, exchange)
    left = [name for name in exchange.old if os.path.lexists(_aside(folder / name))]
    if left:
        problem = f"{folder / left[0]} is there already, and the earlier file is kept as {_aside(Path(left[0]))}"
        raise QkvError(f"writing to {folder}", problem, "Move that file away")


def _set_aside(path: Path, checksum: str) -> None:
    """Give an old file another name; one that has changed gets its name back, and is refused."""
    refuse_existing(_aside(path))
    path.rename(_aside(path))
    if _checksum(_aside(path)) != checksum:
        problem = f"{path} was changed meanwhile"
        raise QkvError(f"replacing {path}", problem, "Give another folder, or move that file away")


def _put_back(folder: Path, exchange: _Exchange) -> None:
    """Remove the new files, and give the old ones their names, where nothing else has them."""
    for name, checksum in exchange.new.items():
        set_aside = os.path.lexists(_aside(folder / name))
        if (set_aside or name not in exchange.old) and _checksum(folder / name) == checksum:
            (folder / name).unlink()
    left = False
    for name in exchange.old:
        path, aside = folder / name, _aside(folder / name)
        if os.path.lexists(aside):
            if os.path.lexists(path):
                left = True
            else:
                aside.rename(path)
    if not left and _pending(folder / PENDING_FILE) == exchange:
        (folder / PENDING_FILE).unlink()


def _forget(folder: Path, exchange: _Exchange) -> None:
    """Remove the old files, as they were, and the record of the exchange."""
    for name, checksum in exchange.old.items():
        if _checksum(_aside(folder / name)) == checksum:
            _aside(folder / name).unlink()
    (folder / PENDING_FILE).unlink()


def _pending(path: Path) -> _Exchange | None:
    """The exchange that a record describes; None if it is none of qkv's."""
    try:
        record = verified(read_json(path), by_hand=False) if path.is_file() and not path.is_symlink() else {}
        if record.get("format") != PENDING_FORMAT:
            return None
        old, new = ({str(name): str(each) for name, each in dict(record[side]).items()} for side in ("old", "new"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _Exchange(old, new)


def _aside(path: Path) -> Path:
    return path.with_name(ASIDE_PREFIX + path.name)


def _checksum(path: Path) -> str:
    """The checksum of a regular file; "" of anything else, and where there is nothing."""
    try:
        return content_checksum(path.read_bytes()) if path.is_file() and not path.is_symlink() else ""
    except OSError:
        return ""
