"""Lock of a run folder: one process at a time creates or trains the run in it."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qkv.errors import QkvError

try:
    import fcntl
except ImportError:  # not on Windows, where runs are not locked
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".qkv-lock"
_OWN_CONTENT = re.compile(rb"(process \d+ on [^\n]*\n)?")  # nothing, if its writer was killed at once
_MAX_CONTENT = 4096
MAX_ATTEMPTS = 100
"""Times that a folder is created if other processes, whose runs failed, remove it again."""


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while a block writes to it; the folder is created if there is none.

    The kernel releases the lock when its holder ends, in whatever way. On a file system without locks, and on
    Windows, nothing is locked.

    Raises:
        QkvError: Another process (or thread) holds the lock, the folder cannot be written to, or a file of another
            kind has the lock's name.
    """
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        try:
            handle = _created_and_locked(folder)
        except OSError as why:
            taken = next((each for each in (folder, *folder.parents) if each.exists() and not each.is_dir()), None)
            problem = f"{taken} is a file" if taken else why.strerror or str(why)
            raise QkvError(f"writing to {folder}", problem, "Give a folder that can be written") from None
        try:
            yield
        finally:
            # Removed before it is released, so that no other process can hold it at this moment; see _acquire.
            if _is_same_file(handle, folder / LOCK_FILE):  # not if the folder was replaced by another meanwhile
                (folder / LOCK_FILE).unlink(missing_ok=True)
            os.close(handle)
    finally:
        for each in created:
            try:
                each.rmdir()  # which fails, as it should, if something has been written
            except OSError:
                break


def _created_and_locked(folder: Path) -> int:
    """Handle of the lock of a folder, which is created if there is none, and again if another process removes it."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            return _acquire(folder / LOCK_FILE)
    raise FileNotFoundError(errno.ENOENT, "other processes remove it again and again")


def _acquire(path: Path) -> int:
    """Handle of the lock file, locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if fcntl is None:
            return _claimed(handle, path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode("utf-8", errors="replace").strip()
            os.close(handle)
            raise QkvError(
                f"writing to {path.parent}",
                f"{holder or 'another process'} is writing to it",
                "Wait until it has ended, or give another folder",
            ) from None
        except OSError:  # a file system without locks
            return _claimed(handle, path)
        if _is_same_file(handle, path):
            return _claimed(handle, path)
        os.close(handle)  # the last holder removed the file after it was opened here


def _claimed(handle: int, path: Path) -> int:
    """The handle of a lock file that this process may hold, after its own number was written to it.

    A file that qkv did not write is refused; if there is no space for the number, the lock file is removed again.
    """
    try:
        found = os.fstat(handle)
        is_file = stat.S_ISREG(found.st_mode) and found.st_nlink < 2  # another name would get this content too
        if not is_file or not _OWN_CONTENT.fullmatch(os.read(handle, _MAX_CONTENT)):
            problem = f"{path} is there already, and qkv did not write it"
            raise QkvError(f"writing to {path.parent}", problem, "Give another folder, or move that file away")
        content = f"process {os.getpid()} on {socket.gethostname()}\n".encode()
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        if os.write(handle, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except BaseException as why:
        if not isinstance(why, QkvError) and _is_same_file(handle, path):
            path.unlink(missing_ok=True)
        os.close(handle)
        raise
    return handle


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False
