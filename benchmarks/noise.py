"""Time and error of exact moments and of sampled scores against sampled keys, and cost against n."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from noise_equal_steps import former_method
from peak_memory import peak_bytes

import qkv
from qkv.noise.moments.single_head import head_moments

DRAWS = 1_000_000
VARIANCE = 0.02


def memory(n: int, d: int, dv: int) -> tuple[qkv.Memory, torch.Tensor]:
    """Normal keys of norm about 1, normal values and query: scores have a standard deviation of a few units."""
    random = torch.Generator().manual_seed(0)
    keys, values = torch.randn(n, d, generator=random) / d**0.5, torch.randn(n, dv, generator=random)
    return qkv.Memory(keys, values), torch.randn(d, generator=random, dtype=torch.float64)


def keys_sampled(m: qkv.Memory, query: torch.Tensor, draws: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The baseline: whole keys drawn in torch, read, and their moments summed, in batches that fit in memory."""
    random = torch.Generator().manual_seed(1)
    keys, values, q = m.keys.to(dtype), m.values.to(dtype), query.to(dtype)
    rows = max(1, min(draws, 2**22 // m.keys.numel()))
    buffer = torch.empty(rows, *keys.shape, dtype=dtype)
    first, second = torch.zeros(m.n, dtype=dtype), torch.zeros(m.n, dtype=dtype)
    output, square = torch.zeros(m.dv, dtype=dtype), torch.zeros(m.dv, m.dv, dtype=dtype)
    for _ in range(draws // rows):
        drawn = buffer.normal_(generator=random).mul_(VARIANCE**0.5).add_(keys)
        alpha = torch.softmax(drawn @ q, -1)
        o = alpha @ values
        first += alpha.sum(0)
        second += alpha.square().sum(0)
        output += o.sum(0)
        square += o.mT @ o
    done = rows * (draws // rows)
    mean, out = first / done, output / done
    return {
        "mean": mean,
        "var": second / done - mean**2,
        "output": out,
        "cov": square / done - torch.outer(out, out),
    }


def against_sampling(n: int, d: int, dv: int, peer_draws: int, score_draws: int) -> dict[str, Any]:
    """One table: seconds, and the error of the output's covariance relative to its size."""
    m, query = memory(n, d, dv)
    noise = qkv.noise.Gaussian(isotropic=VARIANCE)
    qkv.noise.reading_moments(m, query, noise)  # load everything before the clocks start
    qkv.noise.sample(m, query, noise, n_draws=64)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        exact = qkv.noise.reading_moments(m, query, noise)
        seconds.append(time.perf_counter() - start)
    exact_seconds = sorted(seconds)[2]
    size = float(exact.output_cov.norm())
    # The change from a step less than half as large: the measured error, to compare with the reported bound.
    variance = torch.full((n,), VARIANCE * float(query @ query), dtype=torch.float64)
    fine = head_moments(m.keys @ query, variance, m.values - exact.output_mean, step=0.11)
    finer = fine.output_square - torch.outer(fine.output, fine.output)
    refined = float((finer - exact.output_cov).norm()) / size
    start = time.perf_counter()
    scores = qkv.noise.sample(m, query, noise, n_draws=score_draws)
    score_seconds = (time.perf_counter() - start) * DRAWS / score_draws
    peers = {}
    for dtype in (torch.float64, torch.float32):
        keys_sampled(m, query, max(64, peer_draws // 8), dtype)
        start = time.perf_counter()
        found = keys_sampled(m, query, peer_draws, dtype)
        taken = (time.perf_counter() - start) * DRAWS / peer_draws
        off = float((found["cov"].double() - exact.output_cov).norm()) / size * (peer_draws / DRAWS) ** 0.5
        peers[str(dtype).removeprefix("torch.")] = {"seconds": taken, "error": off}
    score_error = float((scores.output_cov - exact.output_cov).norm()) / size * (score_draws / DRAWS) ** 0.5
    return {
        "n": n, "d": d, "dv": dv, "draws": DRAWS,
        "peer_draws_timed": peer_draws, "score_draws_timed": score_draws,
        "exact": {"seconds": exact_seconds, "error": refined, "bound": exact.output_error_bound / size},
        "scores": {"seconds": score_seconds, "error": score_error}, "keys": peers,
        "ratios": {
            name: {"exact": peer["seconds"] / exact_seconds, "scores": peer["seconds"] / score_seconds}
            for name, peer in peers.items()
        },
        "exact_over_scores": score_seconds / exact_seconds,
    }  # fmt: skip


def one_size(n: int, dv: int) -> dict[str, Any]:
    """Time and peak memory of the moments of one reading, in its own process."""
    m, query = memory(n, 64, dv)
    noise = qkv.noise.Gaussian(isotropic=VARIANCE, along=dict.fromkeys(range(0, n, 3), 0.1))
    qkv.noise.reading_moments(*memory(200, 64, dv), noise=qkv.noise.Gaussian(isotropic=VARIANCE))
    start = time.perf_counter()
    found = qkv.noise.reading_moments(m, query, noise)
    return {
        "n": n,
        "seconds": time.perf_counter() - start,
        "peak_gb": peak_bytes() / 2**30,
        "error": found.error_bound,
        "sum_of_means_minus_1": float(found.weights_mean.sum()) - 1,
    }


def hardening() -> dict[str, float]:
    """Weight variances of the plain, the two-head and the hardened layout."""
    m = qkv.Memory.orthonormal(10, 16, labels=["a", "b", *"cdefghij"])
    noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
    start = time.perf_counter()
    found = qkv.noise.harden(m, {"a": 0.5, "b": 0.5}, noise, tol=1e-2)
    plain, two, ours = found.comparison.variances
    return {
        "seconds": time.perf_counter() - start, "plain": plain, "two_heads": two, "hardened": ours,
        "over_plain": plain / ours, "over_two_heads": two / ours, "distance": found.distance,
    }  # fmt: skip


def two_heads(n: int, method: str) -> dict[str, Any]:
    """Time, peak memory and figures of the moments of two correlated heads, in its own process."""
    m, first = memory(n, 64, 64)
    second = torch.randn(64, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    queries, noise = torch.stack([first, second]), qkv.noise.Gaussian(isotropic=VARIANCE)
    with former_method() if method == "former" else contextlib.nullcontext():
        qkv.noise.reading_moments(memory(50, 64, 64)[0], queries, noise)
        return measured(lambda: _figures(qkv.noise.reading_moments(m, queries, noise)))


def _figures(found: qkv.noise.ReadingMoments) -> dict[str, Any]:
    cross = found.heads_output_cov[0, 1]
    return {
        "weights_var": found.weights_var.tolist(), "output_cov": found.output_cov.flatten().tolist(),
        "cross": cross.flatten().tolist(), "error_bound": found.error_bound,
    }  # fmt: skip


def harden_one_head(n: int, method: str) -> dict[str, Any]:
    """Time, peak memory and squared error of a hardened head, in its own process."""
    m, _ = memory(n, 64, 64)
    noise = qkv.noise.Gaussian(isotropic=1e-3, along={0: 0.5})
    with former_method() if method == "former" else contextlib.nullcontext():
        qkv.noise.harden(memory(20, 64, 64)[0], {0: 0.5, 1: 0.5}, noise)
        return measured(lambda: {"squared_error": qkv.noise.harden(m, {0: 0.5, 1: 0.5}, noise).squared_error})


def measured(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Seconds of the clock and of the processor, and peak memory, with the results of a run."""
    start, processor = time.perf_counter(), time.process_time()
    found = run()
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - processor,
        "peak_gb": peak_bytes() / 2**30,
        **found,
    }


LARGE = {"two_heads": two_heads, "harden": harden_one_head}


def against_former(n: int) -> dict[str, Any]:
    """Both methods for both tasks at n keys, each in a process of its own; figures are compared digit by digit."""
    out: dict[str, Any] = {"n": n}
    for task in LARGE:
        rows = {}
        for method in ("now", "former"):
            run = [sys.executable, __file__, "--task", task, "--method", method, "--keys", str(n)]
            rows[method] = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        row: dict[str, Any] = {"ratio": rows["former"]["cpu_seconds"] / rows["now"]["cpu_seconds"]}
        for name in ("weights_var", "output_cov", "cross", "squared_error"):
            if name in rows["now"]:
                both = [torch.tensor(rows[method].pop(name), dtype=torch.float64) for method in rows]
                row[f"difference_{name}"] = float((both[0] - both[1]).abs().max() / both[1].abs().max())
        out[task] = {**row, **rows}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few draws, for the tests")
    parser.add_argument("--size", type=int, help="measure one reading of this many keys, and print it as JSON")
    parser.add_argument("--task", choices=LARGE, help="measure one large task, and print it as JSON")
    parser.add_argument("--method", choices=("now", "former"), default="now", help="how that task is computed")
    parser.add_argument("--keys", type=int, default=2048, help="keys of the large tasks")
    parser.add_argument("--large", action="store_true", help="only the large tasks, by both methods")
    options = parser.parse_args()
    if options.task:
        print(json.dumps(LARGE[options.task](options.keys, options.method)))
        return
    if options.large:
        print(json.dumps(report_large(options.keys)))
        return
    if options.size:
        print(json.dumps(one_size(options.size, 64)))
        return
    if options.quick:
        table = against_sampling(100, 16, 8, 2_000, 2_000)
        sizes = [one_size(n, 8) for n in (100, 400)]
    else:
        table = against_sampling(1_000, 64, 64, 4_000, 50_000)
        sizes = []
        for n in (1_000, 10_000, 100_000):
            run = [sys.executable, __file__, "--size", str(n)]
            sizes.append(json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout))
    print(f"{table['n']} keys, d = {table['d']}, dv = {table['dv']}; Monte Carlo of {DRAWS} draws, timed on")
    timed = f"{table['peer_draws_timed']} draws of keys and {table['score_draws_timed']} of scores"
    print(f"{timed}; times are scaled linearly, errors by the square root")
    rows = [("exact moments", table["exact"]), ("scores sampled", table["scores"])]
    rows += [(f"keys sampled, {name}", peer) for name, peer in table["keys"].items()]
    for name, row in rows:
        print(f"{name:<24} {row['seconds']:>12.4f} s   error of the covariance {row['error']:.1e}")
    for name, ratio in table["ratios"].items():
        print(f"faster than {name} keys: exact {ratio['exact']:.0f} times, scores {ratio['scores']:.1f} times")
    for row in sizes:
        peak = f"peak {row['peak_gb']:.2f} GB"
        print(f"n = {row['n']:>6}: {row['seconds']:7.3f} s, {peak}, error at most {row['error']:.1e}")
    hard = hardening()
    less = f"{hard['over_plain']:.0f} times less variance than plain"
    print(f"hardened: {less}, {hard['over_two_heads']:.0f} than two heads")
    large = report_large(60 if options.quick else options.keys)
    print(json.dumps({"table": table, "sizes": sizes, "hardening": hard, "large": large}))


def report_large(n: int) -> dict[str, Any]:
    """Print and return the large tasks by both methods."""
    found = against_former(n)
    for task in LARGE:
        for method in ("now", "former"):
            row = found[task][method]
            cost = f"{row['seconds']:8.2f} s ({row['cpu_seconds']:.2f} s of processor), peak {row['peak_gb']:.2f} GB"
            print(f"{task:<10} n = {n}, {method:<7} {cost}")
        off = {name: f"{value:.1e}" for name, value in found[task].items() if name.startswith("difference")}
        print(f"{task:<10} {found[task]['ratio']:.1f} times less processor time; relative {off}")
    return found


if __name__ == "__main__":
    main()
