"""Search for an instance that violates an order: descend from the instances that come nearest to a violation.

The quantity that is made small is the gap between both sides divided by their size, so that a constant which is only
slightly too small is seen also where both sides are tiny. Values are floats on the way; what is found is rounded to
short fractions and has to be confirmed in balls.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx

from qkv.claims.arrays import exact_values as exact
from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.errors import NoValue
from qkv.claims.arrays.instances import ArrayInstance, drawn, inside
from qkv.claims.syntax import nodes as L

ORDERS = ("<", "<=", ">", ">=")
SEARCH_BITS = 80
N_SCORED = 24
N_STARTS = 5
N_STEPS = 140
MAX_COORDINATES = 24
NEAR = 1e-9
FAR = 60.0
MAX_SECONDS = 1.0  # after which no other start is tried
DENOMINATORS = (1, 2, 3, 4, 6, 8, 10, 16, 60, 128, 1000, 10**4, 10**6, 2**40)


@dataclass(frozen=True)
class Nearest:
    """What a search came to.

    Attributes:
        violation: An instance that violates the relation for certain, or None.
        tie: Whether both sides are equal as far as floats show, at an instance of moderate numbers.
        place: The instance that came nearest.
    """

    violation: ArrayInstance | None = None
    tie: bool = False
    place: ArrayInstance | None = None


def nearest_to_violation(context: ArrayContext, core: L.Relation, seed: int = 0) -> Nearest:
    """The instance at which a chain of orders comes nearest to failing."""
    if not any(op in ORDERS for op in core.ops):
        return Nearest()
    rng = random.Random(seed)
    starts: list[tuple[float, int, ArrayInstance]] = []
    for draw in range(3 * N_SCORED):
        if len(starts) == N_SCORED:
            break
        with ctx.workprec(SEARCH_BITS):
            try:
                inst = drawn(context, draw)
            except NoValue:
                continue
            inst = _small(inst) if draw % 3 == 2 else inst
            coordinates = _coordinates(inst)
            if 0 < len(coordinates) <= MAX_COORDINATES:
                starts.append((_score(inst, core), draw, inst))
    starts = sorted((s for s in starts if math.isfinite(s[0])), key=lambda s: s[:2])
    starts = [*starts[: N_STARTS - 2], *rng.sample(starts[N_STARTS - 2 :], min(2, len(starts[N_STARTS - 2 :])))]
    best: tuple[float, ArrayInstance | None] = (math.inf, None)
    begun = time.process_time()
    for score, _, start in starts:
        if time.process_time() - begun > MAX_SECONDS:
            break
        score, place = _descend(core, start, score, rng)
        confirmed = _confirmed(place, core) if score < NEAR else None
        if confirmed is not None:
            return Nearest(violation=confirmed, place=confirmed)
        if score < best[0]:
            best = score, place
    score, found = best
    return Nearest(tie=found is not None and abs(score) < NEAR and _size(found) < FAR, place=found)


def _small(inst: ArrayInstance) -> ArrayInstance:
    """An instance near 0: constants of Lipschitz and Taylor bounds are tight there."""
    return _moved(inst, [x / 16 for x in _coordinates(inst)])


def _score(inst: ArrayInstance, core: L.Relation) -> float:
    """The smallest gap of the orders of a chain, divided by the size of its sides unless one is 0."""
    least = math.inf
    with ctx.workprec(SEARCH_BITS):
        try:
            if not exact.meets(inst):
                return math.inf
            for left, op, right in core.pairs():
                if op not in ORDERS:
                    continue
                one, two = (arb(exact.number(inst, side).mid()) for side in (left, right))
                scale = abs(one) + abs(two) if one != 0 and two != 0 else arb(1)
                if one == 0 and two == 0:
                    continue
                gap = (one - two) if op in (">", ">=") else (two - one)
                least = min(least, float(gap / scale))
        except (NoValue, OverflowError):
            return math.inf
    return least if math.isfinite(least) else math.inf


def _descend(core: L.Relation, start: ArrayInstance, score: float, rng: random.Random) -> tuple[float, ArrayInstance]:
    """Steps along random directions, longer after a success and shorter after a failure."""
    place, length = start, 0.5
    values = _coordinates(place)
    for step in range(N_STEPS):
        along = [rng.gauss(0, 1) for _ in values]
        if step % 2 == 0 and len(values) > 1:  # one coordinate only, every other time
            kept = rng.randrange(len(values))
            along = [x if j == kept else 0.0 for j, x in enumerate(along)]
        for sign in (1, -1):
            tried = _moved(place, [x + sign * length * a for x, a in zip(values, along, strict=True)])
            found = _score(tried, core)
            if found < score:
                score, place, values = found, tried, _coordinates(tried)
                length = min(2 * length, 8.0)
                break
        else:
            length *= 0.6
        if score < -1e-6 or length < 1e-9:
            break
    return score, place


def _confirmed(inst: ArrayInstance, core: L.Relation) -> ArrayInstance | None:
    """An instance of short fractions near another one that violates the relation for certain."""
    values = _coordinates(inst)
    for most in DENOMINATORS:
        rounded = _moved(inst, [float(Fraction(x).limit_denominator(most)) for x in values], most)
        with exact.precision():
            try:
                if exact.meets(rounded) and exact.holds(rounded, core) is False:
                    return rounded
            except NoValue:
                continue
    return None


# Instances as lists of floats.
def _free_numbers(inst: ArrayInstance) -> list[str]:
    ranges, used = inst.context.numbers, inst.context.used
    moves = [n for n in inst.numbers if n not in inst.sizes and ranges[n].point is None and not ranges[n].whole]
    return [n for n in moves if n in used]


def _free_arrays(inst: ArrayInstance) -> list[tuple[str, str]]:
    """The arrays of which entries can be moved, with their kinds."""
    every = inst.context.arrays.items()
    return [(n, a.kind) for n, a in every if a.kind in ("", "simplex", "symmetric") and n in inst.context.used]


def _coordinates(inst: ArrayInstance) -> list[float]:
    """The numbers of an instance that can be moved: numbers, entries of arrays, weights."""
    out = [float(inst.numbers[name]) for name in _free_numbers(inst)]
    for name, kind in _free_arrays(inst):
        out += [
            float(x) for i, row in enumerate(inst.arrays[name]) for x in (row[: i + 1] if kind == "symmetric" else row)
        ]
    return out


def _moved(inst: ArrayInstance, values: list[float], most: int = 2**40) -> ArrayInstance:
    """The instance at other coordinates; numbers stay in their ranges and weights keep their sum."""
    left = [Fraction(x).limit_denominator(most) for x in values]
    numbers, arrays = dict(inst.numbers), dict(inst.arrays)
    for name in _free_numbers(inst):
        x, where = left.pop(0), inst.context.numbers[name]
        if where.lo is not None and x < where.lo:
            x = where.lo
        if where.hi is not None and x > where.hi:
            x = where.hi
        numbers[name] = x if inside(where, x) else inst.numbers[name]
    for name, kind in _free_arrays(inst):
        table = inst.arrays[name]
        if kind == "":
            arrays[name] = [[left.pop(0) for _ in row] for row in table]
        elif kind == "simplex":
            weights = [max(left.pop(0), Fraction(0)) for _ in table]
            total = sum(weights)
            arrays[name] = [[w / total] for w in weights] if total else table
        else:
            half = [[left.pop(0) for _ in range(i + 1)] for i in range(len(table))]
            arrays[name] = [[half[max(i, j)][min(i, j)] for j in range(len(table))] for i in range(len(table))]
    return replace(inst, numbers=numbers, arrays=arrays, cache=dict[str, object]())


def _size(inst: ArrayInstance) -> float:
    return max((abs(x) for x in _coordinates(inst)), default=0.0)
