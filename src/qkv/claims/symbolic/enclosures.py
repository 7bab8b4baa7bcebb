"""Enclosures of expressions in ball arithmetic (flint): signs of constants, and points where an expression is not 0."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp
from flint import arb, ctx, fmpq

from qkv.claims.symbolic.factors import Scalar

PRECISIONS = (64, 256, 1024)  # bits, one after the other until a ball excludes 0
MAX_RADICALS = 4  # of a constant whose minimal polynomial is computed


class _NoEnclosure(Exception):
    """An expression without a real value, or with a function that has no enclosure here."""


def constant_sign(expr: Scalar) -> str | None:
    """The sign of a real constant: "+" or "-" by an enclosure, "0" by its minimal polynomial; None if not shown."""
    if expr.is_Rational:
        return "+" if expr > 0 else "-" if expr < 0 else "0"
    found = nonzero_sign(expr, {})
    if found is not None:
        return found
    return "0" if _is_algebraic_zero(expr) else None


def nonzero_sign(expr: Scalar, at: Mapping[Scalar, Scalar]) -> str | None:
    """ "+" or "-" if an enclosure of the expression, with rational numbers put in for its symbols, excludes 0."""
    before = ctx.prec
    try:
        for bits in PRECISIONS:
            ctx.prec = bits
            try:
                ball = _ball(expr, at)
            except _NoEnclosure:
                return None
            if ball > 0:
                return "+"
            if ball < 0:
                return "-"
    finally:
        ctx.prec = before
    return None


def _is_algebraic_zero(expr: Scalar) -> bool:
    if not _is_algebraic(expr) or len(expr.atoms(sp.Pow)) > MAX_RADICALS:
        return False
    x = sp.Dummy("x")
    return bool(sp.minimal_polynomial(expr, x) == x)


def _is_algebraic(expr: Scalar) -> bool:
    if expr.is_Rational:
        return True
    if expr.is_Pow:
        return bool(expr.exp.is_Rational and _is_algebraic(expr.base))
    return bool((expr.is_Add or expr.is_Mul) and all(_is_algebraic(one) for one in expr.args))


def _ball(expr: Scalar, at: Mapping[Scalar, Scalar]) -> arb:
    """A ball that holds the value of a real expression."""
    if expr.is_Symbol:
        if expr not in at:
            raise _NoEnclosure
        return _ball(at[expr], {})
    if expr.is_Rational:
        return arb(fmpq(int(expr.p), int(expr.q)))
    if expr == sp.E:
        return arb(1).exp()
    if expr == sp.pi:
        return arb.pi()
    if expr.is_Add:
        return sum((_ball(one, at) for one in expr.args), arb(0))
    if expr.is_Mul:
        out = arb(1)
        for one in expr.args:
            out *= _ball(one, at)
        return out
    if expr.is_Pow:
        return _power(expr, at)
    if isinstance(expr, sp.exp | sp.erf | sp.log | sp.Abs):
        inner = _ball(expr.args[0], at)
        if isinstance(expr, sp.log) and not inner > 0:
            raise _NoEnclosure
        by_type = {sp.exp: "exp", sp.erf: "erf", sp.log: "log", sp.Abs: "__abs__"}
        return getattr(inner, by_type[type(expr)])()
    raise _NoEnclosure


def _power(expr: Scalar, at: Mapping[Scalar, Scalar]) -> arb:
    base, exponent = _ball(expr.base, at), expr.exp
    if exponent.is_Integer:
        if exponent < 0 and base.contains(0):
            raise _NoEnclosure
        return base ** int(exponent)
    if not base > 0:  # also a base that is 0 within its error
        raise _NoEnclosure
    return (base.log() * _ball(exponent, at)).exp()
