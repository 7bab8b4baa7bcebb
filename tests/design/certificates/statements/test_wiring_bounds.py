"""Wirings verified in float64: against ball arithmetic, with masks and sequences, and corrupted ones refused."""

import time

import numpy as np
import pytest
from flint import ctx

import qkv
from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import no_wiring, wiring
from qkv.design.solvers.kernel_machine import SequenceRules, smallest_matrix

CAUSAL = "causal"


def rules_of(rng, n, causal):
    reads = {}
    for i in range(1, n):
        seen = np.arange(i + 1) if causal else np.arange(n)
        m = int(rng.integers(1, 4))
        w = rng.dirichlet(np.ones(m))
        chosen = rng.permutation(seen)[:m].tolist()
        reads[i] = chosen[0] if m == 1 or len(chosen) < m else dict(zip(chosen, (w / w.sum()).tolist(), strict=True))
    return reads


@pytest.mark.parametrize("seed", range(8))
def test_float64_bounds_contain_what_balls_compute(seed):
    rng = np.random.default_rng(seed)
    n, d, causal = 7, 4, bool(seed % 2)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3) + 5 * (seed % 3)
    reads = rules_of(rng, n, causal)
    writes = {i: rng.standard_normal(3) for i in reads}
    Q, K, V = rng.standard_normal((2, d)), rng.standard_normal((2, d)), rng.standard_normal((3, d))
    scale = np.abs((X @ Q.T) @ (X @ K.T).T).max()
    stated = qkv.design.check_wiring(X, Q / scale * 9, K, V, reads, writes, 0.9, mask=CAUSAL if causal else None)
    entries = int((np.asarray(stated.data["wanted"]) > 0).sum())
    multipliers = rng.standard_normal(entries)
    multipliers[np.unique(np.nonzero(stated.data["wanted"])[0], return_index=True)[1]] = rng.random(len(reads))
    data = {**stated.data, "multipliers": multipliers, "tol": 1e-9}
    parsed = wiring.WIRING.parse(data)
    claims = {name: [] for name in wiring.WIRING.senses}
    with ctx.workprec(128):
        balls, floats = (wiring.WIRING.measure(parsed, in_float64, claims) for in_float64 in (False, True))
    _compare(balls, floats)


def _compare(balls, floats):
    for name in ("distance", "output", "residual"):
        for ball, wide in zip(balls[name], floats[name], strict=True):
            assert wide.contains(ball) and float(wide.rad()) < 1e-9 * max(1.0, float(wide.mid()))
    if float(balls["norm_at_least"].mid()) > 0:
        assert floats["norm_at_least"] <= balls["norm_at_least"]
        assert float(floats["norm_at_least"].mid()) > float(balls["norm_at_least"].mid()) * (1 - 1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_a_large_wiring_is_verified_and_refused_when_it_is_changed(causal):
    rng = np.random.default_rng(0)
    n, d = 96, 48
    X = rng.standard_normal((n, d))
    reads = {i: (i - 1 if causal else (i + 1) % n) for i in range(1, n)}
    start = time.perf_counter()
    made = qkv.design.wire(X, reads, {i: X[i, :3] for i in reads}, tol=1e-2, mask=CAUSAL if causal else None)
    design = time.perf_counter() - start
    certificate = made.certificate
    start = time.perf_counter()
    assert made.status == "exact" and certificate.verify()
    assert time.perf_counter() - start < design
    assert made.least_norm == pytest.approx(float(made.W.norm()), rel=1e-6)
    data, claims = dict(certificate.data), dict(certificate.claims)
    for name, factor in (("Q", 0.99), ("K", 0.9), ("V", 1.01), ("X", 0.99)):
        assert not Certificate("wiring", data | {name: data[name] * factor}, claims).verify(), name
    for name, factor in (("norm_at_least", 1 + 1e-5), ("distance", 1 - 1e-6), ("output", 1 - 1e-6)):
        assert not Certificate("wiring", data, claims | {name: np.asarray(claims[name]) * factor}).verify(), name
    if causal:
        without = Certificate("wiring", {k: v for k, v in data.items() if k != "mask"}, claims)
        assert not without.verify()


def test_sequences_are_verified_each_by_itself():
    rng = np.random.default_rng(1)
    vocabulary, positions = rng.standard_normal((9, 16)), rng.standard_normal((6, 16))
    texts = [rng.integers(0, 9, 6) for _ in range(5)]
    parts = [vocabulary[t] + positions for t in texts]
    mask = np.tril(np.ones((6, 6), dtype=bool))
    found = smallest_matrix([SequenceRules.of(x, None, [None, *range(5)], mask) for x in parts], 0.04)
    u, s, vt = np.linalg.svd(found.W)
    rules = [6 * b + i for b in range(5) for i in range(1, 6)]
    data = {
        "X": np.vstack(parts), "Q": u.T * np.sqrt(s)[:, None], "K": vt * np.sqrt(s)[:, None], "rules": rules,
        "items": [r - 1 for r in rules], "offsets": list(range(26)), "weights": np.ones(25), "mask": CAUSAL,
        "lengths": [6] * 5, "multipliers": np.concatenate(found.multipliers), "tol": 0.041,
    }  # fmt: skip
    made = Certificate.issue("wiring", data)
    assert made.verify() and max(made.claims["distance"]) <= 0.04 * (1 + 1e-7)
    assert made.statement.startswith("in the 5 given sequences, under a causal mask, each rule's token reads")
    assert 0.99 * found.norm < made.claims["norm_at_least"] <= found.norm
    joined = {k: v for k, v in data.items() if k != "lengths"}
    assert not Certificate("wiring", joined, made.claims).verify()
    across = data | {"items": [0] * 25}
    assert "does not see" in Certificate("wiring", across, made.claims).verify().why


@pytest.mark.parametrize("seed", range(6))
def test_exclusions_in_float64_are_below_those_in_balls(seed):
    rng = np.random.default_rng(seed)
    n, d = 6, 3
    X = rng.standard_normal((n, d))
    wanted = np.zeros((2, n))
    wanted[0, 3] = 1.0
    wanted[1, [1, 4]] = 0.3, 0.7
    data = {"X": X, "rules": [0, 2], "wanted": wanted, "tol": 0.05, "multipliers": wanted * rng.random((2, 1)),
            "mix": rng.dirichlet(np.ones(n), 2)}  # fmt: skip
    parsed = no_wiring.NO_WIRING_WITHIN.parse(data)
    claims = {"norm_at_least": []}
    with ctx.workprec(128):
        exact = no_wiring.NO_WIRING_WITHIN.measure(parsed, False, claims)["norm_at_least"]
    low = no_wiring.NO_WIRING_WITHIN.measure(parsed, True, claims)["norm_at_least"]
    if exact > 0:
        assert low <= exact and float(low.mid()) > float(exact.mid()) * (1 - 1e-9)
    else:
        assert not low > 0
