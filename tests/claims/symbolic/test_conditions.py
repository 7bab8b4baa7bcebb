"""Conditions as assumptions: substituted numbers meet every condition, and only those do."""

from fractions import Fraction

import pytest
import sympy as sp
from claim_builders import context_of

from qkv.claims.symbolic.conditions import assumptions_of
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
