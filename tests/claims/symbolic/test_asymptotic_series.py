"""Series of logarithms, roots and exponentials: what the remainder must be for the value to be exact stays bounded."""

import mpmath
import pytest
import sympy as sp
from build import assume, number

from qkv.claims.symbolic.asymptotic_series import MAX_SERIES_TERMS, Series, _power
from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.growth_terms import Growth
from qkv.claims.symbolic.unknowns import Remainder

X, S, B = number("x", "(0, oo)"), number("s", "(0, 1)"), number("b")
x, s, b = X.symbol, S.symbol, B.symbol
HERE = assume(X, S, B)
HALF = sp.Rational(1, 2)


def series(order=2):
    return Series(x, HERE, frozenset(), order)


def remainder_at(expr, found, place):
    """The value that the one remainder must have at a place, with 400 digits."""
    (rho,) = [one for one in found.free_symbols if isinstance(one, Remainder)]
    poly = sp.expand(found - expr)
    slope = sp.diff(poly, rho)
    assert not slope.has(rho)
    with mpmath.workdps(400):
        rest, rate = (
            sp.lambdify(x, part.subs(s, HALF), "mpmath")(mpmath.mpf(place)) for part in (poly.subs(rho, 0), slope)
        )
        return -rest / rate


@pytest.mark.parametrize(
    ("expr", "next_rates"),
    [
        (sp.log(x + 1), ["-1/2", "1/3", "-1/4"]),
        (sp.log(2 * x**2 + 3 * x), ["-1/2", "1/3", "-1/4"]),
        (sp.log(sp.exp(x) + x), ["-1/2", "1/3", "-1/4"]),
        (sp.log(x / (x + 1)), ["-1/2", "1/3", "-1/4"]),
        (sp.log(x**s / (1 + x)), ["-1/2", "1/3", "-1/4"]),
        (sp.sqrt(x + 1), ["-1/8", "1/16", "-5/128"]),
        (sp.cbrt(x**2 + 5 * x), ["-1/9", "5/81", "-10/243"]),
        (1 / sp.sqrt(3 * x + 1), ["3/8", "-5/16", "35/128"]),
        (sp.sqrt(x / (x + 1)), ["3/8", "-5/16", "35/128"]),
        (sp.sqrt(sp.exp(2 * x) + 7), ["-1/8", "1/16", "-5/128"]),
        (sp.exp(1 / x), ["1/2", "1/6", "1/24"]),
        (sp.exp(x + 3 / x + 2 * sp.log(x)), ["1/2", "1/6", "1/24"]),
        (sp.exp(sp.exp(-x)), ["1/2", "1/6", "1/24"]),
    ],
    ids=str,
)
def test_the_remainder_goes_to_the_next_coefficient(expr, next_rates):
    for order, rate in zip((1, 2, 3), next_rates, strict=True):
        found = series(order).rewritten(expr)
        got = remainder_at(expr, found, 60 if expr.has(sp.exp(x), sp.exp(-x), sp.exp(2 * x)) else 10**7)
        assert abs(float(got) - float(sp.Rational(rate))) < 1e-4, (order, got)


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.log(3 * x**2), sp.log(3) + 2 * sp.log(x)),
        (sp.log(sp.exp(s * x + x**2) * x), s * x + x**2 + sp.log(x)),
        (sp.log(s * x), sp.log(s) + sp.log(x)),
        (sp.sqrt(9 * x**2), 3 * x),
        (sp.sqrt(4 * sp.exp(2 * x) * x), 2 * sp.exp(x) * sp.sqrt(x)),
        (sp.Abs(3 - x), x - 3),
        (sp.Abs(x - 3), x - 3),
        (sp.Abs((3 - x) / (1 + x)), (x - 3) / (1 + x)),
        (sp.Abs((x - 3) / (1 - x)), -(x - 3) / (1 - x)),
        (sp.Abs(s - x**2), x**2 - s),
        (sp.Abs(1 + s - x), x - 1 - s),
        (sp.Abs(s * x - x**2 + b), x**2 - s * x - b),
        (2**x, sp.exp(x * sp.log(2))),
        (x**-3 + x**s + 5, x**-3 + x**s + 5),
        (sp.log(s) * sp.sqrt(b), sp.log(s) * sp.sqrt(b)),
        (sp.exp(2 * x + s * sp.log(x)), sp.exp(2 * x + s * sp.log(x))),
        (sp.log(x) ** 2, sp.log(x) ** 2),
    ],
    ids=str,
)
def test_what_has_one_term_needs_no_series(expr, wanted):
    found = series().rewritten(expr)
    assert not any(isinstance(one, Remainder) for one in found.free_symbols)
    point = {x: sp.Rational(37, 3), s: sp.Rational(2, 5), b: sp.Integer(2)}
    assert abs(sp.N((found - wanted).subs(point), 40)) < 1e-30


@pytest.mark.parametrize(
    "expr",
    [
        sp.log(3 - x),
        sp.sqrt(1 - x),
        sp.log(sp.log(x)),
        sp.log(x * sp.log(x)),
        sp.exp(sp.sqrt(x)),
        sp.exp(sp.exp(x)),
        sp.exp(x * sp.log(x)),
        sp.exp(sp.log(x + 1) * x),
        sp.sin(x),
        sp.erf(x),
        (-2) ** x,
        b**x,
        x**x,
    ],
    ids=str,
)
def test_what_has_no_series_is_refused(expr):
    with pytest.raises((Unsupported, NeedSign)):
        series().rewritten(expr)


def test_the_sign_of_a_leading_term_must_be_known():
    for expr in (sp.log(b * x + 1), sp.sqrt(b * x + 1), sp.Abs(b * x - 1)):
        with pytest.raises((NeedSign, Unsupported)):
            series().rewritten(expr)


def test_remainders_are_told_apart():
    made = series()
    found = made.rewritten(sp.log(x + 1) + sp.sqrt(x + 2))
    assert made.count == 2 and {one.number for one in found.free_symbols if isinstance(one, Remainder)} == {1, 2}


def test_a_series_in_zero_is_its_first_coefficient_and_one_of_many_terms_is_refused():
    rates = [sp.Integer(5), sp.Integer(7), sp.Integer(11)]
    assert series()._sum(rates, sp.Integer(0)) == 5
    u = 1 / x
    assert sp.expand(series()._sum(rates, u) - 5 - 7 * u - 11 * u**2 - Remainder(1) * u**3) == 0
    many = sum(x ** (-k) for k in range(1, MAX_SERIES_TERMS + 1))
    assert series()._sum(rates, many).has(Remainder(1))
    with pytest.raises(Unsupported):
        series()._sum(rates, many + x ** (-MAX_SERIES_TERMS - 1))
    assert series()._sum(rates[:2], many + x ** (-MAX_SERIES_TERMS - 1)).has(Remainder(1))
    assert MAX_SERIES_TERMS == 12


def test_the_power_of_a_growth():
    growth = Growth(((2, sp.Integer(3)), (1, s)), sp.Integer(4), sp.Integer(2))
    found = _power(growth, HALF)
    assert found == Growth(((2, sp.Rational(3, 2)), (1, s / 2)), sp.Integer(2), sp.Integer(1))
    plain = Growth(((1, sp.Integer(1)),), sp.Integer(4), sp.Integer(0))
    assert _power(plain, s) == Growth(((1, s),), 4 * s, sp.Integer(0))
    with pytest.raises(NeedSign):
        _power(growth, s)


def test_leading_terms_are_split_off():
    made = series()
    parts = made._parts(3 * x**2 + s * x + 5)
    c, growth, u = made._split(parts, parts.top)
    assert (c, growth) == (3, Growth((), sp.Integer(2), sp.Integer(0)))
    assert sp.simplify(3 * x**2 * (1 + u) - (3 * x**2 + s * x + 5)) == 0
    c, growth, u, w = made._quotient((2 * x**3 + x) / (5 * x + 1))
    assert c == sp.Rational(2, 5) and growth.power == 2
    assert sp.simplify(c * x**2 * (1 + u) / (1 + w) - (2 * x**3 + x) / (5 * x + 1)) == 0
    assert made._quotient((1 - 2 * x) / (3 - x))[0] == 2  # two negative leading terms
