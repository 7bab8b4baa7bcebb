"""Statements "no W reads as wanted": each defect is refused, and both ways of measuring find the same bound."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from qkv.design.certificates.statements import no_wiring
from qkv.design.certificates.statements.base import InvalidCertificate
from qkv.design.certificates.statements.dual_bounds import (
    exact_ratios_inequality,
    matrix_norm_bound,
    total_variation_inequality,
)

X = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 1.0]])
EXACT = {
    "X": X, "rules": [2, 0], "wanted": [[0, 0.25, 0, 0.75], [0, 1.0, 0, 0]], "tol": 0.125,
    "mix": [[1.0, 0, 3.0, 0], [0.5, 0, 0, 0.25]], "multipliers": [[0, 5.0, 0, 2.0], [0, -1.0, 0, 0]],
}  # fmt: skip
WITHIN = EXACT | {"mix": [[1.0, 0.5, 3.0, 0], [0.5, 0, 0, 0.25]], "multipliers": [[0, 5.0, 0, 2.0], [0, 1.0, 0, 0]]}


def balls(entries):
    return [arb(float(v)) for v in entries]


def test_the_bound_of_exact_ratios_is_that_of_the_inequalities_of_its_rules():
    found = no_wiring._measure_exact(no_wiring._parse_exact(EXACT), False, {})["norm_at_least"]
    rules = [
        (2, *exact_ratios_inequality(X, [1, 3], [0.25, 0.75], balls([5, 2]), [0, 2], balls([1, 3]), 0.125)),
        (0, *exact_ratios_inequality(X, [1], [1.0], balls([-1]), [0, 3], balls([0.5, 0.25]), 0.125)),
    ]
    assert float(found.mid()) == pytest.approx(float(matrix_norm_bound(X, rules).mid()), rel=1e-14)


@pytest.mark.parametrize("silent", [False, True])
def test_the_bound_within_tol_is_that_of_the_inequalities_of_its_rules_with_multipliers(silent, monkeypatch):
    data = WITHIN | ({"multipliers": [[0, 5.0, 0, 2.0], [0, 0, 0, 0]]} if silent else {})
    p = no_wiring._parse_within(data)
    wanted, lam = (np.array(data[name], dtype=float) for name in ("wanted", "multipliers"))
    rules = [(2, *total_variation_inequality(X, wanted[0], lam[0], [0, 1, 2], np.array([1, 0.5, 3.0]), 0.125))]
    if not silent:
        rules.append((0, *total_variation_inequality(X, wanted[1], lam[1], [0, 3], np.array([0.5, 0.25]), 0.125)))
    # In float64 each rule's inequality is divided by the sum of its mix
    with ctx.workprec(128):
        exact = no_wiring._measure_within(p, False, {"norm_at_least": []})["norm_at_least"]
    assert float(exact.mid()) == pytest.approx(float(matrix_norm_bound(X, rules).mid()), rel=1e-14)
    scaled = [(i, [v / total for v in g], b / total) for (i, g, b), total in zip(rules, (4.5, 0.75), strict=False)]
    expected = float(matrix_norm_bound(X, scaled).mid())
    low = no_wiring._measure_within(p, True, {"norm_at_least": []})["norm_at_least"]
    if expected > 0:
        assert expected * (1 - 1e-9) < float(low.mid()) < expected
        assert no_wiring._measure_within(p, True, {"norm_at_least": [expected]})["norm_at_least"].is_nan()
    else:
        assert low.is_nan()
    monkeypatch.setattr(no_wiring, "MAX_BALL_WORK", 2 * 4 * 2)
    again = no_wiring._measure_within(p, False, {})["norm_at_least"]
    assert float(again.mid()) == pytest.approx(float(exact.mid()), rel=1e-14)
    monkeypatch.setattr(no_wiring, "MAX_BALL_WORK", 2 * 4 * 2 - 1)
    large = no_wiring._measure_within(p, False, {})["norm_at_least"]
    assert large == low or (large.is_nan() and low.is_nan())


def test_a_positive_bound_is_found_in_float64():
    """Token 3 is between tokens 1 and 2, so reading it takes a long W, or none does."""
    x = np.array([[1.0, 0.5], [0.0, 2.0], [2.0, 0.0], [1.0, 1.001]])
    data = {"X": x, "rules": [0], "wanted": [[0, 0, 0, 1.0]], "tol": 0.125, "mix": [[0, 1.0, 1.0, 0]],
            "multipliers": [[0, 0, 0, 2.0]]}  # fmt: skip
    p = no_wiring._parse_within(data)
    low, exact = (no_wiring._measure_within(p, how, {"norm_at_least": []})["norm_at_least"] for how in (True, False))
    b = 2 * (math.log(2) + math.log(0.875))
    g = 2 * (x[3] - (x[1] + x[2]) / 2)
    assert float(exact.mid()) == pytest.approx(b / np.linalg.norm(np.outer(x[0], g)), rel=1e-9)
    assert float(low.mid()) == pytest.approx(float(exact.mid()), rel=1e-9) and low <= exact
    apart = data | {"X": np.vstack([x, 5 * np.ones((2, 2))]), "lengths": [4, 2]} | {
        name: np.hstack([data[name], np.zeros((1, 2))]) for name in ("wanted", "mix", "multipliers")
    }  # fmt: skip
    later = {**apart, "X": np.vstack([5 * np.ones((2, 2)), x]), "lengths": [2, 4], "rules": [2]} | {
        name: np.hstack([np.zeros((1, 2)), data[name]]) for name in ("wanted", "mix", "multipliers")
    }
    for case in (apart, later):
        found = no_wiring._measure_within(no_wiring._parse_within(case), True, {})["norm_at_least"]
        assert float(found.mid()) == pytest.approx(float(low.mid()), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mix": [[1.0, 0, 3.0, 0]]}, "mix has shape"),
        ({"multipliers": np.zeros((2, 3))}, "multipliers has shape"),
        ({"tol": 0.0}, "not between 0 and 1"),
        ({"mask": "causal", "wanted": [[0, 1.0, 0, 0], [1.0, 0, 0, 0]]}, "does not see"),
        ({"lengths": [2, 2], "wanted": [[0, 0, 0, 1.0], [0, 1.0, 0, 0]]}, "does not see"),
    ],
)
def test_defects_of_both_kinds_are_refused(changes, why):
    for parse, data in ((no_wiring._parse_exact, EXACT), (no_wiring._parse_within, WITHIN)):
        assert parse(data)["X"].tolist() == X.tolist()
        with pytest.raises(InvalidCertificate, match=why):
            parse({**data, **changes})


def test_the_mix_uses_only_tokens_that_are_seen():
    seen = {"mask": "causal", "wanted": [[0, 1.0, 0, 0], [1.0, 0, 0, 0]], "multipliers": np.zeros((2, 4))}
    good = EXACT | seen | {"mix": [[1.0, 0, 2.0, 0], [0, 0, 0, 0]]}
    assert no_wiring._parse_exact(good)["mix"].tolist() == good["mix"]
    for wrong in ([[1.0, 0, 2.0, 1e-300], [0, 0, 0, 0]], [[1.0, 0, 2.0, 0], [0, 0, 1.0, 0]]):
        with pytest.raises(InvalidCertificate, match="uses tokens that a rule's token does not see"):
            no_wiring._parse_exact(good | {"mix": wrong})


@pytest.mark.parametrize(
    "changes",
    [
        {"mix": [[1.0, 0, -1e-300, 0], [0.5, 0, 0, 0.25]]},
        {"mix": [[1.0, 0, 3.0, 1e-300], [0.5, 0, 0, 0.25]]},
        {"multipliers": [[1e-300, 5.0, 0, 2.0], [0, -1.0, 0, 0]]},
    ],
)
def test_in_exact_ratios_the_mix_is_on_the_unwanted_tokens_and_multipliers_on_the_wanted_ones(changes):
    with pytest.raises(InvalidCertificate, match="mix belongs on the unwanted tokens"):
        no_wiring._parse_exact(EXACT | changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mix": [[1.0, 0, -1e-300, 0], [0.5, 0, 0, 0.25]]}, "must not be negative"),
        ({"multipliers": [[0, 5.0, 0, -2.0], [0, 1.0, 0, 0]]}, "must not be negative"),
        ({"multipliers": [[1e-300, 5.0, 0, 2.0], [0, 1.0, 0, 0]]}, "multipliers belong on the wanted tokens"),
        ({"mix": [[0.0, 0, 0, 0], [0.5, 0, 0, 0.25]]}, "multipliers and no mix"),
    ],
)
def test_within_tol_signs_and_places_of_multipliers_are_checked(changes, why):
    with pytest.raises(InvalidCertificate, match=why):
        no_wiring._parse_within(WITHIN | changes)
    silent = WITHIN | {"mix": [[0.0, 0, 0, 0], [0.5, 0, 0, 0.25]], "multipliers": [[0, 0.0, 0, 0], [0, 1.0, 0, 0]]}
    assert no_wiring._parse_within(silent)["mix"][0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("tokens", "mix", "first"), [(20_000, 10_000, False), (20_000, 10_001, True)])
def test_float64_is_tried_first_above_fifty_thousand_numbers(tokens, mix, first):
    data = {"X": np.zeros((tokens, 2)), "mix": np.zeros((1, mix))}
    assert no_wiring.NO_WIRING_WITHIN.float64_first(data) is first and no_wiring.MAX_BALL_WORK == 5e7


def test_statements_say_what_is_excluded():
    exact, within = no_wiring.NO_WIRING.describe, no_wiring.NO_WIRING_WITHIN.describe
    data = {"tol": 0.1234567}
    assert exact(data, {"norm_at_least": math.inf}, str) == (
        "no matrix W = QᵀK makes these tokens read as wanted, in exact ratios with a leak of at most 0.123456"
    )
    assert exact(data, {"norm_at_least": 1.5}, str).startswith("no W = QᵀK of norm below 1.5 makes these")
    assert within({"tol": 0.1234567, "mask": "causal"}, {"norm_at_least": math.inf}, str) == (
        "under a causal mask, no matrix W = QᵀK makes these tokens read as wanted, each to within 0.123456 in total "
        "variation"
    )
    assert within(data, {"norm_at_least": 0.7654321}, str) == (
        "every W = QᵀK that makes these tokens read as wanted, each to within 0.123456 in total variation, has a norm "
        "of at least 0.765432"
    )
