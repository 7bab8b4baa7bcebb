"""Signs of constants by ball arithmetic, against mpmath with more digits than the balls have."""

import random

import mpmath
import pytest
import sympy as sp

from qkv.claims.symbolic.enclosures import constant_sign, nonzero_sign

x = sp.Symbol("x", real=True)


def constant(rng, depth):
    if depth == 0:
        return rng.choice([sp.Rational(rng.randrange(-9, 10), rng.randrange(1, 9)), sp.sqrt(rng.randrange(2, 9)), sp.E])
    one, other = constant(rng, depth - 1), constant(rng, depth - 1)
    kind = rng.randrange(6)
    if kind == 0:
        return sp.exp(one)
    if kind == 1:
        return sp.log(one**2 + 1)
    return one + other if kind < 4 else one * other


def test_signs_of_random_constants():
    rng = random.Random(3)
    for _ in range(150):
        expr = constant(rng, 3)
        with mpmath.workdps(80):
            value = sp.lambdify([], expr, "mpmath")()
        said = constant_sign(expr)
        assert said in ((None, "0") if abs(value) < 1e-60 else ("+" if value > 0 else "-",)), expr


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.sqrt(3 + 2 * sp.sqrt(2)) - 1 - sp.sqrt(2), "0"),
        ((sp.sqrt(2) - sp.Rational("1.41421356")) ** 3, "+"),  # 1e-26, not 0
        (sp.exp(-100), "+"),
        (sp.exp(100) + 1 - sp.exp(100), "+"),
        (sp.exp(-1) - sp.Rational(1, 2), "-"),
        (sp.log(-2), None),
        (sp.sqrt(-2), None),
    ],
)
def test_constants_near_zero_and_without_a_real_value(expr, wanted):
    assert constant_sign(sp.sympify(expr)) == wanted


def test_a_sign_at_a_point_and_a_pole():
    assert nonzero_sign(x - 1, {x: sp.Integer(2)}) == "+"
    assert nonzero_sign(x - 1, {x: sp.Integer(1)}) is None
    assert nonzero_sign(1 / x, {x: sp.Integer(0)}) is None
    assert nonzero_sign(x, {}) is None
