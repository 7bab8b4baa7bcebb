"""All kinds of faults: what runs them, how often in `make faults`, and how often in `make test`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from faults import (
    damaged_files,
    forged_certificates,
    forged_proofs,
    forged_results,
    full_disk,
    fuzz,
    hostile_clients,
    interrupts,
    killed_commands,
    killed_saving,
    killed_training,
    killed_workers,
    two_processes,
)
from faults.count import FaultCount, Progress

FULL_COUNT_OF_FILES = 2000
FUZZ_SECONDS = 600


class Kind(NamedTuple):
    """A kind of fault.

    Attributes:
        name: Unique; `python -m faults NAME` runs it.
        section: The section of the page.
        run: From count, seed and progress to what became of the faults.
        count: How many in `make faults`.
        minutes: About how long that takes on one free core, to start the longest first.
        forks: Whether it forks commands from its process, which then imports everything first, and trains nothing.
    """

    name: str
    section: str
    run: Callable[[int, int, Progress], FaultCount]
    count: int
    minutes: float
    forks: bool = False


TRAINING = "Training killed"
KILLED = "Other processes killed"
DISK = "Disks and folders"
FILES, INPUTS = "Files that qkv writes, damaged", "Inputs of the user, damaged"
FORGED = "Forged"
INTERRUPTED = "Ctrl-C"
SERVER = "The explorer"
FUZZED = "Fuzzing"
SECTIONS = (TRAINING, KILLED, DISK, FILES, INPUTS, FORGED, INTERRUPTED, SERVER, FUZZED)

TRAINING_COUNTS = (32, 32, 10, 10, 10, 6)
COMMAND_COUNTS = {"badge": 40, "study": 30, "check": 40, "grade": 40}
CLIENT_COUNTS = {"load": 12_000, "foreign": 1000, "slow": 400}


def kinds() -> list[Kind]:
    """All kinds; what needs a package that is not installed says so in its result, or is left out."""
    found = [
        Kind(f"training: {name}", TRAINING, run, count, count / 20, True)
        for (name, run), count in zip(killed_training.settings(), TRAINING_COUNTS, strict=True)
    ]
    found += [Kind("saving", KILLED, killed_saving.run, 600, 1.5, True)]
    found += [Kind(name, KILLED, run, COMMAND_COUNTS[name], 1.5, True) for name, run in killed_commands.kinds()]
    found += [
        Kind("pool worker", KILLED, killed_workers.run_pool, 20, 1),
        Kind("dask worker", KILLED, killed_workers.run_cluster, 12, 1),
        Kind("full disk", DISK, full_disk.run_full, 150, 2, True),
        Kind("read-only", DISK, full_disk.run_read_only, 40, 1, True),
        Kind("two processes", DISK, two_processes.run, 60, 2, True),
    ]
    found += [
        Kind(
            f"file: {kind.name}",
            FILES if kind.written_by == damaged_files.OWN else INPUTS,
            partial(damaged_files.run_kind, kind),
            FULL_COUNT_OF_FILES,
            0.3,
        )
        for kind in damaged_files.kinds()
    ]
    found += [
        Kind("certificates", FORGED, forged_certificates.run, 10_000, 1),
        Kind("extreme certificates", FORGED, forged_certificates.run_extreme, 10_000, 3),
        Kind("results", FORGED, forged_results.run, 10_000, 1),
        Kind("proofs", FORGED, forged_proofs.run, 40, 3),
        Kind("ctrl-c at work", INTERRUPTED, interrupts.run_at_work, 320, 4, True),
        Kind("ctrl-c from the start", INTERRUPTED, interrupts.run_starting, 132, 5),
    ]
    found += [Kind(name, SERVER, run, CLIENT_COUNTS[name], 1.5) for name, run in hostile_clients.kinds()]
    found += [Kind("web worker", SERVER, killed_workers.run_web, 40, 1)]
    found += [Kind(f"fuzz: {name}", FUZZED, run, FUZZ_SECONDS, FUZZ_SECONDS / 60) for name, run in fuzz.kinds()]
    return found
