"""Two processes at one thing: the same run, the same badge, the same study, the same file. One of them may be refused;
what is there in the end is what one alone writes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faults import killed_commands
from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Fork, forked_command, scratch
from faults.verbs import half_written, words_of

LONGEST_DELAY = 0.5
"""Seconds between the two starts, at most."""


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Start each pair after one another with a random delay, in turn."""
    tally, draw = Tally("two processes at once", count, progress), random.Random(seed)
    cases = _cases()
    with scratch() as folder:
        wanted: dict[str, Any] = {}
        for i in range(count):
            name = list(cases)[i % len(cases)]
            start, read = cases[name]
            if name not in wanted:
                alone = folder / "alone" / name
                alone.mkdir(parents=True)
                start(alone).wait(120)
                wanted[name] = read(alone)
            out = folder / f"both-{i}"
            out.mkdir()
            first = start(out)
            time.sleep(draw.random() * LONGEST_DELAY)
            ended = [fork.wait(120) for fork in (start(out), first)]
            found = killed_commands.read_safely(read, out)
            refused = [e for e in ended if e.code == 2 and e.err.startswith("qkv: ")]
            if any(e.code is None for e in ended):
                tally.add("hangs", name)
            elif any(e.traceback or e.code not in (0, 1, 2) for e in ended):
                tally.add("tracebacks", f"{name}: " + " | ".join(f"{e.code} {e.err[-700:]}" for e in ended))
            elif len(refused) == 2 or isinstance(found, Exception) or half_written(out):
                tally.add("lost", f"{name}: {found!r:.300} {half_written(out)} {[e.err[-200:] for e in ended]}")
            elif found != wanted[name]:
                tally.add("believed", f"{name}: {found!r:.500}")
            else:
                tally.add("refused" if refused else "unchanged")
    return tally.result(f"{', '.join(cases)}. Refused: one of the two was told that the other is writing.")


def _weights(out: Path) -> Any:
    from qkv.train import checkpoint
    from qkv.train.metrics_log import read_log

    step, weights, state = checkpoint.load(out / "base")
    tensors = {name: tensor.numpy().tobytes() for name, tensor in (*weights.items(), *state.items())}
    return step, tensors, [line["step"] for line in read_log(out / "base")]


def _saved(name: str, out: Path) -> Any:
    return (out / name).read_bytes()


def _start(verb: str, out: Path) -> Fork:
    return forked_command(words_of(verb, out), out)


def _cases() -> dict[str, tuple[Callable[[Path], Fork], Callable[[Path], Any]]]:
    """How each thing is started in a folder, and read from it."""
    return {
        "pretrain": (partial(_start, "pretrain"), _weights),
        "trust": (partial(_start, "trust"), killed_commands._trust),
        "study": (killed_commands._start_study, killed_commands._study),
        "design copy --save": (partial(_start, "design copy"), partial(_saved, "copy.json")),
        "design blend --save": (partial(_start, "design blend"), partial(_saved, "blend.safetensors")),
        "check --html": (partial(_start, "check"), partial(_saved, "claims.html")),
    }
