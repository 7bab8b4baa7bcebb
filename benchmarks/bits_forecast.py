"""Is the KL divergence of rounded keys what was expected? SmolLM2 with uniform and allocated bits, on seven texts.

Three texts are those of `bits.py`, which the method was chosen on; four were not looked at before: numpy's licence,
docstrings of numpy, a module of Python's library, and a letter that was written for this measurement. Bits are
allocated on Python's reference manual. For each text and choice of bits it prints what was measured over what was
expected: with errors drawn on the text itself before rounding, with errors drawn on the calibration text alone, and to
second order by the Fisher information of the text itself, as the forecast was made before.

    python benchmarks/bits_forecast.py --smollm2 models/smollm2
"""

import argparse
import heapq
import importlib.metadata
import inspect
import json
import time

import numpy as np
import torch
from bits import CALIBRATION_WINDOWS, DOMAINS, ROOT, SAMPLES, WINDOW, calibration_windows

import qkv
from qkv.heads.allocation import Calibration, expected_on_calibration, rounded_keys
from qkv.heads.divergence import mean_kls
from qkv.heads.forecast import forecasts
from qkv.heads.sensitivity import key_gradients, sensitivity

UNIFORM, ALLOCATED = (4, 6), (4, 5)
BAR = 1.3
KINDS = ("measured over expected", "over that from calibration", "over second order")


def licence():
    distribution = importlib.metadata.distribution("numpy")
    return next(f for f in distribution.files if f.name == "LICENSE.txt").read_text()


def docstrings():
    return "\n\n".join(inspect.getdoc(getattr(np.linalg, name)) for name in ("svd", "eig", "lstsq", "norm"))


def texts():
    """Each text with whether the method was chosen on it."""
    known = {name: (path.read_text(encoding="utf-8"), True) for name, path in DOMAINS.items()}
    letter = (ROOT / "benchmarks" / "texts" / "letter.txt").read_text(encoding="utf-8")
    fresh = {"licence": licence(), "docstrings": docstrings(), "heapq.py": inspect.getsource(heapq), "letter": letter}
    return known | {name: (text, False) for name, text in fresh.items()}


def choices(model, quick):
    """Bits by name, and what they are expected to cost from the calibration text alone."""
    windows = calibration_windows(model, 0, 2 if quick else CALIBRATION_WINDOWS)
    calibration = Calibration.of(key_gradients(model, windows, SAMPLES, 0))
    shape = (model.shape.layers, model.shape.key_heads, model.shape.size)
    uniform = {f"uniform {b}": torch.full(shape, b) for b in UNIFORM}
    found, before = dict(uniform), {}
    for average, even in zip(ALLOCATED, uniform, strict=True):
        cheapest = calibration.cheapest(average)
        found[f"allocated {average}"] = cheapest.bits
        expected = expected_on_calibration(model, windows, cheapest, uniform[even], 0)
        before[f"allocated {average}"], before[even] = expected
    return found, before


def compared(model, windows, bits, before):
    """For each choice of bits: measured over expected."""
    names = list(bits)
    measured = mean_kls(model, windows, [rounded_keys(bits[name]) for name in names])
    expected = forecasts(model, windows, [(bits[name], None) for name in names])
    information = sensitivity(key_gradients(model, windows, SAMPLES, 100))
    return {
        name: {
            "measured": kl, "expected": here.kl, "spread": here.spread, "measured over expected": kl / here.kl,
            "over that from calibration": kl / before[name],
            "over second order": kl / float(information.kl(bits[name]).sum()),
        }
        for name, kl, here in zip(names, measured, expected, strict=True)
    }  # fmt: skip


def summary(rows, fresh):
    """The ratios of fresh or known texts: least, largest, and how many are within the bar."""
    out = {}
    for kind in KINDS:
        ratios = [
            figures[kind]
            for row in rows.values()
            if row["fresh"] == fresh
            for figures in row["bits"].values()
        ]  # fmt: skip
        inside = sum(1 / BAR <= ratio <= BAR for ratio in ratios)
        out[kind] = {"least": min(ratios), "largest": max(ratios), "within 1.3": inside, "of": len(ratios)}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", default="models/smollm2", help="folder of `qkv models get smollm2`")
    parser.add_argument("--quick", action="store_true", help="one window of each text")
    options = parser.parse_args()
    start, model = time.perf_counter(), qkv.heads.open(options.smollm2)
    bits, before = choices(model, options.quick)
    print("expected from the calibration text:", {name: round(kl, 5) for name, kl in before.items()}, flush=True)
    rows = {}
    for name, (text, known) in texts().items():
        windows = [w for w in model.windows(text, WINDOW) if len(w) == WINDOW]
        windows = windows[: 1 if options.quick else 2]
        found = compared(model, windows, bits, before)
        rows[name] = {"fresh": not known, "tokens": sum(map(len, windows)), "bits": found}
        for label, f in found.items():
            shown = f"measured {f['measured']:.5f}, expected {f['expected']:.5f} ± {f['spread']:.5f}"
            ratios = ", ".join(f"{kind} {f[kind]:.2f}" for kind in KINDS)
            print(f"{name}, {label} bits: {shown}; {ratios}", flush=True)
    out = {"known": summary(rows, False), "fresh": summary(rows, True), "expected from calibration": before}
    print(json.dumps(out | {"texts": rows, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
