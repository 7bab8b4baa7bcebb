"""Search for counterexamples of comparisons: edges of ranges, special vectors, and variations of the worst instances.

All instances of a round are evaluated at once, along the first axis of the evaluator. The search only proposes: what it
finds is judged in exact arithmetic like every other instance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Frame, Instance, evaluate, sides
from qkv.claims.numeric.instances import MAX_ITEMS, basis_columns, family_members, instances, orthogonal_groups
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.quantifiers import QuantifierCase
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP, constant

Selection = np.ndarray[Any, np.dtype[Any]]
"""Indices or a mask along the first axis."""

POPULATION = 240  # instances of a round
ELITE = 24  # of which the next round is made
ROUNDS = 14
MORE_ITEMS = (0, 1, 2, 5)  # beyond the least number of items
MANY_ITEMS = 60
N_SUGGESTED = 6  # instances that a search suggests
N_WITH_CONDITIONS = 40  # instances where conditions on scores must be met
SUSPICIOUS = 1e-9  # a violation this large, relative to both sides, is looked at
NEAR_TIE = 1e-11  # a difference this small, relative to 1 and both sides, may be 0 between floats
MAX_SCANNED = 3  # numbers that are scanned
MAX_VALLEYS = 4  # extrema of a scan that are zoomed into
ZOOMS = 8
SCAN = 100.0  # how far a scan goes
SIMPLE = tuple(Fraction(x) for x in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "3", "1/3", "1/4", "4", "10", "-3"))
SIZES = (1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 30.0, 1e3, 1e6)
WHOLE = (1, 2, 3, 4, 5, 7, 10, 30, 100, 10**3, 10**6)
MODERATE = (1e-2, 1e3)  # distances from an open end, and sizes, at which a difference near 0 is no matter of scale


@dataclass(frozen=True)
class Suggestion:
    """An instance that may violate a comparison.

    Attributes:
        instance: The instance.
        near_tie: Whether both sides are so near each other that they may be equal close by.
    """

    instance: Instance
    near_tie: bool = False


def likely_counterexamples(case: QuantifierCase, seed: int = 0) -> Iterator[Suggestion]:
    """Instances that are likely to violate a comparison without statistics or limits; none for other statements."""
    context, core = case.context, case.core
    if isinstance(core, L.Limit) and not (context.noise or context.random):
        yield from (Suggestion(inst) for inst in instances(context, N_SUGGESTED, seed + 1, edges=True))
        return
    counted = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes((core, tuple(context.lets.values()))))
    if not isinstance(core, L.Relation) or counted or context.noise or context.random or context.limits:
        return
    if context.score_conditions:
        yield from (Suggestion(inst) for inst in instances(context, N_WITH_CONDITIONS, seed + 1, edges=True))
        return
    for n in _item_counts(context):
        search = _Search(context, core, n, np.random.default_rng(seed))
        yield from search.run()


def _item_counts(context: Context) -> list[int]:
    if context.all_items_named:
        return [len(context.items)]
    if not _has_items(context):
        return [1]
    where = context.numbers.get("n", Range())
    low = max(math.ceil(where.lo or 1), len(context.items), 1)
    high = MAX_ITEMS if where.hi is None else math.floor(where.hi)
    counts = [low + more for more in MORE_ITEMS if low + more <= high]
    return [n for n in dict.fromkeys([*counts, min(high, low + MANY_ITEMS)]) if n <= MAX_ITEMS]


def _has_items(context: Context) -> bool:
    """Whether the claim speaks of items, so that n is their number; else it is a number like any other."""
    named = {n.base for n in L.nodes(context.claim) if isinstance(n, L.Name)}
    summed = any(isinstance(n, L.Sum | L.Quantifier) for n in L.nodes(context.claim))
    return summed or bool({"alpha", "c", "v", "k"} & named) or bool(context.families)


class _Search:
    """The search at one number of items."""

    def __init__(self, context: Context, core: L.Relation, n: int, rng: np.random.Generator) -> None:
        self.context, self.core, self.n, self.rng = context, core, n, rng
        groups = [sum(len(family_members(context, b, n)) for b in g) for g in orthogonal_groups(context)]
        least = max([2, *groups, *((n,) if groups else ())])
        self.widths = {"m": max(2, len(basis_columns(context, "A"))), "p": max(2, len(basis_columns(context, "B")))}
        if context.bases:
            least = max(least, sum(self.widths.values()))
        self.d = least + least % 2
        self.constants = _constants(context)
        self.strict = bool({"<", ">", "!="} & set(core.ops))
        self.free = [
            base for base, f in context.families.items() if f.kind == "free" and base.upper() not in context.bases
        ]
        self.numbers = [name for name in context.numbers if name != "n" or not _has_items(context)]

    def run(self) -> Iterator[Suggestion]:
        """Suggest instances, those that violate the most first."""
        people = self._first()
        rounds = ROUNDS if self.n * self.d <= 400 else 1
        best: tuple[float, Instance] | None = None
        for turn in range(rounds):
            scores, relative = self._scores(people)
            order = np.argsort(-scores)
            first = [int(j) for j in (*order[:N_SUGGESTED], *np.argsort(-relative)[:N_SUGGESTED])]
            bad = [j for j in dict.fromkeys(first) if scores[j] > NEAR_TIE or relative[j] > SUSPICIOUS]
            yield from (Suggestion(self._single(people, j)) for j in bad[:N_SUGGESTED])
            if math.isfinite(scores[order[0]]) and (best is None or scores[order[0]] > best[0]):
                best = float(scores[order[0]]), self._single(people, int(order[0]))
            people = self._next(people, order[:ELITE], 0.5 * 0.25**turn)
        if best is not None and best[0] <= NEAR_TIE:
            yield from self._ties(*best)
            for name in self.numbers[:MAX_SCANNED]:
                for found in self._valleys(best[1], name):
                    yield from self._ties(*found)

    def _valleys(self, inst: Instance, name: str) -> Iterator[tuple[float, Instance]]:
        """The worst instances along one number, by a scan and a zoom into each local extremum."""
        where = self.context.numbers[name]
        if where.whole or where.point is not None:
            return
        lo = -SCAN if where.lo is None else float(where.lo)
        hi = SCAN if where.hi is None else float(where.hi)
        steps = np.geomspace(1e-3, SCAN, POPULATION // 4)
        ends = [lo + (hi - lo) * np.linspace(0, 1, POPULATION // 2)] if hi - lo <= SCAN else []
        every = np.concatenate([*ends, lo + steps, hi - steps, steps, -steps])
        places = np.resize(np.unique(every[(every >= lo) & (every <= hi)]), POPULATION)
        scores = self._along(inst, name, places)
        tops = [j for j in range(1, len(places) - 1) if scores[j] >= max(scores[j - 1], scores[j + 1], -1.0)]
        for j in sorted(tops, key=lambda j: -scores[j])[:MAX_VALLEYS]:
            centre, width = float(places[j]), float(max(abs(places[j] - places[j - 1]), abs(places[j + 1] - places[j])))
            for _ in range(ZOOMS):
                near = np.clip(centre + width * np.linspace(-1, 1, POPULATION), lo, hi)
                found = self._along(inst, name, near)
                centre, width = float(near[int(np.argmax(found))]), width / 50
            if np.isfinite(found.max()):
                one = self._along_instance(inst, name, np.array([centre]))
                yield float(found.max()), self._single(one, 0)

    def _along_instance(self, inst: Instance, name: str, places: Array) -> Instance:
        out = replace(
            inst, numbers=dict(inst.numbers), families=dict(inst.families), frames=dict(inst.frames), cache={}
        )
        out.numbers[name] = places[:, None, None]
        self._build_families(out)
        return out

    def _along(self, inst: Instance, name: str, places: Array) -> Array:
        return self._scores(self._along_instance(inst, name, places))[0]

    def _ties(self, score: float, inst: Instance) -> Iterator[Suggestion]:
        """The worst instance at simple fractions, and as it is if both sides nearly meet there."""
        for most in (12, 1000):
            simple = {}
            for name in self.numbers:
                x = float(inst.numbers[name][0, 0, 0])
                near = Fraction(x).limit_denominator(most)
                if abs(float(near) - x) <= 1e-3 * (1 + abs(x)) and self.context.numbers[name].holds(float(near)):
                    simple[name] = near
            other = replace(inst, numbers=dict(inst.numbers), fractions={**inst.fractions, **simple}, cache={})
            for name, near in simple.items():
                other.numbers[name] = np.full((1, 1, 1), float(near))
            other.frames = dict(inst.frames)
            self._build_families(other)
            yield Suggestion(other)
        yield Suggestion(inst, near_tie=self.strict and score > -NEAR_TIE and self._moderate(inst))

    def _moderate(self, inst: Instance) -> bool:
        """Whether no number is huge or close to an open end, and no vector huge or tiny."""
        for name in self.numbers:
            x, where = float(inst.numbers[name][0, 0, 0]), self.context.numbers[name]
            if where.whole:
                continue
            ends = [
                e for e, is_open in ((where.lo, where.lo_open), (where.hi, where.hi_open)) if e is not None and is_open
            ]
            if abs(x) > MODERATE[1] or any(abs(x - float(e)) < MODERATE[0] for e in ends):
                return False
        vectors = [v for base in self.free for v in inst.families[base].values()] + list(inst.vectors.values())
        return all(not v.any() or MODERATE[0] < float(np.linalg.norm(v)) < MODERATE[1] for v in vectors)

    # Instances.
    def _first(self) -> Instance:
        size = POPULATION
        inst = Instance(self.context, self.n, self.d, {}, {}, {}, {})
        inst.numbers["n"] = np.full((1, 1, 1), float(self.n))
        for name in self.numbers:
            inst.numbers[name] = self._values(self.context.numbers[name], size)[:, None, None]
        names = [name for name in self.numbers if not self.context.numbers[name].whole]
        if len(names) > 1:  # pairs of equal and of opposite numbers
            for j in range(size // 4):
                one, two = self.rng.permutation(len(names))[:2]
                inst.numbers[names[one]][j] = (-1) ** j * inst.numbers[names[two]][j]
        for base in self.free:
            members = family_members(self.context, base, self.n)
            inst.families[base] = {item: self._entries((size, self.d, 1)) for item in members}
        if "v" not in self.context.families:
            inst.families["v"] = {item: self._entries((size, self.d, 1)) for item in inst.items}
        for name, space in self.context.vectors.items():
            inst.vectors[name] = self._entries((size, self.d if space == "d" else self.widths[space], 1))
        self._special_vectors(inst)
        self._bases(inst)
        self._finish(inst)
        return inst

    def _values(self, where: Range, size: int) -> Array:
        """Ends of a range and places close to them, constants of the claim, simple numbers, and many sizes."""
        if where.point is not None:
            return np.full(size, float(where.point))
        lo = -math.inf if where.lo is None else float(where.lo)
        hi = math.inf if where.hi is None else float(where.hi)
        if where.whole:
            found = [x for x in (lo, lo + 1, lo + 2, hi, *WHOLE) if math.isfinite(x) and where.holds(x)]
            return self.rng.choice(np.array(found, dtype=float), size)
        near = [end + sign * step for end, sign in ((lo, 1), (hi, -1)) for step in (0.0, 1e-9, 1e-4, 0.01, 0.1)]
        fixed = [x for x in (*near, *(float(c) for c in self.constants)) if math.isfinite(x) and where.holds(x)]
        base = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0.0))
        sign = 1.0 if math.isfinite(lo) else -1.0 if math.isfinite(hi) else self.rng.choice([-1.0, 1.0], size)
        spread = base + sign * np.abs(self.rng.standard_normal(size)) * self.rng.choice(SIZES, size)
        if math.isfinite(lo) and math.isfinite(hi):
            spread = self.rng.uniform(lo, hi, size)
        spread = np.array([float(f"{x:.4g}") for x in spread])
        out: Array = np.where(self.rng.random(size) < 0.5, spread, self.rng.choice(fixed, size) if fixed else spread)
        out[: len(fixed)] = fixed[:size]
        return self.rng.permutation(out)

    def _entries(self, shape: tuple[int, ...]) -> Array:
        sizes = self.rng.choice([1e-3, 0.1, 0.3, 1.0, 1.0, 3.0, 30.0], (shape[0], 1, 1))
        entries = np.where(
            self.rng.random((shape[0], 1, 1)) < 0.5,
            self.rng.standard_normal(shape),
            self.rng.integers(-1, 2, shape),
        )
        return np.round(entries * sizes, 4)

    def _special_vectors(self, inst: Instance) -> None:
        """Make some vectors zero, equal, opposite, parallel or orthogonal, in half of the instances."""
        tables = [inst.families[base] for base in [*self.free, *(["v"] if "v" not in self.context.families else [])]]
        places = [(t, i) for t in tables for i in t]
        places += [(inst.vectors, name) for name, space in self.context.vectors.items() if space == "d"]
        for name, space in self.context.vectors.items():
            if space != "d":
                inst.vectors[name][:: max(2, POPULATION // 10)] = 0.0
        if not places:
            return
        unit = np.eye(self.d)
        for j in range(POPULATION // 2):
            for _ in range(1 + j % 3):
                table, key = places[int(self.rng.integers(len(places)))]
                other_table, other = places[int(self.rng.integers(len(places)))]
                kind = int(self.rng.integers(6))
                new = [
                    0.0 * table[key][j],
                    other_table[other][j],
                    -other_table[other][j],
                    2.0 * other_table[other][j],
                    unit[int(self.rng.integers(self.d))][:, None],
                    0.001 * other_table[other][j],
                ][kind]
                table[key][j] = new
        for j in range(POPULATION // 2, POPULATION // 2 + 8):  # all of them at once
            for step, (table, key) in enumerate(places):
                first = places[0][0][places[0][1]][j]
                table[key][j] = [0.0 * first, first, (-1.0) ** step * first, unit[step % self.d][:, None]][j % 4]

    def _bases(self, inst: Instance) -> None:
        """Bases of unit vectors; without right angles, B has a frame of its own."""
        offset = 0
        for name, space in self.context.bases.items():
            reflections: tuple[tuple[int, ...], ...] = ()
            if offset and not self.context.right_angles:
                offset, reflections = 0, (tuple(int(x) for x in self.rng.integers(1, 3, self.d)),)
            frame = Frame(reflections, {s: j for j, s in enumerate(basis_columns(self.context, name))}, offset)
            own = frame.matrix(self.d)[:, offset : offset + self.widths[space]]
            offset += self.widths[space]
            inst.frames[name], inst.bases[name] = frame, own[None]
            inst.families[name.lower()] = {s: own[:, j][None, :, None] for s, j in frame.columns.items()}

    def _finish(self, inst: Instance) -> None:
        """Meet the conditions between numbers, and build the orthogonal families, whose norms may be numbers."""
        inst.cache.clear()
        for order in self.context.number_conditions:
            (left, right), (op,) = order.sides, order.ops
            if not isinstance(left, L.Name) or str(left) not in self.numbers:
                left, right, op = right, left, MIRRORED_OP[op]
            if not isinstance(left, L.Name) or str(left) not in self.numbers:
                continue
            try:
                bound = evaluate(inst, right)
            except CannotEvaluate:
                continue
            size = len(inst.numbers[str(left)])
            slack = self.rng.choice([0.0, 1e-9, 1e-3, 0.1, 1.0, 10.0], (size, 1, 1)) * self.rng.random((size, 1, 1))
            old = inst.numbers[str(left)]
            fine = {">": old > bound, ">=": old >= bound, "<": old < bound, "<=": old <= bound}.get(op, old == bound)
            moved = bound + slack if op in (">", ">=") else bound - slack if op in ("<", "<=") else bound + 0.0 * slack
            inst.numbers[str(left)] = np.where(fine & (self.rng.random((size, 1, 1)) < 0.6), old, moved)
            inst.cache.clear()
        self._build_families(inst)

    def _build_families(self, inst: Instance) -> None:
        unit = np.eye(self.d)
        for group in orthogonal_groups(self.context):
            offset = 0
            for base in group:
                members = family_members(self.context, base, self.n)
                norm = self.context.families[base].norm
                length = np.ones((1, 1, 1)) if norm is None else evaluate(inst, norm)
                frame = Frame((), {item: offset + j for j, item in enumerate(members)})
                inst.frames[base] = frame
                inst.families[base] = {i: length * unit[:, j][None, :, None] for i, j in frame.columns.items()}
                offset += len(members)
        inst.cache.clear()

    def _next(self, people: Instance, elite: Selection, scale: float) -> Instance:
        """The best instances, and copies of them in which numbers and vectors are moved by about `scale`."""
        parents = np.concatenate([elite, self.rng.choice(elite, POPULATION - len(elite))])
        fresh = np.arange(POPULATION) >= len(elite)
        out = replace(
            people, numbers=dict(people.numbers), families={}, vectors={}, cache={}, frames=dict(people.frames)
        )
        for name in self.numbers:
            old = people.numbers[name][parents]
            step = self.rng.standard_normal(old.shape) * scale * self.rng.choice([0.01, 1.0], old.shape)
            moved = np.where(self.rng.random(old.shape) < 0.5, old * np.exp(step), old + step)
            other = self._values(self.context.numbers[name], POPULATION)[:, None, None]
            moved = np.where(self.rng.random(old.shape) < 0.1, other, moved)
            moved = np.where(self.rng.random(old.shape) < 0.3, old, moved)
            keep = self.context.numbers[name].whole or self.context.numbers[name].point is not None
            out.numbers[name] = np.where(fresh[:, None, None] & (not keep), moved, old)
        tables = {base: table for base, table in people.families.items() if base in self.free or base == "v"}
        out.families = {b: t for b, t in people.families.items() if b not in tables}
        for base, table in tables.items():
            varied = base in self.free or "v" not in self.context.families
            out.families[base] = {i: self._moved(v[parents], fresh, scale) if varied else v for i, v in table.items()}
        out.vectors = {name: self._moved(v[parents], fresh, scale) for name, v in people.vectors.items()}
        self._finish(out)
        return out

    def _moved(self, old: Array, fresh: Selection, scale: float) -> Array:
        size = len(old)
        move = self.rng.standard_normal(old.shape) * scale * (0.1 + np.abs(old).max(axis=(1, 2), keepdims=True))
        found = np.where(
            self.rng.random((size, 1, 1)) < 0.3, old * np.exp(scale * self.rng.standard_normal()), old + move
        )
        return np.where(fresh[:, None, None] & (self.rng.random((size, 1, 1)) < 0.7), found, old)

    def _single(self, people: Instance, j: int) -> Instance:
        """One instance of a round, with fractions for numbers that stand for them."""

        def at(values: Array) -> Array:
            return values[j : j + 1] if len(values) > 1 else values

        inst = replace(
            people,
            numbers={name: at(v) for name, v in people.numbers.items()},
            families={b: {i: at(v) for i, v in table.items()} for b, table in people.families.items()},
            vectors={name: at(v) for name, v in people.vectors.items()},
            cache={},
            cancelled=set(),
            fractions={},
        )
        for name in self.numbers:
            x = float(inst.numbers[name][0, 0, 0])
            exact = next((c for c in self.constants if float(c) == x), None)
            if exact is not None:
                inst.fractions[name] = exact
        if "n" in self.numbers:
            inst.n = 1
        return inst

    # Scores.
    def _scores(self, people: Instance) -> tuple[Array, Array]:
        """How much each instance violates the comparison, relative to 1 and its sides, and relative to its sides alone.

        Both are -inf where an instance does not meet what is given.
        """
        worst, relative = np.full((2, POPULATION), -np.inf)
        with np.errstate(all="ignore"):
            try:
                for left, op, right in self.core.pairs():
                    one, two = sides(people, left, right)
                    gap = one - two
                    size = np.abs(one).max(axis=(1, 2)) + np.abs(two).max(axis=(1, 2)) + 1e-300
                    amount = np.abs(gap) if op == "=" else -np.abs(gap) if op == "!=" else gap
                    each = (-amount if op in (">", ">=") else amount).max(axis=(1, 2))
                    each = np.where(np.isfinite(each), each, -np.inf)
                    worst, relative = np.maximum(worst, each / (1 + size)), np.maximum(relative, each / size)
            except (CannotEvaluate, ValueError):
                return worst, relative
            allowed = self._allowed(people)
            return np.where(allowed, worst, -np.inf), np.where(allowed, relative, -np.inf)

    def _allowed(self, people: Instance) -> Array:
        fine = np.ones(POPULATION, dtype=bool)
        for name in self.numbers:
            where, x = self.context.numbers[name], people.numbers[name][:, 0, 0]
            if where.lo is not None:
                fine &= x > float(where.lo) if where.lo_open else x >= float(where.lo)
            if where.hi is not None:
                fine &= x < float(where.hi) if where.hi_open else x <= float(where.hi)
        for order in self.context.number_conditions:
            gap = (evaluate(people, order.sides[0]) - evaluate(people, order.sides[1])).reshape(-1)
            op = order.ops[0]
            good = {
                ">": gap > 0,
                ">=": gap >= 0,
                "<": gap < 0,
                "<=": gap <= 0,
                "=": np.abs(gap) <= 1e-12,
                "!=": gap != 0,
            }
            fine &= good[op]
        return fine


def _constants(context: Context) -> list[Fraction]:
    """Numbers that the claim holds, their opposites, inverses and roots, and simple ones."""
    found: dict[Fraction, None] = dict.fromkeys(SIMPLE)
    for node in L.nodes(context.claim):
        here = constant(node) if isinstance(node, L.Num | L.Neg | L.Op) else None
        if here is None or abs(here) > 10**6:
            continue
        more = [here, -here, here + 1, here - 1, here / 2]
        more += [1 / here, -1 / here] if here else []
        root = math.isqrt(abs(here.numerator)), math.isqrt(here.denominator)
        if here > 0 and root[0] ** 2 == here.numerator and root[1] ** 2 == here.denominator:
            more += [Fraction(*root), -Fraction(*root)]
        found |= dict.fromkeys(more)
    return list(found)
