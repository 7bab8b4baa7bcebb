"""Evidence: how many instances of a claim agree with it, and the first that does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from qkv.claims.numeric import noise_moments
from qkv.claims.numeric.confirmation import Violation, equality_at, moves_outputs, permutations_of, violation
from qkv.claims.numeric.counterexample import python_assignments
from qkv.claims.numeric.counterexample_search import likely_counterexamples
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Instance, NotLoaded, evaluate, sides
from qkv.claims.numeric.instances import conditions_hold, holds, instances
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
N_PARTS = 10  # of the draws, whose spread shows the error of a statistic
ERRORS_BEYOND = 12.0  # errors by which draws contradict a statement
TOLERANCE = 1e-7  # of an equality, relative to the size of its sides
ROUNDING = 1e-12  # below this, relative to the size of its sides, a difference is rounding
TRIED_NUMBERS = (*np.linspace(-4, 4, 33), 10.0, -10.0)  # for "no real r makes ..."
ROOT_GRID = np.unique(np.concatenate([s * np.geomspace(1e-6, 1e6, 145) for s in (-1, 1)] + [np.linspace(-12, 12, 193)]))
MAX_ROOTS = 4  # that are tried


@dataclass(frozen=True)
class Evidence:
    """How many instances agreed, disagreed or were not clear.

    Attributes:
        agree: Instances on which the statement holds.
        disagree: Instances on which it does not, as far as floating point or a path towards a limit shows.
        unclear: Instances that could not be evaluated, or on which the difference is within the error.
        counterexample: The first confirmed instance that disagreed, else the first, as Python assignments.
        share: The share of the random draws for which a limit holds.
        rough: Of the instances that agreed, how many only within the error of a sample.
        exact: Whether exact moments of the noise were used.
        confirmed: Of the instances that disagreed, how many do so for certain: in exact arithmetic, or by integrals
            with an error bound.
        drawn: Of the unclear instances, how many disagree as far as statistics of draws show, which is not certain.
        contradicted: Of those, how many by many times the error of the draws.
    """

    agree: int
    disagree: int
    unclear: int
    counterexample: str | None = None
    share: float | None = None
    rough: int = 0
    exact: bool = False
    confirmed: int = 0
    drawn: int = 0
    contradicted: int = 0

    @property
    def total(self) -> int:
        """How many instances were tried."""
        return self.agree + self.disagree + self.unclear


@dataclass
class Judgement:
    """What one instance shows.

    Attributes:
        verdict: Whether the statement holds on it (None: not clear).
        share: For which share of its draws.
        certain: Whether it violates the statement for certain.
        violation: Both sides where it does, if they were computed exactly.
        drawn: Whether statistics of draws speak against the statement.
        contradicted: Whether they do so by many times their error.
        draw: Which of the draws is the counterexample.
    """

    verdict: bool | None
    share: float | None = None
    certain: bool = False
    violation: Violation | None = None
    drawn: bool = False
    contradicted: bool = False
    draw: int = 0


def gather(
    cases: Sequence[QuantifierCase],
    count: int = N_INSTANCES,
    seed: int = 0,
    hint: float | None = None,
    thorough: bool = False,
) -> Evidence:
    """Try a claim on instances, case by case of its index.

    Args:
        cases: The cases.
        count: How many instances.
        seed: Of the random ones.
        hint: A number to try first where none should do.
        thorough: Whether to search for a counterexample where no instance disagrees.

    Returns:
        The tally.
    """
    if any(isinstance(case.core, L.Never) and case.core.kind == "query" for case in cases):
        return Evidence(0, 0, 0)
    tally = _Tally()
    for case in cases:
        context = case.context
        few = context.noise or context.random or isinstance(case.core, L.Never)
        wanted = max(MIN_INSTANCES_PER_CASE, (N_RANDOM_INSTANCES if few else count) // len(cases))
        for inst in instances(context, wanted, seed):
            tally.add(inst, case.core, _judged(inst, case.core, hint))
            if thorough and isinstance(case.core, L.Relation) and case.core.ops == ("!=",) and not tally.confirmed:
                meeting = _meeting(inst, case.core)
                if meeting is not None:
                    tally.add(inst, case.core, meeting)
        if thorough and not tally.disagree:
            for suggested in likely_counterexamples(case, seed):
                if not _meets(suggested.instance):
                    continue
                found = _judged(suggested.instance, case.core, hint)
                if found.verdict is True and suggested.near_tie:
                    found = Judgement(None)  # both sides may be equal between two floats
                if found.verdict is not True:
                    tally.add(suggested.instance, case.core, found)
                if found.certain:
                    break
    return tally.evidence()


def _meets(inst: Instance) -> bool:
    """Whether an instance meets the conditions of its claim, up to rounding."""
    try:
        return conditions_hold(inst)
    except (CannotEvaluate, ValueError, KeyError):
        return False


class _Tally:
    """The counts so far, and the counterexample that is shown."""

    def __init__(self) -> None:
        self.agree = self.disagree = self.unclear = self.rough = self.confirmed = self.drawn = self.contradicted = 0
        self.exact = False
        self.shares: list[float] = []
        self.first: tuple[Instance, L.Core, Judgement] | None = None

    def add(self, inst: Instance, core: L.Core, found: Judgement) -> None:
        """Count one instance."""
        if found.share is not None:
            self.shares.append(found.share)
        self.agree += found.verdict is True
        self.rough += found.verdict is True and inst.sampled
        self.disagree += found.verdict is False
        self.unclear += found.verdict is None
        self.confirmed += found.certain
        self.drawn += found.drawn
        self.contradicted += found.contradicted
        self.exact |= inst.error > 0
        better = self.first is None or (found.certain and not self.first[2].certain)
        if (found.verdict is False or found.drawn) and better:
            self.first = (inst, core, found)

    def evidence(self) -> Evidence:
        """The tally with its counterexample as text."""
        shown = None
        if self.first is not None:
            inst, core, found = self.first
            shown = None if _shows_nothing(inst, core) else python_assignments(inst, core, found.draw, found.violation)
        share = float(np.mean(self.shares)) if self.shares else None
        counts = (self.agree, self.disagree, self.unclear)
        return Evidence(*counts, shown, share, self.rough, self.exact, self.confirmed, self.drawn, self.contradicted)


def _shows_nothing(inst: Instance, core: L.Core) -> bool:
    """Whether both sides of a limit are equal up to rounding on an instance, so that it shows no difference."""
    if (
        not isinstance(core, L.Limit)
        or not core.tends
        or any(isinstance(n, L.Name) and n.base == "oo" for n in L.nodes(core.right))
    ):
        return False
    try:
        one, two = sides(inst, core.left, core.right)
    except (CannotEvaluate, ValueError):
        return False
    return one.shape == two.shape and bool(np.allclose(one, two, rtol=ROUNDING, atol=ROUNDING))


def _judged(inst: Instance, core: L.Core, hint: float | None) -> Judgement:
    """What one instance shows; one that cannot be evaluated is not clear."""
    try:
        return _judge(inst, core, hint)
    except (CannotEvaluate, ValueError, OverflowError, ZeroDivisionError, KeyError, np.linalg.LinAlgError):
        return Judgement(None)


def _judge(inst: Instance, core: L.Core, hint: float | None) -> Judgement:
    if isinstance(core, L.Relation):
        return Judgement(_relation_in_limit(inst, core)) if inst.context.limits else _relation(inst, core)
    if isinstance(core, L.Limit):
        verdict, share = limit(inst, core)
        if verdict is False and inst.samples == 1:
            _move_far(inst, core)
        return Judgement(verdict, share)
    if isinstance(core, L.Distribution):
        head = f"{core.name.subs[0]}," if core.name.subs else ""
        weights = [evaluate(inst, _alpha(head, i)) for i in inst.items]
        sums_to_one = np.abs(np.sum(weights, axis=0) - 1).max() < 1e-9
        return Judgement(bool(sums_to_one and min(w.min() for w in weights) >= 0))
    if isinstance(core, L.Never):
        return _never(inst, core, hint)
    if isinstance(core, L.Within):
        return _within(inst, core)
    if isinstance(core, L.Equivariant):
        return _equivariant(inst, core.name.base)
    raise CannotEvaluate("this kind of statement")


def _move_far(inst: Instance, core: L.Limit) -> None:
    """Move an instance as far towards its limit as both sides have finite values in floating point."""
    for place in reversed(range(len(PATH))):
        try:
            move_along(inst, approaches(inst, core), place)
            if all(np.isfinite(evaluate(inst, side)).all() for side in (core.left, core.right)):
                return
        except CannotEvaluate:
            continue


def _alpha(head: str, item: str) -> L.Name:
    return L.Name("alpha", (*(h for h in head.split(",") if h), item), (0, 0))


def _statistics_in(inst: Instance, core: L.Node) -> bool:
    """Whether a statement, or a definition of the claim, holds a statistic."""
    return any(isinstance(n, L.Stat | L.Chance) for n in L.nodes((core, tuple(inst.context.lets.values()))))


def _relation(inst: Instance, core: L.Relation) -> Judgement:
    """Compare both sides: in exact arithmetic without statistics; else by draws, and by exact moments where they apply.

    Statistics of draws never show that a statement is false: at most that it is not clear.
    """
    if _statistics_in(inst, core):
        verdict = _compared(inst, core)
        if inst.sampled and quadrature_applies(inst):
            inst.exact = noise_moments
            inst.cache.clear()
            verdict = _compared(inst, core)
        if verdict is False and inst.sampled:
            return Judgement(None, drawn=True, contradicted=_beyond_error(inst, core))
        return Judgement(verdict, certain=verdict is False and inst.error > 0)
    if inst.samples == 1:
        try:
            found = violation(inst, core)
        except CannotEvaluate:  # too large
            found = True
        if isinstance(found, Violation):
            return Judgement(False, certain=True, violation=found)
        if not found:
            return Judgement(True)
    verdict = _compared(inst, core)
    if verdict is not False:
        return Judgement(verdict)
    draw = _worst_draw(inst, core)
    try:
        found = violation(inst, core, draw) if inst.samples > 1 else True
    except CannotEvaluate:
        found = True
    certain = found if isinstance(found, Violation) else None
    return Judgement(False, certain=certain is not None, violation=certain, draw=draw)


def _beyond_error(inst: Instance, core: L.Relation) -> bool:
    """Whether draws violate one comparison by many times their error, which parts of the draws show.

    Where few draws dominate an average (the mean of an exponential), the parts do not show the error.
    """
    inst.uneven = False
    for left, op, right in core.pairs():
        gap = _gap(inst, left, right)
        if gap.shape[0] != 1 or inst.uneven or not np.isfinite(gap).all():
            continue
        parts = np.stack([_gap(part, left, right) for part in _parts_of_draws(inst)])
        error = parts.std(axis=0, ddof=1) / np.sqrt(N_PARTS)
        wrong = {"=": np.abs(gap), "!=": 0 * gap, "<": gap, "<=": gap, ">": -gap, ">=": -gap}[op]
        size = 1 + max(float(np.abs(evaluate(inst, side)).max()) for side in (left, right))
        if bool(np.any(wrong > ERRORS_BEYOND * error + TOLERANCE * size)):
            return True
    return False


def _gap(inst: Instance, left: L.Expr, right: L.Expr) -> Array:
    one, two = sides(inst, left, right)
    return one - two


def _parts_of_draws(inst: Instance) -> Iterator[Instance]:
    """The same instance with disjoint parts of its draws."""
    size = inst.samples // N_PARTS

    def cut(table: dict[str, Array], j: int) -> dict[str, Array]:
        return {k: v[j * size : (j + 1) * size] if len(v) == inst.samples else v for k, v in table.items()}

    for j in range(N_PARTS):
        yield replace(inst, samples=size, numbers=cut(inst.numbers, j), normal=cut(inst.normal, j), cache={})


def _worst_draw(inst: Instance, core: L.Relation) -> int:
    """The draw at which a comparison fails the most."""
    worst, where = -np.inf, 0
    for left, op, right in core.pairs():
        one, two = sides(inst, left, right)
        if one.shape[1:] != two.shape[1:] and not (is_zero_literal(left) or is_zero_literal(right)):
            return 0
        gap = one - two
        amount = np.abs(gap) if op == "=" else -np.abs(gap) if op == "!=" else gap if op in ("<", "<=") else -gap
        each = np.where(np.isfinite(amount), amount, -np.inf).max(axis=(1, 2))
        if each.max() > worst:
            worst, where = float(each.max()), int(each.argmax())
    return where


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
        return _relation(inst, core).verdict
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


def _never(inst: Instance, core: L.Never, hint: float | None) -> Judgement:
    """Try many values of the number: none may make the statement true."""
    name = str(core.name)
    where = inst.context.numbers.get(name, Range())
    unclear = False
    roots = [] if isinstance(core.inner, L.Limit) else list(_roots(inst, core.inner, name, where))
    for value in [*([] if hint is None else [hint]), *TRIED_NUMBERS, *roots]:
        if not where.holds(float(value)):
            continue
        inst.put(name, float(value))
        if isinstance(core.inner, L.Limit):
            if limit(inst, core.inner)[0]:
                return Judgement(False)
        elif value in roots or _compared(inst, core.inner):
            if equality_at(inst, core.inner, name, float(value), where):
                return Judgement(False, certain=True)
            unclear = True  # both sides are only near each other
    return Judgement(None if unclear else True)


def _meeting(inst: Instance, core: L.Relation) -> Judgement | None:
    """Move one number to where both sides meet for certain, which is said not to happen; None if none is found."""
    context = inst.context
    if inst.samples > 1 or context.limits or context.score_conditions or _statistics_in(inst, core):
        return None
    equal = replace(core, ops=("=",))
    for name, where in context.numbers.items():
        before = inst.numbers.get(name)
        if before is None or where.whole or where.point is not None:
            continue
        try:
            for root in list(_roots(inst, equal, name, where)):
                inst.put(name, root)
                if equality_at(inst, equal, name, root, where):
                    return Judgement(False, certain=True)
        except (CannotEvaluate, ValueError):
            pass
        inst.numbers[name] = before
        inst.cache.clear()
    return None


def _roots(inst: Instance, core: L.Relation, name: str, where: Range) -> Iterator[float]:
    """Numbers at which left minus right changes its sign, by bisection between the places of a grid."""
    if core.ops != ("=",):
        return
    places = np.array([x for x in ROOT_GRID if where.holds(float(x))])
    inst.numbers[name] = places[:, None, None]
    inst.cache.clear()
    with np.errstate(all="ignore"):
        gap = evaluate(inst, core.sides[0]) - evaluate(inst, core.sides[1])
    if gap.shape != (len(places), 1, 1):
        return
    signs = np.sign(gap[:, 0, 0])
    from scipy.optimize import brentq  # here, since its import takes longer than most claims

    def at(x: float) -> float:
        inst.put(name, x)
        return float((evaluate(inst, core.sides[0]) - evaluate(inst, core.sides[1]))[0, 0, 0])

    for j in np.flatnonzero(signs[:-1] * signs[1:] < 0)[:MAX_ROOTS]:
        yield float(brentq(at, places[j], places[j + 1], xtol=1e-15, rtol=1e-15))


def _within(inst: Instance, core: L.Within) -> Judgement:
    approach = approaches(inst, core)
    wanted = float(evaluate(inst, core.probability)[0, 0, 0])
    ends, drawn = None, inst.samples > 1
    if approach:
        move_along(inst, approach, len(PATH) - 1)
    elif quadrature_applies(inst):
        found = noise_moments.nearness(inst, core)
        if found is not None:
            (low, high), drawn = found
            ends = low, high
            inst.error = 0.0 if drawn else 1e-12 + high - low
    if ends is None:
        gap = evaluate(inst, core.left) - evaluate(inst, core.target)
        distance = np.sqrt((gap**2).sum(axis=(1, 2)))
        share = float(np.mean(distance <= float(evaluate(inst, core.radius)[0, 0, 0])))
        # One random length is spread over its quantiles; several are drawn.
        band = 0.0 if inst.samples == 1 else 0.001 if approach and _lengths(inst) == 1 else 0.02
        ends = (share - band, share + band)
    low, high = ends
    verdict = True if low >= wanted and (core.op == ">=" or low > wanted) else False if high < wanted else None
    share = (low + high) / 2
    if verdict is False and drawn:
        return Judgement(None, share, drawn=True)
    return Judgement(verdict, share, certain=verdict is False and not approach)


def _lengths(inst: Instance) -> int:
    """How many random numbers are left after the small noise has vanished."""
    wide = [i for i, g in inst.context.noise.items() if any(isinstance(n, L.Transpose) for n in L.nodes(g.spread))]
    return len(inst.context.random) + sum(inst.n if i == "i" else 1 for i in wide)


def _equivariant(inst: Instance, name: str) -> Judgement:
    """Compare the outputs of permuted tokens."""
    context, count = inst.context, len(inst.context.tokens)
    tokens = {f"token_{i}": evaluate(inst, L.Name("x", (i,), (0, 0))) for i in context.tokens}

    def outputs(of: Instance) -> dict[tuple[int, ...], Array]:
        places = product(range(count), repeat=2 if name == "alpha" else 1)
        return {p: evaluate(of, L.Name(name, tuple(context.tokens[i] for i in p), (0, 0))) for p in places}

    before = outputs(inst)
    for order, moved in permutations_of(context):
        after = outputs(replace(inst, context=moved, cache={}, vectors={**inst.vectors, **tokens}))
        if not all(np.isfinite(after[p]).all() and np.isfinite(before[p]).all() for p in after):
            raise CannotEvaluate("values that overflow")
        if not all(np.allclose(after[p], before[tuple(order[i] for i in p)], atol=1e-9) for p in after):
            return Judgement(False, certain=moves_outputs(inst, name))
    return Judgement(True)


def certain_violation(cases: Sequence[QuantifierCase]) -> str | None:
    """An instance of a claim that violates it for certain, as Python assignments; None if none of a few does."""
    for case in cases:
        for inst in instances(case.context, MIN_INSTANCES_PER_CASE):
            found = _judged(inst, case.core, None)
            if found.certain:
                return python_assignments(inst, case.core, found.draw, found.violation)
    return None


def smallest(cases: Sequence[QuantifierCase]) -> str | None:
    """The first instance of a claim that violates it for certain, else the smallest, with both sides there, as Python
    assignments."""
    first: tuple[Instance, L.Core, Judgement] | None = None
    for case in cases:
        for inst in instances(case.context, MIN_INSTANCES_PER_CASE):
            found = _judged(inst, case.core, None)
            if found.certain:
                return python_assignments(inst, case.core, found.draw, found.violation)
            first = first or (inst, case.core, found)
    return None if first is None else python_assignments(first[0], first[1], first[2].draw)
