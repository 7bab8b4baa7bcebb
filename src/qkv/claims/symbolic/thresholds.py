"""Conditions that make an inequality true: solve for the scale, and find ties at the ends of ranges."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra
from qkv.claims.symbolic.enclosures import constant_sign
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.node_conversion import expression_node
from qkv.claims.symbolic.printing import scalar_text
from qkv.claims.symbolic.proof import Condition
from qkv.claims.symbolic.sign_analysis import FLIP, Assumptions, Ratio, is_zero, ratio, sign
from qkv.claims.syntax import nodes as L


def threshold(algebra: Algebra, value: Scalar, inclusive: bool, assumptions: Assumptions) -> Condition | bool | None:
    """When `value` is (a·X + b)/c, with signs of a and c known and X = e^(rt) or X = t, it is positive exactly when X
    lies on one side of -b/a; a < 0 or r < 0 exchange the sides. True or False if the range of the number decides."""
    if assumptions.fixed or algebra.statistics:
        return None
    got = ratio(value)
    bottom = sign(_whole(got.bottom, got), assumptions)
    if bottom not in ("+", "-"):
        return None
    top = got.top if bottom == "+" else -got.top
    for symbol in sorted(top.free_symbols, key=str):
        if not top.is_polynomial(symbol) or sp.degree(top, symbol) != 1:
            continue
        a, b = (_whole(part, got) for part in sp.Poly(top, symbol).all_coeffs())
        side = sign(a, assumptions)
        if side not in ("+", "-") or (a.free_symbols | b.free_symbols) & algebra.thetas:
            continue
        found = _solved(algebra, symbol, got, (a, b), side, assumptions)
        if found is not None and all(algebra.declared_name(s) for s in found[2].free_symbols):
            scale, over, edge = found
            how = sign(scale - edge if over else edge - scale, assumptions)
            if how in ("+", "-", "0"):
                return how == "+" or (how == "0" and inclusive)
            if how == (">=" if inclusive else "<="):
                return inclusive
            decided = _range_decides(assumptions.ranges.get(scale), over, edge, inclusive)
            if decided is not None:
                return decided
            return _condition(algebra, scale, (">" if over else "<") + "=" * inclusive, edge)
    return None


def _range_decides(where: Range | None, over: bool, edge: Scalar, inclusive: bool) -> bool | None:
    """Whether all numbers of a range, or none, lie on the wanted side of a constant edge; None if only some do.

    Ends of ranges are fractions and the edge may be a logarithm, so they are compared by enclosures.
    """
    if where is None or edge.free_symbols:
        return None
    near, near_open, far, far_open = where.lo, where.lo_open, where.hi, where.hi_open
    if not over:
        near, near_open, far, far_open = far, far_open, near, near_open

    def beyond(end: Fraction) -> str | None:
        """The sign of the end's distance into the wanted side."""
        distance = sp.Rational(end.numerator, end.denominator) - edge
        return constant_sign(distance if over else -distance)

    if near is not None:
        how = beyond(near)
        if how == "+" or (how == "0" and (near_open or inclusive)):
            return True
    if far is not None:
        how = beyond(far)
        if how == "-" or (how == "0" and (far_open or not inclusive)):
            return False
    return None


def _condition(algebra: Algebra, scale: Scalar, op: str, edge: Scalar) -> Condition:
    at = algebra.context.claim.at
    sides = expression_node(algebra, scale, at), expression_node(algebra, edge, at)
    relation = None if sides[0] is None or sides[1] is None else L.Relation((sides[0], sides[1]), (op,), at)
    return Condition(f"{scale} {op} {scalar_text(edge)}", relation)


def _solved(
    algebra: Algebra, symbol: Scalar, got: Ratio, line: tuple[Scalar, Scalar], side: str, assumptions: Assumptions
) -> tuple[Scalar, bool, Scalar] | None:
    """The scale, whether it must lie above, and the edge."""
    a, b = line
    edge = sp.factor(-b / a)
    exponent = got.powers.get(symbol, symbol)
    for scale in sorted(exponent.free_symbols, key=str):
        if algebra.declared_name(scale) in (None, "n") or a.has(scale) or b.has(scale):
            continue
        slope = sp.expand(exponent).coeff(scale)
        if slope.has(scale) or sp.expand(exponent - slope * scale) != 0:
            continue
        turn = sign(slope, assumptions)
        if turn not in ("+", "-"):
            continue
        over = (side if turn == "+" else FLIP[side]) == "+"
        if symbol not in got.powers:
            return scale, over, edge
        if sign(edge, assumptions) == "+":
            return scale, over, sp.simplify(sp.log(edge) / slope)
    return None


def tie(algebra: Algebra, value: Scalar, assumptions: Assumptions) -> tuple[str, Fraction] | None:
    """A number and a place in its range where a difference that never changes its sign vanishes."""
    if assumptions.fixed or algebra.statistics or algebra.thetas:
        return None
    for symbol in sorted(value.free_symbols, key=str):
        where, name = assumptions.ranges.get(symbol), algebra.declared_name(symbol)
        if where is None or name is None or name in algebra.context.random:
            continue
        ends = [end for end in (where.lo, where.hi) if end is not None]
        for at in [*ends, Fraction(0), Fraction(1)]:
            inside = where.meet("=", at)
            if inside.point == at and is_zero(value.subs(symbol, sp.Rational(at.numerator, at.denominator))):
                return name, at
    return None


def _whole(expr: Scalar, got: Ratio) -> Scalar:
    """Put the exponentials and logarithms back in for their generators."""
    return expr.xreplace({g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs))
