"""Thresholds against the inequality itself, evaluated on both sides of the edge; ties against the difference there."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

import qkv
from qkv.claims.numeric.evaluator import Instance, evaluate
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED
from qkv.claims.symbolic.relations import relation
from qkv.claims.symbolic.thresholds import _range_decides, threshold, tie

KEYS = "k_1..k_n orthonormal, n >= 3"


def found(given, let, text):
    algebra = Evaluator(context_of(given, let, f"{text} > 0"))
    value = algebra.number(expression(text))
    return algebra, value, assumptions_of(algebra)


@pytest.mark.parametrize(
    ("given", "let", "text"),
    [
        ("t real", "", "3 - 2*t"),
        ("t real", "", "(2*t - 5)/3"),
        (f"{KEYS}, t real", "q = t*k_a", "alpha_a - 1/2"),
        (f"{KEYS}, t real", "q = t*(k_a + k_b)", "alpha_a - 0.49"),
        (f"{KEYS}, t real", "q = -t*k_a", "alpha_a - alpha_b"),
        (f"{KEYS}, t real", "q = -2*t*k_a", "1/4 - alpha_a"),
        ("t real, beta > 0", "", "exp(beta*t) - 3"),
        ("t real, beta > 0", "", "1 - beta*t"),
    ],
)
@pytest.mark.parametrize("inclusive", [False, True])
def test_the_inequality_holds_exactly_on_one_side_of_the_edge(given, let, text, inclusive):
    algebra, value, assumptions = found(given, let, text)
    condition = threshold(algebra, value, inclusive, assumptions)
    assert condition is not None and condition.relation is not None
    (scale, edge), (op,) = condition.relation.sides, condition.relation.ops
    assert op.endswith("=") == inclusive
    assert condition.text.startswith(f"{scale} {op} ")
    for n, beta in ((3, 0.7), (10, 2.0)):
        numbers = {"n": np.full((1, 1, 1), float(n)), "beta": np.full((1, 1, 1), beta)}
        inst = Instance(algebra.context, n, 2, numbers, {}, {}, {})
        at = float(evaluate(inst, edge)[0, 0, 0])
        for t in (at - 1.0, at - 1e-6, at + 1e-6, at + 1.0):
            names = {algebra.symbol("n"): n, algebra.symbol("beta"): beta, algebra.symbol("t"): t}
            true = float(value.subs({s: v for s, v in names.items() if s.is_Symbol})) > 0
            assert true == (t > at if ">" in op else t < at), (n, beta, t, condition.text)


@pytest.mark.parametrize("text", ["t^2 - 1", "exp(t) + exp(-t) - 3", "t + exp(t)", "s*t - 1"])
def test_what_is_not_linear_in_one_scale_has_no_threshold(text):
    algebra, value, assumptions = found("t real, s real", "", text)
    assert threshold(algebra, value, False, assumptions) is None


def test_random_keys_and_conditions_have_no_threshold():
    algebra, value, assumptions = found("t real, s > t", "", "s - 1")
    assert threshold(algebra, value, False, assumptions) is None


@pytest.mark.parametrize(
    ("given", "text", "name", "at"),
    [
        ("t real", "t^2", "t", 0),
        ("0 <= t <= 1", "1 - t", "t", 1),
        ("t >= 2", "(t - 2)^2", "t", 2),
        ("t real", "t^2 - 2*t + 1", "t", 1),
        ("n >= 2", "n - 2", "n", 2),
    ],
)
def test_a_tie_is_a_zero_inside_the_range(given, text, name, at):
    algebra, value, assumptions = found(given, "", text)
    assert tie(algebra, value, assumptions) == (name, Fraction(at))
    assert sp.simplify(value.subs(algebra.symbol(name), at)) == 0


@pytest.mark.parametrize(("given", "text"), [("t > 0", "t^2"), ("t real", "t^2 + 1"), ("t real", "(t - 1/3)^2")])
def test_where_there_is_no_zero_at_an_end_0_or_1_there_is_no_tie(given, text):
    algebra, value, assumptions = found(given, "", text)
    assert tie(algebra, value, assumptions) is None


@pytest.mark.parametrize(
    ("given", "op", "kind"),
    [
        ("0 < s < 1", ">", PROVED),
        ("0 < s <= 1", ">=", PROVED),
        ("0 < s <= 1", ">", CONDITIONAL),
        ("1 < s < 2", ">", REFUTED),
        ("1 <= s < 2", ">", REFUTED),
        ("1 < s < 2", ">=", REFUTED),
        ("0 < s < 2", ">", CONDITIONAL),
    ],
)
def test_a_condition_that_the_range_decides_is_no_condition(given, op, kind):
    """e^t against e^(st): the condition is s < 1."""
    context = context_of(f"{KEYS}, {given}, t > 0", "q = t*(k_a + s*k_b)", f"alpha_a {op} alpha_b")
    assert relation(context, context.claim.statement.core).kind == kind


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ("alpha_a > 1/2 when t > 0.6932", "proved"),
        ("alpha_a > 1/2 when t > 0.6931", "conditional"),
        ("alpha_a < 1/2 when t < 0.6931", "proved"),
        ("alpha_a < 1/2 when t < 0.6932", "conditional"),
        ("alpha_a > 1/2 when t > 2 and t < 3", "proved"),
        ("alpha_a > 0.9 when t < 2", "refuted"),
        ("exp(t) > 20 when t > 3", "proved"),
        ("exp(t) > 20 when t < 2.9", "refuted"),
        ("alpha_a > 1/2", "conditional"),
    ],
)
def test_a_range_beside_a_logarithm_decides(then, verdict):
    head = "given k_1..k_n orthonormal, n = 3, t > 0\nlet q = t*k_a"
    (found,) = qkv.check(f"```claim x\n{head}\nthen {then}\n```")
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("where", "over", "edge", "expected"),
    [
        (Range(Fraction(2), None), True, sp.log(3), True),
        (Range(None, Fraction(1)), True, sp.log(3), False),
        (Range(Fraction(1), Fraction(2)), True, sp.log(3), None),
        (Range(None, Fraction(1)), False, sp.log(3), True),
        (Range(Fraction(2), None), False, sp.log(3), False),
        (Range(), True, sp.log(3), None),
        (None, True, sp.log(3), None),
        (Range(Fraction(2), None), True, sp.log(sp.Symbol("n")), None),
    ],
)
def test_a_range_decides_where_it_lies_on_one_side_of_a_constant_edge(where, over, edge, expected):
    assert _range_decides(where, over, edge, False) is expected
    assert _range_decides(where, over, edge, True) is expected
