"""The value of a closed form at an exact instance: its atoms are evaluated, then the scalar expression."""

from __future__ import annotations

from typing import Any

import sympy as sp
from flint import arb, arb_mat, fmpq

from qkv.claims.arrays.errors import NoValue
from qkv.claims.arrays.exact_values import entry_function, softmax_rows
from qkv.claims.arrays.instances import ArrayInstance
from qkv.claims.arrays.terms import Atom, Factor, Scalar, Terms, Word


def at_instance(inst: ArrayInstance, expr: Scalar) -> arb:
    """The ball of a scalar expression at an instance.

    Raises:
        NoValue: If some part has no value there.
    """
    if isinstance(expr, Atom):
        return _atom(inst, expr)
    if expr.is_Rational:
        return arb(fmpq(int(expr.p), int(expr.q)))
    if expr == sp.pi:
        return arb.pi()
    if expr.is_Symbol:
        value = inst.numbers.get(expr.name)
        if value is None:
            raise NoValue(f"{expr}")
        return arb(fmpq(value.numerator, value.denominator))
    args = [at_instance(inst, a) for a in expr.args]
    if expr.is_Add:
        return sum(args, arb(0))
    if expr.is_Mul:
        out = arb(1)
        for x in args:
            out = out * x
        return out
    if isinstance(expr, sp.exp):
        return args[0].exp()
    if expr.is_Pow:
        if expr.exp.is_Integer and abs(int(expr.exp)) <= 64:
            out = arb(1)
            for _ in range(abs(int(expr.exp))):
                out = out * args[0]
            out = out if expr.exp > 0 else 1 / out
        else:
            out = args[0] ** args[1]
        if not out.is_finite():
            raise NoValue("a power that is not finite")
        return out
    simple = {sp.log: "log", sp.sin: "sin", sp.cos: "cos", sp.Abs: "__abs__"}
    if type(expr) in simple:
        found = getattr(args[0], simple[type(expr)])()
        if not found.is_finite():
            raise NoValue("a value that is not finite")
        return found
    if isinstance(expr, sp.Max):
        out = args[0]
        for x in args[1:]:
            out = out.max(x)
        return out
    raise NoValue(f"{type(expr).__name__}")


def _atom(inst: ArrayInstance, atom: Atom) -> arb:
    if atom.sort == "word":
        return _word(inst, atom.payload)[0, 0]
    if atom.sort == "trace":
        found = _word(inst, atom.payload)
        return sum((found[i, i] for i in range(found.nrows())), arb(0))
    value = terms_at(inst, atom.payload)
    entries = list(value.entries())
    if atom.sort == "sumexp":
        return sum((x.exp() for x in entries), arb(0))
    if atom.sort == "norm":
        return sum((x * x for x in entries), arb(0)).nonnegative_part().sqrt()
    if atom.sort == "max":
        out = entries[0]
        for x in entries[1:]:
            out = out.max(x)
        return out
    raise NoValue(atom.sort)


def terms_at(inst: ArrayInstance, terms: Terms) -> Any:
    """The matrix of balls of a sum of words."""
    rows, cols = (_size(inst, s) for s in (terms.rows, terms.cols))
    total = arb_mat(rows, cols, [0] * (rows * cols))
    for word, c in terms.parts.items():
        if word:
            part = _word(inst, word)
        else:
            part = arb_mat(rows, cols, [int(i == j) for i in range(rows) for j in range(cols)])
        total = total + part * at_instance(inst, c)
    return total


def _size(inst: ArrayInstance, size: str) -> int:
    if "+" in size:
        return sum(_size(inst, part) for part in size.strip("()").split("+"))
    return int(size) if size.isdigit() else inst.sizes[size]


def _word(inst: ArrayInstance, word: Word) -> Any:
    out = _factor(inst, word[0])
    for factor in word[1:]:
        out = out * _factor(inst, factor)
    return out


def _factor(inst: ArrayInstance, factor: Factor) -> Any:
    found = _upright(inst, factor)
    return found.transpose() if factor.flipped else found


def _upright(inst: ArrayInstance, factor: Factor) -> Any:
    rows, cols = _size(inst, factor.rows), _size(inst, factor.cols)
    if factor.kind == "ones":
        return arb_mat(rows, 1, [1] * rows)
    if factor.kind == "unit":
        item = factor.payload
        place = inst.items[item] if item in inst.items else int(item) - 1
        return arb_mat(rows, 1, [int(i == place) for i in range(rows)])
    if factor.name in inst.arrays:
        entries = [arb(fmpq(x.numerator, x.denominator)) for row in inst.arrays[factor.name] for x in row]
        return arb_mat(rows, cols, entries)
    if factor.kind in ("softmax", "causal_softmax"):
        inner = terms_at(inst, factor.payload)
        if factor.cols == "1":
            return softmax_rows(inner.transpose()).transpose()
        return softmax_rows(inner, factor.kind != "softmax")
    if factor.kind == "select":
        sizes, start, _ = factor.payload
        before = sum(_size(inst, one) for one in sizes[:start])
        return arb_mat(rows, cols, [int(j == before + i) for i in range(rows) for j in range(cols)])
    if factor.kind == "odot":
        left, right = (list(terms_at(inst, t).entries()) for t in factor.payload)
        return arb_mat(rows, cols, [x * y for x, y in zip(left, right, strict=True)])
    if factor.kind == "diag":
        inner = terms_at(inst, factor.payload)
        return arb_mat(rows, rows, [inner[i, 0] if i == j else 0 for i in range(rows) for j in range(rows)])
    if factor.kind in ("relu", "abs", "exp", "log", "tanh", "sin", "cos", "sqrt", "sigmoid"):
        inner = terms_at(inst, factor.payload)
        return arb_mat(rows, cols, [entry_function(factor.kind, x) for x in inner.entries()])
    raise NoValue(f"{factor.kind or factor.name} on this instance")
