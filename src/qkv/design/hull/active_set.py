"""Vertex or not: for each key a selecting query, or the convex combination of others that dominates it."""

# Key j can be selected if and only if 0 is not in the hull of the differences y_i = k_i − k_j. nearest.py
# answers that for the y_i of a small working set. A query that selects j within the set is put to all
# candidates; the rivals that score above j enter the set, and of the old ones only those with weight stay.
# The gap of the least-squares problem falls in every round, so no set comes twice; it ends with a query that
# beats every rival, or with a combination. Worker processes import this module, so nothing here imports
# torch.

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.core import rounding_bounds
from qkv.core.rounding_bounds import Floats, Ints
from qkv.design.hull import origin_in_hull

BLOCK = 256
ROUNDS = 400
ENTRANTS = 24
"""So many rivals at least may enter a working set in one round."""

Combination = tuple[Ints, Floats]


class Settled(NamedTuple):
    """Answers about `items` in order: queries for those `found`, rows of sparse weights for the rest."""

    items: Ints
    found: NDArray[np.bool_]
    queries: Floats
    offsets: Ints
    indices: Ints
    weights: Floats


def settle(keys: Floats, items: Ints, candidates: Ints) -> Settled:
    """Decide items against the hull of the candidates (an item may be one of them)."""
    search = _Search(keys, candidates)
    size = block_size(len(candidates))
    pieces = (items[start : start + size] for start in range(0, len(items), size))
    return _gather(keys, items, [answer for piece in pieces for answer in search.block(piece)])


def insist(keys: Floats, items: Ints) -> Settled:
    """Decide items against all keys at once by linear programming: slow, and a last resort."""
    search = _Search(keys, np.arange(len(keys)))
    return _gather(keys, items, [search.close_call(int(j), search.around[j], last=True) for j in items])


def block_size(candidates: int) -> int:
    """Items that go through the rounds together: the same however blocks are shared out."""
    return min(BLOCK, max(1, 2**22 // max(1, candidates)))


def twins(keys: Floats, items: Ints) -> dict[int, int]:
    """The items that are equal to another item, each with that other."""
    groups: dict[bytes, list[int]] = {}
    for item in items.tolist():
        groups.setdefault((keys[item] + 0.0).tobytes(), []).append(item)  # adding 0 makes −0 into 0
    return {item: group[item == group[0]] for group in groups.values() if len(group) > 1 for item in group}


class _Search:
    """The keys in coordinates fit for the search, and the rounds of the search."""

    def __init__(self, keys: Floats, candidates: Ints) -> None:
        self.frame = rounding_bounds.frame(keys)
        width = np.abs(self.frame.offsets).max(axis=0)
        exponents = np.frexp(np.where(width > 0, width, width.max()))[1]
        # Vertices stay vertices when a coordinate is stretched, and powers of two make that exact.
        # Coordinates within a factor of a thousand of each other are left alone: gaps are then those of the
        # space that the user sees.
        if np.ptp(exponents) <= 10:
            exponents[:] = 0
        self.stretch = -exponents
        self.points = np.ldexp(self.frame.points, self.stretch)
        self.around = np.ldexp(self.frame.offsets, self.stretch)
        # In random order every group of candidates is a fair sample of them all.
        self.candidates = np.random.default_rng(0).permutation(candidates)
        self.place = np.full(len(keys), -1, dtype=np.int64)
        self.place[self.candidates] = np.arange(len(candidates))
        self.rivals = np.ascontiguousarray(self.around[self.candidates].T)
        groups = min(len(candidates), max(ENTRANTS, keys.shape[1] // 2))
        self.cuts = np.linspace(0, len(candidates), groups + 1).astype(np.int64)
        norms = np.sqrt(np.einsum("ij,ij->i", self.around, self.around))
        # What rounding leaves of Σ w_i y_i = 0: each y_i is off by a few u in each entry.
        self.rounding = 8 * rounding_bounds.gamma(keys.shape[1] + 8)
        self.error = 8 * rounding_bounds.gamma(3 * keys.shape[1] + 16) * (norms + norms.max(initial=0.0))

    def block(self, items: Ints) -> list[Floats | Combination]:
        """A query or a combination for each item; all items share the products of a round."""
        answers: dict[int, Floats | Combination] = {}
        working = {int(j): np.empty(0, dtype=np.int64) for j in items}
        queries = {j: self.around[j] for j in working}
        for turn in range(ROUNDS):
            active = [j for j in working if j not in answers]
            tried = np.array([queries[j] for j in active])
            going: list[int] = []
            for j, entrants, held in self._rivals(active, tried, [working[j] for j in active]):
                if len(entrants) and turn < ROUNDS - 1:
                    working[j] = np.concatenate([working[j], entrants])
                    going.append(j)
                else:
                    answers[j] = self._outward(queries[j]) if held else self.close_call(j, queries[j])
            if not going:
                break
            for j, rows, lengths in self._differences(going, [working[j] for j in going]):
                queries[j], working[j], weights = self._round(working[j], rows, lengths)
                if weights is not None:
                    answers[j] = working[j], weights
        return [answers[int(j)] for j in items]

    def _rivals(self, active: list[int], queries: Floats, working: list[Ints]) -> Iterator[tuple[int, Ints, bool]]:
        """For each item: who should enter its working set, and whether its query beats everyone else.

        Of each group of candidates the one that scores highest enters, unless it clearly scores below the
        item. One from each of several groups is nearly as good as the several highest of all, and far cheaper
        to find.
        """
        if not active:
            return
        items = np.array(active)
        scores = queries @ self.rivals
        every, place = np.arange(len(items)), self.place[items]
        scores[every[place >= 0], place[place >= 0]] = -np.inf
        sizes = np.sqrt(np.einsum("ij,ij->i", queries, queries))
        level = np.einsum("ij,ij->i", queries, self.around[items]) - self.error[items] * sizes
        owner, members = np.repeat(every, [len(w) for w in working]), self.place[np.concatenate(working)]
        close = owner[scores[owner, members] >= level[owner]]
        scores[owner, members] = -np.inf
        spans = pairwise(self.cuts)
        best = np.stack([scores[:, a:b].argmax(axis=1) + a for a, b in spans], axis=1)
        reached = np.take_along_axis(scores, best, axis=1)
        enter = (reached >= level[:, None]) & (reached > -np.inf)
        held = ~enter.any(axis=1) & (sizes > 0)
        held[close] = False
        for row, j in enumerate(active):
            yield j, self.candidates[best[row, enter[row]]], bool(held[row])

    def _differences(self, active: list[int], working: list[Ints]) -> Iterator[tuple[int, Floats, Floats]]:
        """Each item with the lifted directions and the lengths of the differences to its working set."""
        counts = [len(w) for w in working]
        flat = self.points[np.concatenate(working)] - self.points[np.repeat(active, counts)]
        rows, lengths = origin_in_hull.lift(flat)
        ends = np.cumsum(counts).tolist()
        for j, count, end in zip(active, counts, ends, strict=True):
            yield j, rows[end - count : end], lengths[end - count : end]

    def _round(self, members: Ints, rows: Floats, lengths: Floats) -> tuple[Floats, Ints, Floats | None]:
        """The query that selects the item, and the members in use; or, with weights, a combination."""
        if not lengths.all():  # a twin
            return rows[0, :-1], members[lengths == 0][:1], np.ones(1)
        weights, query, gap = origin_in_hull.least(rows)
        if gap < origin_in_hull.CLEAR:
            balanced, left = origin_in_hull.balance(rows, weights)
            if left <= self.rounding:
                return query, *_convex(members, balanced / lengths)
            query = origin_in_hull.sharpen(rows, weights)
        return query, members[weights > 0], None

    def close_call(self, j: int, query: Floats, last: bool = False) -> Floats | Combination:
        """Rounding hides whether this query selects j: look more sharply, then solve for all rivals."""
        if self._selects(j, query):
            return self._outward(query)
        others = self.candidates[self.candidates != j]
        rows, lengths = origin_in_hull.lift(self.points[others] - self.points[j])
        weights, query, _ = origin_in_hull.program(rows)
        used = np.flatnonzero(weights > 1e-12 * weights.max())
        rows, others, lengths = rows[used], others[used], lengths[used]
        weights, sharp, _ = origin_in_hull.least(rows)
        for trial in (query, sharp, origin_in_hull.sharpen(rows, weights)):
            if self._selects(j, trial):
                return self._outward(trial)
        balanced, left = origin_in_hull.balance(rows, weights)
        # A query that no bound confirms is no answer, and the caller will see that. But if no more can be
        # done, the combination that comes nearest is one: its residual bounds every margin, though not by
        # rounding alone.
        return _convex(others, balanced / lengths) if left <= self.rounding or last else self._outward(query)

    def _selects(self, j: int, query: Floats) -> bool:
        if not query.any():
            return False
        return bool(rounding_bounds.margins(self.frame, [j], [self._outward(query)], slack=4.0)[0] > 0)

    def _outward(self, query: Floats) -> Floats:
        """A query of the search as a unit query on the keys: x·q is kept if q is stretched as x is."""
        query = query / np.abs(query).max()
        outward = np.ldexp(query, self.stretch - self.stretch.max())
        return outward / np.sqrt(outward @ outward)


def _gather(keys: Floats, items: Ints, answers: list[Floats | Combination]) -> Settled:
    queries = [a for a in answers if not isinstance(a, tuple)]
    inside = [a for a in answers if isinstance(a, tuple)]
    return Settled(
        items,
        np.array([not isinstance(a, tuple) for a in answers], dtype=bool),
        np.array(queries).reshape(len(queries), keys.shape[1]),
        np.concatenate([[0], np.cumsum([len(c[0]) for c in inside])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *(c[0] for c in inside)]),
        np.concatenate([np.empty(0), *(c[1] for c in inside)]),
    )


def _convex(members: Ints, weights: Floats) -> Combination:
    used = np.flatnonzero(weights > 0)
    order = used[np.argsort(-weights[used], kind="stable")]
    return members[order], weights[order] / weights[order].sum()
