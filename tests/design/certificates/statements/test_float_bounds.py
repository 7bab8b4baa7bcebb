"""The float64 path with rounding bounds: its intervals contain what balls of 400 bits find."""

from fractions import Fraction

import numpy as np
import oracle
import pytest
from flint import ctx

from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import KINDS, weights


def changed(certificate, data=None, claims=None):
    """The same certificate with some data or claims replaced."""
    return Certificate(certificate.kind, {**certificate.data, **(data or {})}, {**certificate.claims, **(claims or {})})


def problem(rng, n, d, keys=1.0, scores=10.0, values=1.0):
    k = rng.normal(size=(n, d)) * keys
    q = rng.normal(size=d)
    with np.errstate(over="ignore"):
        q = np.clip(q * (scores / (np.abs(k / keys @ q).max() or 1.0) / keys), -1e308, 1e308)
    items = rng.choice(n, size=min(n, 3), replace=False)
    w = rng.random(len(items)) + 0.1
    data = {"keys": k, "values": rng.normal(size=(n, 2)) * values, "query": q, "items": items, "wanted": w / w.sum()}
    return data | {
        "multipliers": rng.normal(size=len(items)),
        "tol": float(rng.choice([1e-300, 1e-3, 0.5, 0.5 - 2**-54, 0.999])),
    }


def both(data):
    """Each quantity as float64 gives it and as balls do, 400 bits of them."""
    spec = KINDS["weights"]
    with ctx.workprec(400):
        parsed = spec.parse(data)
        rough, exact = (spec.measure(parsed, choice, {}) for choice in (True, False))
        return {name: (rough[name], exact[name]) for name in exact}


@pytest.mark.parametrize("seed", range(40))
def test_an_interval_of_float64_always_holds_what_balls_find(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 5, 40, 300]))
    data = problem(rng, n, int(rng.integers(1, 9)), scores=float(rng.choice([0, 1e-9, 1, 30, 1e4])))
    for name, (rough, exact) in both(data).items():
        assert rough.contains(exact) or (name == "norm_at_least" and not exact.is_finite()), name
        assert rough.is_finite() or name == "norm_at_least", "float64 gave up on an ordinary problem"


@pytest.mark.parametrize("seed", range(60))
def test_float64_gives_up_rather_than_lie_where_numbers_underflow_or_overflow(seed):
    rng = np.random.default_rng(seed)
    sizes = [1e-307, 1e-170, 1e-162, 1e-155, 1e-100, 1.0, 1e100, 1e154, 1e160, 1e300]
    keys, values = rng.choice(sizes, size=2)
    data = problem(rng, int(rng.integers(2, 9)), 3, float(keys), float(rng.choice([1e-3, 1e4, 1e17])), float(values))
    data["multipliers"] = data["multipliers"] * float(rng.choice([0.0, 1e-320, 1e-200, 1.0, 1e200]))
    for name, (rough, exact) in both(data).items():
        assert not rough.is_finite() or rough.contains(exact), name


def test_an_output_too_small_to_square_is_not_taken_for_zero(monkeypatch):
    """Values of 1e-170 leave an error whose square underflows: it was once certified to be 0."""
    monkeypatch.setattr(weights, "FLOAT64_FIRST_SIZE", 0)
    data = {"keys": np.eye(3), "values": 1e-170 * np.eye(3), "query": [5.0, 0, 0], "items": [0], "wanted": [1.0]}
    made = Certificate.issue("weights", data)
    assert made.claims["output"] > 1e-174 and made.verify()
    assert not changed(made, claims={"output": 0.0}).verify()


@pytest.mark.parametrize("seed", range(10))
def test_large_and_small_certificates_are_decided_alike(seed, monkeypatch):
    data = problem(np.random.default_rng(seed), 30, 4)
    verdicts = []
    for threshold in (0, 10**9):
        monkeypatch.setattr(weights, "FLOAT64_FIRST_SIZE", threshold)
        made = Certificate.issue("weights", data, "distance", "output")
        verdicts.append([bool(made.verify())])
        exact = float(oracle_distance(data))
        for factor in (1 - 1e-6, 1 - 1e-15, 1 + 1e-15, 1 + 1e-6):
            verdicts[-1].append(bool(Certificate("weights", data, {"distance": exact * factor}).verify()))
    assert verdicts[0] == verdicts[1] == [True, False, False, True, True]


def oracle_distance(data):
    keys, query = oracle.table(data["keys"].tolist()), oracle.vector(data["query"].tolist())
    share = dict(zip(data["items"].tolist(), data["wanted"].tolist(), strict=True))
    return oracle.Softmax(oracle.apply(keys, query)).distance([Fraction(share.get(i, 0.0)) for i in range(len(keys))])
