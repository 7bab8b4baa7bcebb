"""Places at which an order fails: ends of ranges, ties of two numbers, few items."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic import violations
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.proof import REFUTED
from qkv.claims.symbolic.relations import relation
from qkv.claims.symbolic.violations import _amounts, _candidates, violating_place


def decided(given, let, then):
    context = context_of(given, let, then)
    return relation(context, context.claim.statement.core)


@pytest.mark.parametrize(
    ("given", "let", "then", "place"),
    [
        ("s >= 0, t >= 0", "", "exp(s) + exp(t) > 2", {"s": 0, "t": 0}),
        ("s >= 0, t >= 0", "", "s^2 + t^2 > 2*s*t", None),
        ("0 <= s <= 1, 0 <= t <= 1", "", "s + t - s*t < 1", None),
        ("k_1..k_n orthonormal, t > 5", "q = t*k_a", "alpha_a > 1/2 when n < 1000", None),
    ],
)
def test_a_place_of_failure_is_found(given, let, then, place):
    found = decided(given, let, then)
    assert found.kind == REFUTED and found.place
    values = {str(one.sides[0]): one.sides[1].value for one in found.place}
    assert place is None or values == place


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        ("s >= 0, t >= 0", "", "exp(s) + exp(t) >= 2"),
        ("0 <= s <= 1, 0 <= t <= 1", "", "exp(s)*t <= exp(1)"),
        ("k_1..k_n orthonormal, t > 5", "q = t*k_a", "alpha_a > 1/2 when n < 149"),
    ],
)
def test_true_orders_have_none(given, let, then):
    assert not decided(given, let, then).place


def fractions(text):
    return [Fraction(part) for part in text.split()]


NEAR_ZERO = "1/1000000 1/1000 1/10 1/2 1 2 5 20 300"


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (Range(Fraction(3), Fraction(3)), "3"),
        (Range(Fraction(0), None, True), NEAR_ZERO),
        (Range(Fraction(0), None), f"0 {NEAR_ZERO}"),
        (Range(None, Fraction(0), False, True), "-1/1000000 -1/1000 -1/10 -1/2 -1 -2 -5 -20 -300"),
        (
            Range(Fraction(0), Fraction(1)),
            "0 1/1000000 1/1000 1/10 1/2 1 999999/1000000 999/1000 9/10 1/8 1/4 3/8 5/8 3/4 7/8",
        ),
        (
            Range(Fraction(0), Fraction(1), True, True),
            "1/1000000 1/1000 1/10 1/2 999999/1000000 999/1000 9/10 1/8 1/4 3/8 5/8 3/4 7/8",
        ),
        (Range(), "0 1 -1 1/2 -1/2 2 -2 5 -5 20 -20"),
        (Range(Fraction(2), None, whole=True), "2 3 4 5 9 32 102 20 1000"),
        (Range(Fraction(0), Fraction(4), whole=True), "0 1 2 3 4"),
        (Range(whole=True), "0 1 -1 2 -2 5 -5 20 -20 1000"),
    ],
)
def test_candidates_are_ends_places_beside_them_and_simple_numbers(where, wanted):
    assert _candidates(where, False) == fractions(wanted)


def test_candidates_for_the_number_of_items_are_at_most_a_thousand():
    where = Range(Fraction(950), None, whole=True)
    assert _candidates(where, False) == fractions("950 951 952 953 957 980 1050 1000")
    assert _candidates(where, True) == fractions("950 951 952 953 957 980 1000")


t = sp.Symbol("t", real=True)


@pytest.mark.parametrize(
    ("value", "places", "wanted"),
    [
        (t - 1, [0, 3], [-1, 2]),
        (sp.Integer(4), [0, 1], [4, 4]),
        (sp.log(t), [-1, 1], [-np.inf, 0]),
        (1 / t, [0, 2], [-np.inf, 0.5]),
        (t + sp.I * (t - 1), [1, 2], [1, -np.inf]),
        (sp.erf(t), [0, 20], [0, 1]),
        (sp.Function("f")(t), [0, 1], [-np.inf, -np.inf]),
        (t, [], []),
    ],
    ids=str,
)
def test_amounts_are_values_and_minus_infinity_where_there_is_none(value, places, wanted):
    assert _amounts(value, [t], [(Fraction(x),) for x in places]).tolist() == wanted


def place(given, text, op):
    algebra = Evaluator(context_of(given, "", f"{text} {op} 0"))
    found = violating_place(algebra, algebra.number(expression(text)), op, assumptions_of(algebra))
    return None if found is None else {name: Fraction(at) for name, at in found}


UNIT = "0 <= s <= 1"


@pytest.mark.parametrize(
    ("given", "text", "op", "wanted"),
    [
        (UNIT, "s - 1/2", "<", {"s": "1"}),
        (UNIT, "s - 1/2", "<=", {"s": "1"}),
        (UNIT, "s - 1/2", ">", {"s": "0"}),
        (UNIT, "s - 1/2", ">=", {"s": "0"}),
        (UNIT, "-(s - 7/8)^2", "<", {"s": "7/8"}),  # a tie, and nothing else
        (UNIT, "-(s - 7/8)^2", "<=", None),
        (UNIT, "(s - 7/8)^2", ">", {"s": "7/8"}),
        (UNIT, "(s - 7/8)^2", ">=", None),
        (UNIT, "-(s - 7/8)^2 - 1/(10000000*1000000)", "<", None),  # near a tie, in floating point only
        (UNIT, "s - 1", "<", {"s": "1"}),
        (UNIT, "s - 2", "<", None),
        (UNIT, "s + 1", ">", None),
        (UNIT, "(s - 1/10)*(1/1000 - s)", "<", {"s": "1/1000"}),  # the first of two ties
        ("n >= 2", "10 - n", ">", {"n": "20"}),  # fewest items
        ("n >= 2", "19.5 - n", ">", {"n": "20"}),
        (f"n >= 2, {UNIT}", "1 - n*s", ">", {"n": "2", "s": "1"}),  # and, with those, the largest amount
        ("s real, t real", "s - t - 39", "<", {"s": "20", "t": "-20"}),
        ("a real, b real, c real, t real", "a + b + c + t - 79", "<", dict.fromkeys("abct", "20")),
    ],
)
def test_the_place_is_the_clearest_violation(given, text, op, wanted):
    assert place(given, text, op) == (None if wanted is None else {k: Fraction(v) for k, v in wanted.items()})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("s real, t > s", "t - 1"),  # a condition between numbers
        ("gamma ~ N(0, 1)", "gamma - 1"),
        ("u free", "u'u - 1"),
        ("a real, b real, c real, t real, s real", "a + b + c + t + s - 1"),
        ("t > 0", "Var[alpha_a] - 1"),
        ("t > 0", "2"),
    ],
)
def test_what_is_no_function_of_few_declared_numbers_has_no_place(given, text):
    more = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, I), " if "alpha" in text else ""
    algebra = Evaluator(context_of(more + given, "q = t*mu_a" if more else "", "1 = 1"))
    value = algebra.number(expression(text))
    assert violating_place(algebra, value, "<", assumptions_of(algebra)) is None


@pytest.mark.parametrize("most", [12, 40, 60, 89])
def test_long_grids_are_thinned_until_the_places_are_few(monkeypatch, most):
    """The first two of each grid stay, and no more is left out than needed."""
    seen = []
    monkeypatch.setattr(violations, "MAX_PLACES", most)
    monkeypatch.setattr(violations, "_amounts", lambda value, symbols, places: seen.extend(places) or np.zeros(0))
    algebra = Evaluator(context_of("s >= 0, t > 0", "", "1 = 1"))
    s, t = algebra.symbol("s"), algebra.symbol("t")
    violating_place(algebra, s + t, ">", assumptions_of(algebra))
    kept = [list(dict.fromkeys(pair[j] for pair in seen)) for j in (0, 1)]
    every = [fractions(f"0 {NEAR_ZERO}"), fractions(NEAR_ZERO)]
    while len(every[0]) * len(every[1]) > most:
        j = 0 if len(every[0]) >= len(every[1]) else 1
        every[j] = [x for k, x in enumerate(every[j]) if k < 2 or k % 2 == 0]
    assert kept == every and len(seen) <= most


def test_at_most_eight_places_are_checked_of_each_kind(monkeypatch):
    asked = []
    monkeypatch.setattr(violations, "nonzero_sign", lambda value, at: asked.append(at))
    monkeypatch.setattr(violations, "is_zero", lambda value: False)
    assert place(UNIT, "s + 1", "<=") is None and len(asked) == 8
