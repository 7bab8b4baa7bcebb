"""Ctrl-C at random moments of every verb: no traceback, no half of a file, and exit code 130 unless it had ended."""

from __future__ import annotations

import random
import signal
import time
from functools import cache
from pathlib import Path

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Ended, forked_command, scratch, signalled
from faults.verbs import half_written, usable_verbs, words_of

INTERRUPTED = 130
LONGEST = 6.0
"""Seconds after which every verb has been interrupted at the latest."""
SHORT = 0.5
"""The same for a few interrupts, which are not worth measuring how long a verb takes."""
STARTING = 3.0
"""Seconds in which a process that has imported nothing yet is interrupted."""


def run_at_work(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Interrupt forks, which are at work at once; verb by verb in turn."""
    tally, draw = Tally("Ctrl-C at work, every verb", count, progress), random.Random(seed)
    verbs = [verb for verb in usable_verbs() if verb != "serve"]
    late = 0
    for i in range(count):
        verb = verbs[i % len(verbs)]
        with scratch() as out:
            after = draw.random() * (min(_duration(verb), LONGEST) if count > len(verbs) else SHORT)
            fork = forked_command(words_of(verb, out), out)
            time.sleep(after)
            late += not fork.send(signal.SIGINT)
            _count(tally, verb, fork.wait(60), out)
    return tally.result(f"{len(verbs)} verbs; {late} had ended before. Unchanged: ended as without Ctrl-C.")


def run_starting(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Interrupt processes of their own, among imports too, from the first line of qkv's code on."""
    tally, draw = Tally("Ctrl-C from the first line on, every verb", count, progress), random.Random(seed)
    verbs = usable_verbs()
    for i in range(count):
        verb = verbs[i % len(verbs)]
        with scratch() as out:
            after = draw.random() * STARTING
            _count(tally, verb, signalled(words_of(verb, out), out, signal.SIGINT, after), out)
    return tally.result(f"{len(verbs)} verbs, each as a process of its own.")


def _count(tally: Tally, verb: str, ended: Ended, out: Path) -> None:
    left = half_written(out)
    if ended.code is None:
        tally.add("hangs", f"{verb}: {ended.err[-400:]}")
    elif ended.traceback or ended.code < 0:
        tally.add("tracebacks", f"{verb}: exit code {ended.code}: {ended.err[-1200:]}")
    elif left:
        tally.add("lost", f"{verb}: {left}")
    elif ended.code == INTERRUPTED:
        tally.add("refused")
    elif ended.code in (0, 1):
        tally.add("unchanged")
    else:
        tally.add("tracebacks", f"{verb}: exit code {ended.code}: {ended.err[-400:]}")


@cache
def _duration(verb: str) -> float:
    """How long a verb takes in a fork, at most LONGEST."""
    with scratch() as out:
        began = time.monotonic()
        forked_command(words_of(verb, out), out).wait(LONGEST)
        return time.monotonic() - began
