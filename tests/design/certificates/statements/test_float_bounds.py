"""The float64 path with rounding bounds: its intervals contain what balls of 400 bits find."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from flint import arb, ctx

from qkv.design.certificates import Certificate
from qkv.design.certificates.statements import KINDS, float_bounds, weights


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


# The radii of the balls, worked out by hand from the model of arithmetic that the module states.

U, TINY = 2.0**-53, 2.0**-1000


def roundings(k):
    """Bound on the relative error of k roundings, counted once more for the bound itself, in fractions."""
    n = Fraction(k + 1, 2**53)
    return float(n / (1 - n))


def radius(ball):
    return float(ball.rad())


HAND = {
    "keys": np.array([[1.0, 2.0], [0.5, -1.0], [-4.0, 3.0], [2.0, 2.0]]), "query": np.array([0.5, 0.25]),
    "items": [1, 3], "wanted": np.array([0.25, 0.75]), "values": np.array([[3.0], [-5.0], [1.0], [2.0]]), "tol": 0.25,
    "multipliers": np.array([2.0, -3.0]),
}  # fmt: skip
SCORES = [1.0, 0.0, -1.25, 1.5]
SPREAD = [1.0, 0.5, 2.75, 1.5]


def softmax(scores):
    raw = [math.exp(s - max(scores)) for s in scores]
    return [r / sum(raw) for r in raw]


def known(scores, spread):
    """The relative error of the weights of scores of two products each."""
    each = max(2 * roundings(2 + 2) * a + U * (max(scores) - s) for s, a in zip(scores, spread, strict=True))
    return 2.1 * (math.expm1(each) + 16 * U) + 2 * roundings(len(scores) + 2)


def test_the_radius_of_a_distance_counts_every_rounding():
    found = float_bounds.weights_in_float64(HAND)
    alpha, kappa = softmax(SCORES), known(SCORES, SPREAD)
    gap = [abs(a - w) for a, w in zip(alpha, [0, 0.25, 0, 0.75], strict=True)]
    error = [2 * (kappa * a + 2 * U * g) for a, g in zip(alpha, gap, strict=True)]
    assert float(found["distance"].mid()) == pytest.approx(sum(gap) / 2, rel=1e-14, abs=0)
    assert radius(found["distance"]) == pytest.approx(sum(error) + roundings(4 + 2) * sum(gap), rel=1e-6, abs=0)
    # The output is |Σ gap v|, in units of 4: its error is that of the gaps, of the sum and of the norm.
    sizes = [0.75, 1.25, 0.25, 0.5]
    spread = sum(e * v for e, v in zip(error, sizes, strict=True))
    spread += 2 * roundings(4 + 2) * sum(g * v for g, v in zip(gap, sizes, strict=True))
    signed = [a - w for a, w in zip(alpha, [0, 0.25, 0, 0.75], strict=True)]
    size = abs(sum(g * v for g, v in zip(signed, [0.75, -1.25, 0.25, 0.5], strict=True)))
    assert float(found["output"].mid()) == pytest.approx(4 * size, rel=1e-13, abs=0)
    assert radius(found["output"]) == pytest.approx(4 * (2 * spread + 2 * roundings(1 + 4) * size), rel=1e-6, abs=0)


def test_weights_and_their_relative_error_worked_out_by_hand():
    weights_, kappa = float_bounds._softmax(np.log([1.0, 3.0, 4.0]), np.array([0.0, 2.0**-45, 0.0]))
    assert weights_.tolist() == pytest.approx([0.125, 0.375, 0.5], rel=1e-14, abs=0)
    each = 2.0**-45 + U * math.log(4 / 3)
    assert kappa == pytest.approx(2.1 * (math.expm1(each) + 16 * U) + 2 * roundings(3 + 2), rel=1e-9, abs=0)


@pytest.mark.parametrize(("error", "finite"), [(2.0**-6, False), (math.nextafter(2.0**-6, 0), True), (math.nan, False)])
def test_scores_must_be_known_to_a_sixty_fourth(error, finite):
    assert math.isfinite(float_bounds._softmax(np.zeros(2), np.array([0.0, error]))[1]) == finite


def test_norms_have_room_for_the_errors_of_their_entries():
    ball = float_bounds._norm(np.array([3.0, 4.0]), np.array([0.75, 1.0]) * 2.0**-45)
    assert float(ball.mid()) == 5.0
    assert radius(ball) == pytest.approx(2 * 1.25 * 2.0**-45 + 2 * roundings(2 + 4) * 5, rel=1e-6, abs=0)
    assert radius(float_bounds._norm(np.zeros(2), np.zeros(2))) == pytest.approx(2.0**-500, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("given", "units", "power"), [([3.0, -5.0], [0.75, -1.25], 4.0), ([0.25], [1.0], 0.25), ([1.0], [1.0], 1.0)]
)
def test_arrays_are_scaled_to_entries_below_2(given, units, power):
    found, unit = float_bounds._scaled(np.array(given))
    assert found.tolist() == units and unit == power


@pytest.mark.parametrize(("middle", "size"), [(math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0), (1.0, math.nan)])
def test_what_overflowed_is_no_ball(middle, size):
    assert float_bounds._ball(middle, size).is_nan()
    assert float_bounds._ball(2.0, 0.0) == 2.0


def quotient(monkeypatch, data):
    """The numerator b with its error and the vector g with its error, of which a norm bound is the quotient."""
    seen = {}

    def numerator(middle, error):
        seen["b"] = (middle, error)
        return arb(middle)

    def size(entries, error):
        seen["g"] = (entries, error)
        return arb(1)

    monkeypatch.setattr(float_bounds, "_ball", numerator)
    monkeypatch.setattr(float_bounds, "_norm", size)
    scores = data["keys"] @ data["query"]
    error = 2 * roundings(2 + 2) * (np.abs(data["keys"]) @ np.abs(data["query"]))
    seen["found"] = float_bounds._least_norm(data, scores, error)
    return seen


def test_the_quotient_of_a_norm_bound_worked_out_by_hand(monkeypatch):
    """Items 1 and 3, ν = -3 on the ratio 3 : 1, the others with their own softmax; both scaled by 4."""
    seen = quotient(monkeypatch, HAND)
    others, kappa = softmax([SCORES[0], SCORES[2]]), known([SCORES[0], SCORES[2]], [SPREAD[0], SPREAD[2]])
    entropy = -sum(p * math.log(p) for p in others)
    edge = math.log(0.25 / 0.75)
    b = -3 * math.log(3) + math.log(0.25) + entropy - edge
    assert seen["b"][0] == pytest.approx(b / 4, rel=1e-13, abs=0)
    error = 4 * roundings(2 + 10) * (2 * 2 * math.log(4) + 3 * (math.log(4 / 3) + math.log(4)))
    error += 2 * (kappa + 2 * roundings(2 + 12)) * (1 + entropy)
    error += 40 * U * (1 + math.log(4) + 0 + entropy - edge)
    assert seen["b"][1] == pytest.approx((2 * error + 8 * U * abs(b)) / 4, rel=1e-9, abs=0)
    keys = HAND["keys"] / 4
    mean = others[0] * keys[0] + others[1] * keys[2]
    assert seen["g"][0] == pytest.approx((-3 * (keys[3] - keys[1]) + keys[1] - mean) / 4, rel=1e-13, abs=0)
    own = 2 * 2 * np.abs(keys[1]) + 3 * (np.abs(keys[3]) + np.abs(keys[1]))
    spread = others[0] * np.abs(keys[0]) + others[1] * np.abs(keys[2])
    error = 4 * roundings(2 + 2) * own + 2 * (kappa + 2 * roundings(2 + 4)) * spread + 4 * U * np.abs(keys[1])
    assert seen["g"][1] == pytest.approx(error / 4, rel=1e-9, abs=0)
    assert float(seen["found"].mid()) == pytest.approx(b / 4 / 4, rel=1e-13, abs=0)


def test_a_norm_bound_without_other_items_has_no_leak(monkeypatch):
    data = HAND | {"keys": HAND["keys"][[1, 3]], "items": [0, 1]}
    seen = quotient(monkeypatch, data)
    assert seen["b"][0] == pytest.approx(-3 / 4 * math.log(3), rel=1e-14, abs=0)
    assert seen["g"][0].tolist() == [-3 / 4 * 0.75, -3 / 4 * 1.5]  # keys in units of 2, multipliers in units of 4
    none = quotient(monkeypatch, data | {"multipliers": np.zeros(2)})
    assert none["b"] == (0.0, 2 * TINY) and none["g"][1].tolist() == [TINY, TINY]


def test_wanted_weights_of_a_sum_above_1_are_divided_by_it(monkeypatch):
    more = 1 + 2.0**-31
    data = HAND | {"wanted": np.array([0.5 * more, 0.5 * more]), "multipliers": np.zeros(2), "query": np.zeros(2)}
    b, error = quotient(monkeypatch, data)["b"]
    assert b == pytest.approx(math.log(0.5) + math.log(2) + math.log(3), abs=1e-15)
    each = 2.1 * 16 * U + 2 * roundings(2 + 2)
    half = 2 * (each + 2 * roundings(2 + 12)) * (1 + math.log(2)) + 40 * U * (1 + 2 * math.log(2) + math.log(3))
    assert error == pytest.approx(2 * half + 8 * U * b, rel=1e-8, abs=0)


def test_other_items_without_any_weight_add_no_entropy(monkeypatch):
    data = HAND | {"keys": HAND["keys"] * [[1e4], [1], [1e4], [1]], "multipliers": np.zeros(2)}
    b, _ = quotient(monkeypatch, data)["b"]
    assert b == pytest.approx(math.log(0.25) + math.log(3), rel=1e-14, abs=0)


def test_a_norm_bound_belongs_to_multipliers():
    assert "norm_at_least" in float_bounds.weights_in_float64(HAND)
    without = {name: value for name, value in HAND.items() if name != "multipliers"}
    assert set(float_bounds.weights_in_float64(without)) == {"distance", "output"}
