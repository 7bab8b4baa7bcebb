"""Conditions as assumptions: substituted numbers meet every condition, and only those do."""

from fractions import Fraction

import pytest
import sympy as sp
from build import assume, number
from claim_builders import context_of

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.conditions import _implied, _passes_bound, assumptions_of
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.unknowns import Gap


def test_a_number_beyond_another_is_that_number_and_a_gap():
    algebra = Evaluator(context_of("t > 0, s > 2*t", "", "s > t"))
    found = assumptions_of(algebra)
    s, t = algebra.symbol("s"), algebra.symbol("t")
    (gap,) = [x for x in found.put(s).free_symbols if isinstance(x, Gap)]
    assert found.put(s) == 2 * t + gap and gap.is_positive and gap.of == s
    assert found.ranges[t] == algebra.context.numbers["t"]


@pytest.mark.parametrize(
    ("given", "strict", "direction"),
    [("s > t", True, 1), ("s >= t", False, 1), ("s < t", True, -1), ("s <= t", False, -1), ("t < s", True, 1)],
)
def test_the_gap_has_the_sign_and_strictness_of_the_condition(given, strict, direction):
    algebra = Evaluator(context_of(f"t real, s real, {given}", "", "s = t"))
    difference = assumptions_of(algebra).put(algebra.symbol("s") - algebra.symbol("t"))
    gap = difference * direction
    assert isinstance(gap, Gap) and gap.strict == strict


def test_an_equality_leaves_no_gap():
    algebra = Evaluator(context_of("t real, s real, s = 2*t + 1", "", "s = t"))
    assert assumptions_of(algebra).put(algebra.symbol("s")) == 2 * algebra.symbol("t") + 1


def test_n_is_at_least_the_number_of_named_items():
    algebra = Evaluator(context_of("k_1..k_n orthonormal", "q = k_a + k_b + k_d", "alpha_a = 1"))
    assert assumptions_of(algebra).ranges[algebra.symbol("n")].lo == Fraction(3)


def test_a_number_that_goes_past_its_bound_first_needs_no_condition():
    algebra = Evaluator(context_of("t > s, s > 0", "", "s/t -> 0 as t -> oo"))
    assert assumptions_of(algebra, (("t", sp.oo),)).fixed == ()
    with pytest.raises(Unsupported, match="condition on a number"):
        assumptions_of(algebra, (("s", sp.oo),))
    with pytest.raises(Unsupported):
        assumptions_of(algebra, (("s", sp.oo), ("t", sp.oo)))


@pytest.mark.parametrize("given", ["t*s > 1", "t > s, t > 2*s"])
def test_conditions_that_cannot_be_substituted_are_not_supported(given):
    names = "t real, s real, " if "t" in given else ""
    with pytest.raises(Unsupported):
        assumptions_of(Evaluator(context_of(names + given, "", "1 = 1")))


def test_a_range_that_a_condition_does_not_imply_is_dropped():
    """t = log(n - 1) + gap may be negative, which t > 0 excludes: what is shown for more values holds for these."""
    algebra = Evaluator(context_of("n >= 2, t > 0, t >= log(n - 1)", "", "t = t"))
    ((symbol, value),) = assumptions_of(algebra).fixed
    assert symbol == algebra.symbol("t") and value.has(sp.log)


INTERVALS = ["(-oo, oo)", "(0, oo)", "[0, oo)", "(-oo, 1)", "(-oo, 1]", "(0, 1)", "[0, 1]", "(0, 1]", "[0, 1)"]
OPS = {
    "<": lambda v, b: v < b,
    "<=": lambda v, b: v <= b,
    ">": lambda v, b: v > b,
    ">=": lambda v, b: v >= b,
    "=": lambda v, b: v == b,
}


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("op", OPS)
def test_a_condition_implies_a_range_if_all_numbers_that_meet_it_lie_there(interval, op):
    one = number("x", interval)
    tried = [Fraction(k, 4) for k in range(-400, 401)]
    for bound in (Fraction(v) for v in ("-1", "0", "1/2", "1", "3/2")):
        true = all(one.allows(v) for v in tried if OPS[op](v, bound))
        found = _implied(assume(one), one.symbol, sp.Rational(bound.numerator, bound.denominator), op)
        assert found == true, (interval, op, bound)


@pytest.mark.parametrize(
    ("interval", "bound", "op", "wanted"),
    [
        ("(0, oo)", "[0, oo)", ">", True),
        ("(0, oo)", "[0, oo)", ">=", False),
        ("[0, oo)", "[0, oo)", ">=", True),
        ("[0, oo)", "[0, oo)", "=", True),
        ("(0, oo)", "[0, oo)", "=", False),
        ("(0, oo)", "(0, oo)", "=", True),
        ("(-oo, 0)", "(-oo, 0]", "<", True),
        ("(-oo, 0)", "(-oo, 0]", "<=", False),
        ("(-oo, 0]", "(-oo, 0]", "<=", True),
        ("(-oo, 0]", "[0, oo)", "<=", False),
        ("[0, oo)", "(-oo, oo)", ">=", False),
        ("(-oo, oo)", "(-oo, oo)", "=", True),
    ],
)
def test_a_bound_of_known_sign_implies_a_range(interval, bound, op, wanted):
    one, other = number("x", interval), number("y", bound)
    assert _implied(assume(one, other), one.symbol, other.symbol, op) is wanted


def test_a_number_without_a_range_is_free():
    assert _implied(assume(), sp.Symbol("x"), sp.Symbol("y"), ">=") is True


OO = sp.oo


@pytest.mark.parametrize(
    ("given", "moving", "wanted"),
    [
        ("t > s", (("t", OO),), True),
        ("t >= s", (("t", OO),), True),
        ("s < t", (("t", OO),), True),
        ("s <= t", (("t", OO),), True),
        ("t < s", (("t", OO),), False),
        ("t <= s", (("t", OO),), False),
        ("t = s", (("t", OO),), False),
        ("t = s", (("t", -OO),), False),
        ("t < s", (("t", -OO),), True),
        ("t <= s", (("t", -OO),), True),
        ("t > s", (("t", -OO),), False),
        ("t >= s", (("t", -OO),), False),
        ("t > s", (("t", sp.Integer(5)),), False),
        ("t < s", (("t", sp.Integer(5)),), False),
        ("t > s", (), False),
        ("t > s", (("s", OO),), False),
        ("t < s", (("s", OO),), True),
        ("t > s", (("t", OO), ("s", OO)), True),
        ("t > s", (("s", OO), ("t", OO)), False),
        ("t > s + a", (("t", OO), ("s", OO)), True),
        ("t > s + a", (("a", OO), ("t", OO), ("s", OO)), False),
        ("2*t > s", (("t", OO),), False),
    ],
)
def test_a_number_passes_a_bound_if_it_goes_there_before_the_bound_moves(given, moving, wanted):
    context = context_of(f"t real, s real, a real, {given}", "", "1 = 1")
    (order,) = context.number_conditions
    assert _passes_bound(order, moving) is wanted


@pytest.mark.parametrize(
    ("given", "wanted", "strict"),
    [
        ("t real, s real, s > t", {"s": "t + gap"}, True),
        ("t real, 0 < s < 1, s > t", {"t": "s - gap"}, True),  # solved for the number whose range allows it
        ("t real, 0 < s < 1, s >= t", {"t": "s - gap"}, False),
        ("0 < t < 1, s real, s > t", {"s": "t + gap"}, True),
        ("t real, s > 0, s = t", {"t": "s"}, None),
        ("0 < t < 1, 0 < s < 1, s > t", {"s": "t + gap"}, True),  # neither: the range of s is dropped
        ("t > 0, s > 0, s < t + 1", {"s": "t + 1 - gap"}, True),
        ("t > 0, s > 0, s > 2*t", {"s": "2*t + gap"}, True),
        ("t real, s = 2, t > s", {"t": "2 + gap"}, True),
        ("t real, s = 2, s > t", {"t": "2 - gap"}, True),
    ],
)
def test_a_condition_is_solved_for_one_number(given, wanted, strict):
    algebra = Evaluator(context_of(given, "", "s = t"))
    fixed = dict(assumptions_of(algebra).fixed)
    ((name, text),) = wanted.items()
    assert list(fixed) == [algebra.symbol(name)]
    (gap,) = [g for g in fixed[algebra.symbol(name)].free_symbols if isinstance(g, Gap)] or [sp.Integer(0)]
    names = {"gap": gap, "t": algebra.symbol("t"), "s": algebra.symbol("s")}
    assert sp.expand(fixed[algebra.symbol(name)] - sp.sympify(text, locals=names)) == 0
    assert gap == 0 if strict is None else gap.strict is strict and gap.of.name == name


@pytest.mark.parametrize(
    "given",
    ["t real, t > t^2", "t real, s real, t > s, t < s + 1", "t = 2, s = 1, t > s + 0"],
)
def test_conditions_that_come_back_to_one_number_are_not_supported(given):
    with pytest.raises(Unsupported, match="depend on each other"):
        assumptions_of(Evaluator(context_of(given, "", "1 = 1")))


def test_the_ranges_are_those_declared():
    algebra = Evaluator(context_of("k_1..k_n orthonormal, n >= 5, 0 < s <= 1, t = 3", "q = k_a", "alpha_a = s"))
    found = assumptions_of(algebra)
    assert found.ranges[algebra.symbol("s")] == Range(Fraction(0), Fraction(1), True, False)
    assert found.ranges[algebra.symbol("n")] == Range(Fraction(5), None, whole=True)
    assert algebra.symbol("t") == 3 and all(s.is_Symbol for s in found.ranges)
