"""Exact refutations by values that no fraction is: multiples of pi, logarithms, roots, and zeros between two signs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import sympy as sp

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.errors import NoValue, Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.instances import drawn
from qkv.claims.arrays.terms import Scalar
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

ANGLES = (sp.Integer(0), sp.pi / 2, sp.pi, -sp.pi / 2, sp.pi / 4, sp.pi / 3, sp.pi / 6, 2 * sp.pi)
MAX_NUMBERS = 2
N_DRAWN = 72
CLOSE = 1e-4
DIGITS = 40
CLEAR = 1e-12
CONTINUOUS_CALLS = ("exp", "norm", "Phi")
CONTINUOUS = (
    *("relu", "tanh", "sigmoid", "abs", "sin", "cos", "odot", "inner", "softmax", "causal_softmax", "otimes", "diag"),
    *("concat", "stack", "col", "row", "max", "min", "lse", "trace"),
)  # functions that are defined and continuous everywhere


# Places.
def false_at_angles(evaluator: ArrayEvaluator, core: L.Relation) -> str | None:
    """Multiples of pi at which a comparison of numbers is false, by exact values of sine and cosine."""
    return _false_at(evaluator, core, None)


def false_at_constants(evaluator: ArrayEvaluator, core: L.Relation, near: dict[str, Fraction]) -> str | None:
    """Fractions, roots, logarithms and multiples of pi near a place at which a comparison of numbers is false."""
    return _false_at(evaluator, core, near)


def _false_at(evaluator: ArrayEvaluator, core: L.Relation, near: dict[str, Fraction] | None) -> str | None:
    context = evaluator.context
    names = sorted({str(n) for n in _used(context, core)} & set(context.numbers))
    if len(core.ops) != 1 or not names or len(names) > MAX_NUMBERS or {*names} & (context.sizes() | {"n", "d"}):
        return None
    waves = any(isinstance(n, L.Apply) and n.function in ("sin", "cos") for n in _used(context, core))
    if {str(n) for n in _used(context, core)} & {*context.arrays} or (near is None and not waves):
        return None
    relations = [*context.conditions, core]
    places = [ANGLES if near is None else tuple(_constants(float(near[name]))) for name in names]
    for place in itertools.product(*places):
        values = dict(zip(names, place, strict=True))
        if all(_inside(context.numbers[name], x) for name, x in values.items()):
            *met, known = (_holds_at(context, relation, values) for relation in relations)
            if known is False and all(met):
                return "false for " + ", ".join(f"{name} = {x}" for name, x in values.items())
    return None


def _used(context: ArrayContext, core: L.Relation) -> list[L.Node]:
    """The parts of a comparison, its conditions and definitions."""
    return list(L.nodes((core, tuple(context.conditions), tuple(context.lets.values()))))


def _holds_at(context: ArrayContext, relation: L.Relation, values: dict[str, Scalar]) -> bool | None:
    """Whether a comparison holds where numbers have given values; None if that is not known."""
    evaluator = ArrayEvaluator(context)
    for name, x in values.items():
        evaluator.fix(name, evaluator.products.number(x))
    try:
        one, two = evaluator.pair(*relation.sides)
        gap = one.plus(two.scaled(sp.Integer(-1)))
    except Unsupported:
        return None
    if relation.ops[0] not in ("=", "!=") and not one.is_number:
        return None
    return _compared(list(gap.parts.values()), relation.ops[0])


def _constants(x: float) -> Iterable[Scalar]:
    """Exact numbers that a float may be a rounded value of."""
    found = [sp.Rational(*Fraction(x).limit_denominator(100).as_integer_ratio())]
    found.append(sp.Rational(*Fraction(x / math.pi).limit_denominator(12).as_integer_ratio()) * sp.pi)
    found.append(sp.sign(x) * sp.sqrt(sp.Rational(*Fraction(x * x).limit_denominator(20).as_integer_ratio())))
    if abs(x) < 20:
        found.append(sp.log(sp.Rational(*Fraction(math.exp(x)).limit_denominator(20).as_integer_ratio()) or 1))
    if x > 0:
        found.append(sp.exp(sp.Rational(*Fraction(math.log(x)).limit_denominator(4).as_integer_ratio())))
    return dict.fromkeys(c for c in found if abs(float(c) - x) < CLOSE)


def _inside(where: Range, x: Scalar) -> bool:
    low = where.lo is None or (x > where.lo if where.lo_open else x >= where.lo)
    high = where.hi is None or (x < where.hi if where.hi_open else x <= where.hi)
    return bool(low) and bool(high) and not where.whole


def _compared(gaps: list[Scalar], op: str) -> bool | None:
    """Whether differences compare to 0 as asked; None if that is not known."""
    signs = [_sign(gap) for gap in gaps]
    if op in ("=", "!="):
        if 1 in signs or -1 in signs:
            return op == "!="
        return op == "=" if all(sign == 0 for sign in signs) else None
    sign = signs[0] if signs else 0
    if sign is None or sign == 0:
        return None if sign is None else op in ("<=", ">=")
    return (sign > 0) == (op in (">", ">="))


def _sign(value: Scalar) -> int | None:
    """The sign of a constant; None if it has none that is known."""
    if value == 0:
        return 0
    if value.free_symbols or not value.is_finite or not value.is_real:
        return None
    if abs(float(value.evalf(DIGITS))) > CLEAR:
        return 1 if value.evalf(DIGITS) > 0 else -1
    return 0 if sp.simplify(value) == 0 else None


# Zeros between two signs.
def takes_both_signs(context: ArrayContext, core: L.Relation) -> str | None:
    """Why two numbers are equal somewhere: their difference is continuous, and takes both signs for equal sizes."""
    if core.ops != ("!=",) or context.conditions or not _is_connected(context) or not _is_continuous(context, core):
        return None
    seen: dict[tuple[object, ...], dict[int, str]] = {}
    for seed in range(N_DRAWN):
        with exact.precision():
            try:
                inst = drawn(context, seed)
                gap = exact.number(inst, core.sides[0]) - exact.number(inst, core.sides[1])
            except NoValue:
                continue
            if gap > 0 or gap < 0:
                signs = seen.setdefault((*inst.sizes.items(), *inst.items.items()), {})
                signs.setdefault(1 if gap > 0 else -1, inst.assignment().replace("\n", ", "))
                if len(signs) == 2:
                    return f"left minus right is continuous, positive for {signs[1]}, and negative for {signs[-1]}"
    return None


def _is_connected(context: ArrayContext) -> bool:
    """Whether all values of one size can be joined by a path."""
    ranges = (where for name, where in context.numbers.items() if name not in context.sizes() | {"n", "d"})
    kinds = {declared.kind for declared in context.arrays.values()}
    whole = any(where.whole and where.point is None for where in ranges)
    return kinds <= {"", "simplex", "symmetric"} and not whole and not context.random


def _is_continuous(context: ArrayContext, core: L.Relation) -> bool:
    for node in L.nodes((core, tuple(context.lets.values()))):
        if isinstance(node, L.Call) and node.function not in CONTINUOUS_CALLS:
            return False
        if isinstance(node, L.Apply) and node.function not in CONTINUOUS and not _is_entropy(context, node):
            return False
        if isinstance(node, L.Stat | L.Chance | L.Cases):
            return False
        if isinstance(node, L.Op) and node.sign in "/^":
            bound = L.constant(node.right)
            natural = bound is not None and bound.denominator == 1 and bound >= 0
            if bound is None or bound == 0 or (node.sign == "^" and not natural):
                return False
    return True


def _is_entropy(context: ArrayContext, node: L.Apply) -> bool:
    """Whether a function is the entropy of weights."""
    if node.function != "entropy":
        return False
    expr = node.args[0]
    if isinstance(expr, L.Name):
        declared = context.arrays.get(str(expr))
        return declared is not None and declared.kind == "simplex"
    return isinstance(expr, L.Apply) and expr.function == "softmax"
