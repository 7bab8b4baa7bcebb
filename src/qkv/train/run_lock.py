"""Lock of a run folder: one process at a time creates or trains the run in it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qkv.errors import QkvError

try:
    import fcntl
except ImportError:  # not on Windows, where runs are not locked
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".qkv-lock"  # a name that nobody gives to a file of their own


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder while a block writes to it; the folder is created if there is none.

    The kernel releases the lock when its holder ends, in whatever way. On a file system without locks, and on
    Windows, nothing is locked.

    Raises:
        QkvError: Another process (or thread) holds the lock, or the folder cannot be written to.
    """
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _acquire(folder / LOCK_FILE)
    except OSError as why:
        taken = next((each for each in (folder, *folder.parents) if each.exists() and not each.is_dir()), None)
        problem = f"{taken} is a file" if taken else why.strerror or str(why)
        raise QkvError(f"writing a run to {folder}", problem, "Give a folder that can be written") from None
    try:
        yield
    finally:
        # Removed before it is released, so that no other process can hold it at this moment; see _acquire.
        (folder / LOCK_FILE).unlink(missing_ok=True)
        os.close(handle)
        for each in created:
            try:
                each.rmdir()  # which fails, as it should, if a run has been written
            except OSError:
                break


def _acquire(path: Path) -> int:
    """Handle of the lock file, locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if fcntl is None:
            return handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode("utf-8", errors="replace").strip()
            os.close(handle)
            raise QkvError(
                f"writing a run to {path.parent}",
                f"{holder or 'another process'} is writing to it",
                "Wait until it has ended, or give another folder",
            ) from None
        except OSError:  # a file system without locks
            return handle
        if _is_same_file(handle, path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return handle
        os.close(handle)  # the last holder removed the file after it was opened here


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
