"""Hypothesis strategies: exponential-rational expressions of the kinds that claims make."""

from __future__ import annotations

import sympy as sp
from build import number
from hypothesis import strategies as st

SIDES = ["(0, oo)", "[0, oo)", "(0, 1)", "[0, 1]", "(0, 1]", "[1/2, 1)", "(1, oo)", "[1, 3]", "(1, 3)", "[2, oo)"]
SIDES += ["(-1, 1)", "[-1, 1]", "(-oo, oo)", "(-oo, 0)", "(-oo, 0]", "(-2, -1]", "(-oo, 1)", "(-oo, -1]", "(-3, 0)"]
constants = st.sampled_from([-3, -2, -1, 1, 2, 3, sp.Rational(1, 2), sp.Rational(-3, 2), sp.Rational(1, 3)])
rates = st.sampled_from([-2, -1, 1, 2, sp.Rational(1, 2)])  # in exponents: higher ones make longer polynomials


@st.composite
def numbers(draw, sides=SIDES):
    """t > 0, s and beta in drawn ranges, n whole."""
    t = number("t", draw(st.sampled_from(["(0, oo)", "(0, oo)", "(0, oo)", "[0, oo)", "(1, oo)"])))
    s = number("s", draw(st.sampled_from(sides)))
    beta = number("beta", draw(st.sampled_from(sides)))
    n = number("n", draw(st.sampled_from(["[2, oo)", "[3, oo)", "[4, oo)", "[1, oo)"])), whole=True)
    return [t, s, beta, n]


@st.composite
def linear(draw, symbols):
    """c + d*x, or x*y."""
    x = draw(st.sampled_from(symbols))
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return x * draw(st.sampled_from(symbols))
    if kind == 1:
        return x
    if kind == 2:
        return draw(constants) * x
    return draw(constants) + draw(constants) * x


@st.composite
def exponents(draw, t, others):
    """What stands in an exponential: c*t, s*t, (s - 1)*t, t^2*s, s, a constant, and sums of two of them."""

    def one():
        kind = draw(st.integers(0, 7))
        if kind <= 1:
            return draw(rates) * t
        if kind == 2:
            return t * draw(st.sampled_from(others))
        if kind == 3:
            return t * (draw(rates) + draw(rates) * draw(st.sampled_from(others)))
        if kind == 4:
            return draw(rates) * t * draw(st.sampled_from([t, *others]))
        if kind == 5:
            return draw(st.sampled_from(others))
        if kind == 6:
            return draw(st.sampled_from([1, 2, -1, sp.Rational(1, 2), sp.Rational(-3, 2)]))
        return sp.Integer(0)

    total = one()
    return sp.expand(total + one()) if draw(st.booleans()) else sp.sympify(total)


@st.composite
def weights(draw, t, others, n):
    """e^a/(e^a + e^b + (n - 2) e^c), and its like."""
    scores = [draw(exponents(t, others)) for _ in range(draw(st.integers(1, 3)))]
    total = sum((sp.exp(s) for s in scores), sp.Integer(0))
    if draw(st.booleans()):
        total += (n - len(scores)) * sp.exp(draw(exponents(t, others)))
    return sp.exp(scores[0]) / total


@st.composite
def expressions(draw, given, depth=2):
    """Sums, products, quotients and powers of weights, exponentials, logarithms and polynomials."""
    t, s, beta, n = (one.symbol for one in given)
    others = [s, beta]
    if depth == 0:
        kind = draw(st.integers(0, 7))
        if kind == 0:
            return sp.sympify(draw(constants))
        if kind == 1:
            return draw(st.sampled_from([t, s, beta, n]))
        if kind == 2:
            return draw(linear([t, s, beta, n]))
        if kind == 3:
            return draw(weights(t, others, n))
        if kind == 4:
            plain = [t, n, 1 + t, 1 + t**2, n + t, s, 1 + s**2, sp.Integer(3), 1 + 1 / t, 2 - sp.exp(-t)]
            moving = sum((sp.exp(draw(exponents(t, others))) for _ in range(draw(st.integers(1, 2)))), sp.Integer(1))
            return sp.log(draw(st.sampled_from([*plain, moving, n + moving])))
        if kind == 5:
            return draw(linear([s, beta])) ** 2
        return sp.exp(draw(exponents(t, others)))
    one = draw(expressions(given, depth - 1))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return sp.exp(draw(exponents(t, others))) * one
    if kind == 1:
        return one ** draw(st.sampled_from([2, 2, 3, -1, -2, sp.Rational(1, 2)])) if one != 0 else one
    if kind == 2:
        return sp.sqrt(one**2)
    if kind == 3 and draw(st.booleans()):
        return draw(st.sampled_from([t, 1 + 1 / t, sp.Integer(2), t + 1])) ** draw(
            st.sampled_from([s, 1 / t, t, -t, beta])
        )
    other = draw(expressions(given, depth - 1))
    if kind <= 4:
        return one + other
    if kind <= 6:
        return one - other
    if kind <= 8 or other == 0:
        return one * other
    return one / other
