"""The search for violations: constants that are slightly too small are found, true orders are not refuted."""

import pytest

import qkv
from qkv.claims.arrays.context import build_array_context
from qkv.claims.arrays.violation_search import nearest_to_violation
from qkv.claims.syntax.markdown import read


def nearest(given, then):
    (claim,) = read(f"```claim x\ngiven {given}\nthen {then}\n```")
    return nearest_to_violation(build_array_context(claim), claim.statement.core)


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("z, y in R^n", "norm(softmax(z) - softmax(y)) <= 0.49*norm(z - y)"),
        ("x, t real", "abs(tanh(x) - tanh(t)) <= 0.99*abs(x - t)"),
        ("x, t real", "abs(cos(x) - cos(t)) <= 0.99*abs(x - t)"),
        ("x real", "sin(x) < 0.9999"),
        ("x real", "abs(sin(x) + cos(x)) <= 1.414"),
        ("r in simplex^n", "entropy(r) <= 0.999*log(n)"),
        ("S symmetric, z in R^d", "z'*S*z <= 0.99*norm(S)*norm(z)^2"),
    ],
)
def test_constants_that_are_nearly_right_are_violated(given, then):
    assert nearest(given, then).violation is not None


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("z, y in R^n", "norm(softmax(z) - softmax(y)) <= norm(z - y)/2"),
        ("x real", "sin(x) <= 1"),
        ("x real", "cos(x) >= 1 - x^2/2"),
        ("r in simplex^n", "entropy(r) <= log(n)"),
        ("x > 0", "x + 1/x >= 2"),
        ("0 <= x <= 1", "x^2 <= x"),
        ("r, s in simplex^n", "norm(r - s)^2 <= 2"),
    ],
)
def test_tight_bounds_are_not_violated(given, then):
    assert nearest(given, then).violation is None


def test_an_irrational_tie_is_seen():
    found = nearest("x real", "(x^3 - x - 1)^2 > 0")
    assert found.violation is None and found.tie
    assert float(found.place.numbers["x"]) == pytest.approx(1.3247179572, abs=1e-6)


def test_an_unproved_order_with_a_tie_does_not_hold():
    verdicts = qkv.check("```claim x\ngiven x real\nthen (x^3 - x - 1)^2 > 0\nthen 3*sin(x) + 4*cos(x) < 5\n```")
    assert [v.verdict for v in verdicts] == ["undecided", "undecided"]
