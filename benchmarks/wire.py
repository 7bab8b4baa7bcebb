"""Time, memory and norm of wire against the conic program, the time of its certificates, and cost against n.

The peer is the conic program over all entries of W that wire used before, and still uses for the nuclear norm; it is
measured in the same run, on the same tokens.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
from peak_memory import peak_bytes

import qkv
from qkv.design.solvers import conic
from qkv.design.solvers.contradictions import score_rows
from qkv.design.specs import WiringSpec
from qkv.design.wiring import SAFETY_MARGINS

TOL = 1e-2


def request(n: int, d: int) -> tuple[np.ndarray, dict[int, int], dict[int, np.ndarray]]:
    """Normal tokens of norm about 1; every token reads the next one, and writes itself."""
    X = np.random.default_rng(0).standard_normal((n, d)) / np.sqrt(d)
    return X, {i: (i + 1) % n for i in range(n)}, {i: X[i] for i in range(n)}


def by_conic_program(n: int, d: int) -> dict[str, float]:
    """Seconds and norm of the W of the conic program, aimed at the same leak as `wire`."""
    X, reads, writes = request(n, d)
    start = time.perf_counter()
    spec = WiringSpec.of(X, reads, writes, TOL)
    rows, basis, size = score_rows(spec)
    aim = TOL * (1 - SAFETY_MARGINS[0])
    rules = [
        conic.Rule.of(rows[i], np.ones(1), [reads[i]], np.setdiff1d(np.arange(n), reads[i]), aim) for i in range(n)
    ]
    found = conic.solve(rules, len(basis) ** 2)
    if found.status != "solved":
        raise SystemExit(f"the conic program ended with {found.status}")
    return {"seconds": time.perf_counter() - start, "norm": float(np.linalg.norm(found.x)) / size**2}


def one_size(n: int, d: int) -> dict[str, float]:
    """Seconds for a design with its certificate, and for verifying that; norm, bound and peak memory."""
    X, reads, writes = request(n, d)
    warm = np.eye(3)
    qkv.design.wire(warm, {0: 1}, {0: [1.0]}).certificate.verify()  # load everything before the clocks start
    start = time.perf_counter()
    found = qkv.design.wire(X, reads, writes, tol=TOL)
    design = time.perf_counter() - start
    start = time.perf_counter()
    holds = found.certificate.verify()
    verify = time.perf_counter() - start
    if not holds or found.W is None or found.least_norm is None:
        raise SystemExit(f"{n} tokens: {found.status}, {holds.why}")
    return {
        "n": n, "d": d, "seconds": design, "verify_seconds": verify, "norm": float(found.W.norm()),
        "norm_at_least": found.least_norm, "peak_gb": peak_bytes() / 1e9,
    }  # fmt: skip


def in_child(n: int, d: int) -> dict[str, Any]:
    """`one_size` in a process of its own, so that its peak memory is its own."""
    run = [sys.executable, __file__, "--size", f"{n}x{d}"]
    found: dict[str, Any] = json.loads(subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds")
    parser.add_argument("--size", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.size:
        print(json.dumps(one_size(*map(int, options.size.split("x")))))
        return
    against = 10 if options.quick else 32
    sizes = [(32, 32), (64, 64)] if options.quick else [(32, 32), (64, 64), (128, 128), (256, 256), (512, 512)]
    large = [] if options.quick else [(512, 768), (2048, 768)]
    peer = by_conic_program(against, against)
    ours = in_child(against, against)
    difference = abs(ours["norm"] - peer["norm"]) / peer["norm"]
    ratio = peer["seconds"] / ours["seconds"]
    print(f"{against} tokens: conic program {peer['seconds']:.2f} s, norm {peer['norm']:.8g}")
    print(f"{against} tokens: wire with certificate {ours['seconds']:.3f} s, norm {ours['norm']:.8g}")
    print(f"{ratio:.0f} times as fast; the norms differ by {difference:.1e}, relatively")
    rows = [in_child(*size) for size in [*sizes, *large]]
    for row in rows:
        gap = (row["norm"] - row["norm_at_least"]) / row["norm"]
        print(
            f"{row['n']:>5} x {row['d']:<4} {row['seconds']:8.2f} s, verified in {row['verify_seconds']:6.2f} s, peak "
            f"{row['peak_gb']:.2f} GB, norm {row['norm']:.6g}, certified to {gap:.1e}"
        )
    curve = rows[: len(sizes)][-4:]
    logs = np.log([[row["n"], row["seconds"]] for row in curve])
    exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    print(f"cost against n at d = n, from {curve[0]['n']} to {curve[-1]['n']} tokens: n to the power {exponent:.2f}")
    print(
        json.dumps(
            {
                "against_conic": {
                    "n": against,
                    "ratio": ratio,
                    "norm_difference": difference,
                    "peer": peer,
                    "ours": ours,
                },
                "sizes": rows,
                "exponent": exponent,
                "verify_over_design": [row["verify_seconds"] / row["seconds"] for row in rows],
            }
        )
    )


if __name__ == "__main__":
    main()
