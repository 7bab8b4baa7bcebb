"""The outcome of a claim from those of its cases, and the statements that are decided whole."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
import sympy as sp
from claim_builders import cases_of
from scipy import stats

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic import prover
from qkv.claims.symbolic.errors import NeedSign, TooLarge, Unsupported, WrongShape
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Condition, Proof
from qkv.claims.symbolic.prover import _jointly, decide
from qkv.claims.syntax.nodes import Malformed


def outcome(given, let, then):
    return decide(cases_of(given, let, then))


def of_cases(monkeypatch, **kinds):
    """Decide cases whose outcomes are given, by their labels."""
    proofs = {
        label: found if isinstance(found, Proof) else Proof(found, f"why {label}") for label, found in kinds.items()
    }
    monkeypatch.setattr(prover, "_decide", lambda context: proofs[context])
    return decide([SimpleNamespace(label="" if label == "_" else label, context=label) for label in proofs])


@pytest.mark.parametrize(
    ("kinds", "kind", "label"),
    [
        ({"a": PROVED, "b": PROVED}, PROVED, ""),
        ({"a": PROVED, "b": UNKNOWN}, UNKNOWN, "b"),
        ({"a": UNKNOWN, "b": REFUTED}, REFUTED, "b"),
        ({"a": CONDITIONAL, "b": REFUTED}, REFUTED, "b"),
        ({"a": CONDITIONAL, "b": UNKNOWN}, UNKNOWN, "b"),
        ({"a": PROVED, "b": CONDITIONAL}, CONDITIONAL, "b"),
        ({"a": REFUTED, "b": REFUTED}, REFUTED, "a"),
    ],
)
def test_the_worst_case_decides(monkeypatch, kinds, kind, label):
    found = of_cases(monkeypatch, **kinds)
    assert found.kind == kind
    assert found.because == (f"for {label}: why {label}" if label else "why a")


def test_the_steps_of_all_cases_and_the_probability_of_a_single_one(monkeypatch):
    found = of_cases(monkeypatch, a=PROVED, b=PROVED)
    assert [s.text for s in found.steps] == ["case a", "case b"]
    chance = Proof(CONDITIONAL, "why", probability=0.25)
    assert of_cases(monkeypatch, _=chance).probability == 0.25 and of_cases(monkeypatch, _=chance).because == "why"
    assert of_cases(monkeypatch, a=chance, b=PROVED).probability is None
    assert decide([]).kind == PROVED


X = sp.Symbol("x", real=True)


def under(*ranges, probability=None, law=None, relation=None):
    condition = Condition("c", relation, (X, list(ranges)), law)
    return Proof(CONDITIONAL, "c", probability=probability, condition=condition)


LOW, HIGH, POINT = Range(None, Fraction(1)), Range(Fraction(0), None), Range(Fraction(1), None)


def test_conditions_of_all_cases_hold_together_where_they_overlap():
    found = _jointly([under(LOW), under(HIGH)], 0)
    assert found.kind == CONDITIONAL and found.condition.region == (X, [Range(Fraction(0), Fraction(1))])
    assert found.because == "true when 0 <= x <= 1" and found.condition.relation is None
    never = _jointly([under(Range(None, Fraction(-1))), under(HIGH)], 1)
    assert never.kind == REFUTED and never.sure and never.because.startswith("each under")
    assert _jointly([under(Range(None, Fraction(-1))), under(HIGH)], 0).because.startswith("every item under")
    assert _jointly([under(LOW), Proof(CONDITIONAL, "c", condition=Condition("d"))], 0).kind == UNKNOWN
    assert _jointly([under(LOW), Proof(CONDITIONAL, "c")], 0).kind == UNKNOWN
    other = Proof(CONDITIONAL, "c", condition=Condition("c", None, (sp.Symbol("y"), [LOW])))
    assert _jointly([under(LOW), other], 0).kind == UNKNOWN


def test_conditions_that_exclude_each_other_refute_a_claim(monkeypatch):
    apart = {"a": under(Range(None, Fraction(-1))), "b": under(HIGH)}
    assert of_cases(monkeypatch, **apart).because.startswith("every item under its own condition")
    assert of_cases(monkeypatch, **apart, d=PROVED).because.startswith("each under its own condition")


def test_equal_conditions_keep_their_relation():
    same = _jointly([under(LOW, relation="r"), under(LOW, relation="r")], 0)
    assert same.condition.relation == "r"
    assert _jointly([under(LOW, relation="r"), under(HIGH, relation="r")], 0).condition.relation is None


def test_single_points_count_for_numbers_and_not_for_random_ones():
    assert _jointly([under(LOW), under(POINT)], 0).kind == CONDITIONAL
    law = (sp.Integer(1), sp.Integer(4))
    assert _jointly([under(LOW, probability=0.5, law=law), under(POINT, probability=0.5, law=law)], 0).kind == REFUTED
    chance = _jointly([under(LOW, probability=0.5, law=law), under(HIGH, probability=0.5, law=law)], 0)
    wanted = stats.norm(1, 2).cdf(1) - stats.norm(1, 2).cdf(0)
    assert chance.kind == CONDITIONAL and f"probability {wanted:.4f}" in chance.because and chance.condition.law == law
    assert _jointly([under(LOW, probability=0.5), under(HIGH, probability=0.5)], 0).kind == UNKNOWN


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (Unsupported("too odd"), UNKNOWN),
        (TooLarge("too large"), UNKNOWN),
        (NeedSign(X), UNKNOWN),
        (ZeroDivisionError(), UNKNOWN),
        (TypeError(), UNKNOWN),
        (WrongShape((1, 1), "d beside m", False), REFUTED),
    ],
    ids=str,
)
def test_what_cannot_be_decided_is_unknown_and_wrong_shapes_are_refuted(monkeypatch, raised, kind):
    def fail(context):
        raise raised

    monkeypatch.setattr(prover, "_by_kind", fail)
    found = prover._decide(None)
    assert found.kind == kind and found.sure == (kind == REFUTED)


def test_hard_mistakes_are_told_to_the_writer(monkeypatch):
    for raised in (WrongShape((1, 1), "a number beside a vector", True), Malformed((1, 1), "a", "b")):
        monkeypatch.setattr(prover, "_by_kind", lambda context, raised=raised: (_ for _ in ()).throw(raised))
        with pytest.raises(Malformed):
            prover._decide(None)


KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"
TOKENS = "x_1 = u_1, x_2 = u_2"
PAIR = "u_1, u_2 orthonormal"


@pytest.mark.parametrize(
    ("given", "let", "then", "kind"),
    [
        (KEYS, "q = t*k_a", "alpha is a probability distribution", PROVED),
        ("k_1..k_n free, q free, n >= 3", "", "alpha is a probability distribution", PROVED),
        (KEYS, "q_1 = t*k_a, q_2 = k_b", "alpha_1 is a probability distribution", PROVED),
        (f"{KEYS}, b masked", "q = t*k_a", "alpha is a probability distribution", PROVED),
        (KEYS, "q = t*k_a", "alpha_a > 1/n", PROVED),
        (KEYS, "q = t*k_a", "alpha_a -> 1 as t -> oo", PROVED),
        (f"{KEYS}, t -> oo", "q = t*k_a", "alpha_a = 1", PROVED),
        (f"{KEYS}, b masked", "q = t*k_a", "no real r makes r = r + 1", UNKNOWN),
        (KEYS, "q = t*k_a", "no real r makes r = r + 1", PROVED),
        ("gamma ~ N(0, 1)", "", "E[gamma] = 0", PROVED),
        ("gamma ~ N(0, 1), gamma > 0", "", "E[gamma] = 0", UNKNOWN),
        ("gamma ~ N(0, 1), gamma < 2", "", "P[gamma > 0] = 1/2", UNKNOWN),
        ("gamma ~ N(0, 1), s real, gamma > s", "", "E[gamma] = 0", UNKNOWN),
        ("gamma ~ N(0, 1), gamma > 0", "", "gamma + 1 > 0", PROVED),
    ],
)
def test_statements_by_their_kind(given, let, then, kind):
    assert outcome(given, let, then).kind == kind


def test_masked_weights_are_positive_or_zero_and_said_to_be():
    said = outcome(f"{KEYS}, b masked", "q = t*k_a", "alpha is a probability distribution")
    plain = outcome(KEYS, "q = t*k_a", "alpha is a probability distribution")
    assert "where a mask hides" in said.because and "mask" not in plain.because
    assert any("mask" in s.text for s in said.steps) and not any("mask" in s.text for s in plain.steps)
    assert any(r"\text{or}" in s.latex for s in said.steps) and not any(r"\text{or}" in s.latex for s in plain.steps)


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (KEYS, "q = t*k_a", "c is a probability distribution"),
        (KEYS, "q = t*k_a", "alpha_2 is a probability distribution"),
        (KEYS, "q = t*k_a", "c is permutation equivariant"),
        (PAIR, TOKENS, "x is permutation equivariant"),
    ],
)
def test_statements_about_what_is_not_there_are_malformed(given, let, then):
    with pytest.raises(Malformed):
        outcome(given, let, then)


@pytest.mark.parametrize(
    ("given", "let", "kind"),
    [
        (PAIR, TOKENS, PROVED),
        (f"{PAIR}, causal mask", TOKENS, UNKNOWN),
        (PAIR, f"{TOKENS}, Q = 2*I", PROVED),
        (PAIR, f"{TOKENS}, V = x_1*x_1'", UNKNOWN),
        (PAIR, f"{TOKENS}, K = u_1*u_2'", PROVED),
        (PAIR, f"{TOKENS}, q_1 = u_1", UNKNOWN),
    ],
)
def test_outputs_are_equivariant_unless_a_matrix_or_a_mask_knows_the_tokens(given, let, kind):
    assert outcome(given, let, "c is permutation equivariant").kind == kind
