"""Signs by longer arguments: known inequalities, near misses, and a comparison with dense sampling."""

from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.factors import Factor
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.symbolic.sign_arguments import argued_sign
from qkv.claims.symbolic.unknowns import InnerProduct

x, y = sp.symbols("x y", real=True)
t = sp.Symbol("t", positive=True)
ANY, POSITIVE = Range(), Range(Fraction(0), None, True)
UNIT, CLOSED = Range(Fraction(0), Fraction(1), True, True), Range(Fraction(0), Fraction(1))


def signed(expr, **ranges):
    known = {"x": x, "y": y, "t": t}
    return argued_sign(sp.sympify(expr), Assumptions({known[name]: where for name, where in ranges.items()}))


@pytest.mark.parametrize(
    ("expr", "ranges", "wanted"),
    [
        (sp.exp(t) - 1 - t, {"t": POSITIVE}, "+"),
        (sp.exp(t) - 1 - t - t**2 / 2, {"t": POSITIVE}, "+"),
        (t - 1 - sp.log(t), {"t": POSITIVE}, ">="),
        (sp.log(1 + t) - t / (1 + t), {"t": POSITIVE}, "+"),
        (sp.exp(x) - sp.E * x, {"x": ANY}, ">="),
        (sp.exp(x) - 1 - x, {"x": ANY}, ">="),
        (x * (sp.exp(x) - 1), {"x": ANY}, ">="),
        (x**2 + x * y + y**2, {"x": ANY, "y": ANY}, ">="),
        (x**2 + y**2 + 1 - x * y - x - y, {"x": ANY, "y": ANY}, ">="),
        (sp.sqrt(x**2 + y**2) - x, {"x": ANY, "y": ANY}, ">="),
        (sp.sqrt(x**2 + 1) - x, {"x": ANY}, "+"),
        (sp.sqrt(t) - t, {"t": UNIT}, "+"),
        (sp.log(t), {"t": UNIT}, "-"),
        (1 + sp.erf(x), {"x": ANY}, "+"),
        (sp.erf(t), {"t": POSITIVE}, "+"),
        (sp.exp(x) - sp.exp(x**2), {"x": UNIT}, "+"),
        (sp.exp(x) - sp.exp(x**2), {"x": CLOSED}, ">="),
        (2 * sp.exp(-2) - t * sp.exp(-t), {"t": Range(Fraction(2), None)}, ">="),
    ],
)
def test_known_inequalities(expr, ranges, wanted):
    assert signed(expr, **ranges) == wanted
    assert signed(-expr, **ranges) == {"+": "-", "-": "+", ">=": "<="}[wanted]


@pytest.mark.parametrize(
    ("expr", "ranges"),
    [
        (sp.exp(t) - 1 - sp.Rational(101, 100) * t, {"t": POSITIVE}),
        (sp.exp(t) - 1 - t - sp.Rational(51, 100) * t**2, {"t": POSITIVE}),
        (t - sp.Rational(99, 100) - sp.log(t) - sp.Rational(2, 100), {"t": POSITIVE}),
        (sp.exp(x) - sp.Rational(272, 100) * x, {"x": ANY}),
        (x**2 + sp.Rational(201, 100) * x * y + y**2, {"x": ANY, "y": ANY}),
        (sp.sqrt(x**2 + y**2) - x - y, {"x": ANY, "y": ANY}),
        (sp.erf(x), {"x": ANY}),
        (sp.sqrt(t) - t, {"t": POSITIVE}),
        (sp.log(t), {"t": POSITIVE}),
        (sp.exp(x) - sp.exp(x**2), {"x": ANY}),
        (1 / x - 1, {"x": ANY}),
        (sp.log(x) + 1, {"x": ANY}),
    ],
)
def test_no_sign_is_found_where_there_is_none(expr, ranges):
    assert signed(expr, **ranges) is None


def test_products_of_vectors_are_bounded_by_their_norms():
    u, w = Factor("u", "vector", "d"), Factor("w", "vector", "d")
    uu, uw, ww = InnerProduct(u, u), InnerProduct(u, w), InnerProduct(w, w)
    none = Assumptions()
    assert argued_sign(uu * ww - uw**2, none) == ">="
    assert argued_sign(sp.sqrt(uu) * sp.sqrt(ww) - uw, none) == ">="
    assert argued_sign(sp.sqrt(uu) + sp.sqrt(ww) - sp.sqrt(uu + 2 * uw + ww), none) == ">="
    assert argued_sign(uu * ww - 2 * uw**2, none) is None
    assert argued_sign(sp.sqrt(uu + 2 * uw + ww) - sp.sqrt(uu), none) is None


def _random_expression(rng):
    """A sum of a few products of simple functions of x and t with small coefficients."""
    parts = [x, t, x**2, t**2, sp.exp(x), sp.exp(-t), sp.log(1 + t), sp.sqrt(1 + x**2), sp.erf(x), sp.Integer(1), x * t]
    total = sp.Integer(0)
    for _ in range(rng.randint(2, 4)):
        total += (
            sp.Rational(rng.randint(-4, 4), rng.choice([1, 2])) * rng.choice(parts) * rng.choice([1, 1, *parts[:6]])
        )
    return total


@pytest.mark.parametrize(("count", "least"), [(8, 1), pytest.param(60, 8, marks=pytest.mark.slow)])
def test_signs_agree_with_dense_sampling(count, least):
    import random

    rng = random.Random(5)
    found = 0
    ranges = {"x": Range(Fraction(-1), Fraction(2)), "t": POSITIVE}
    xs = [-1, -0.999, -0.7, -0.4, -0.1, -1e-6, 0, 1e-6, 0.03, 0.2, 0.5, 0.8, 1, 1.3, 1.7, 2]
    ts = [1e-9, 1e-4, 0.01, 0.1, 0.3, 0.7, 1, 1.5, 2.3, 4, 7, 20, 100]
    for _ in range(count):
        expr = _random_expression(rng)
        sign = signed(expr, **ranges) if expr != 0 else None
        if sign is None:
            continue
        found += 1
        value = sp.lambdify((x, t), expr, modules="mpmath")
        for a in xs:
            for b in ts:
                got = value(mpmath.mpf(a), mpmath.mpf(b))
                held = {"+": got > 0, "-": got < 0, ">=": got >= -1e-12, "<=": got <= 1e-12, "0": abs(got) < 1e-12}
                assert held[sign], (expr, sign, a, b, got)
    assert found >= least
