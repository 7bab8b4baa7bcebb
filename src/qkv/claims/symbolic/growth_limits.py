"""Limits of exponential-rational expressions by growth: the fastest term of top and bottom decides."""

from __future__ import annotations

import sympy as sp

from qkv.claims.symbolic.asymptotic_series import Series
from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.growth_terms import RemainderLeads, compare, terms_of
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, ratio, sign

MAX_ROOT = 12  # of x, in x^(p/root)
MAX_ZERO_ORDER = 6  # of a zero of top and bottom of a quotient
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
        return _at_number(expr, x, to, assumptions, loose)
    expr = _without_error_functions(expr, x, to, assumptions, loose)
    if not expr.has(x):
        return expr
    if not x.is_positive:  # a limit at infinity depends on positive values only
        y = sp.Symbol(x.name, positive=True)
        expr, x = expr.xreplace({x: y}), y
    root = _root(expr, x)
    if root > 1:  # x = y^root, so that powers are whole
        expr, x = _in_roots(expr, x, root)
    return _far(expr, x, assumptions, loose)


def _without_error_functions(
    expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]
) -> Scalar:
    """Put 1 or -1 in for error functions whose argument goes to infinity, if only constants are multiplied by them."""
    every = [one for one in expr.atoms(sp.erf) if one.has(x)]
    if not every:
        return expr
    names = {one: sp.Dummy("erf") for one in every}
    flat = sp.expand(expr.xreplace(names))
    if not flat.is_polynomial(*names.values()):
        raise Unsupported("the growth of Phi")
    if any(c.has(x) for m, c in sp.Poly(flat, *names.values()).terms() if any(m)):
        raise Unsupported("the growth of Phi")
    ends: dict[Scalar, Scalar] = {}
    for one, name in names.items():
        end = limit(one.args[0], x, to, assumptions, loose)
        ends[name] = sp.Integer(1) if end == sp.oo else sp.Integer(-1) if end == -sp.oo else sp.erf(end)
    return flat.xreplace(ends)


def _in_roots(expr: Scalar, x: Scalar, root: int) -> tuple[Scalar, Scalar]:
    """An expression in the root of a positive number, and that root."""
    y = sp.Symbol(f"sqrt({x.name})" if root == 2 else f"{x.name}^(1/{root})", positive=True)
    return sp.expand_log(expr.subs(x, y**root)), y


def _at_number(expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]) -> Scalar:
    """The limit at a finite place; at 0, roots and logarithms of a positive number are put in other variables."""
    if to == 0 and x.is_positive:
        root = _root(expr, x)
        if root > 1:
            return _at_number(*_in_roots(expr, x, root), to, assumptions, loose)
        if expr.has(sp.log(x)):
            y = sp.Symbol(f"1/{x.name}", positive=True)
            return limit(sp.expand_log(expr.subs(x, 1 / y)), y, sp.oo, assumptions, loose)
    return _continuous(expr, x, to, assumptions)


def _continuous(expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions) -> Scalar:
    """The value where top and bottom are continuous; by their Taylor series where both vanish."""
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
            return _by_taylor(whole[0], whole[1], x, to, assumptions)
        raise NeedSign(bottom)
    return sp.simplify(top / bottom) if (top / bottom).is_number else sp.cancel(top / bottom)


def _by_taylor(top: Scalar, bottom: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions) -> Scalar:
    """The quotient of the first coefficients of two analytic functions that do not vanish, if they are of one order."""
    for part in (top, bottom):
        inner = [one.args[0] for one in part.atoms(sp.log)]
        inner += [p.base for p in part.atoms(sp.Pow) if not p.exp.is_Integer or p.exp < 0]
        if part.has(sp.Abs) or any(sign(one.subs(x, to), assumptions) != "+" for one in inner):
            raise Unsupported(f"a division by zero as {x} -> {to}")
    for _ in range(MAX_ZERO_ORDER):
        above, below = (sp.expand(part.subs(x, to)) for part in (top, bottom))
        if not is_zero(below, assumptions):
            if sign(below, assumptions) not in ("+", "-"):
                raise NeedSign(below)
            return sp.simplify(above / below) if (above / below).is_number else sp.cancel(above / below)
        if not is_zero(above, assumptions):
            break
        top, bottom = sp.diff(top, x), sp.diff(bottom, x)
    raise Unsupported(f"a division by zero as {x} -> {to}")


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
