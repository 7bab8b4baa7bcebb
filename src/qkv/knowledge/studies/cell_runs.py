"""Training runs of a study's cell: only those that the study created are continued, and removed in the end."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from qkv.core.files import creating, remove_abandoned
from qkv.core.json_files import read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.train.run_files import CONFIG_FILE, is_run, write_json

RECORD_FILE, RECORD_FORMAT = ".qkv-cell", "qkv-cell-runs-1"
"""A file in the folder of a cell's runs that says which cell of which study is being measured there."""


def check_folder(folder: Path, identity: dict[str, Any], names: Collection[str]) -> None:
    """Refuse a folder for the runs of a cell if it holds a run or a model that no call for this cell created.

    Args:
        folder: Where the cell has the folders of its runs.
        identity: What names the cell: its study, its name and its settings.
        names: The folders of the runs that the cell trains.
    """
    request = f"running the study {identity['study']!r}"
    hint = "Move it away, or give another --out"
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        problem = f"{folder} is there already, and is not a folder that the study made"
        raise QkvError(request, problem, hint)
    own = _is_recorded(folder, identity)
    if not own and os.path.lexists(folder / RECORD_FILE):
        problem = f"{folder / RECORD_FILE} is there already, and is not the record of this cell"
        raise QkvError(request, problem, hint)
    for name in names:
        path = folder / name
        if path.is_symlink() or (os.path.lexists(path / CONFIG_FILE) and not own):
            problem = f"{path} is there already, and the study did not make it"
            raise QkvError(request, problem, hint)


def begin(folder: Path, identity: dict[str, Any], names: Collection[str]) -> None:
    """Make the folder for the runs of a cell, and record that they are the study's, before any is created."""
    check_folder(folder, identity, names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        raise QkvError(f"running the study {identity['study']!r}", str(why), "Give another --out") from None
    remove_abandoned(folder)
    if not os.path.lexists(folder / RECORD_FILE):
        write_json(folder / RECORD_FILE, with_checksum({"format": RECORD_FORMAT, **identity}), creating)


def remove(folder: Path, identity: dict[str, Any], names: Collection[str]) -> None:
    """Remove the runs of a cell that is measured; whatever else is in their folders stays."""
    from qkv.train.removal import remove_run  # needs torch, which a Study in a file does not

    if folder.is_symlink() or not _is_recorded(folder, identity):
        return
    for name in names:
        if is_run(folder / name) and not (folder / name).is_symlink():
            remove_run(folder / name)
    (folder / RECORD_FILE).unlink()
    with suppress(OSError):  # it holds other files
        folder.rmdir()


def _is_recorded(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether a call for this cell began in a folder, and has not finished."""
    path = folder / RECORD_FILE
    try:
        record = verified(read_json(path), by_hand=False) if path.is_file() and not path.is_symlink() else None
    except (OSError, ValueError):
        return False
    return record == {"format": RECORD_FORMAT, **identity}
