"""Confirm a violation: what floating point suggests is shown again in exact arithmetic, or it does not count.

A violation is certain if the instance meets everything that is given and the balls of both sides exclude the claim. A
tie of a strict order, or an equality that is denied, is certain if both sides are the same symbolic number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import sympy as sp
from flint import arb, ctx, fmpq

from qkv.claims.numeric.arithmetic import Balls, Matrix, Number, Symbols
from qkv.claims.numeric.evaluator import CannotEvaluate, Instance
from qkv.claims.numeric.exact_evaluator import ExactInstance, exact_number, number, sides, value
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

PRECISIONS = (128, 512, 2048)  # bits, tried in turn
MAX_SYMBOLIC_OPERATIONS = 2000  # of an exact number that is compared with 0
MAX_SYMBOLIC_ENTRIES = 40  # of the keys of an instance that is evaluated in symbols
STEPS = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**3))  # from a root to where signs differ
Table = tuple[tuple[arb, ...], ...]


@dataclass(frozen=True)
class Violation:
    """Both sides of a comparison where it fails for certain.

    Attributes:
        link: Which comparison of the chain, from 0.
        left: The left side, by rows, as balls.
        right: The right side.
        tie: Whether both sides are equal.
    """

    link: int
    left: Table
    right: Table
    tie: bool = False


def violation(inst: Instance, core: L.Relation, draw: int = 0) -> Violation | bool:
    """Decide a chain of comparisons on one instance for certain.

    Args:
        inst: The instance.
        core: The chain.
        draw: Which draw of the random numbers and keys is taken.

    Returns:
        The violation; False if there is none as far as the highest precision shows; True if it is not clear.
    """
    unclear = False
    for link, (left, op, right) in enumerate(core.pairs()):
        found = _decided(inst, left, op, right, draw)
        if isinstance(found, Violation):
            return replace(found, link=link)
        unclear |= found
    return unclear


def _decided(inst: Instance, left: L.Expr, op: str, right: L.Expr, draw: int) -> Violation | bool:
    apart = False
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            exact = ExactInstance.of(inst, Balls(), draw)
            try:
                one, two = sides(exact, left, right)
            except CannotEvaluate:
                continue
            if Balls().shape(one) != Balls().shape(two):
                return Violation(0, _table(one), _table(two)) if meets_conditions(exact) else True
            how = _violates((one - two).entries(), op)
            if how is None:
                continue
            if not how:
                return False
            apart = True
            if meets_conditions(exact):
                return Violation(0, _table(one), _table(two))
    if apart:  # but it is not certain that the instance meets what is given
        return True
    if op == "=":
        return not _consistent(inst, left, right, draw)
    return _tie(inst, left, op, right, draw)


def _violates(gap: Sequence[arb], op: str) -> bool | None:
    """Whether left minus right violates a comparison for certain (None: not clear)."""
    if op == "=":
        return True if any(not x.contains(0) for x in gap) else None
    if op == "!=":
        return False if any(not x.contains(0) for x in gap) else None
    (x,) = gap if len(gap) == 1 else (arb("nan"),)
    if op in (">", ">="):
        x = -x
    if x > 0:
        return True
    return False if x < 0 or (op in ("<=", ">=") and x <= 0) else None


def _consistent(inst: Instance, left: L.Expr, right: L.Expr, draw: int) -> bool:
    """Whether both sides are equal as far as the highest precision shows, with balls that are small."""
    with ctx.workprec(PRECISIONS[-1]):
        try:
            one, two = sides(ExactInstance.of(inst, Balls(), draw), left, right)
        except CannotEvaluate:
            return False
        size = max((abs(x).upper() for x in [*one.entries(), *two.entries()]), default=arb(0))
        return all(x.rad() < (1 + size) * arb(2) ** (-PRECISIONS[0]) for x in (one - two).entries())


def _tie(inst: Instance, left: L.Expr, op: str, right: L.Expr, draw: int) -> Violation | bool:
    """Whether both sides are the same number, which violates a strict order; True where it is not clear."""
    if inst.n * inst.d > MAX_SYMBOLIC_ENTRIES or inst.context.noise or inst.context.random:
        return True
    exact = ExactInstance.of(inst, Symbols(), draw)
    try:
        one, two = sides(exact, left, right)
        if Symbols().shape(one) != Symbols().shape(two) or not all(_is_zero(x) for x in (one - two)):
            return True
    except (CannotEvaluate, ValueError, TypeError, ArithmeticError, NotImplementedError):
        return True
    if op in ("<=", ">="):
        return False
    with ctx.workprec(PRECISIONS[-1]):
        balls = ExactInstance.of(inst, Balls(), draw)
        try:
            if not meets_conditions(balls):
                return True
            shown = sides(balls, left, right)
        except CannotEvaluate:
            return True
    return Violation(0, _table(shown[0]), _table(shown[0]), tie=True)


def _is_zero(x: sp.Expr) -> bool:
    """Whether an exact number is 0 for certain; False also where that is not clear."""
    if x == 0 or sp.expand(x) == 0:
        return True
    if x.has(sp.exp):
        return _exponentials_cancel(x)
    return x.count_ops() <= MAX_SYMBOLIC_OPERATIONS and (sp.cancel(sp.together(x)) == 0 or x.equals(0) is True)


def _exponentials_cancel(x: sp.Expr) -> bool:
    """Whether the terms c e^r of the numerator cancel for each exponent r.

    Polynomial arithmetic would turn the exponents, which are fractions with large denominators, into huge powers.
    """
    if x.count_ops() > MAX_SYMBOLIC_OPERATIONS:
        return False
    coefficients: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(sp.numer(sp.together(x)))):
        exponent, coefficient = sp.Integer(0), sp.Integer(1)
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(factor, sp.exp):
                exponent += factor.exp
            elif isinstance(base, sp.exp):
                exponent += base.exp * power
            elif base == sp.E:
                exponent += power
            else:
                coefficient *= factor
        exponent = sp.expand(exponent)
        coefficients[exponent] = coefficients.get(exponent, sp.Integer(0)) + coefficient
    return all(sp.expand(c) == 0 for c in coefficients.values())


def _table(matrix: Matrix) -> Table:
    rows, columns = Balls().shape(matrix)
    return tuple(tuple(matrix[i, j] for j in range(columns)) for i in range(rows))


# Conditions.
def meets_conditions(inst: ExactInstance) -> bool:
    """Whether an instance meets every range and condition for certain."""
    context = inst.context
    names = [name for name in context.numbers if name in inst.source.numbers or name in inst.numbers]
    if not all(_in_range(inst, name, context.numbers[name]) for name in names):
        return False
    for order in context.number_conditions:
        (left, right), (op,) = order.sides, order.ops
        used = {str(n) for n in L.nodes(right) if isinstance(n, L.Name)}
        if op == "=" and isinstance(left, L.Name) and str(left) not in inst.numbers and str(left) not in used:
            continue  # the number is what the condition sets it to
        if not _surely(number(inst, left) - number(inst, right), op):
            return False
    for fact in context.score_conditions:
        (left, right), (op,) = fact.relation.sides, fact.relation.ops
        quantifier = fact.quantifier
        items = [] if quantifier is None else [i for i in inst.source.items if i not in quantifier.but]
        pairs = [L.renamed((left, right), quantifier.index, i) for i in items] if quantifier else [(left, right)]
        for one, two in pairs:
            if not _surely(number(inst, one) - number(inst, two), op):
                return False
    return True


def _surely(gap: Number, op: str) -> bool:
    """Whether left minus right satisfies a comparison for certain."""
    if op == "=":
        return bool(gap.is_zero())
    upward = gap if op in (">", ">=") else -gap
    return bool(upward > 0 or (op in (">=", "<=") and upward >= 0))


def _in_range(inst: ExactInstance, name: str, where: Range) -> bool:
    x = inst.numbers[name] if name in inst.numbers else exact_number(inst, name)
    for end, is_open, sign in ((where.lo, where.lo_open, 1), (where.hi, where.hi_open, -1)):
        if end is None:
            continue
        at = arb(fmpq(end.numerator, end.denominator))
        same = name not in inst.numbers and name in inst.source.numbers and _is_end(inst, name, end)
        if not ((same and not is_open) or sign * (x - at) > 0 or (not is_open and sign * (x - at) >= 0)):
            return False
    return True


def _is_end(inst: ExactInstance, name: str, end: Fraction) -> bool:
    """Whether a number stands for the end of its range (exact_evaluator.exact_number)."""
    tied = any(o.ops == ("=",) and str(o.sides[0]) == name for o in inst.context.number_conditions)
    values = inst.source.numbers[name]
    return not tied and float(values[inst.draw if len(values) > 1 else 0, 0, 0]) == float(end)


# Other statements.
def equality_at(inst: Instance, core: L.Relation, name: str, at: float, where: Range) -> bool:
    """Whether some value of a number near `at` makes a comparison true for certain, which was said to be impossible.

    An equality is certain if both sides are the same symbolic number at a simple fraction, or if left minus right is
    finite, and so continuous, on an interval whose ends have different signs.
    """
    if len(core.ops) != 1 or core.ops[0] == "!=":
        return False
    (left, right), (op,) = core.sides, core.ops
    simple = [Fraction(at).limit_denominator(most) for most in (10**4, 10**6)]
    near = [x for x in simple if abs(x - Fraction(at)) <= Fraction(1, 10**7) and where.holds(float(x))]
    near.append(Fraction(at))
    if op != "=":
        return any(_surely_at(inst, left, op, right, name, x, bits) for x in near for bits in PRECISIONS)
    if any(_same_at(inst, left, right, name, x) for x in dict.fromkeys(near)):
        return True
    return _crossing(inst, left, right, name, Fraction(at), where)


def _surely_at(inst: Instance, left: L.Expr, op: str, right: L.Expr, name: str, at: Fraction, bits: int) -> bool:
    with ctx.workprec(bits):
        exact = ExactInstance.of(inst, Balls())
        exact.put(name, Balls().number(at))
        try:
            return _surely(number(exact, left) - number(exact, right), op) and meets_conditions(exact)
        except CannotEvaluate:
            return False


def _same_at(inst: Instance, left: L.Expr, right: L.Expr, name: str, at: Fraction) -> bool:
    if inst.n * inst.d > MAX_SYMBOLIC_ENTRIES:
        return False
    try:
        exact = ExactInstance.of(inst, Symbols())
        exact.put(name, Symbols().number(at))
        one, two = sides(exact, left, right)
        if Symbols().shape(one) != Symbols().shape(two) or not all(_is_zero(x) for x in (one - two)):
            return False
        with ctx.workprec(PRECISIONS[-1]):
            balls = ExactInstance.of(inst, Balls())
            balls.put(name, Balls().number(at))
            return meets_conditions(balls)
    except (CannotEvaluate, ValueError, TypeError, ArithmeticError, NotImplementedError):
        return False


def _crossing(inst: Instance, left: L.Expr, right: L.Expr, name: str, at: Fraction, where: Range) -> bool:
    for step, bits in product(STEPS, PRECISIONS[:2]):
        ends = [at - step, at + step]
        if not all(where.holds(float(x)) for x in ends):
            continue
        with ctx.workprec(bits):
            try:
                low, high = (_gap_at(inst, left, right, name, Balls().number(x)) for x in ends)
                whole = _gap_at(inst, left, right, name, Balls().number(ends[0]).union(Balls().number(ends[1])))
            except CannotEvaluate:
                continue
            if whole.is_finite() and ((low < 0 and high > 0) or (low > 0 and high < 0)):
                return True
    return False


def _gap_at(inst: Instance, left: L.Expr, right: L.Expr, name: str, x: arb) -> arb:
    exact = ExactInstance.of(inst, Balls())
    exact.put(name, x)
    if not meets_conditions(exact):
        raise CannotEvaluate("a number outside its range")
    return number(exact, left) - number(exact, right)


def moves_outputs(inst: Instance, name: str) -> bool:
    """Whether a permutation of the tokens changes outputs or weights other than by that permutation, for certain."""
    context, count = inst.context, len(inst.context.tokens)
    with ctx.workprec(PRECISIONS[1]):
        exact = ExactInstance.of(inst, Balls())
        try:
            tokens = {f"token_{i}": value(exact, L.Name("x", (i,), (0, 0))) for i in context.tokens}
            places = list(product(range(count), repeat=2 if name == "alpha" else 1))
            before = {p: value(exact, _output_name(context, name, p)) for p in places}
            for order, moved in permutations_of(context):
                other = exact.permuted(moved, tokens)
                for p in places:
                    gap = value(other, _output_name(context, name, p)) - before[tuple(order[i] for i in p)]
                    if any(not x.contains(0) for x in gap.entries()):
                        return True
        except CannotEvaluate:
            return False
    return False


def _output_name(context: Context, name: str, place: tuple[int, ...]) -> L.Name:
    return L.Name(name, tuple(context.tokens[i] for i in place), (0, 0))


def permutations_of(context: Context) -> Iterator[tuple[list[int], Context]]:
    """Swaps of neighbouring tokens and a rotation, which generate every permutation, each with its definitions.

    The tokens before the permutation are called token_1, token_2, ... in these definitions.
    """
    count = len(context.tokens)
    orders = [[*range(j), j + 1, j, *range(j + 2, count)] for j in range(count - 1)]
    for order in [*orders, [*range(1, count), 0]]:
        lets = dict(context.lets)
        for place, source in zip(context.tokens, order, strict=True):
            token = L.Name("token", (context.tokens[source],), (0, 0))
            lets[f"x_{place}"] = L.Let(L.Name("x", (place,), (0, 0)), token, (0, 0))
        yield order, replace(context, lets=lets)
