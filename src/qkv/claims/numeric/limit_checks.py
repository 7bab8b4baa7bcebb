"""Numerical check of limit statements: evaluate both sides along the path and test convergence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx

from qkv.claims.numeric import exact_evaluator
from qkv.claims.numeric.arithmetic import Balls
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, evaluate
from qkv.claims.numeric.exact_evaluator import ExactInstance
from qkv.claims.numeric.instances import conditions_hold, in_range
from qkv.claims.semantics.context import names_used
from qkv.claims.semantics.expression_properties import bounded
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import constant

PATH = (3.0, 9.0, 27.0, 81.0, 729.0, 1e5)  # values of a number on its way to infinity
CLOSE, SAMPLED_CLOSE = 1e-3, 0.015  # both sides have met: this close at the end of the path
APART, SAMPLED_APART = 0.01, 0.03  # they have not: this far apart, and no longer approaching each other
EXACT_PATH = (3, 10, 30, 100, 300, 10**3, 10**4, 10**8, 10**16, 10**32)  # the same in exact arithmetic
PATH_BITS = 4096  # of the balls along that path
MIN_PLACES = 4  # of the path that must be evaluated
MAX_RADIUS = 1e-9  # of a ball that says something, relative to its middle
EXACT_CLOSE, EXACT_APART = 1e-6, 1e-4
CLEAR_SHARE = 0.97  # of the draws that must be close or apart


def is_zero_literal(expr: L.Expr) -> bool:
    """Whether an expression is the number 0, which has every shape."""
    return isinstance(expr, L.Num) and expr.value == 0


def move_along(inst: Instance, approach: tuple[L.Approach, ...], place: int) -> None:
    """Set the numbers of a limit to their values at one place of the path; limits taken first go farther."""
    sizes, slow = inst.context.noise_sizes, inst.context.inside_logarithms
    if any(one.name not in sizes and later.name in sizes for one, later in pairwise(approach)):
        raise CannotEvaluate("noise that vanishes after another limit")
    for rank, one in enumerate(approach):
        ahead = sum(other.name not in sizes for other in approach[rank + 1 :])
        x = PATH[place] if one.name in sizes else min(PATH[place] ** (1 + ahead), 1e12)
        if one.name in slow:
            x = math.exp(min(x, 600.0))
        if isinstance(one.to, L.Name):
            value = x
        elif isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name):
            value = -x
        else:
            to = float(evaluate(inst, one.to)[0, 0, 0])
            where = inst.context.numbers.get(one.name)
            side = inst.side  # some instances come from below, some from above, where the range allows both
            if where is not None and where.hi is not None and float(where.hi) <= to:
                side = -1.0
            elif (where is not None and where.lo is not None and float(where.lo) >= to) or one.name in sizes:
                side = 1.0
            value = to + side * (1e-14 / PATH[place] ** 2 if one.name in sizes else 1.0 / x**2)
        if one.name == "n":
            raise CannotEvaluate("a limit in the number of items")
        inst.put(one.name, value)
    if inst.rebuild is not None:
        going = {one.name for one in approach}
        before = {name: value for name, value in inst.numbers.items() if name not in going}
        inst.rebuild()
        if any(not np.array_equal(inst.numbers[name], value) for name, value in before.items()):
            raise CannotEvaluate("a number that would have to move with another")
        if not (conditions_hold(inst) and in_range(inst, frozenset(one.name for one in approach))):
            raise CannotEvaluate("numbers that leave their ranges on the way")


def approaches(inst: Instance, core: L.Limit | L.Within | L.Relation) -> tuple[L.Approach, ...]:
    """The limits of a statement after those that are given for all."""
    own = () if isinstance(core, L.Relation) else core.approach
    return (*inst.context.limits, *own)


def _both(
    inst: Instance, approach: tuple[L.Approach, ...], left: L.Expr, right: L.Expr
) -> Iterator[tuple[Array, Array]]:
    """Both sides at each place of the path. Places equal to the one before are left out, and those where a difference
    vanishes by rounding; a difference that vanishes at the first place already is an identity."""
    before: dict[str, float] | None = None
    structural: set[L.Expr] = set()
    for place in range(len(PATH)):
        move_along(inst, approach, place)
        here = {one.name: float(inst.numbers[one.name].reshape(-1)[0]) for one in approach}
        if here == before:
            continue
        inst.cancelled.clear()
        both = evaluate(inst, left), evaluate(inst, right)
        if before is None:
            structural = set(inst.cancelled)
        before = here
        if not inst.cancelled - structural:
            yield both


def _places(inst: Instance, approach: tuple[L.Approach, ...], expr: L.Expr) -> Iterator[Array]:
    for value, _ in _both(inst, approach, expr, L.Num(Fraction(0), (0, 0))):
        yield value


def require_bounded_statistics(inst: Instance, *parts: L.Node) -> None:
    """Refuse statistics of unbounded expressions: in a limit, ever fewer draws decide them, so a sample misleads."""
    stats = [n for n in L.nodes((parts, tuple(inst.context.lets.values()))) if isinstance(n, L.Stat)]
    for one in stats:
        weighted = any(n.base in ("alpha", "c") for n in names_used(inst.context, *one.inner))
        if weighted and not all(bounded(inst.context, e) for e in one.inner):
            raise CannotEvaluate("a statistic of something unbounded")


def _scaled(inst: Instance, *sides: L.Expr) -> bool:
    """Whether a sampled statistic is multiplied or divided by a variable of the limit, and so is its error."""
    every = [n for side in sides for n in L.nodes(side) if isinstance(n, L.Op) and n.sign in "*/^"]
    for one in every:
        for stat, other in ((one.left, one.right), (one.right, one.left)):
            sampled = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(stat))
            if sampled and any(str(n) in inst.context.limit_variables for n in names_used(inst.context, other)):
                return True
    return False


def _errors(inst: Instance, left: L.Expr, right: L.Expr, approach: tuple[L.Approach, ...]) -> list[Array]:
    """The relative distance of both sides, for each draw, at each place of the path where they are finite."""
    out: list[Array] = []
    for one, two in _both(inst, approach, left, right):
        if one.shape[1:] != two.shape[1:] and not (is_zero_literal(left) or is_zero_literal(right)):
            raise CannotEvaluate("shapes that do not fit")
        gap = np.abs(one - two).max(axis=(1, 2))
        size = 1.0 + np.abs(two).max(axis=(1, 2))
        good = np.isfinite(gap) & np.isfinite(size)
        if good.mean() < 0.5:
            break
        # A draw that overflows keeps its last value.
        values = np.where(good, gap, np.nan) / np.where(good, size, 1.0)
        if out and values.shape == out[-1].shape:
            values = np.where(good, values, out[-1])
        out.append(values)
    if len(out) < 2:
        raise CannotEvaluate("values that overflow")
    return out


def limit(inst: Instance, core: L.Limit) -> tuple[bool | None, float | None]:
    """Whether an instance agrees with a limit statement (None: not clear), and the share of its draws that does.

    Exact arithmetic, which no cancellation misleads, is used where nothing is random; else floating point.
    """
    if exact_path_applies(inst, core):
        return exact_limit(inst, core), None
    return _limit_in_floats(inst, core)


def _limit_in_floats(inst: Instance, core: L.Limit) -> tuple[bool | None, float | None]:
    approach = approaches(inst, core)
    require_bounded_statistics(inst, core.left, core.right)
    if any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(core)) and _scaled(inst, core.left, core.right):
        raise CannotEvaluate("a statistic times a number that moves")
    if isinstance(core.right, L.Name | L.Neg) and "oo" in {
        n.base for n in L.nodes(core.right) if isinstance(n, L.Name)
    }:
        return _infinite(inst, core, approach), None
    errors = _errors(inst, core.left, core.right, approach)
    rough = inst.samples > 1 and any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(core))
    inst.sampled = rough
    last, before, first = errors[-1], errors[-2], errors[0]
    close = (last < (SAMPLED_CLOSE if rough else CLOSE)) | (~np.array(rough) & (last < 0.5 * before) & (last < 0.05))
    apart = (last > (SAMPLED_APART if rough else APART)) & (last > 0.8 * before) & (last > 0.2 * first)
    share = float(close.mean())
    sure = bool((close | apart).mean() > CLEAR_SHARE)
    random = inst.samples > 1 and len(last) > 1
    if random:
        if not sure:
            return None, share if core.tends else 1 - share
        verdict = True if share > CLEAR_SHARE else False if share < 0.9 else None
        if not core.tends:
            verdict, share = (None if verdict is None else not verdict), 1 - share
        return verdict, share
    if not sure:
        return None, None
    verdict = bool(close.all())
    return (verdict if core.tends else not verdict), None


def _infinite(inst: Instance, core: L.Limit, approach: tuple[L.Approach, ...]) -> bool | None:
    """Whether the left side grows without bound along the path."""
    sign = -1.0 if isinstance(core.right, L.Neg) else 1.0
    values: list[float] = []
    end = 0.0
    for value in _places(inst, approach, core.left):
        end = sign * float(value.min() if sign > 0 else value.max())
        if not math.isfinite(end):
            break
        values.append(end)
    if len(values) < 3:
        return None
    early, before, last = values[-3:]
    if last > max(50.0, 1.5 * before) or (end == math.inf and last > before > early):
        return core.tends
    # A side that grows slowly, such as log(log(t)), changes by about as much from each place to the next.
    step, previous = abs(last - before), abs(before - early)
    stopped = step <= 1e-9 * (1 + abs(last)) and previous <= 1e-2 * (1 + abs(last))
    slowing = step < 0.01 * (1 + abs(last)) and step < 0.2 * previous
    return (not core.tends) if stopped or slowing else None


# The same in exact arithmetic.
def exact_path_applies(inst: Instance, core: L.Limit) -> bool:
    """Whether one number moves, nothing is random, and nothing has to move with that number."""
    context, approach = inst.context, approaches(inst, core)
    if len(approach) != 1 or inst.samples > 1 or approach[0].name == "n" or context.score_conditions:
        return False
    moving = approach[0].name
    conditions = [str(n) for order in context.number_conditions for n in L.nodes(order) if isinstance(n, L.Name)]
    statistics = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes((core, tuple(context.lets.values()))))
    return moving not in conditions and not statistics


def exact_limit(inst: Instance, core: L.Limit) -> bool | None:
    """Whether an instance agrees with a limit statement (None: not clear), by balls along a path that goes far."""
    with ctx.workprec(PATH_BITS):
        exact = ExactInstance.of(inst, Balls())
        infinite = "oo" in {n.base for n in L.nodes(core.right) if isinstance(n, L.Name)}
        errors: list[arb] = []
        for x in reversed(EXACT_PATH):  # only the farthest places that can be evaluated are compared
            exact.put(approaches(inst, core)[0].name, _place(inst, approaches(inst, core)[0], arb(x)))
            try:
                if infinite:
                    sign = -1 if isinstance(core.right, L.Neg) else 1
                    gap = sign * exact_evaluator.number(exact, core.left)
                else:
                    gap = _relative_gap(exact, core)
            except CannotEvaluate:
                continue
            if not gap.is_finite() or gap.rad() > MAX_RADIUS * (1 + abs(gap).upper()):
                continue  # so far out the precision does not suffice
            errors.insert(0, gap)
            if len(errors) == MIN_PLACES:
                break
        found = _grows(errors) if infinite else _vanishes(errors)
    return found if core.tends or found is None else not found


def _place(inst: Instance, one: L.Approach, x: arb) -> arb:
    """A place on the path of a number (see move_along)."""
    if one.name in inst.context.inside_logarithms and isinstance(one.to, L.Name):
        x = x.exp()
    if isinstance(one.to, L.Name):
        return x
    if isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name):
        return -x
    to = constant(one.to)
    if to is None:
        raise CannotEvaluate("a limit that is no number")
    where = inst.context.numbers.get(one.name)
    side = inst.side
    if where is not None and where.hi is not None and where.hi <= to:
        side = -1.0
    elif where is not None and where.lo is not None and where.lo >= to:
        side = 1.0
    return Balls().number(to) + arb(side) / x**2


def _relative_gap(exact: ExactInstance, core: L.Limit) -> arb:
    one, two = exact_evaluator.sides(exact, core.left, core.right)
    if Balls().shape(one) != Balls().shape(two):
        raise CannotEvaluate("shapes that do not fit")
    gap, size = arb(0), arb(1)
    for x, y in zip((one - two).entries(), two.entries(), strict=True):
        gap, size = gap.max(abs(x)), size.max(abs(y))
    return gap / size


def _vanishes(errors: list[arb]) -> bool | None:
    if len(errors) < MIN_PLACES:
        return None
    early, before, last = errors[-3:]
    steady = all(two < arb(0.7) * one for one, two in pairwise(errors[-4:]))
    if last < EXACT_CLOSE or (steady and last < CLOSE):
        return True
    if last > EXACT_APART and last > arb(0.9) * before and before > arb(0.9) * early:
        return False
    return None


def _grows(values: list[arb]) -> bool | None:
    if len(values) < MIN_PLACES:
        return None
    early, before, last = values[-3:]
    if last > 50 and last > arb(1.2) * before and before > early:
        return True
    step, size = abs(last - before), 1 + abs(last)
    return False if step < arb(1e-9) * size and abs(before - early) < arb(1e-2) * size else None
