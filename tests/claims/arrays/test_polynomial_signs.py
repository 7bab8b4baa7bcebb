"""Signs of polynomials in one variable, against dense sampling."""

import random

import pytest
import sympy as sp

from qkv.claims.arrays.facts import Fact
from qkv.claims.arrays.polynomial_signs import polynomial_sign

X = sp.Symbol("x", real=True)
ENDS = [None, sp.Integer(-1), sp.Integer(0), sp.Rational(1, 2), sp.Integer(1), sp.Integer(2)]


def bounds(rng):
    """Facts for an interval that holds more than one number, and its points."""
    low, high = rng.choice(ENDS), rng.choice(ENDS)
    while low is not None and high is not None and low >= high:
        low, high = rng.choice(ENDS), rng.choice(ENDS)
    opens = [rng.random() < 0.5 for _ in range(2)]
    facts = [Fact(2 * (X - low), "low", opens[0])] if low is not None else []
    facts += [Fact(high - X, "high", opens[1])] if high is not None else []
    first, last = (low if low is not None else -5), (high if high is not None else 5)
    points = [first + (last - first) * sp.Rational(j, 24) for j in range(25)]
    points = points[1:] if low is not None and opens[0] else points
    return facts, points[:-1] if high is not None and opens[1] else points


def test_signs_are_those_of_dense_points():
    rng, shown = random.Random(3), 0
    for _ in range(80):
        facts, points = bounds(rng)
        roots = [rng.choice(ENDS[1:]) for _ in range(rng.randint(0, 3))]
        value = sp.Integer(rng.choice([1, 1, -1]))
        for root in roots:
            value *= (X - root) ** rng.choice([1, 2, 3])
        value = sp.expand(value * rng.choice([sp.Integer(1), X**2 + 1, X**2 + X + 1]))
        poly = sp.Poly(value, X)
        least = min(poly.eval(p) for p in points)
        for strict in (False, True):
            if polynomial_sign(value, facts, strict) is not None:
                shown += 1
                assert least > 0 if strict else least >= 0, (value, facts, strict)
            elif value.has(X):
                roots_inside = [r for r in roots if r in points]
                assert least < 0 or (strict and roots_inside) or any(r not in points for r in roots), (value, facts)
    assert shown > 15


@pytest.mark.parametrize(
    ("value", "strict", "wanted"),
    [
        (2 * sp.cos(X) ** 4 - 2 * sp.cos(X) ** 2 + sp.Rational(1, 2), False, True),
        (sp.cos(X) ** 2 - 3 * sp.cos(X) + 2, False, True),
        (sp.cos(X) ** 2 - 3 * sp.cos(X) + 2, True, False),
        (2 - sp.sin(X), True, True),
        (1 - 2 * sp.sin(X), False, False),
        (sp.exp(2 * X) - 2 * sp.exp(X) + 1, False, True),
        (sp.exp(2 * X) - 2 * sp.exp(X) + 1, True, False),
        (sp.exp(X) + 1, True, True),
        (sp.exp(X) - 1, False, False),
        (sp.exp(X) - X, True, False),  # two generators
        (sp.sin(X) ** 2 + X, False, False),
        (X**4 - 2 * X**2 + 1, False, True),
    ],
)
def test_generators_lie_in_their_own_ranges(value, strict, wanted):
    assert (polynomial_sign(value, [], strict) is not None) == wanted


def test_a_point_is_an_interval_too():
    facts = [Fact(X - 1, "low"), Fact(1 - X, "high")]
    assert polynomial_sign((X - 1) ** 2 + X - 1, facts, False) and not polynomial_sign(X**2 - 1, facts, True)


def test_exponentials_that_are_not_multiples_of_each_other_are_left_alone():
    for value in (sp.exp(2 * X) - sp.exp(3 * X) + 1, sp.exp(X) + sp.exp(-X) - 2, sp.exp(2 * X) + sp.exp(X**2)):
        assert polynomial_sign(value, [], False) is None
