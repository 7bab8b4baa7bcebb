"""A disk that is full or cannot be written: one sentence, exit code 2, what was there before stays, no half of a file.

As root, the disk is a small file system in memory, filled to a random rest, or remounted read-only. Otherwise the size
of files is limited (RLIMIT_FSIZE), and the folder loses its permission to be written.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Ended, Fork, scratch
from faults.verbs import LINES, half_written, usable_verbs, words_of

DISK_BYTES = 4 * 2**20
SLOW = {"tour", "models get", "serve"}
Write = Callable[[str, Path], Ended]


def writing_verbs() -> list[str]:
    """The verbs that write files."""
    return [verb for verb in usable_verbs() if "{out}" in LINES[verb] and verb not in SLOW]


def run_full(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Run writing verbs on a disk with a random rest of space."""
    tally, draw = Tally("full disk", count, progress), random.Random(seed)
    verbs = writing_verbs()
    with scratch() as folder, _mounted(folder / "disk") as disk:
        place = disk or folder / "limited"
        for i in range(count):
            verb = verbs[i % len(verbs)]
            _empty(place)
            space = int(_needed(verb) * draw.random())
            words = words_of(verb, place)
            if disk is not None:
                _fill(place, space)
                ended = _command(words, place, None)
            else:
                ended = _command(words, place, space)
            (place / "filler").unlink(missing_ok=True)
            _count(tally, verb, ended, place)
    how = "a small file system in memory" if disk is not None else "a limit on the size of files"
    return tally.result(f"{len(verbs)} verbs; {how}, with a random part of the space that the verb needs.")


def run_read_only(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Run writing verbs whose folder cannot be written to."""
    tally = Tally("folder that cannot be written", count, progress)
    verbs = writing_verbs()
    with scratch() as folder, _mounted(folder / "disk") as disk:
        place = disk or folder / "closed"
        place.mkdir(exist_ok=True)
        for i in range(count):
            verb = verbs[i % len(verbs)]
            _read_only(place, disk is not None, False)
            _empty(place)
            words = words_of(verb, place)
            before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
            _read_only(place, disk is not None, True)
            ended = _command(words, folder, None)
            after = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
            if after != before:
                tally.add("lost", f"{verb}: files changed on a disk that is read-only")
            else:
                _count(tally, verb, ended, place, succeeds=False)
        _read_only(place, disk is not None, False)
    how = "remounted read-only" if disk is not None else "without the permission to write"
    return tally.result(f"{len(verbs)} verbs; {how}.")


def _count(tally: Tally, verb: str, ended: Ended, place: Path, succeeds: bool = True) -> None:
    left = half_written(place)
    if ended.code is None:
        tally.add("hangs", verb)
    elif ended.traceback or ended.code < 0 or ended.code not in (0, 1, 2):
        tally.add("tracebacks", f"{verb}: exit code {ended.code}: {ended.err[-1000:]}")
    elif left:
        tally.add("lost", f"{verb}: {left}")
    elif ended.code == 2:
        tally.add("refused" if ended.err.startswith("qkv: ") else "tracebacks", f"{verb}: {ended.err[-400:]}")
    elif succeeds:
        tally.add("unchanged")
    else:
        tally.add("believed", f"{verb}: it says that it wrote what it could not: {ended.out[-300:]}")


def _command(words: list[str], cwd: Path, limit: int | None) -> Ended:
    def work() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        sys.argv = ["qkv", *words]
        from qkv.cli import main

        main()

    return Fork(work, cwd).wait(120)


@cache
def _needed(verb: str) -> int:
    """The bytes that a verb writes."""
    with scratch() as out:
        words = words_of(verb, out)
        before = _size(out)
        _command(words, out, None)
        return max(4096, _size(out) - before)


def _size(folder: Path) -> int:
    return sum(-(-p.stat().st_size // 4096) * 4096 for p in folder.rglob("*") if p.is_file())


def _fill(place: Path, rest: int) -> None:
    """Leave so many bytes of a file system free."""
    found = os.statvfs(place)
    with (place / "filler").open("wb") as handle:
        handle.write(bytes(max(0, found.f_bavail * found.f_frsize - rest)))


def _empty(place: Path) -> None:
    import shutil

    place.mkdir(exist_ok=True)
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _read_only(place: Path, mounted: bool, closed: bool) -> None:
    if mounted:
        subprocess.run(["mount", "-o", f"remount,{'ro' if closed else 'rw'}", str(place)], check=True)
        return
    for path in [place, *place.rglob("*")]:
        if path.is_dir():
            path.chmod(0o555 if closed else 0o755)


@contextlib.contextmanager
def _mounted(place: Path) -> Iterator[Path | None]:
    """A small file system in memory, mounted at a folder; None where that is not allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        done = False
    if not done:
        place.rmdir()
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
