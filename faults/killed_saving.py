"""Processes that save again and again, killed with SIGKILL at random moments: each file holds one of its versions, and
what a kill leaves behind is removed by the next save."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Fork, scratch

LONGEST = 0.08
"""Seconds after which a process is killed at the latest; in this time it saves many times."""
Saver = tuple[Callable[[Path, int], None], Callable[[Path], Any]]
"""How version 0 or 1 of a file is saved, and how it is read."""


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Kill savers of every kind of file in turn."""
    tally, draw = Tally("killed while saving", count, progress), random.Random(seed)
    savers = list(_savers().items())
    with scratch() as folder:
        for i in range(count):
            name, (save, read) = savers[i % len(savers)]
            place = folder / name
            if not place.exists():
                place.mkdir()
                save(place, 0)  # something complete is there before the first kill
            fork = Fork(lambda save=save, place=place: _save_for_ever(save, place))
            time.sleep(draw.random() * LONGEST)
            fork.send(signal.SIGKILL)
            ended = fork.wait()
            if ended.err:
                tally.add("tracebacks", f"{name}: {ended.err[-800:]}")
                continue
            found = None
            try:
                found = read(place)
            except Exception as why:
                tally.add("lost", f"{name}: {type(why).__name__}: {why}")
                continue
            save(place, 0)
            left = [p.name for p in place.iterdir() if p.name.startswith(".")]
            if left:
                tally.add("lost", f"{name}: the next save left {left}")
            elif found not in (0, 1):
                tally.add("believed", f"{name}: {found!r:.400}")
            else:
                tally.add("unchanged")
    return tally.result(f"{len(savers)} kinds of file: {', '.join(name for name, _ in savers)}.")


def _save_for_ever(save: Callable[[Path, int], None], place: Path) -> None:
    version = 0
    while True:
        save(place, version)
        version = 1 - version


@cache
def _savers() -> dict[str, Saver]:
    import numpy as np
    import torch

    import qkv
    from faults.damaged_files import model_badge
    from qkv.core.files import write_text
    from qkv.design.certificates.certificate import load
    from qkv.knowledge.language_models.badge import ModelBadge
    from qkv.train import checkpoint
    from qkv.train.run_files import write_json

    versions = [qkv.design.copy(qkv.Memory(np.eye(4) + i), 0).certificate for i in range(2)]
    pages = [f"<html>{'x' * 200_000}{i}</html>" for i in range(2)]
    badges = [model_badge()]

    def read_checkpoint(place: Path) -> int:
        step, weights, state = checkpoint.load(place)
        values = {float(t.flatten()[0]) for t in (*weights.values(), *state.values())}
        return step if values == {float(step)} else -1

    def save_checkpoint(place: Path, i: int) -> None:
        weights = {"weight": torch.full((40_000,), float(i))}
        checkpoint.save(place, i, weights, {"weight/moment": torch.full((40_000,), float(i))})

    def read_certificate(path: Path) -> int:
        found = load(path)[0]
        if not found.verify():
            return -1
        return next(i for i in range(2) if np.array_equal(found.data["keys"], versions[i].data["keys"]))

    return {
        "checkpoint": (save_checkpoint, read_checkpoint),
        "certificate.json": (
            lambda place, i: versions[i].save(place / "c.json"), lambda place: read_certificate(place / "c.json"),
        ),
        "certificate.safetensors": (
            lambda place, i: versions[i].save(place / "c.safetensors"),
            lambda place: read_certificate(place / "c.safetensors"),
        ),
        "badge": (
            lambda place, i: badges[0].save(place),
            lambda place: 0 if repr(ModelBadge.load(place, "city", "fingerprint")) == repr(badges[0]) else -1,
        ),
        "settings": (
            lambda place, i: write_json(place / "config.json", {"version": i, "more": ["x"] * 5000}),
            lambda place: json.loads((place / "config.json").read_text())["version"],
        ),
        "page": (
            lambda place, i: write_text(place / "page.html", pages[i]),
            lambda place: pages.index((place / "page.html").read_text()),
        ),
    }  # fmt: skip
