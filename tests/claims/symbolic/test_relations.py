"""Relations: what is proved holds at every point tried, what is surely refuted at none; chains stop at a bad link."""

import operator
import random
import re
from fractions import Fraction

import pytest
import sympy as sp
from claim_builders import context_of, expression

import qkv
from qkv.claims.symbolic import relations
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.errors import WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN
from qkv.claims.symbolic.relations import _decimal, link, relation

OPS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
SIDES = ["1", "t", "t^2", "1/(1 + t)", "exp(t)", "(t - 1)^2"]


def decided(given, let, then):
    context = context_of(given, let, then)
    return relation(context, context.claim.statement.core)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("given", "low", "high"), [("t > 0", "0", "4"), ("0 < t < 1", "0", "1"), ("t >= 1", "1", "6")])
def test_outcomes_agree_with_exact_values(given, low, high, op):
    """All pairs of sides: what is proved holds at every point tried, what is surely refuted at none."""
    rng = random.Random(0)
    inside = [Fraction(low) + Fraction(rng.randint(1, 99), 100) * (Fraction(high) - Fraction(low)) for _ in range(3)]
    inside += [Fraction(1)] * (given == "t >= 1")
    algebra = Evaluator(context_of(given, "", "t = t"))
    assumptions, t = assumptions_of(algebra), algebra.symbol("t")
    values = {side: algebra.value(expression(side)) for side in SIDES}
    for one in SIDES:
        for two in SIDES:
            found = link(algebra, values[one], op, values[two], assumptions)
            gap = values[one].number() - values[two].number()
            truths = []
            for point in inside:
                value = sp.N(gap.subs(t, sp.Rational(point.numerator, point.denominator)), 40)
                truths.append(OPS[op](0 if abs(value) < 1e-30 else value, 0))
            if found.kind == PROVED:
                assert all(truths), (one, op, two)
            if found.kind == REFUTED and found.sure:
                assert not any(truths) or op == "<" or op == ">", (one, op, two)
            if found.kind == REFUTED and op == "=":
                assert not all(truths), (one, op, two)
            if one == two:
                assert found.kind == (PROVED if op in ("=", "<=", ">=") else REFUTED)


@pytest.mark.parametrize(
    ("given", "let", "then", "kind"),
    [
        ("t > 0", "", "t < t + 1 < t + 2", PROVED),
        ("t > 0", "", "t < t + 1 < t", REFUTED),
        ("t > 0", "", "t = t = 2*t", REFUTED),
        ("t real", "", "t > 1", CONDITIONAL),
        ("t real", "", "t^2 > 0", REFUTED),
        ("t real, s real", "", "s*t > 0", REFUTED),
        ("u_1..u_n orthonormal", "", "u_a != u_b", PROVED),
        ("u_1..u_n orthonormal", "", "u_a = u_b", REFUTED),
        ("u_a free, u_b free", "", "u_a != u_b", UNKNOWN),
        ("u_1..u_n orthonormal, w_1..w_n orthonormal", "", "u_a != w_a", UNKNOWN),
        ("A orthonormal basis", "", "A'*A = I", PROVED),
    ],
)
def test_kinds_of_outcomes(given, let, then, kind):
    assert decided(given, let, then).kind == kind


def test_a_tie_and_a_condition_are_values():
    (tie,) = decided("t real", "", "t^2 > 0").place
    assert (str(tie.sides[0]), tie.ops, tie.sides[1].value) == ("t", ("=",), 0)
    condition = decided("t real", "", "3*t > 1").condition
    assert condition.text == "t > 1/3"
    assert (str(condition.relation.sides[0]), condition.relation.ops) == ("t", (">",))
    assert condition.relation.sides[1].value == Fraction(1, 3)


def test_the_derivation_shows_both_sides():
    found = decided("k_1..k_n orthonormal, n >= 3, t > 0", "q = t*k_a", "alpha_a > 1/n")
    assert any(s.text.startswith("left side: exp(t)/(n + exp(t) - 1); right side: 1/n") for s in found.steps)
    assert all(s.latex for s in found.steps)


def test_an_order_between_vectors_is_refused():
    with pytest.raises(WrongShape):
        decided("u_1..u_n orthonormal", "", "u_a < u_b")


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        ("alpha_a = 1/2", "refuted"),
        ("k_a'q = 2*t", "refuted"),
        ("k_a'q = t + 1", "refuted"),
        ("alpha_a < 0", "refuted"),
        ("c = v_a", "refuted"),
        ("alpha_a -> 1/2 as t -> oo", "refuted"),
        ("c -> v_b as t -> oo", "refuted"),
    ],
)
def test_the_derivation_of_a_refuted_claim_states_no_false_formula(then, kind):
    (found,) = qkv.check(f"```claim x\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*k_a\nthen {then}\n```")
    assert found.verdict == kind
    shown = [s.latex for s in found.derivation if s.text.startswith("left side")]
    assert shown and not any(re.search(r"\\;(=|<|\\to)\\;", formula) for formula in shown), shown


def test_the_derivation_of_a_proved_claim_states_it():
    (found,) = qkv.check("```claim x\ngiven k_1..k_n orthonormal, n >= 3, t > 0\nlet q = t*k_a\nthen k_a'q = t\n```")
    assert any(r"\;=\;" in s.latex for s in found.derivation)


@pytest.mark.parametrize(
    ("given", "then", "kind", "sure"),
    [
        ("t > 0", "t > 0", PROVED, False),
        ("t >= 0", "t > 0", REFUTED, False),
        ("t >= 0", "t >= 0", PROVED, False),
        ("t > 0", "t < 0", REFUTED, True),
        ("t >= 0", "t < 0", REFUTED, True),
        ("t > 0", "t <= 0", REFUTED, True),
        ("t < 0", "t > 0", REFUTED, True),
        ("t <= 0", "t > 0", REFUTED, True),
        ("t < 0", "t >= 0", REFUTED, True),
        ("t <= 0", "t <= 0", PROVED, False),
        ("t real", "t - t > 0", REFUTED, True),
        ("t real", "t - t < 0", REFUTED, True),
        ("t real", "t - t >= 0", PROVED, False),
        ("t real", "t - t <= 0", PROVED, False),
        ("t real", "t - t != 0", REFUTED, True),
        ("t real", "t = t + 1", REFUTED, True),
        ("t real", "t = 2*t", REFUTED, False),
        ("t real", "t != 2*t", UNKNOWN, False),
        ("t > 0", "t != 2*t", PROVED, False),
        ("u_1..u_n orthonormal, t real", "t*u_a != u_a", UNKNOWN, False),
        ("u_1..u_n orthonormal, t > 1", "t*u_a != u_a", PROVED, False),
        ("u_1..u_n orthonormal, t > 0", "u_a + u_b = u_a + u_b*t/t", PROVED, False),
    ],
)
def test_outcomes_by_sign(given, then, kind, sure):
    found = decided(given, "", then)
    assert (found.kind, found.sure) == (kind, sure)


def test_decimals_are_exact_and_short():
    for value, text in [("1/2", "0.5"), ("1/3", "1/3"), ("4", "4"), ("-1/8", "-0.125"), ("1/1000000", "1/1000000")]:
        assert _decimal(Fraction(value)) == text


def test_places_of_failure_are_told():
    found = decided("0 <= t <= 1, 0 <= s <= 1", "", "t^2 + s^2 < 1 + t*s/2")
    assert found.kind == REFUTED and found.because == "false for s = 1, t = 1"
    assert {str(one.sides[0]): one.sides[1].value for one in found.place} == {"s": 1, "t": 1}
    level = decided("0 <= t <= 1", "", "1 - t > 0")
    assert level.because == "both sides are equal for t = 1"


def test_signs_between_both_sides_are_printed_where_they_hold():
    for given, then, formula in [
        ("t > 0", "t + 1 >= 1", r"\;\ge\;"),
        ("t > 0", "t + 1 <= 1", r"\;>\;"),
        ("t > 0", "t + 1 != 1", r"\;\ne\;"),
        ("t real", "t = 2*t", r"\;\not\equiv\;"),
        ("t real", "t = t + 1", r"\;\ne\;"),
        ("t real", "t < 1", r"\text{ and }"),
    ]:
        sides = decided(given, "", then).steps[0]
        assert sides.text.startswith("left side") and formula in sides.latex, then


def test_short_differences_are_factored_for_printing(monkeypatch):
    text = decided("t > 0", "", "t^2 + t > 0").steps[-1].text
    assert text == "left minus right is t*(t + 1), which is positive for all allowed values"
    size = 3  # operations of t^2 + t: a power, a sum, and no more
    monkeypatch.setattr(relations, "FACTORED_BELOW", size)
    assert "t*(t + 1)" in decided("t > 0", "", "t^2 + t > 0").steps[-1].text
    monkeypatch.setattr(relations, "FACTORED_BELOW", size - 1)
    assert "t^2 + t" in decided("t > 0", "", "t^2 + t > 0").steps[-1].text
