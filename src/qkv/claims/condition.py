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
        exponent = got.powers.get(symbol, symbol)
        if not top.is_polynomial(symbol) or sp.degree(top, symbol) != 1:
            continue
        a, b = (_whole(part, got) for part in sp.Poly(top, symbol).all_coeffs())
        if sign(a, frame) != "+" or (a.free_symbols | b.free_symbols) & set(algebra.bounded):
            continue
        edge = sp.factor(-b / a)
        for scale in sorted(exponent.free_symbols, key=str):
            if scale.name not in algebra.world.numbers or scale.name == "n" or a.has(scale) or b.has(scale):
                continue
            slope = sp.expand(exponent).coeff(scale)
            if slope.has(scale) or sp.expand(exponent - slope * scale) != 0 or sign(slope, frame) != "+":
                continue
            if symbol in got.powers:
                if sign(edge, frame) != "+":
                    continue
                return f"{scale} {'>=' if inclusive else '>'} {shown(sp.simplify(sp.log(edge) / slope))}"
            return f"{scale} {'>=' if inclusive else '>'} {shown(edge)}"
    return None


def _whole(expr: Scalar, got: object) -> Scalar:
    from qkv.claims.signs import Ratio

    assert isinstance(got, Ratio)
    return expr.xreplace({g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs))
