"""Forged certificates whose numbers underflow in float64: each is false, as a witness or exact arithmetic shows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qkv
from qkv.core.rounding_bounds import gamma, margin_lower_bounds, norms, top_margin_lower_bounds
from qkv.design import Certificate
from qkv.design.certificates.statements import weights

SMALL = [2.0**-n for n in (1074, 1022, 900, 700, 600, 545, 500, 400, 200)]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=6))
def test_norms_are_relatively_exact_whatever_the_size(row):
    found = norms(np.array([row]))[0]
    squared = sum(Fraction(x) ** 2 for x in row)
    if np.isfinite(found):
        low, high = (Fraction(found) * (1 + Fraction(s * gamma(len(row) + 4))) for s in (-1, 1))
        room = Fraction(1, 2**1022)
        assert max(low - room, 0) ** 2 <= squared <= (high + room) ** 2
    else:
        assert squared > Fraction(np.finfo(float).max) ** 2 * Fraction(999, 1000)


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("kind", ["given texts", "no head for given texts"])
def test_tiny_multipliers_prove_no_norm_that_a_head_in_the_file_undercuts(kind, small):
    """W = QᵀK of the file reads by the rule with a leak of 1.2e-5, and its norm is 8.49."""
    data = {
        "tokens": [[0.0]], "positions": [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0]], "ids": [0, 0, 0], "lengths": [3],
        "rule": "listed", "reads": [[0, 2, 0]], "Q": [[6.0, 0.0]], "K": [[-1.0, 1.0]], "multipliers": [small],
        "tol": 0.01,
    }  # fmt: skip
    claims = {"distance": 2e-5} if kind == "given texts" else {}
    for norm, true in ((8.5, False), (1e50, False), (2.0, True)):
        assert bool(Certificate(kind, data, {**claims, "norm_at_least": norm}).verify()) == true


@pytest.fixture(scope="module")
def wired():
    x = np.random.default_rng(0).standard_normal((24, 24))
    reads = {i: (i + 1) % 24 for i in range(23)}  # 552 scores: float64 is tried first
    return qkv.design.wire(x, reads=reads, writes={i: x[j] for i, j in reads.items()}, tol=1e-2)


@pytest.mark.parametrize("small", SMALL)
def test_tiny_multipliers_prove_no_norm_that_the_wiring_undercuts(wired, small):
    data = dict(wired.certificate.data)
    data["multipliers"] = np.asarray(data["multipliers"]) * small
    own = float(wired.W.norm())
    for factor in (1.01, 10.0, 1e10):
        assert not Certificate("wiring", data, {**wired.certificate.claims, "norm_at_least": factor * own}).verify()


def test_multipliers_of_any_size_prove_what_they_proved(wired):
    claims = {**wired.certificate.claims, "norm_at_least": wired.certificate.claims["norm_at_least"] * 0.999}
    for power in (-600, -300, 300, 600):
        data = dict(wired.certificate.data)
        data["multipliers"] = np.ldexp(np.asarray(data["multipliers"], dtype=float), power)
        assert Certificate("wiring", data, claims).verify()


@pytest.mark.parametrize("small", [2.0**-n for n in (600, 545, 400, 100)])
def test_no_norm_within_tol_is_proved_by_tiny_multipliers(small):
    n = 230  # large enough for float64
    x = np.eye(n)
    wanted, mix, multipliers = np.zeros((1, n)), np.full((1, n), 1.0 / (n - 1)), np.zeros((1, n))
    wanted[0, 1] = 1.0
    mix[0, 1], multipliers[0, 1] = 0.0, small
    data = {"X": x, "rules": [0], "wanted": wanted, "mix": mix, "multipliers": multipliers, "tol": 0.01}
    w = np.zeros((n, n))
    w[0, 1] = 20.0  # the leak of this W is below 1e-6
    assert (n - 1) * np.exp(-20.0) < 0.01
    assert Certificate("no wiring within tol", data, {"norm_at_least": 5.0}).verify()
    for norm in (20.1, 1e8):
        assert not Certificate("no wiring within tol", data, {"norm_at_least": norm}).verify()


@pytest.mark.parametrize(("more", "less"), [(3, 1), (2, 1), (17, 5), (39, 38)])
def test_margins_of_keys_that_a_scaling_pushes_below_the_least_number(more, less):
    keys = np.array([[2.0**1023, more * 2.0**-51], [2.0**1023, less * 2.0**-51]])
    queries = np.array([[0.0, 1.0], [0.0, -1.0]])
    true = Fraction(more - less, 2**51)
    for slack in (1.0, 4.0):
        bounds = margin_lower_bounds(keys, [0, 1], queries, claimed=float(true) * 1.2, slack=slack)
        assert all(Fraction(b) <= true for b in bounds)
    data = {
        "keys": keys, "possible": [1, 1], "queries": queries, "offsets": [0], "indices": np.zeros(0),
        "weights": np.zeros(0),
    }  # fmt: skip
    margins = [float(true) * 1.2] * 2
    assert not Certificate("copyable", data, {"margin": margins, "margin_at_most": []}).verify()


@pytest.mark.parametrize("power", [300, 500, 545, 600, 700])
def test_a_margin_among_tiny_keys_beside_a_hidden_huge_one(power):
    """With t = 2^-power: scores t(1 + 2^-60 - 1) and 0 are 2^-60 t apart, and float64 may find more or less."""
    t = 2.0**-power
    keys = np.array([[t, t * 2.0**-60, -t], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    bound = top_margin_lower_bounds(keys, np.ones((1, 3)), np.array([1]), np.array([0]), np.array([1]))[0]
    assert bound <= -(2.0**-60) * t / np.sqrt(3) * (1 - 1e-12)


@pytest.mark.parametrize("order", [(1.0, 2.0**-60, -1.0), (-1.0, 2.0**-60, 1.0), (2.0**-60, 1.0, -1.0)])
@pytest.mark.parametrize("power", [500, 545, 600])
def test_scores_that_cancel_below_the_least_square_and_are_enlarged_again(order, power):
    n, t = 600, 2.0**-power
    x = np.zeros((n, 12))
    x[:, 0], x[1, 0] = -1.0, 1.0
    x[0, 0], x[0, 4:7] = 0.0, t * np.array(order)
    q, k = np.zeros((1, 12)), np.zeros((1, 12))
    q[0, 4:7], k[0, 0] = 1.0, 2.0**66 / t  # the score of token 1 is 64, that of token 0 is 0, the others have -64
    data = {"X": x, "Q": q, "K": k, "rules": [0], "wanted": [[1 / n] * n]}
    assert not Certificate("wiring", data, {"distance": 1e-9}).verify()


@pytest.mark.parametrize("power", [500, 545, 700, 1000])
def test_an_output_of_tiny_tokens_and_a_huge_v_is_not_overlooked(power):
    n = 600
    x = np.ones((n, 2))
    x[:, 1] = 2.0**-power
    data = {
        "X": x, "Q": [[0.0, 0.0]], "K": [[0.0, 0.0]], "V": [[0.0, 2.0**power]], "rules": [0],
        "wanted": [[1 / n] * n], "writes": [[5.0]],
    }  # fmt: skip
    far = {"distance": 1e-9, "output": 1e-9, "residual": 1e-9}
    assert not Certificate("wiring", data, far).verify()  # every output is 1, so the distance is 4
    assert Certificate("wiring", data, {"distance": 1e-9, "output": 4.001, "residual": 4.001}).verify()


@pytest.mark.parametrize("power", [-600, 0, 600, 1000, 1020])
@pytest.mark.parametrize(("more", "less"), [(2.4, 0.6), (3.4, 1.6), (4.5, 2.6)])
def test_huge_multipliers_do_not_enlarge_what_scaling_lost_of_tiny_keys(power, more, less):
    """A huge key scales the others to a few units of the least number; the ratio 5 : 2 needs exactly `least`."""
    keys = np.zeros((3, 70_000))
    keys[0, 0], keys[1, 1], keys[2, 1] = 2.0**1023, more * 2.0**-51, less * 2.0**-51
    data = {
        "keys": keys, "values": np.zeros((3, 1)), "query": np.zeros(70_000), "items": [1, 2, 0],
        "wanted": [0.2, 0.5, 0.3], "multipliers": [0.0, 2.0**power, 0.0], "tol": 0.25,
    }  # fmt: skip
    least = np.log(2.5) / ((more - less) * 2.0**-51)
    assert weights.float64_first(data)
    assert not Certificate("weights", data, {"distance": 0.9, "norm_at_least": 1.01 * least}).verify()
    assert Certificate("weights", data, {"distance": 0.9, "norm_at_least": 0.99 * least}).verify()
