"""Limits seen from afar: both sides at places ever farther out, and whether they come together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, evaluate
from qkv.claims.numeric.instances import in_range, keeps
from qkv.claims.semantics.context import reached
from qkv.claims.symbolic.statistics import bounded
from qkv.claims.syntax import nodes as L

FAR = (3.0, 9.0, 27.0, 81.0, 729.0, 1e5)  # places of a number on its way to infinity
NEAR = 1e-3


def is_nought(expr: L.Expr) -> bool:
    return isinstance(expr, L.Num) and expr.value == 0


def go(inst: Instance, approach: tuple[L.Approach, ...], place: int) -> None:
    """Move all numbers along; those that go first go farther."""
    sizes, slow = inst.world.noise_sizes, inst.world.in_logs
    if any(one.name not in sizes and later.name in sizes for one, later in pairwise(approach)):
        raise CannotEvaluate("noise that vanishes after another limit")
    for rank, one in enumerate(approach):
        ahead = sum(other.name not in sizes for other in approach[rank + 1 :])
        x = FAR[place] if one.name in sizes else min(FAR[place] ** (1 + ahead), 1e12)
        if one.name in slow:
            x = math.exp(min(x, 600.0))
        if isinstance(one.to, L.Name):
            value = x
        elif isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name):
            value = -x
        else:
            to = float(evaluate(inst, one.to)[0, 0, 0])
            where = inst.world.numbers.get(one.name)
            side = inst.side  # some instances come from below, some from above, where the range allows both
            if where is not None and where.hi is not None and float(where.hi) <= to:
                side = -1.0
            elif (where is not None and where.lo is not None and float(where.lo) >= to) or one.name in sizes:
                side = 1.0
            value = to + side * (1e-14 / FAR[place] ** 2 if one.name in sizes else 1.0 / x**2)
        if one.name == "n":
            raise CannotEvaluate("a limit in the number of items")
        inst.put(one.name, value)
    if inst.rebuild is not None:
        going = {one.name for one in approach}
        before = {name: value for name, value in inst.numbers.items() if name not in going}
        inst.rebuild()
        if any(not np.array_equal(inst.numbers[name], value) for name, value in before.items()):
            raise CannotEvaluate("a number that would have to move with another")
        if not (keeps(inst) and in_range(inst, frozenset(one.name for one in approach))):
            raise CannotEvaluate("numbers that leave their ranges on the way")


def path(inst: Instance, core: L.Limit | L.Within | L.Relation) -> tuple[L.Approach, ...]:
    own = () if isinstance(core, L.Relation) else core.approach
    return (*inst.world.limits, *own)


def _both(
    inst: Instance, approach: tuple[L.Approach, ...], left: L.Expr, right: L.Expr
) -> Iterator[tuple[Array, Array]]:
    """Both sides at each place on the way; places that are the same as the one before, or where rounding has taken
    what matters, are left out. What cancels at the first place already is equal, not rounded."""
    before: dict[str, float] | None = None
    structural: set[L.Expr] = set()
    for place in range(len(FAR)):
        go(inst, approach, place)
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


def resolved(inst: Instance, *parts: L.Node) -> None:
    """A sample does not see where the mean of something unbounded comes from: ever fewer draws, of ever more."""
    stats = [n for n in L.nodes((parts, tuple(inst.world.lets.values()))) if isinstance(n, L.Stat)]
    for one in stats:
        weighted = any(n.base in ("alpha", "c") for n in reached(inst.world, *one.inner))
        if weighted and not all(bounded(inst.world, e) for e in one.inner):
            raise CannotEvaluate("a statistic of something unbounded")


def _scaled(inst: Instance, *sides: L.Expr) -> bool:
    """Whether a sampled statistic is multiplied or divided by what moves, and its error with it."""
    every = [n for side in sides for n in L.nodes(side) if isinstance(n, L.Op) and n.sign in "*/^"]
    for one in every:
        for stat, other in ((one.left, one.right), (one.right, one.left)):
            sampled = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(stat))
            if sampled and any(str(n) in inst.world.gone for n in reached(inst.world, other)):
                return True
    return False


def _errors(inst: Instance, left: L.Expr, right: L.Expr, approach: tuple[L.Approach, ...]) -> list[Array]:
    """How far left is from right, for each draw, at each place that still has a finite value."""
    out: list[Array] = []
    for one, two in _both(inst, approach, left, right):
        if one.shape[1:] != two.shape[1:] and not (is_nought(left) or is_nought(right)):
            raise CannotEvaluate("shapes that do not fit")
        gap = np.abs(one - two).max(axis=(1, 2))
        size = 1.0 + np.abs(two).max(axis=(1, 2))
        good = np.isfinite(gap) & np.isfinite(size)
        if good.mean() < 0.5:
            break
        # A draw that overflows says nothing; it keeps its last value.
        values = np.where(good, gap, np.nan) / np.where(good, size, 1.0)
        if out and values.shape == out[-1].shape:
            values = np.where(good, values, out[-1])
        out.append(values)
    if len(out) < 2:
        raise CannotEvaluate("values that overflow")
    return out


def limit(inst: Instance, core: L.Limit) -> tuple[bool | None, float | None]:
    approach = path(inst, core)
    resolved(inst, core.left, core.right)
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
    close = (last < (0.015 if rough else NEAR)) | (~np.array(rough) & (last < 0.5 * before) & (last < 0.05))
    apart = (last > (0.03 if rough else 0.01)) & (last > 0.8 * before) & (last > 0.2 * first)
    share = float(close.mean())
    sure = bool((close | apart).mean() > 0.97)
    random = inst.samples > 1 and len(last) > 1
    if random:
        if not sure:
            return None, share if core.tends else 1 - share
        verdict = True if share > 0.97 else False if share < 0.9 else None
        if not core.tends:
            verdict, share = (None if verdict is None else not verdict), 1 - share
        return verdict, share
    if not sure:
        return None, None
    verdict = bool(close.all())
    return (verdict if core.tends else not verdict), None


def _infinite(inst: Instance, core: L.Limit, approach: tuple[L.Approach, ...]) -> bool | None:
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
    # What grows slowly, such as log(log(t)), changes by as much from each place to the next.
    step, previous = abs(last - before), abs(before - early)
    stopped = step <= 1e-9 * (1 + abs(last)) and previous <= 1e-2 * (1 + abs(last))
    slowing = step < 0.01 * (1 + abs(last)) and step < 0.2 * previous
    return (not core.tends) if stopped or slowing else None
