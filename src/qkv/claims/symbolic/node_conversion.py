"""SymPy expressions in declared numbers, back to nodes of the syntax tree."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from qkv.claims.symbolic.algebra import Algebra
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.syntax import nodes as L


def expression_node(algebra: Algebra, expr: Scalar, at: L.At) -> L.Expr | None:
    """An expression as a node; None if the language of claims has no word for a part of it."""
    if expr.is_Rational:
        return L.Num(Fraction(int(expr.p), int(expr.q)), at)
    if expr == sp.E:
        return L.Call("exp", L.Num(Fraction(1), at), at)
    if expr.is_Symbol:
        name = algebra.declared_name(expr)
        return None if name is None else L.Name.parsed(name, at)
    if isinstance(expr, sp.exp | sp.log):
        inner = expression_node(algebra, expr.args[0], at)
        return None if inner is None else L.Call("exp" if isinstance(expr, sp.exp) else "log", inner, at)
    sign = "+" if expr.is_Add else "*" if expr.is_Mul else "^" if expr.is_Pow else None
    parts = [expression_node(algebra, part, at) for part in expr.args]
    if sign is None or not parts or parts[0] is None:
        return None
    out: L.Expr = parts[0]
    for part in parts[1:]:
        if part is None:
            return None
        out = L.Op(sign, out, part, at)
    return out
