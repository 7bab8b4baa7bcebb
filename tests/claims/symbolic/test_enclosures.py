"""Signs of constants by ball arithmetic, against mpmath with more digits than the balls have."""

import random

import mpmath
import pytest
import sympy as sp
from flint import ctx

from qkv.claims.symbolic.enclosures import _is_algebraic, constant_sign, nonzero_sign

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


@pytest.mark.parametrize(
    ("expr", "at", "wanted"),
    [
        (sp.log(x), 0, None),
        (sp.log(x), -1, None),
        (sp.log(x), "1/2", "-"),
        (sp.log(x), 2, "+"),
        (sp.sqrt(x), "1/4", "+"),
        (sp.sqrt(x) - 1, "1/4", "-"),
        (sp.sqrt(x), 0, None),
        (sp.sqrt(x), -1, None),
        (1 / sp.sqrt(x), "1/4", "+"),
        (x**-3, -2, "-"),
        (x**-2, 0, None),
        (x**3, -2, "-"),
        (x**2, "-1/2", "+"),
        (x**x, "1/2", "+"),
        (sp.erf(x), "-1/9", "-"),
        (sp.Abs(x) - 3, -5, "+"),
        (sp.exp(x) - 1, "-1/9", "-"),
        (sp.pi - 3, 0, "+"),
        (sp.pi * x - sp.Rational(22, 7), 1, "-"),
        (sp.E - sp.Rational(27182818, 10**7), 0, "+"),
        (sp.E - sp.Rational(27182819, 10**7), 0, "-"),
        (2 * x * sp.sqrt(2) - 3, 1, "-"),
        (sp.sin(x), 1, None),
        (sp.I * x, 1, None),
        (x + sp.Symbol("y"), 1, None),
    ],
    ids=str,
)
def test_signs_at_points(expr, at, wanted):
    assert nonzero_sign(expr, {x: sp.Rational(at)}) == wanted


def test_precision_rises_until_the_sign_shows_and_is_put_back():
    before = ctx.prec
    tiny = sp.sqrt(2) - sp.Rational(int(sp.sqrt(2).evalf(250) * 10**200), 10**200)  # about 1e-201: 700 bits
    assert nonzero_sign(tiny, {}) == "+" and ctx.prec == before
    with pytest.raises(AttributeError):
        nonzero_sign(None, {})
    assert ctx.prec == before


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.Rational(1, 2), "+"),
        (sp.Integer(-3), "-"),
        (sp.Integer(0), "0"),
        (sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6), "0"),
        (sp.cbrt(7 + 5 * sp.sqrt(2)) - 1 - sp.sqrt(2), "0"),
        (1 / (sp.sqrt(2) - 1) - sp.sqrt(2) - 1, "0"),
        (sp.log(6) - sp.log(2) - sp.log(3), None),  # 0, but not algebraic
    ],
    ids=str,
)
def test_signs_of_rational_and_algebraic_constants(expr, wanted):
    assert constant_sign(expr) == wanted


def test_what_is_algebraic():
    for expr, wanted in [
        (sp.Integer(2), True),
        (sp.sqrt(2), True),
        (sp.sqrt(2) + sp.cbrt(3) * 5, True),
        (2 ** sp.sqrt(2), False),
        (sp.sqrt(sp.pi), False),
        (sp.E, False),
        (sp.log(2), False),
        (1 + sp.log(2), False),
    ]:
        assert _is_algebraic(expr) is wanted, expr


def test_only_constants_of_few_roots_are_compared_with_zero():
    roots = [sp.sqrt(k) for k in (2, 3, 5, 7)]
    four = sum(roots) - sp.Add(*roots)
    assert four == 0
    one = sp.sqrt(2 + sp.sqrt(3)) - (sp.sqrt(6) + sp.sqrt(2)) / 2  # 4 roots
    assert len(one.atoms(sp.Pow)) == 4 and constant_sign(one) == "0"
    more = sp.sqrt(5) * one + sp.sqrt(2 + sp.sqrt(3)) - (sp.sqrt(6) + sp.sqrt(2)) / 2  # 5 roots
    assert len(more.atoms(sp.Pow)) > 4 and constant_sign(more) is None
