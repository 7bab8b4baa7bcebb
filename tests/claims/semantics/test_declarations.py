"""Declarations: what each line of a claim adds to the context, and what is refused, with its place."""

from fractions import Fraction

import pytest
from claim_builders import claim_of, context_of

from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax.nodes import Malformed


def test_families_bases_and_single_vectors():
    context = context_of(
        "k_1..k_n orthonormal, u_a, u_b orthogonal of norm beta, q free, A, B orthonormal bases, x in R^m"
    )
    assert (context.families["k"].kind, context.families["k"].items) == ("orthonormal", None)
    assert (context.families["u"].kind, context.families["u"].items) == ("orthogonal", ("a", "b"))
    assert context.vectors == {"q": "d", "x": "m"}
    assert context.bases == {"A": "m", "B": "p"}
    assert not context.right_angles
    assert context.numbers["beta"] == Range(Fraction(0), None, True)
    assert context.numbers["n"] == Range(Fraction(1), None, whole=True)


@pytest.mark.parametrize(
    ("given", "name", "where"),
    [
        ("t > 0", "t", Range(Fraction(0), None, True)),
        ("0 < t <= 1/2", "t", Range(Fraction(0), Fraction(1, 2), True, False)),
        ("3 > t", "t", Range(None, Fraction(3), False, True)),
        ("t = 2", "t", Range(Fraction(2), Fraction(2))),
        ("n > 3", "n", Range(Fraction(4), None, whole=True)),
        ("t >= 1 + 1/2*2", "t", Range(Fraction(2), None)),
        ("t > -1, t < 4, t >= 0", "t", Range(Fraction(0), Fraction(4), False, True)),
        ("t -> oo", "t", Range()),
    ],
)
def test_ranges_are_the_meet_of_all_conditions(given, name, where):
    assert context_of(given).numbers[name] == where


def test_conditions_between_numbers_and_between_scores_are_kept():
    context = context_of("k_1..k_n free, q free, s > t, k_j'q - k_i'q >= m for i != j")
    assert [str(r.ops[0]) for r in context.number_conditions] == [">"]
    assert context.score_conditions[0].quantifier.but == ("j",)
    assert context.numbers["m"] == Range()
    assert context.items == ("j",)


def test_distributions_of_keys_and_of_numbers():
    context = context_of("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), gamma ~ N(1, 1/2)", "", "gamma > 0")
    assert set(context.noise) == {"i"} and set(context.random) == {"gamma"}
    assert context.numbers["eps"] == Range(Fraction(0), None, True)


def test_a_condition_of_the_statement_narrows_its_range():
    assert context_of("t real", "", "t > 0 when t > 1").numbers["t"].lo == 1


@pytest.mark.parametrize(
    ("given", "let", "then", "message"),
    [
        ("t real", "t = 1", "t = 1", "which is given"),
        ("t > 0", "s = 1, s = 2", "s = 1", "a second definition"),
        ("t > 0", "alpha = 1", "t > 0", "this one is built in"),
        ("t > 1, t < 0", "", "t > 0", "holds no number"),
        ("t != 1", "", "t > 0", "a condition with !="),
        ("k_1..k_n orthonormal, k_1..k_n free", "", "1 = 1", "second declaration"),
        ("k_1..k_9 orthonormal", "", "1 = 1", "1 to 6"),
        ("C orthonormal basis", "", "1 = 1", "A (d x m) or B"),
        ("A orthonormal bases at right angles", "", "1 = 1", "at right angles to nothing"),
        ("u_a, u_b orthogonal", "", "1 = 1", "without a norm"),
        ("t < oo", "", "t > 0", "infinity"),
        ("gamma ~ N(1, 0)", "", "gamma > 0", "a positive variance"),
        ("k_1..k_n orthonormal, n = 1", "q = k_a + k_b", "alpha_a = 1", "a larger n"),
        ("mu_1..mu_3 orthonormal, k_i ~ N(mu_i, eps*I), n >= 5", "q = mu_1", "alpha_1 = 1", "fewer vectors"),
        ("k_1..k_n orthonormal, k_a'q >= 1 for i != j", "", "1 = 1", "q"),
        ("k_1..k_n free, q free, alpha_a > 1/2", "", "alpha_a > 0", "a condition on alpha_a"),
        ("u_a, u_b orthonormal", "x_1 = u_a, x_3 = u_b", "alpha_{1,3} = 1", "x_1, x_2"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_malformed(given, let, then, message):
    with pytest.raises(Malformed, match="line") as refused:
        build_context(claim_of(given, let, then))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("given", "let"),
    [
        ("k_1..k_n orthonormal", "k_a = 2*k_b"),
        ("k_1..k_n free", "k_i = 2*q"),
        ("u_a, u_b orthogonal of norm 1", "u_a = 2*u_b"),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I)", "k_a = mu_a"),
        ("A orthonormal basis", "a_1 = 2*a_2"),
    ],
)
def test_a_definition_does_not_override_a_declared_vector(given, let):
    with pytest.raises(Malformed, match="which is given"):
        build_context(claim_of(f"{given}, t > 0", let, "t > 0"))
