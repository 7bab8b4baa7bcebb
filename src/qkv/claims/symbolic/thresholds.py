"""Conditions that the checker finds: for which scale an inequality becomes true."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from qkv.claims.symbolic.evaluator import Algebra
from qkv.claims.symbolic.matrix_polynomials import Scalar
from qkv.claims.symbolic.proof import shown
from qkv.claims.symbolic.sign_analysis import FLIP, Assumptions, Ratio, is_zero, ratio, sign


def threshold(algebra: Algebra, value: Scalar, inclusive: bool, frame: Assumptions) -> str | None:
    """When `value` is (a·X + b)/c, with signs of a and c known and X = e^(rt) or X = t, it is positive exactly when X
    lies on one side of -b/a; a < 0 or r < 0 turn the side."""
    if frame.fixed or algebra.statistics:
        return None
    got = ratio(value)
    bottom = sign(_whole(got.bottom, got), frame)
    if bottom not in ("+", "-"):
        return None
    top = got.top if bottom == "+" else -got.top
    for symbol in sorted(top.free_symbols, key=str):
        if not top.is_polynomial(symbol) or sp.degree(top, symbol) != 1:
            continue
        a, b = (_whole(part, got) for part in sp.Poly(top, symbol).all_coeffs())
        side = sign(a, frame)
        if side not in ("+", "-") or (a.free_symbols | b.free_symbols) & set(algebra.bounded):
            continue
        found = _solved(algebra, symbol, got, (a, b), side, frame)
        if found is not None and all(s.name in algebra.world.numbers for s in found[2].free_symbols):
            scale, over, edge = found
            return f"{scale} {'>' if over else '<'}{'=' * inclusive} {shown(edge)}"
    return None


def _solved(
    algebra: Algebra, symbol: Scalar, got: Ratio, line: tuple[Scalar, Scalar], side: str, frame: Assumptions
) -> tuple[Scalar, bool, Scalar] | None:
    """The scale, whether it must lie above, and the edge."""
    a, b = line
    edge = sp.factor(-b / a)
    exponent = got.powers.get(symbol, symbol)
    for scale in sorted(exponent.free_symbols, key=str):
        if scale.name not in algebra.world.numbers or scale.name == "n" or a.has(scale) or b.has(scale):
            continue
        slope = sp.expand(exponent).coeff(scale)
        if slope.has(scale) or sp.expand(exponent - slope * scale) != 0:
            continue
        turn = sign(slope, frame)
        if turn not in ("+", "-"):
            continue
        over = (side if turn == "+" else FLIP[side]) == "+"
        if symbol not in got.powers:
            return scale, over, edge
        if sign(edge, frame) == "+":
            return scale, over, sp.simplify(sp.log(edge) / slope)
    return None


def tie(algebra: Algebra, value: Scalar, frame: Assumptions) -> tuple[str, str] | None:
    """A number and a place in its range where a difference that never changes its sign vanishes."""
    if frame.fixed or algebra.statistics or algebra.bounded:
        return None
    for symbol in sorted(value.free_symbols, key=str):
        where = frame.ranges.get(symbol)
        if where is None or symbol.name not in algebra.world.numbers or symbol.name in algebra.world.random:
            continue
        ends = [end for end in (where.lo, where.hi) if end is not None]
        for at in [*ends, Fraction(0), Fraction(1)]:
            inside = where.meet("=", at)
            if inside.point == at and is_zero(value.subs(symbol, sp.Rational(at.numerator, at.denominator))):
                return symbol.name, str(at)
    return None


def _whole(expr: Scalar, got: Ratio) -> Scalar:
    return expr.xreplace({g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs))
