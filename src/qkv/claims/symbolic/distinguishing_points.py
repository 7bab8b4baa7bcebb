"""Allowed points at which an expression is shown to differ from 0: a false identity, not one without a proof."""

from __future__ import annotations

import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.enclosures import nonzero_sign
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.symbolic.unknowns import InnerProduct, Remainder, Score, Statistic, Unknown

SHARES = tuple(sp.Rational(a, b) for a, b in ((3, 7), (5, 11), (2, 13), (11, 17), (4, 19), (15, 23), (7, 29), (26, 31)))
N_POINTS = 6


def differs(expr: Scalar, assumptions: Assumptions) -> bool:
    """Whether an expression is not 0 for some allowed values of its numbers; False means not shown."""
    expr = assumptions.put(expr)
    if expr.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        return False
    symbols = sorted(expr.free_symbols, key=str)
    if any(isinstance(s, Statistic | Remainder) for s in symbols):
        return False
    for k in range(N_POINTS if symbols else 1):
        at = {s: _value(s, assumptions, k, SHARES[(j + 3 * k) % len(SHARES)]) for j, s in enumerate(symbols)}
        if nonzero_sign(expr, at) is not None:
            return True
    return False


def _value(symbol: Scalar, assumptions: Assumptions, k: int, share: Scalar) -> Scalar:
    """One of several allowed values of a number or an unknown; products of different vectors are small, so that vectors
    with these products exist."""
    if isinstance(symbol, InnerProduct) and symbol.left == symbol.right:
        return 1 + share
    if isinstance(symbol, Score):
        return share / 20 * (-1) ** k
    if isinstance(symbol, Unknown) and symbol not in assumptions.ranges:
        return share  # gaps and sums are positive, factors lie in (0, 1]
    where = assumptions.ranges.get(symbol, Range())
    lo, hi = (None if end is None else sp.Rational(end.numerator, end.denominator) for end in (where.lo, where.hi))
    if where.whole:
        at = (lo if lo is not None else sp.Integer(0)) + k
        return at if hi is None else min(at, hi)
    if lo is not None and hi is not None:
        return lo + share * (hi - lo)
    if lo is not None or hi is not None:
        return lo + share * (k + 1) if lo is not None else hi - share * (k + 1)
    return share * (k + 1) * (-1) ** k
