"""`python -m faults [NAME…]`: run kinds of faults, two at a time, and write docs/reliability.md from all results.

Each kind runs in a process of its own and stores its result in faults/results; kinds that were not run keep their last
one, with its date. The exit code is 1 if any fault did harm.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults.count import FaultCount
from faults.kinds import Kind, kinds
from faults.page import write_page
from faults.processes import ROOT, environment, preload
from faults.samples import SAMPLES_VARIABLE

RESULTS = Path(__file__).parent / "results"
LONGEST_MINUTES = 30
"""After which a process counts as hung."""
SHORT_MINUTES, BATCH = 1.0, 8
"""Kinds that take less share a process, so many at a time."""


def main() -> int:
    """Run what the command line names, or everything."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="Names of kinds, or parts of them; all of them if none is given.")
    parser.add_argument("--share", type=float, default=1.0, help="Share of the full counts, such as 0.01.")
    parser.add_argument("--at-once", type=int, default=2, help="Kinds that run at the same time.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="List the kinds and their counts.")
    parser.add_argument("--page", action="store_true", help="Only write the page from stored results.")
    parser.add_argument("--here", action="store_true", help="Run them in this process, one after another.")
    given = parser.parse_args()
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # started in the background by a shell: all would ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if given.here:
        return max(_run_here(k, given.share, given.seed) for k in kinds() if k.name in given.names)
    chosen = _chosen(given.names)
    if given.list:
        for kind in chosen:
            sys.stdout.write(f"{kind.count:6}  {kind.name}\n")
        return 0
    harmless = True
    if not given.page:
        if not chosen:
            parser.error(f"no kind is called {' or '.join(given.names)}")
        harmless = _run_all(chosen, given.share, given.at_once, given.seed)
    if given.share == 1.0:
        write_page(RESULTS, ROOT / "docs" / "reliability.md")
    return 0 if harmless else 1


def _chosen(names: list[str]) -> list[Kind]:
    """The kinds of these names; a word that is no whole name stands for all kinds whose name has it in it."""
    every = kinds()
    whole = {kind.name for kind in every}
    return [k for k in every if not names or any(k.name == n or (n not in whole and n in k.name) for n in names)]


def _run_all(chosen: list[Kind], share: float, at_once: int, seed: int) -> bool:
    """Run kinds in processes of their own, the longest first; whether none did harm."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="qkv-fault-samples-") as folder:
        if SAMPLES_VARIABLE not in os.environ:
            command = [sys.executable, "-m", "faults.samples", folder]
            subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
            os.environ[SAMPLES_VARIABLE] = folder
        ordered = sorted(_batches(chosen), key=lambda batch: -sum(kind.minutes for kind in batch))
        with ThreadPoolExecutor(at_once) as pool:
            outcomes = list(pool.map(lambda batch: _in_a_process(batch, share, seed), ordered))
    minutes = (time.monotonic() - began) / 60
    if len(chosen) == len(kinds()) and share == 1.0:
        RESULTS.mkdir(exist_ok=True)
        summary = {"minutes": round(minutes, 1), "at_once": at_once, "date": str(datetime.date.today())}
        (RESULTS / "whole-run.json").write_text(json.dumps(summary) + "\n")
    sys.stdout.write(f"{len(chosen)} kinds in {minutes:.1f} minutes; {sum(not good for good in outcomes)} did harm\n")
    return all(outcomes)


def _batches(chosen: list[Kind]) -> list[list[Kind]]:
    """Kinds that share a process: short ones that need no forks, since starting takes longer than they do."""
    short = [kind for kind in chosen if not kind.forks and kind.minutes < SHORT_MINUTES]
    rest = [[kind] for kind in chosen if kind not in short]
    return [*rest, *(short[i : i + BATCH] for i in range(0, len(short), BATCH))]


def _in_a_process(batch: list[Kind], share: float, seed: int) -> bool:
    names = [kind.name for kind in batch]
    command = [sys.executable, "-m", "faults", "--here", "--share", str(share), "--seed", str(seed), *names]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60 * LONGEST_MINUTES
        )
        said = done.stdout.strip() or done.stderr[-1500:]
        good = done.returncode == 0
    except subprocess.TimeoutExpired:
        said, good = f"{', '.join(names)}: no result after {LONGEST_MINUTES} minutes", False
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    return good


def _run_here(kind: Kind, share: float, seed: int) -> int:
    """Run one kind here, print a line about it, and store its result if it had its full count."""
    if kind.forks:
        preload()
    result = kind.run(max(1, round(share * kind.count)), seed, lambda done, total: None)
    if share == 1.0:
        RESULTS.mkdir(exist_ok=True)
        stored = {"name": kind.name, "section": kind.section, "seed": seed, "date": str(datetime.date.today())}
        (RESULTS / f"{file_name(kind.name)}.json").write_text(
            json.dumps({**stored, **result.to_json()}, indent=1) + "\n"
        )
    sys.stdout.write(_line(result))
    sys.stdout.flush()
    return 0 if result.harmless else 1


def _line(result: FaultCount) -> str:
    counts = {name: getattr(result, name) for name in ("refused", "unchanged", "other_input")}
    harm = {name: getattr(result, name) for name in ("lost", "believed", "tracebacks", "hangs")}
    shown = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    bad = ", ".join(f"{n} {name}" for name, n in harm.items() if n)
    lines = [f"{result.kind}: {result.tried} tried, {shown}{f'; HARM: {bad}' if bad else ''}; {result.seconds:.0f} s"]
    return "\n".join([*lines, *(f"    {example}" for example in result.examples)]) + "\n"


def file_name(name: str) -> str:
    """The name of a kind as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())
