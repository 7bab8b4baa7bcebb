"""Refutations at values that are no fractions, and by continuity."""

import pytest

import qkv


def verdict(given, then, let=""):
    lets = f"let {let}\n" if let else ""
    return qkv.check(f"```claim x\ngiven {given}\n{lets}then {then}\n```")[0]


@pytest.mark.parametrize(
    ("then", "place"),
    [
        ("sin(x) = 0 iff x = 0", "x = pi"),
        ("p(x) = p(y) iff x = y", "y"),
        ("p(x) = p(y) iff sin(x) = sin(y)", "x"),
        ("norm(p(x) - p(y)) < 2", "pi"),
        ("cos(x) > -1", "x = pi"),
        ("(x - 1/3)^2 > 0", "x = 1/3"),
        ("(x^2 - 2)^2 > 0", "sqrt(2)"),
        ("(e^x - 3)^2 > 0", "log(3)"),
    ],
)
def test_places_that_no_fraction_is(then, place):
    found = verdict("x, y real, z in R^n", then, "p(x) = col(sin(x), cos(x))")
    assert found.verdict == "refuted"
    assert place in found.because or "continuous" in found.because


@pytest.mark.parametrize(
    ("given", "then", "wanted"),
    [
        ("x real", "e^x != 7", "refuted"),
        ("x real", "tanh(x) + abs(x) != 1/2", "refuted"),
        ("r in simplex^n", "entropy(r) != 1/2", "refuted"),
        ("z in R^n", "max(z) != lse(-z)", "refuted"),
        ("x real", "sign(x) != 1/2", "undecided"),  # it jumps from -1 to 1
        ("x real", "1/x + abs(x)*0 != 0", "undecided"),  # it has both signs and no zero
        ("U orthogonal matrix", "e^(trace(U)) != 3", "undecided"),  # matrices of two kinds
        ("x real", "cases(1 if x > 0, -1 otherwise) != 0", "undecided"),
        ("z in R^n, max(z) > 1", "e^(max(z)) != 7", "undecided"),  # conditions may cut the path
    ],
)
def test_two_signs_of_a_continuous_difference_are_a_zero(given, then, wanted):
    found = verdict(given, then)
    assert found.verdict in (wanted, "refuted" if wanted == "refuted" else "proved")


@pytest.mark.parametrize("then", ["sin(x)^2 + cos(x)^2 = 1", "cos(x) <= 1", "sin(x + 2*pi) = sin(x)"])
def test_true_statements_have_no_such_place(then):
    assert verdict("x real", then).verdict in ("proved", "holds")
