"""Numerical evidence for and against a claim, on many instances."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from qkv.claims.numeric.counterexample import written
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, NotLoaded, evaluate, sides
from qkv.claims.numeric.instances import holds, instances
from qkv.claims.numeric.limit_checks import FAR, go, is_nought, limit, path, resolved
from qkv.claims.semantics.context import Range, built
from qkv.claims.symbolic.prover import instances as cases_of
from qkv.claims.syntax import nodes as L

COUNT = 16  # instances of a claim
FEW = 7  # of a claim with random keys, each with thousands of draws
ROUGH = 0.02  # how far a sampled statistic may be off, relative to its size


@dataclass(frozen=True)
class Evidence:
    """How many instances agreed, disagreed or said nothing clear; the first that disagreed."""

    agree: int
    disagree: int
    unclear: int
    counterexample: str | None = None
    share: float | None = None  # of random draws for which a limit holds
    rough: int = 0  # of those that agreed: how many only within the error of a sample
    exact: bool = False  # whether exact moments of the noise were used

    @property
    def total(self) -> int:
        return self.agree + self.disagree + self.unclear


def gather(claim: L.Claim, count: int = COUNT, seed: int = 0, hint: dict[str, str] | None = None) -> Evidence:
    """Try a claim on instances, case by case of its index."""
    agree = disagree = unclear = rough = 0
    exact = False
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
            rough += verdict is True and inst.sampled
            exact |= inst.error > 0
            disagree += verdict is False
            unclear += verdict is None
            if verdict is False and found is None:
                found = written(inst, one.statement.core)
    return Evidence(agree, disagree, unclear, found, float(np.mean(shares)) if shares else None, rough, exact)


def _judge(inst: Instance, core: L.Core, hint: dict[str, str]) -> tuple[bool | None, float | None]:
    if isinstance(core, L.Relation):
        if inst.world.limits:
            return _relation_far(inst, core), None
        return _relation(inst, core), None
    if isinstance(core, L.Limit):
        return limit(inst, core)
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


def _relation(inst: Instance, core: L.Relation) -> bool | None:
    """Compare both sides; where draws leave it open, by exact moments if there are any."""
    verdict = _compared(inst, core)
    if not inst.sampled or verdict is False or not quadrature_applies(inst):
        return verdict
    inst.fixed = True
    inst.cache.clear()
    try:
        return _compared(inst, core)
    finally:
        inst.fixed = False
        inst.cache.clear()


def _compared(inst: Instance, core: L.Relation) -> bool | None:
    clear, drawn = True, False
    for left, op, right in core.pairs():
        inst.error, inst.sampled = 0.0, False
        with np.errstate(all="ignore"):
            one, two = sides(inst, left, right)
        if one.shape[1:] != two.shape[1:] and not (is_nought(left) or is_nought(right)):
            return False
        gap = one - two
        if not np.isfinite(gap).all():
            return None
        size = 1 + float(max(np.abs(one).max(), np.abs(two).max()))
        # Draws are rougher than arithmetic; those that give the very same value on both sides are not.
        rough = inst.sampled and bool(np.abs(gap).max() > 1e-12 * size)
        slack = ROUGH * size if rough else 1e-7 * size + 10 * inst.error
        drawn |= rough and (op == "=" or bool(np.abs(gap).min() <= slack))
        least = slack if rough or inst.error else 1e-12 * size
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
        elif op in ("<", ">") and np.abs(gap).min() <= least:
            clear = False  # a tie, or a difference below rounding
        elif not holds(gap, op, 1e-12 * size) or (rough and np.abs(gap).min() <= least):
            clear = False  # on the wrong side, or on the right one, by less than can be trusted
    inst.sampled = drawn
    return True if clear else None


def quadrature_applies(inst: Instance) -> bool:
    """Whether exact moments stand for draws: all noise is in the keys, and only its sizes go anywhere."""
    if inst.samples == 1 or any(a.name not in inst.world.noise_sizes for a in inst.world.limits):
        return False
    from qkv.claims.numeric import noise_moments

    if not noise_moments.applies(inst):
        return False
    if "qkv.noise.probability.output_within" not in sys.modules:
        raise NotLoaded
    return True


def _relation_far(inst: Instance, core: L.Relation) -> bool | None:
    approach = inst.world.limits
    resolved(inst, core)
    go(inst, approach, 0)
    inst.cancelled.clear()
    for side in core.sides:
        evaluate(inst, side)
    structural = set(inst.cancelled)
    inst.cancelled.clear()
    go(inst, approach, len(FAR) - 2)
    for side in core.sides:
        evaluate(inst, side)
    if inst.cancelled - structural:
        return None
    if all(a.name in inst.world.noise_sizes for a in approach):
        return _relation(inst, core)
    verdict: bool | None = True
    for left, op, right in core.pairs():
        gap = evaluate(inst, left) - evaluate(inst, right)
        inst.sampled |= op == "="  # far out, both sides are near their limits, not there
        slack = ROUGH
        if not np.isfinite(gap).all() or (op in ("<", ">", "!=") and np.abs(gap).min() < slack):
            verdict = None
        elif not holds(gap, op, slack):
            return False
    return verdict


def _never(inst: Instance, core: L.Never, hint: dict[str, str]) -> bool | None:
    """Try many values of the number; far out, none may come near."""
    name = str(core.name)
    tries = [*np.linspace(-4, 4, 33), 10.0, -10.0]
    if re.fullmatch(r"-?\d+(/\d+|\.\d+(e-?\d+)?)?", hint.get(name, "")):
        tries = [float(Fraction(hint[name])), *tries]
    where = inst.world.numbers.get(name, Range())
    for value in tries:
        if not where.holds(float(value)):
            continue
        inst.put(name, float(value))
        close = limit(inst, core.inner)[0] if isinstance(core.inner, L.Limit) else _relation(inst, core.inner)
        if close:
            inst.put(name, float(value))
            return False
    return True


def _within(inst: Instance, core: L.Within) -> tuple[bool | None, float | None]:
    approach = path(inst, core)
    wanted = float(evaluate(inst, core.probability)[0, 0, 0])
    ends = None
    if approach:
        go(inst, approach, len(FAR) - 1)
    elif quadrature_applies(inst):
        from qkv.claims.numeric import noise_moments

        ends = noise_moments.nearness(inst, core)
        inst.error = 0.0 if ends is None else 1e-12 + ends[1] - ends[0]
    if ends is None:
        gap = evaluate(inst, core.left) - evaluate(inst, core.target)
        distance = np.sqrt((gap**2).sum(axis=(1, 2)))
        share = float(np.mean(distance <= float(evaluate(inst, core.radius)[0, 0, 0])))
        # One random length is spread over its quantiles; several are drawn.
        band = 0.0 if inst.samples == 1 else 0.001 if approach and _lengths(inst) == 1 else 0.02
        ends = (share - band, share + band)
    low, high = ends
    verdict = True if low >= wanted and (core.op == ">=" or low > wanted) else False if high < wanted else None
    return verdict, (low + high) / 2


def _lengths(inst: Instance) -> int:
    """How many random numbers are left once the small noise is gone."""
    wide = [i for i, g in inst.world.noise.items() if any(isinstance(n, L.Transpose) for n in L.nodes(g.spread))]
    return len(inst.world.random) + sum(inst.n if i == "i" else 1 for i in wide)


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
