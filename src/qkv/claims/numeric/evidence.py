"""Evidence: how many instances of a claim agree with it, and the first that does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from qkv.claims.numeric import noise_moments
from qkv.claims.numeric.counterexample import python_assignments
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, NotLoaded, evaluate, sides
from qkv.claims.numeric.instances import holds, instances
from qkv.claims.numeric.limit_checks import (
    PATH,
    approaches,
    is_zero_literal,
    limit,
    move_along,
    require_bounded_statistics,
)
from qkv.claims.semantics.quantifiers import QuantifierCase
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

N_INSTANCES = 16  # of a claim
N_RANDOM_INSTANCES = 7  # of a claim with random keys, each with thousands of draws
MIN_INSTANCES_PER_CASE = 4
SAMPLING_ERROR = 0.02  # of a sampled statistic, relative to its size
TOLERANCE = 1e-7  # of an equality, relative to the size of its sides
ROUNDING = 1e-12  # below this, relative to the size of its sides, a difference is rounding
TRIED_NUMBERS = (*np.linspace(-4, 4, 33), 10.0, -10.0)  # for "no real r makes ..."


@dataclass(frozen=True)
class Evidence:
    """How many instances agreed, disagreed or were not clear.

    Attributes:
        agree: Instances on which the statement holds.
        disagree: Instances on which it does not.
        unclear: Instances that could not be evaluated, or on which the difference is within the error.
        counterexample: The first instance that disagreed, as Python assignments.
        share: The share of the random draws for which a limit holds.
        rough: Of the instances that agreed, how many only within the error of a sample.
        exact: Whether exact moments of the noise were used.
    """

    agree: int
    disagree: int
    unclear: int
    counterexample: str | None = None
    share: float | None = None
    rough: int = 0
    exact: bool = False

    @property
    def total(self) -> int:
        """How many instances were tried."""
        return self.agree + self.disagree + self.unclear


def gather(
    cases: Sequence[QuantifierCase], count: int = N_INSTANCES, seed: int = 0, hint: float | None = None
) -> Evidence:
    """Try a claim on instances, case by case of its index; `hint` is a number to try first where none should do."""
    agree = disagree = unclear = rough = 0
    exact = False
    found: str | None = None
    shares: list[float] = []
    if any(isinstance(case.core, L.Never) and case.core.kind == "query" for case in cases):
        return Evidence(0, 0, 0)
    for case in cases:
        context = case.context
        few = context.noise or context.random or isinstance(case.core, L.Never)
        wanted = max(MIN_INSTANCES_PER_CASE, (N_RANDOM_INSTANCES if few else count) // len(cases))
        for inst in instances(context, wanted, seed):
            try:
                verdict, share = _judge(inst, case.core, hint)
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
                found = python_assignments(inst, case.core)
    return Evidence(agree, disagree, unclear, found, float(np.mean(shares)) if shares else None, rough, exact)


def _judge(inst: Instance, core: L.Core, hint: float | None) -> tuple[bool | None, float | None]:
    """Whether one instance agrees (None: not clear), and for which share of its draws."""
    if isinstance(core, L.Relation):
        if inst.context.limits:
            return _relation_in_limit(inst, core), None
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
    """Compare both sides by draws, and again by exact moments where the draws do not decide it."""
    verdict = _compared(inst, core)
    if not inst.sampled or verdict is False or not quadrature_applies(inst):
        return verdict
    inst.exact = noise_moments
    inst.cache.clear()
    try:
        return _compared(inst, core)
    finally:
        inst.exact = None
        inst.cache.clear()


def _compared(inst: Instance, core: L.Relation) -> bool | None:
    clear, drawn = True, False
    for left, op, right in core.pairs():
        inst.error, inst.sampled = 0.0, False
        with np.errstate(all="ignore"):
            one, two = sides(inst, left, right)
        if one.shape[1:] != two.shape[1:] and not (is_zero_literal(left) or is_zero_literal(right)):
            return False
        gap = one - two
        if not np.isfinite(gap).all():
            return None
        size = 1 + float(max(np.abs(one).max(), np.abs(two).max()))
        # A sampled value has a sampling error, unless both sides are the same value.
        rough = inst.sampled and bool(np.abs(gap).max() > ROUNDING * size)
        slack = SAMPLING_ERROR * size if rough else TOLERANCE * size + 10 * inst.error
        drawn |= rough and (op == "=" or bool(np.abs(gap).min() <= slack))
        least = slack if rough or inst.error else ROUNDING * size
        if op in ("=", "!="):
            same = bool(np.abs(gap).max() <= slack)
            if op == "=" and not same:
                return False
            if op == "!=" and bool(np.abs(gap).max() <= ROUNDING * size):
                return False
            if op == "!=" and same:
                clear = False
        elif not holds(gap, op, slack):
            return False
        elif op in ("<", ">") and np.abs(gap).min() <= least:
            clear = False  # a tie, or a difference below rounding
        elif not holds(gap, op, ROUNDING * size) or (rough and np.abs(gap).min() <= least):
            clear = False  # the difference is within the error, on either side
    inst.sampled = drawn
    return True if clear else None


def quadrature_applies(inst: Instance) -> bool:
    """Whether exact moments can replace draws: all noise is in the keys, and limits are taken of its sizes only."""
    if inst.samples == 1 or any(a.name not in inst.context.noise_sizes for a in inst.context.limits):
        return False
    if not noise_moments.applies(inst):
        return False
    if "qkv.noise.probability.output_within" not in sys.modules:
        raise NotLoaded
    return True


def _relation_in_limit(inst: Instance, core: L.Relation) -> bool | None:
    approach = inst.context.limits
    require_bounded_statistics(inst, core)
    move_along(inst, approach, 0)
    inst.cancelled.clear()
    for side in core.sides:
        evaluate(inst, side)
    structural = set(inst.cancelled)
    inst.cancelled.clear()
    move_along(inst, approach, len(PATH) - 2)
    for side in core.sides:
        evaluate(inst, side)
    if inst.cancelled - structural:
        return None
    if all(a.name in inst.context.noise_sizes for a in approach):
        return _relation(inst, core)
    verdict: bool | None = True
    for left, op, right in core.pairs():
        gap = evaluate(inst, left) - evaluate(inst, right)
        inst.sampled |= op == "="  # at the end of the path both sides are near their limits, not there
        slack = SAMPLING_ERROR
        if not np.isfinite(gap).all() or (op in ("<", ">", "!=") and np.abs(gap).min() < slack):
            verdict = None
        elif not holds(gap, op, slack):
            return False
    return verdict


def _never(inst: Instance, core: L.Never, hint: float | None) -> bool | None:
    """Try many values of the number: none may make the statement true."""
    name = str(core.name)
    where = inst.context.numbers.get(name, Range())
    for value in [*([] if hint is None else [hint]), *TRIED_NUMBERS]:
        if not where.holds(float(value)):
            continue
        inst.put(name, float(value))
        close = limit(inst, core.inner)[0] if isinstance(core.inner, L.Limit) else _relation(inst, core.inner)
        if close:
            inst.put(name, float(value))
            return False
    return True


def _within(inst: Instance, core: L.Within) -> tuple[bool | None, float | None]:
    approach = approaches(inst, core)
    wanted = float(evaluate(inst, core.probability)[0, 0, 0])
    ends = None
    if approach:
        move_along(inst, approach, len(PATH) - 1)
    elif quadrature_applies(inst):
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
    """How many random numbers are left after the small noise has vanished."""
    wide = [i for i, g in inst.context.noise.items() if any(isinstance(n, L.Transpose) for n in L.nodes(g.spread))]
    return len(inst.context.random) + sum(inst.n if i == "i" else 1 for i in wide)


def _equivariant(inst: Instance, name: str) -> bool:
    """Compare the outputs of permuted tokens: swaps of neighbours generate every permutation."""
    context, count = inst.context, len(inst.context.tokens)
    tokens = {f"token_{i}": evaluate(inst, L.Name("x", (i,), (0, 0))) for i in context.tokens}

    def outputs(of: Instance) -> dict[tuple[int, ...], Array]:
        places = product(range(count), repeat=2 if name == "alpha" else 1)
        return {p: evaluate(of, L.Name(name, tuple(context.tokens[i] for i in p), (0, 0))) for p in places}

    before = outputs(inst)
    orders = [[*range(j), j + 1, j, *range(j + 2, count)] for j in range(count - 1)]
    for order in [*orders, [*range(1, count), 0]]:
        lets = dict(context.lets)
        for place, source in zip(context.tokens, order, strict=True):
            value = L.Name("token", (context.tokens[source],), (0, 0))
            lets[f"x_{place}"] = L.Let(L.Name("x", (place,), (0, 0)), value, (0, 0))
        moved = replace(inst, context=replace(context, lets=lets), cache={}, vectors={**inst.vectors, **tokens})
        after = outputs(moved)
        if not all(np.isfinite(after[p]).all() and np.isfinite(before[p]).all() for p in after):
            raise CannotEvaluate("values that overflow")
        if not all(np.allclose(after[p], before[tuple(order[i] for i in p)], atol=1e-9) for p in after):
            return False
    return True


def smallest(cases: Sequence[QuantifierCase]) -> str | None:
    """The smallest instance of a claim that was refuted symbolically, with both sides there, as Python assignments."""
    for case in cases:
        for inst in instances(case.context, 1):
            return python_assignments(inst, case.core)
    return None
