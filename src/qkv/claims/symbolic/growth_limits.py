"""Limits of exponential-rational expressions by growth: the fastest term of top and bottom decides."""

from __future__ import annotations

import sympy as sp

from qkv.claims.symbolic.asymptotic_series import Series
from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.growth_terms import RemainderLeads, compare, terms_of
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, ratio, sign

MAX_ROOT = 12  # of x, in x^(p/root)
SERIES_ORDERS = (1, 2, 3)  # terms of each series before its remainder, until the remainder does not decide


def limit(
    expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions, loose: frozenset[Scalar] = frozenset()
) -> Scalar:
    """The limit of an expression, possibly oo or -oo. `loose` are unknowns that may move with x."""
    expr = assumptions.put(sp.sympify(expr))
    if expr.free_symbols & loose and (to not in (sp.oo, -sp.oo) or not expr.has(x)):
        if is_zero(expr, assumptions):
            return sp.Integer(0)
        raise Unsupported("a sum or score that may move")
    if not expr.has(x):
        return expr
    if to == -sp.oo:
        y = sp.Symbol(x.name, real=True, positive=True)
        return limit(expr.subs(x, -y), y, sp.oo, assumptions, loose)
    if to != sp.oo:
        return _continuous(expr, x, to, assumptions)
    if not x.is_positive:  # a limit at infinity depends on positive values only
        y = sp.Symbol(x.name, positive=True)
        expr, x = expr.xreplace({x: y}), y
    root = _root(expr, x)
    if root > 1:  # x = y^root, so that powers are whole
        y = sp.Symbol(f"{x.name}~", positive=True)
        expr, x = sp.expand_log(expr.subs(x, y**root)), y
    return _far(expr, x, assumptions, loose)


def _continuous(expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions) -> Scalar:
    """The value at a place where top and bottom are continuous and the bottom is not 0."""
    got = ratio(expr)
    if any(not p.is_polynomial(x) for p in got.powers.values()):
        raise Unsupported(f"the limit of an exponent as {x} -> {to}")
    whole = [got.restored(part) for part in (got.top, got.bottom)]
    if any(power.exp.has(x) for part in whole for power in part.atoms(sp.Pow)):
        raise Unsupported(f"the limit of a power as {x} -> {to}")
    top, bottom = (sp.expand(part.subs(x, to)) for part in whole)
    for part in (top, bottom):
        if part.has(sp.zoo, sp.nan, sp.oo, -sp.oo, sp.I) or any(p.base == 0 for p in part.atoms(sp.Pow)):
            raise Unsupported(f"the limit as {x} -> {to}")
    if sign(bottom, assumptions) not in ("+", "-"):
        if is_zero(bottom):
            raise Unsupported(f"a division by zero as {x} -> {to}")
        raise NeedSign(bottom)
    return sp.simplify(top / bottom) if (top / bottom).is_number else sp.cancel(top / bottom)


def _root(expr: Scalar, x: Scalar) -> int:
    root = 1
    for power in expr.atoms(sp.Pow):
        if power.base == x and power.exp.is_Rational:
            root = int(sp.ilcm(root, power.exp.q))
    for e in expr.atoms(sp.exp):
        for term in sp.Add.make_args(sp.expand(e.args[0])):
            coefficient, mono = term.as_coeff_Mul()
            if mono == sp.log(x) and coefficient.is_Rational:
                root = int(sp.ilcm(root, coefficient.q))
    return root if root <= MAX_ROOT else 1


def _far(expr: Scalar, x: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]) -> Scalar:
    """The limit as a positive number goes to infinity, with ever longer series."""
    for order in SERIES_ORDERS:
        try:
            return _by_growth(Series(x, assumptions, loose, order).rewritten(expr), x, assumptions, loose)
        except RemainderLeads:
            if order == SERIES_ORDERS[-1]:
                raise
    raise AssertionError


def _by_growth(expr: Scalar, x: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]) -> Scalar:
    """The limit of a quotient of sums of terms with a growth."""
    parts = terms_of(expr, x, assumptions, loose)
    if not parts.top:
        return sp.Integer(0)
    low, below = parts.leading(parts.bottom)
    # Terms of the top that grow more slowly than the bottom go to 0, with any bounded coefficient; the others decide.
    ahead = {g: c for g, c in parts.top.items() if compare(g, low, assumptions) != "-"}
    found = parts.largest(ahead)
    if found is None:
        return sp.Integer(0)
    high, above = found
    parts.certain(above)
    if compare(high, low, assumptions) == "0":
        return sp.cancel(above / below)
    rising = sign(above, assumptions)
    if rising not in ("+", "-"):
        raise NeedSign(above)
    return sp.oo if rising == sign(below, assumptions) else -sp.oo
