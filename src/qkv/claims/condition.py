"""Conditions that the checker finds: for which scale an inequality becomes true."""

from __future__ import annotations

import sympy as sp

from qkv.claims.algebra import Algebra
from qkv.claims.outcome import shown
from qkv.claims.signs import Frame, ratio, sign
from qkv.claims.words import Scalar


def threshold(algebra: Algebra, value: Scalar, inclusive: bool, frame: Frame) -> str | None:
    """When `value` is (a·X + b)/c with a, c > 0 and X = e^t (or X = t), it is positive exactly when X > -b/a."""
    if frame.fixed or algebra.statistics:
        return None
    got = ratio(value)
    bottom = sign(_whole(got.bottom, got), frame)
    if bottom not in ("+", "-"):
        return None
    top = got.top if bottom == "+" else -got.top
    for symbol in sorted(top.free_symbols, key=str):
        exponent = got.powers.get(symbol)
        if exponent is not None:
            scales = [s for s in exponent.free_symbols if s.name in algebra.world.numbers and s.name != "n"]
            if len(scales) != 1 or not exponent.is_polynomial(scales[0]) or sp.degree(exponent, scales[0]) != 1:
                continue
            scale = scales[0]
        elif symbol.name in algebra.world.numbers and symbol.name != "n":
            scale = symbol
        else:
            continue
        others = (top.free_symbols | set().union(*(got.powers[s].free_symbols for s in top.free_symbols if s in got.powers), set())) - {symbol}
        if any(s in algebra.bounded or s == scale and exponent is None for s in others):
            continue
        if not top.is_polynomial(symbol) or sp.degree(top, symbol) != 1:
            continue
        a, b = sp.Poly(top, symbol).all_coeffs()
        if any(s.has(scale) for s in (_whole(a, got), _whole(b, got))) or sign(_whole(a, got), frame) != "+":
            continue
        edge = sp.factor(-_whole(b, got) / _whole(a, got))
        if exponent is not None:
            slope = exponent.coeff(scale)
            if sign(slope, frame) != "+" or sign(edge, frame) != "+":
                continue
            edge = sp.log(edge) / slope
        return f"{scale} {'>=' if inclusive else '>'} {shown(edge)}"
    return None


def _whole(expr: Scalar, got: object) -> Scalar:
    from qkv.claims.signs import Ratio

    assert isinstance(got, Ratio)
    return expr.xreplace({g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs))
