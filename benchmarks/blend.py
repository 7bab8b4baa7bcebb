"""blend on 1,000 to 100,000 keys in 64 dimensions: time and memory against n; the peer is the conic program alone."""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from peak_memory import peak_bytes

WEIGHTS = {0: 0.5, 1: 0.3, 2: 0.2}
TOL = 1e-3


def keys(n: int, d: int) -> np.ndarray:
    """Standard normal keys."""
    return np.random.default_rng(0).standard_normal((n, d))


def ours(n: int, d: int) -> dict[str, float]:
    """Design with certificate, and its recheck; peak memory is that of this process."""
    import qkv

    memory = qkv.Memory(keys(n, d))
    qkv.design.blend(qkv.Memory(keys(200, d)), WEIGHTS, TOL)  # load the libraries
    before = peak_bytes()
    start = time.perf_counter()
    design = qkv.design.blend(memory, WEIGHTS, TOL)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    holds = bool(design.certificate.verify())
    verify = time.perf_counter() - start
    peak = peak_bytes()
    return {
        "n": n, "seconds": seconds, "verify_seconds": verify, "peak_gb": peak / 2**30, "base_gb": before / 2**30,
        "holds": holds, "norm": float(design.query.norm()), "least": design.least_norm,
    }  # fmt: skip


def peer(n: int, d: int) -> dict[str, float]:
    """The whole program given to the conic solver at once."""
    from qkv.design.solvers import conic

    k = keys(n, d)
    items, wanted = list(WEIGHTS), np.array(list(WEIGHTS.values()))
    rule = conic.Rule.of(k, wanted, items, np.arange(len(items), n), TOL)
    start = time.perf_counter()
    found = conic.solve([rule], d)
    return {"n": n, "seconds": time.perf_counter() - start, "norm": float(np.linalg.norm(found.x))}


def apart(*arguments: str) -> dict[str, float]:
    """One measurement in a process of its own, so that its peak memory is its own."""
    run = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.one or options.peer:
        print(
            json.dumps(ours(options.one, options.dimensions) if options.one else peer(options.peer, options.dimensions))
        )
        return
    sizes = (200, 400) if options.quick else (1_000, 10_000, 100_000)
    d = ["--dimensions", "32"] if options.quick else []
    rows = []
    for n in sizes:
        runs = [apart("--one", str(n), *d) for _ in range(1 if options.quick else options.repeats)]
        median = sorted(runs, key=lambda r: r["seconds"])[len(runs) // 2]
        rows.append(median)
        times = f"{median['seconds']:7.2f} s  verify {median['verify_seconds']:6.2f} s"
        print(f"n={n:>7,}  {times}  peak {median['peak_gb']:.2f} GB")
    largest_peer = sizes[0] if options.quick else 10_000
    conic = apart("--peer", str(largest_peer), *d)
    same = next(r for r in rows if r["n"] == largest_peer)
    print(f"conic program alone, n={largest_peer:,}: {conic['seconds']:.2f} s")
    growth = rows[-1]["seconds"] / rows[-2]["seconds"] * rows[-2]["n"] / rows[-1]["n"]
    own = [r["peak_gb"] - r["base_gb"] for r in rows]
    print(f"from {rows[-2]['n']:,} to {rows[-1]['n']:,} keys: time per key x{growth:.2f}")
    print(f"own memory {own[-2]:.3f} GB and {own[-1]:.3f} GB")
    print(
        json.dumps(
            {
                "blend": rows,
                "seconds_per_key_growth": growth,
                "own_gb": own,
                "conic_alone_over_ours": conic["seconds"] / same["seconds"],
                "conic_norm_over_ours": conic["norm"] / same["norm"],
            }
        )
    )


if __name__ == "__main__":
    main()
