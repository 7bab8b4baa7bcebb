"""Given ranges and conditions on numbers, as assumptions of the sign analysis."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, sign
from qkv.claims.symbolic.unknowns import Gap
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP

Moving = tuple[tuple[str, Scalar], ...]
"""The numbers of which limits are taken, each with its limit, in their order."""


def assumptions_of(algebra: Algebra, moving: Moving = ()) -> Assumptions:
    """The ranges of the numbers; x > y between numbers becomes x = y + something positive."""
    context = algebra.context
    ranges = {algebra.symbol(n): r for n, r in context.numbers.items() if algebra.symbol(n).is_Symbol}
    count = len(context.items)
    if "n" in context.numbers and algebra.symbol("n").is_Symbol and not context.all_items_named:
        ranges[algebra.symbol("n")] = ranges[algebra.symbol("n")].meet(">=", Fraction(count))
    assumptions = Assumptions(ranges, frozenset(algebra.thetas))
    for order in context.number_conditions:
        assumptions = _with_condition(algebra, assumptions, order, moving)
    return assumptions


def _passes_bound(order: L.Relation, moving: Moving) -> bool:
    """Whether the condition is x > bound where x goes to infinity first, while the bound does not move."""
    (left, right), (op,) = order.sides, order.ops
    going = [name for name, _ in moving]
    for one, other, how in ((left, right, op), (right, left, MIRRORED_OP[op])):
        to = dict(moving).get(str(one)) if isinstance(one, L.Name) else None
        if to is None:
            continue
        first = going.index(str(one))
        later = all(str(n) not in going or going.index(str(n)) > first for n in L.nodes(other) if isinstance(n, L.Name))
        if later and ((to == sp.oo and how in (">", ">=")) or (to == -sp.oo and how in ("<", "<="))):
            return True
    return False


def _with_condition(algebra: Algebra, assumptions: Assumptions, order: L.Relation, moving: Moving) -> Assumptions:
    """Add one condition x > expression, by putting expression + gap in for x."""
    (left, right), (op,) = order.sides, order.ops
    if _passes_bound(order, moving):
        return assumptions
    going = {name for name, _ in moving}
    if any(isinstance(n, L.Name) and str(n) in going for n in L.nodes(order)):
        raise Unsupported("a condition on a number of which a limit is taken")
    if not isinstance(left, L.Name):
        left, right, op = right, left, MIRRORED_OP[op]
    if not isinstance(left, L.Name):
        raise Unsupported("a condition that is not of the form x > expression")
    symbol, bound = algebra.symbol(str(left)), algebra.number(right)
    taken = {s for s, _ in assumptions.fixed}
    mirrored = MIRRORED_OP[op]
    if not (symbol.is_Symbol and _implied(assumptions, symbol, bound, op)) and isinstance(right, L.Name):
        other = algebra.symbol(str(right))  # solve for the other number, if it may vary
        free = other.is_Symbol and other not in taken and other in assumptions.ranges
        if free and _implied(assumptions, other, symbol, mirrored):
            left, symbol, bound, op = right, other, symbol, mirrored
    if not symbol.is_Symbol or bound.has(symbol) or symbol in taken:
        raise Unsupported("conditions that depend on each other")
    # A declared range that the condition does not imply is dropped: what holds for more values holds here.
    gap = sp.Integer(0) if op == "=" else Gap(symbol, op in (">", "<"))
    return assumptions.fix(symbol, bound + gap if op in (">", ">=", "=") else bound - gap)


def _implied(assumptions: Assumptions, symbol: Scalar, bound: Scalar, op: str) -> bool:
    """Whether the condition on the number already implies its declared range."""
    where = assumptions.ranges.get(symbol, Range())
    for end, is_open, ops, good in (
        (where.lo, where.lo_open, (">", ">=", "="), "+"),
        (where.hi, where.hi_open, ("<", "<=", "="), "-"),
    ):
        if end is None:
            continue
        how = sign(bound - sp.Rational(end.numerator, end.denominator), assumptions) if op in ops else None
        weak = (">=" if good == "+" else "<=", "0")
        if how != good and not (how in weak and (op in ("<", ">") or not is_open)):
            return False
    return True
