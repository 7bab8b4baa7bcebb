"""Forged certificates: other numbers, bounds, tolerances, items, kinds and statements; an independent judge says which
of them are false, and every false one must be refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from faults.certificate_oracle import corruptions, oracle, oracle_of_texts
from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import scratch

KIND, EXTREME = "certificates, forged", "certificates, forged with numbers of extreme sizes"
SEEDS_OF_EACH = 3
"""Genuine certificates of each source, to be forged."""


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Forge genuine certificates of every kind but those about texts, save and verify them, in both formats."""
    forge, judge, tally = corruptions(), oracle(), Tally(KIND, count, progress)
    rng, refused_true = np.random.default_rng(seed), 0
    for entry, suffix in _genuine(list(forge.SOURCES), count):
        before = json.dumps(entry)
        while json.dumps(entry) == before:
            forge.corrupt(rng, entry)
        refused_true += _one(tally, judge.truth, entry, suffix)
    note = (
        "An independent judge in fractions and 80 digits says which are false. Another input: still true, and accepted"
    )
    return tally.result(f"{note}; true and refused: {refused_true}.")


def run_extreme(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """The same for all kinds, with numbers up to 2^1022 apart, where every bound is first tried in float64."""
    forge, judge, tally = corruptions(), oracle_of_texts(), Tally(EXTREME, count, progress)
    rng, refused_true = np.random.default_rng(seed), 0
    with forge.float64_first():
        for entry, suffix in _genuine([*forge.SOURCES, *forge.TEXT_SOURCES], count):
            before = json.dumps(entry)
            while json.dumps(entry) == before:
                forge.extreme(rng, entry)
            refused_true += _one(tally, judge.truth, entry, suffix)
    return tally.result(
        "Units, rows and single numbers times powers of two, so that float64 loses digits to underflow; certificates "
        "about texts are judged by reading every text. True and refused, since it cannot be told in the precision "
        f"that is tried: {refused_true}."
    )


def _genuine(names: list[str], count: int) -> Iterator[tuple[dict[str, Any], str]]:
    """So many genuine certificates of all sources in turn, with the format that they were read from."""
    for i in range(count):
        suffix = (".json", ".safetensors")[i % 2]
        genuine = corruptions().saved(names[i % len(names)], i // len(names) % SEEDS_OF_EACH, suffix)
        yield json.loads(genuine), suffix


def _one(tally: Tally, truth: Callable[..., Any], entry: dict[str, Any], suffix: str) -> bool:
    """Save and verify a forged certificate, and count what became of it; whether a true one was refused."""
    from qkv.design.certificates.certificate import load
    from qkv.errors import QkvError

    true, accepted = bool(truth(entry["kind"], entry["data"], entry["claims"])), False
    with scratch() as folder:
        path = folder / f"forged{suffix}"
        corruptions().pack(entry, path)
        try:
            accepted = bool(load(path)[0].verify())
        except QkvError:
            pass
        except Exception as why:
            tally.add("tracebacks", f"{type(why).__name__}: {why}: {json.dumps(entry)[:600]}")
            return False
    if accepted and not true:
        tally.add("believed", json.dumps(entry))
    else:
        tally.add("other_input" if accepted else "refused")
    return true and not accepted
