"""Numerical evidence for and against a claim, on many instances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from qkv.claims import language as L
from qkv.claims.chance import bounded
from qkv.claims.counterexample import written
from qkv.claims.numeric import Array, CannotEvaluate, Instance, evaluate
from qkv.claims.prove import instances as cases_of
from qkv.claims.sampling import holds, in_range, instances
from qkv.claims.world import Range, built, reached

COUNT = 16  # instances of a claim
FEW = 7  # of a claim with random keys, each with thousands of draws
FAR = (3.0, 9.0, 27.0, 81.0, 729.0, 1e5)  # places of a number on its way to infinity
NEAR = 1e-3


@dataclass(frozen=True)
class Evidence:
    """How many instances agreed, disagreed or said nothing clear; the first that disagreed."""

    agree: int
    disagree: int
    unclear: int
    counterexample: str | None = None
    share: float | None = None  # of random draws for which a limit holds

    @property
    def total(self) -> int:
        return self.agree + self.disagree + self.unclear


def gather(claim: L.Claim, count: int = COUNT, seed: int = 0, hint: dict[str, str] | None = None) -> Evidence:
    """Try a claim on instances, case by case of its index."""
    agree = disagree = unclear = 0
    found: str | None = None
    shares: list[float] = []
    cases = cases_of(claim)
    if any(isinstance(c.statement.core, L.Never) and c.statement.core.kind == "query" for _, c in cases):
        return Evidence(0, 0, 0)
    for _, one in cases:
        world = built(one)
        few = FEW if world.noise or world.random or isinstance(one.statement.core, L.Never) else count
        for inst in instances(world, max(4, few // len(cases)), seed):
            try:
                verdict, share = _judge(inst, one.statement.core, hint or {})
            except (CannotEvaluate, ValueError, OverflowError, ZeroDivisionError, KeyError, np.linalg.LinAlgError):
                verdict, share = None, None
            if share is not None:
                shares.append(share)
            agree += verdict is True
            disagree += verdict is False
            unclear += verdict is None
            if verdict is False and found is None:
                found = written(inst, one.statement.core)
    return Evidence(agree, disagree, unclear, found, float(np.mean(shares)) if shares else None)


def _judge(inst: Instance, core: L.Core, hint: dict[str, str]) -> tuple[bool | None, float | None]:
    if isinstance(core, L.Relation):
        if inst.world.limits:
            return _relation_far(inst, core), None
        return _relation(inst, core), None
    if isinstance(core, L.Limit):
        return _limit(inst, core)
    if isinstance(core, L.Distribution):
        head = f"{core.name.subs[0]}," if core.name.subs else ""
        weights = [evaluate(inst, _alpha(head, i)) for i in inst.items]
        return bool(np.abs(np.sum(weights, axis=0) - 1).max() < 1e-9 and min(w.min() for w in weights) >= 0), None
    if isinstance(core, L.Never):
        return _never(inst, core, hint), None
    if isinstance(core, L.Within):
        return _within(inst, core)
    return _equivariant(inst, core.name.base), None


def _alpha(head: str, item: str) -> L.Name:
    return L.Name("alpha", (*(h for h in head.split(",") if h), item), (0, 0))


def _tolerance(inst: Instance, *parts: L.Node) -> float:
    """Sampled statistics are rougher than arithmetic."""
    rough = inst.samples > 1 and any(isinstance(n, L.Stat | L.Chance) for p in parts for n in L.nodes(p))
    return 0.02 if rough else 1e-7


def _relation(inst: Instance, core: L.Relation) -> bool | None:
    clear = True
    for left, op, right in core.pairs():
        one, two = evaluate(inst, left), evaluate(inst, right)
        if one.shape[1:] != two.shape[1:] and not (_zero(left) or _zero(right)):
            return False
        gap = one - two
        if not np.isfinite(gap).all():
            return None
        size = 1 + max(np.abs(one).max(), np.abs(two).max()) if _tolerance(inst, core) > 1e-3 else 1 + np.abs(one).max()
        slack = _tolerance(inst, core) * float(size)
        if op in ("=", "!="):
            same = bool(np.abs(gap).max() <= slack)
            if op == "=" and not same:
                return False
            if op == "!=" and bool(np.abs(gap).max() <= 1e-12 * size):
                return False
            if op == "!=" and same:
                clear = False
        elif not holds(gap, op, slack):
            return False
        elif op in ("<", ">") and np.abs(gap).min() <= 1e-12 * size:
            clear = False  # a tie, or a difference below rounding
        elif not holds(gap, op, 1e-12 * float(size)):
            clear = False  # on the wrong side, by less than can be trusted
    return True if clear else None


def _zero(expr: L.Expr) -> bool:
    return isinstance(expr, L.Num) and expr.value == 0


def _go(inst: Instance, approach: tuple[L.Approach, ...], place: int) -> None:
    """Move all numbers along; those that go first go farther."""
    sizes, slow = inst.world.noise_sizes, inst.world.in_logs
    for rank, one in enumerate(approach):
        ahead = len(approach) - rank - 1
        x = FAR[place] * 4.0**ahead
        if one.name in slow:
            x = math.exp(min(x, 600.0))
        if isinstance(one.to, L.Name):
            value = x
        elif isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name):
            value = -x
        else:
            to = float(evaluate(inst, one.to)[0, 0, 0])
            where = inst.world.numbers.get(one.name)
            side = -1.0 if where is not None and where.hi is not None and float(where.hi) <= to else 1.0
            value = to + side * (1e-14 / FAR[place] ** 2 if one.name in sizes else 1.0 / x**2)
        if one.name == "n":
            raise CannotEvaluate("a limit in the number of items")
        inst.put(one.name, value)
    if inst.rebuild is not None:
        inst.rebuild()
        if not in_range(inst, frozenset(one.name for one in approach)):
            raise CannotEvaluate("numbers that leave their ranges on the way")


def _path(inst: Instance, core: L.Limit | L.Within | L.Relation) -> tuple[L.Approach, ...]:
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
        _go(inst, approach, place)
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


def _resolved(inst: Instance, *parts: L.Node) -> None:
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
        if one.shape[1:] != two.shape[1:] and not (_zero(left) or _zero(right)):
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


def _limit(inst: Instance, core: L.Limit) -> tuple[bool | None, float | None]:
    approach = _path(inst, core)
    _resolved(inst, core.left, core.right)
    if any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(core)) and _scaled(inst, core.left, core.right):
        raise CannotEvaluate("a statistic times a number that moves")
    if isinstance(core.right, L.Name | L.Neg) and "oo" in {
        n.base for n in L.nodes(core.right) if isinstance(n, L.Name)
    }:
        return _infinite(inst, core, approach), None
    errors = _errors(inst, core.left, core.right, approach)
    rough = _tolerance(inst, core) > 1e-3
    last, before, first = errors[-1], errors[-2], errors[0]
    close = (last < (0.015 if rough else NEAR)) | (~np.array(rough) & (last < 0.5 * before) & (last < 0.05))
    apart = (last > (0.03 if rough else 0.01)) & (last > 0.8 * before) & (last > 0.2 * first)
    share = float(close.mean())
    sure = bool((close | apart).mean() > 0.97)
    random = inst.samples > 1 and len(last) > 1
    if random:
        if not sure:
            return None, share
        verdict = True if share > 0.97 else False if share < 0.9 else None
        return (verdict if core.tends or verdict is None else not verdict), share
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


def _relation_far(inst: Instance, core: L.Relation) -> bool | None:
    approach = inst.world.limits
    _resolved(inst, core)
    _go(inst, approach, 0)
    inst.cancelled.clear()
    for side in core.sides:
        evaluate(inst, side)
    structural = set(inst.cancelled)
    inst.cancelled.clear()
    _go(inst, approach, len(FAR) - 2)
    for side in core.sides:
        evaluate(inst, side)
    if inst.cancelled - structural:
        return None
    if all(a.name in inst.world.noise_sizes for a in approach):
        return _relation(inst, core)
    verdict: bool | None = True
    for left, op, right in core.pairs():
        gap = evaluate(inst, left) - evaluate(inst, right)
        slack = 0.02
        if not np.isfinite(gap).all() or (op in ("<", ">", "!=") and np.abs(gap).min() < slack):
            verdict = None
        elif not holds(gap, op, slack):
            return False
    return verdict


def _never(inst: Instance, core: L.Never, hint: dict[str, str]) -> bool | None:
    """Try many values of the number; far out, none may come near."""
    name = str(core.name)
    tries = [*np.linspace(-4, 4, 33), 10.0, -10.0]
    if name in hint:
        from sympy import Rational

        tries = (
            [float(Rational(hint[name])), *tries] if hint[name].replace("/", "").replace("-", "").isdigit() else tries
        )
    where = inst.world.numbers.get(name, Range())
    for value in tries:
        if not where.holds(float(value)):
            continue
        inst.put(name, float(value))
        close = _limit(inst, core.inner)[0] if isinstance(core.inner, L.Limit) else _relation(inst, core.inner)
        if close:
            inst.put(name, float(value))
            return False
    return True


def _within(inst: Instance, core: L.Within) -> tuple[bool | None, float | None]:
    approach = _path(inst, core)
    _go(inst, approach, len(FAR) - 1)
    gap = evaluate(inst, core.left) - evaluate(inst, core.target)
    distance = np.sqrt((gap**2).sum(axis=(1, 2)))
    share = float(np.mean(distance <= float(evaluate(inst, core.radius)[0, 0, 0])))
    wanted = float(evaluate(inst, core.probability)[0, 0, 0])
    return (None if abs(share - wanted) < 0.012 else share > wanted), share


def _equivariant(inst: Instance, name: str) -> bool:
    """Give the tokens in other orders and compare: swaps of neighbours make up every permutation."""
    world, count = inst.world, len(inst.world.tokens)
    tokens = {f"token_{i}": evaluate(inst, L.Name("x", (i,), (0, 0))) for i in world.tokens}

    def outputs(of: Instance) -> dict[tuple[int, ...], Array]:
        places = product(range(count), repeat=2 if name == "alpha" else 1)
        return {p: evaluate(of, L.Name(name, tuple(world.tokens[i] for i in p), (0, 0))) for p in places}

    before = outputs(inst)
    orders = [[*range(j), j + 1, j, *range(j + 2, count)] for j in range(count - 1)]
    for order in [*orders, [*range(1, count), 0]]:
        lets = dict(world.lets)
        for place, source in zip(world.tokens, order, strict=True):
            value = L.Name("token", (world.tokens[source],), (0, 0))
            lets[f"x_{place}"] = L.Let(L.Name("x", (place,), (0, 0)), value, (0, 0))
        moved = replace(inst, world=replace(world, lets=lets), cache={}, vectors={**inst.vectors, **tokens})
        after = outputs(moved)
        if not all(np.isfinite(after[p]).all() and np.isfinite(before[p]).all() for p in after):
            raise CannotEvaluate("values that overflow")
        if not all(np.allclose(after[p], before[tuple(order[i] for i in p)], atol=1e-9) for p in after):
            return False
    return True


def smallest(claim: L.Claim) -> str | None:
    """The smallest instance of a claim that was refuted by argument: both sides there."""
    for _, one in cases_of(claim):
        for inst in instances(built(one), 1):
            return written(inst, one.statement.core)
    return None
