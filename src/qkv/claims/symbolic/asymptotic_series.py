"""Logarithms, roots and exponentials of expressions that move, by their series with a bounded remainder.

With f = c g (1 + u), where c g is the leading term of f and u goes to 0,

    log f     = log c + log g + u - u²/2 + ... + ρ u^k
    f^p       = c^p g^p (1 + p u + ... + ρ u^k)          for c > 0
    e^(a + u) = e^a (1 + u + u²/2 + ... + ρ u^k)

far out, where ρ is bounded: it goes to the next coefficient of the series. ρ is an unknown `Remainder`, and a limit
that depends on one is not decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy as sp

from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.growth_terms import CONSTANT, Growth, Terms, compare, terms_of
from qkv.claims.symbolic.sign_analysis import Assumptions, sign
from qkv.claims.symbolic.unknowns import Remainder

MAX_SERIES_TERMS = 12  # of u, when higher powers of it are needed


@dataclass
class Series:
    """Rewrites an expression in x, which goes to infinity, as a quotient of sums of terms with a growth.

    Attributes:
        x: The number that goes to infinity, a positive symbol.
        assumptions: What is known of the other numbers.
        loose: Unknowns that may move with x.
        order: How many terms of each series are kept before the remainder.
    """

    x: Scalar
    assumptions: Assumptions
    loose: frozenset[Scalar]
    order: int
    count: int = field(default=0)

    def rewritten(self, expr: Scalar) -> Scalar:
        """The expression with every logarithm, root and exponential of a sum replaced by its series."""
        x = self.x
        if expr == x or not expr.has(x):
            return expr
        if expr.is_Pow and expr.exp.has(x):
            if sign(expr.base, self.assumptions) != "+" and not expr.base.is_positive:
                raise Unsupported(f"a power that moves, of {expr.base}")
            return self.rewritten(sp.exp(sp.expand(expr.exp * sp.log(expr.base))))
        expr = expr.func(*(self.rewritten(one) for one in expr.args))
        if expr.is_Add or expr.is_Mul or expr in (x, sp.log(x)) or not expr.has(x):
            return expr
        if isinstance(expr, sp.log):
            return self._logarithm(expr.args[0])
        if isinstance(expr, sp.exp):
            return self._exponential(sp.expand(expr.args[0]))
        if isinstance(expr, sp.Abs):
            inside = self._parts(expr.args[0])
            (_, one), (_, two) = inside.leading(inside.top), inside.leading(inside.bottom)
            return expr.args[0] if self._side(one) == self._side(two) else -expr.args[0]
        if expr.is_Pow:
            whole = expr.exp.is_Integer or expr.base == x
            return expr if whole else self._root(expr.base, expr.exp)
        raise Unsupported(f"the growth of {expr}")

    def _parts(self, expr: Scalar) -> Terms:
        return terms_of(expr, self.x, self.assumptions, self.loose)

    def _side(self, coefficient: Scalar) -> str | None:
        return sign(coefficient, self.assumptions)

    def _split(self, parts: Terms, terms: dict[Growth, Scalar]) -> tuple[Scalar, Growth, Scalar]:
        """c, g and u with c g (1 + u) the sum of some terms, where u goes to 0."""
        growth, coefficient = parts.leading(terms)
        u: Scalar = sp.Integer(0)
        for other, factor in terms.items():
            if compare(other, growth, self.assumptions) == "-":
                u += factor / coefficient * other.over(growth).expression(self.x)
        return coefficient, growth, u

    def _quotient(self, expr: Scalar) -> tuple[Scalar, Growth, Scalar, Scalar]:
        """c, g, u and w with c g (1 + u)/(1 + w) the value of an expression, and c > 0."""
        parts = self._parts(expr)
        one, high, u = self._split(parts, parts.top)
        two, low, w = self._split(parts, parts.bottom)
        if self._side(one) != self._side(two):
            raise Unsupported("a logarithm or root of a negative number")
        return one / two, high.over(low), u, w

    def _logarithm(self, expr: Scalar) -> Scalar:
        c, growth, u, w = self._quotient(expr)
        if growth.logs != 0:
            raise Unsupported("a logarithm of a logarithm")
        exponent = sum((rate * self.x**degree for degree, rate in growth.exponent), sp.Integer(0))
        whole = sp.log(c) + exponent + growth.power * sp.log(self.x)
        rates = [sp.Rational((-1) ** (k + 1), k) for k in range(1, self.order + 1)]
        return whole + self._sum([sp.Integer(0), *rates], u) - self._sum([sp.Integer(0), *rates], w)

    def _root(self, expr: Scalar, power: Scalar) -> Scalar:
        c, growth, u, w = self._quotient(expr)
        lead = c**power * _power(growth, power).expression(self.x)
        return (
            lead
            * self._sum([sp.ff(power, k) / sp.factorial(k) for k in range(self.order + 1)], u)
            * self._sum([sp.ff(-power, k) / sp.factorial(k) for k in range(self.order + 1)], w)
        )

    def _exponential(self, exponent: Scalar) -> Scalar:
        """Terms that are polynomials in x or multiples of log(x) stay in the exponent; the others must go to 0."""
        kept: Scalar = sp.Integer(0)
        gone: Scalar = sp.Integer(0)
        for term in sp.Add.make_args(exponent):
            rate = term.coeff(sp.log(self.x)) if term.has(sp.log(self.x)) else None
            if term.is_polynomial(self.x) or (rate is not None and not rate.has(self.x)):
                kept += term
            else:
                gone += term
        if gone == 0:
            return sp.exp(kept)
        parts = self._parts(gone)
        low, _ = parts.leading(parts.bottom)
        if any(compare(growth.over(low), CONSTANT, self.assumptions) != "-" for growth in parts.top):
            raise Unsupported(f"the growth of e^({gone})")
        return sp.exp(kept) * self._sum([sp.Rational(1, sp.factorial(k)) for k in range(self.order + 1)], gone)

    def _sum(self, rates: Sequence[Scalar], u: Scalar) -> Scalar:
        """The series in u with these coefficients, and its remainder."""
        if u == 0:
            return rates[0]
        if len(rates) > 2 and len(sp.Add.make_args(u)) > MAX_SERIES_TERMS:
            raise Unsupported("a series of many terms")
        self.count += 1
        rest = Remainder(self.count) * u ** len(rates)
        return sum((rate * u**k for k, rate in enumerate(rates)), rest)


def _power(growth: Growth, power: Scalar) -> Growth:
    exponent = tuple((degree, sp.expand(power * rate)) for degree, rate in growth.exponent)
    if not (growth.logs == 0 or power.is_Rational):
        raise NeedSign(power)
    return Growth(exponent, sp.expand(power * growth.power), growth.logs * power if growth.logs else growth.logs)
