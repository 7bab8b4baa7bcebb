"""Means of polynomials times exponentials of normal numbers, in closed form.

For jointly normal X with means m and covariances S, and a linear function L = c + b'X,

    E[P(X) e^L] = e^(c + b'm + b'Sb/2) E[P(X + S b)],

and moments follow from Stein's identity E[X_i Q] = m_i E[Q] + sum_j S_ij E[dQ/dX_j], which holds for singular S too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.factors import Scalar

MAX_DEGREE = 12  # of a polynomial in normal numbers
MAX_MOMENTS = 400  # different products of normal numbers


@dataclass
class NormalNumbers:
    """Jointly normal numbers.

    Attributes:
        means: Of each number.
        covariance: Of two numbers, or the variance of one with itself.
    """

    means: Mapping[Scalar, Scalar]
    covariance: Callable[[Scalar, Scalar], Scalar]
    _known: dict[tuple[int, ...], Scalar] = field(default_factory=dict)

    def mean(self, expr: Scalar) -> Scalar | None:
        """The mean of a sum of polynomials times exponentials of linear functions; None for any other expression."""
        total: Scalar = sp.Integer(0)
        for term in sp.Add.make_args(sp.expand(expr)):
            parts = self._parts(term)
            if parts is None:
                return None
            coefficient, polynomial, exponent = parts
            line = self.linear(exponent)
            if line is None:
                return None
            constant, slopes = line
            shift = {
                x: x + sum((b * self.covariance(x, y) for y, b in slopes.items()), sp.Integer(0)) for x in self.means
            }
            tilt = constant
            for x, b in slopes.items():
                tilt += b * self.means[x] + sum((b * e * self.covariance(x, y) / 2 for y, e in slopes.items()), sp.S(0))
            moved = polynomial.xreplace(shift) if slopes else polynomial
            total += coefficient * sp.exp(sp.expand(tilt)) * self._moments(moved)
        return sp.expand(total, power_exp=False)

    def linear(self, expr: Scalar) -> tuple[Scalar, dict[Scalar, Scalar]] | None:
        """Constant and coefficients of a linear function of the numbers; None for any other expression."""
        found = sorted((s for s in expr.free_symbols if s in self.means), key=str)
        if not found:
            return expr, {}
        if not expr.is_polynomial(*found):
            return None
        poly = sp.Poly(expr, *found)
        if poly.total_degree() > 1:
            return None
        return poly.coeff_monomial(1), {s: poly.coeff_monomial(s) for s in found}

    def _parts(self, term: Scalar) -> tuple[Scalar, Scalar, Scalar] | None:
        """Constant factor, polynomial and exponent of a product; None if it has another factor."""
        coefficient, polynomial, exponent = sp.Integer(1), sp.Integer(1), sp.Integer(0)
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if not any(s in self.means for s in factor.free_symbols):
                coefficient *= factor
            elif isinstance(factor, sp.exp):
                exponent += factor.args[0]
            elif base in self.means and power.is_Integer and power > 0:
                polynomial *= factor
            else:
                return None
        return coefficient, polynomial, exponent

    def _moments(self, polynomial: Scalar) -> Scalar:
        if not any(s in self.means for s in polynomial.free_symbols):
            return polynomial
        symbols = list(self.means)
        poly = sp.Poly(polynomial, *symbols)
        if poly.total_degree() > MAX_DEGREE:
            raise TooLarge(f"a moment beyond the {MAX_DEGREE}th")
        return sum((c * self._moment(powers, symbols) for powers, c in poly.terms()), sp.Integer(0))

    def _moment(self, powers: tuple[int, ...], symbols: list[Scalar]) -> Scalar:
        """The mean of a product of powers of the numbers."""
        if not any(powers):
            return sp.Integer(1)
        if powers not in self._known:
            if len(self._known) >= MAX_MOMENTS:
                raise TooLarge("too many moments")
            first = next(j for j, power in enumerate(powers) if power)
            rest = tuple(p - (j == first) for j, p in enumerate(powers))
            total = self.means[symbols[first]] * self._moment(rest, symbols)
            for j, power in enumerate(rest):
                if power:
                    lower = tuple(p - (k == j) for k, p in enumerate(rest))
                    total += power * self.covariance(symbols[first], symbols[j]) * self._moment(lower, symbols)
            self._known[powers] = sp.expand(total)
        return self._known[powers]
