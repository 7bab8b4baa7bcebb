"""Forged certificates: other numbers, bounds, tolerances, items, kinds and statements; an independent judge says which
of them are false, and every false one must be refused."""

from __future__ import annotations

import json

import numpy as np

from faults.certificate_oracle import corruptions, oracle
from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import scratch

KIND = "certificates, forged"
SEEDS_OF_EACH = 3
"""Genuine certificates of each source, to be forged."""


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Forge genuine certificates of every kind, save and verify them, in both formats."""
    from qkv.design.certificates.certificate import load
    from qkv.errors import QkvError

    forge, judge, tally = corruptions(), oracle(), Tally(KIND, count, progress)
    rng, names, refused_true = np.random.default_rng(seed), list(forge.SOURCES), 0
    with scratch() as folder:
        for i in range(count):
            suffix = (".json", ".safetensors")[i % 2]
            genuine = forge.saved(names[i % len(names)], i // len(names) % SEEDS_OF_EACH, suffix)
            entry = json.loads(genuine)
            while entry == json.loads(genuine):
                forge.corrupt(rng, entry)
            true = bool(judge.truth(entry["kind"], entry["data"], entry["claims"]))
            path = folder / f"forged{suffix}"
            forge.pack(entry, path)
            try:
                accepted = bool(load(path)[0].verify())
            except QkvError:
                accepted = False
            except Exception as why:
                tally.add("tracebacks", f"{type(why).__name__}: {why}: {json.dumps(entry)[:600]}")
                continue
            refused_true += true and not accepted
            if accepted and not true:
                tally.add("believed", json.dumps(entry))
            else:
                tally.add("other_input" if accepted else "refused")
    note = (
        "An independent judge in fractions and 80 digits says which are false. Another input: still true, and accepted"
    )
    return tally.result(f"{note}; true and refused: {refused_true}.")
