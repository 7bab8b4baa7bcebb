"""For each key a query that selects it, or a convex combination of other keys: search with an active set."""

# Key j can be selected if and only if 0 is not in the hull of the differences y_i = k_i − k_j. origin_in_hull.py
# decides that for the y_i of a small working set. A query that selects j within the set is evaluated on all
# candidates; rivals that score above j enter the set, and of the old members only those with positive weight stay.
# The gap of the least-squares problem falls in every round, so no set occurs twice; the search ends with a query that
# scores j above every rival, or with a combination. Worker processes import this module, so nothing here imports torch.

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from qkv.core import rounding_bounds
from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.design.hull import origin_in_hull

MAX_BLOCK_ITEMS = 256
"""Items that share the matrix products of a round."""
MAX_ROUNDS = 400
MIN_GROUPS = 24
"""Groups of candidates, at least; in one round, one rival of each group can enter a working set."""

Combination = tuple[IntArray, FloatArray]


class Decisions(NamedTuple):
    """Decisions about `items`, in order.

    Attributes:
        items: The items.
        found: Whether a selecting query was found, per item.
        queries: The queries of the items found, as rows.
        offsets: Row r of the sparse weights of the other items is indices[offsets[r]:offsets[r + 1]].
        indices: Keys of the convex combinations.
        weights: Their weights.
    """

    items: IntArray
    found: BoolArray
    queries: FloatArray
    offsets: IntArray
    indices: IntArray
    weights: FloatArray


def decide(keys: FloatArray, items: IntArray, candidates: IntArray) -> Decisions:
    """Decide which items lie outside the hull of the candidates; an item may itself be a candidate."""
    search = _Search(keys, candidates)
    size = block_size(len(candidates))
    pieces = (items[start : start + size] for start in range(0, len(items), size))
    return _gather(keys, items, [answer for piece in pieces for answer in search.block(piece)])


def decide_by_linear_program(keys: FloatArray, items: IntArray) -> Decisions:
    """Decide items against all keys by one linear program each: slow, used as a last resort."""
    search = _Search(keys, np.arange(len(keys)))
    return _gather(keys, items, [search.resolve_close_call(int(j), search.offsets[j], last=True) for j in items])


def block_size(candidates: int) -> int:
    """Items per block; it depends on the number of candidates only, so that results do not depend on the workers."""
    return min(MAX_BLOCK_ITEMS, max(1, 2**22 // max(1, candidates)))


def duplicates(keys: FloatArray, items: IntArray) -> dict[int, int]:
    """Items that are equal to another item, each with that other."""
    groups: dict[bytes, list[int]] = {}
    for item in items.tolist():
        groups.setdefault((keys[item] + 0.0).tobytes(), []).append(item)  # −0 + 0 is 0
    return {item: group[item == group[0]] for group in groups.values() if len(group) > 1 for item in group}


class _Search:
    """The keys in scaled coordinates, and the rounds of the search."""

    def __init__(self, keys: FloatArray, candidates: IntArray) -> None:
        self.scaled = rounding_bounds.scaled_keys(keys)
        width = np.abs(self.scaled.offsets).max(axis=0)
        exponents = np.frexp(np.where(width > 0, width, width.max()))[1]
        # Stretching a coordinate keeps vertices, and powers of two make that exact. Coordinates within a factor of
        # a thousand of each other are not stretched, so that gaps are those of the original space.
        if np.ptp(exponents) <= 10:
            exponents[:] = 0
        self.stretch = -exponents
        self.points = np.ldexp(self.scaled.points, self.stretch)
        self.offsets = np.ldexp(self.scaled.offsets, self.stretch)
        # In random order every group of candidates is a sample of them all.
        self.candidates = np.random.default_rng(0).permutation(candidates)
        self.column = np.full(len(keys), -1, dtype=np.int64)
        self.column[self.candidates] = np.arange(len(candidates))
        self.rivals = np.ascontiguousarray(self.offsets[self.candidates].T)
        groups = min(len(candidates), max(MIN_GROUPS, keys.shape[1] // 2))
        self.cuts = np.linspace(0, len(candidates), groups + 1).astype(np.int64)
        norms = np.sqrt(np.einsum("ij,ij->i", self.offsets, self.offsets))
        # Bound on what rounding leaves of Σ w_i y_i = 0: each entry of each y_i is off by a few u.
        self.rounding = 8 * rounding_bounds.gamma(keys.shape[1] + 8)
        self.error = 8 * rounding_bounds.gamma(3 * keys.shape[1] + 16) * (norms + norms.max(initial=0.0))

    def block(self, items: IntArray) -> list[FloatArray | Combination]:
        """A query or a combination for each item; all items share the matrix products of a round."""
        answers: dict[int, FloatArray | Combination] = {}
        working = {int(j): np.empty(0, dtype=np.int64) for j in items}
        queries = {j: self.offsets[j] for j in working}
        for round_ in range(MAX_ROUNDS):
            active = [j for j in working if j not in answers]
            tried = np.array([queries[j] for j in active])
            continuing: list[int] = []
            for j, entrants, held in self._rivals(active, tried, [working[j] for j in active]):
                if len(entrants) and round_ < MAX_ROUNDS - 1:
                    working[j] = np.concatenate([working[j], entrants])
                    continuing.append(j)
                else:
                    answers[j] = self._unit_query(queries[j]) if held else self.resolve_close_call(j, queries[j])
            if not continuing:
                break
            for j, rows, lengths in self._differences(continuing, [working[j] for j in continuing]):
                queries[j], working[j], weights = self._solve(working[j], rows, lengths)
                if weights is not None:
                    answers[j] = working[j], weights
        return [answers[int(j)] for j in items]

    def _rivals(
        self, active: list[int], queries: FloatArray, working: list[IntArray]
    ) -> Iterator[tuple[int, IntArray, bool]]:
        """For each item: the rivals that enter its working set, and whether its query beats every other key.

        Of each group of candidates the one that scores highest enters, unless it clearly scores below the item. One
        of each group is nearly as good as the several highest of all, and far cheaper to find.
        """
        if not active:
            return
        items = np.array(active)
        scores = queries @ self.rivals
        every, column = np.arange(len(items)), self.column[items]
        scores[every[column >= 0], column[column >= 0]] = -np.inf
        sizes = np.sqrt(np.einsum("ij,ij->i", queries, queries))
        level = np.einsum("ij,ij->i", queries, self.offsets[items]) - self.error[items] * sizes
        owner, members = np.repeat(every, [len(w) for w in working]), self.column[np.concatenate(working)]
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

    def _differences(self, active: list[int], working: list[IntArray]) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Each item with the unit rows and the lengths of the differences to its working set."""
        counts = [len(w) for w in working]
        flat = self.points[np.concatenate(working)] - self.points[np.repeat(active, counts)]
        rows, lengths = origin_in_hull.unit_rows(flat)
        ends = np.cumsum(counts).tolist()
        for j, count, end in zip(active, counts, ends, strict=True):
            yield j, rows[end - count : end], lengths[end - count : end]

    def _solve(
        self, members: IntArray, rows: FloatArray, lengths: FloatArray
    ) -> tuple[FloatArray, IntArray, FloatArray | None]:
        """The query that selects the item and the members in use; or, with weights, a convex combination."""
        if not lengths.all():  # equal to another key
            return rows[0, :-1], members[lengths == 0][:1], np.ones(1)
        weights, query, gap = origin_in_hull.least_squares(rows)
        if gap < origin_in_hull.ACCURATE_GAP:
            refined, left = origin_in_hull.refine_weights(rows, weights)
            if left <= self.rounding:
                return query, *_convex(members, _by_length(refined, lengths))
            query = origin_in_hull.refine_query(rows, weights)
        return query, members[weights > 0], None

    def resolve_close_call(self, j: int, query: FloatArray, last: bool = False) -> FloatArray | Combination:
        """Decide j where rounding hides whether the query selects it: by a sharper bound, then against all rivals."""
        if self._selects(j, query):
            return self._unit_query(query)
        others = self.candidates[self.candidates != j]
        rows, lengths = origin_in_hull.unit_rows(self.points[others] - self.points[j])
        weights, query, _ = origin_in_hull.linear_program(rows)
        used = np.flatnonzero(weights > 1e-12 * weights.max())
        rows, others, lengths = rows[used], others[used], lengths[used]
        weights, sharp, _ = origin_in_hull.least_squares(rows)
        for trial in (query, sharp, origin_in_hull.refine_query(rows, weights)):
            if self._selects(j, trial):
                return self._unit_query(trial)
        refined, left = origin_in_hull.refine_weights(rows, weights)
        # A query that no bound confirms decides nothing, which the caller checks. In the last resort the combination
        # of smallest residual is returned: the residual bounds every margin, though it exceeds rounding errors.
        return (
            _convex(others, _by_length(refined, lengths)) if left <= self.rounding or last else self._unit_query(query)
        )

    def _selects(self, j: int, query: FloatArray) -> bool:
        if not query.any():
            return False
        return bool(rounding_bounds.margin_lower_bounds(self.scaled, [j], [self._unit_query(query)], slack=4.0)[0] > 0)

    def _unit_query(self, query: FloatArray) -> FloatArray:
        """A query of the search as a unit query on the original keys: stretching q as x keeps x·q."""
        query = query / np.abs(query).max()
        original = np.ldexp(query, self.stretch - self.stretch.max())
        return original / np.sqrt(original @ original)


def _gather(keys: FloatArray, items: IntArray, answers: list[FloatArray | Combination]) -> Decisions:
    queries = [a for a in answers if not isinstance(a, tuple)]
    inside = [a for a in answers if isinstance(a, tuple)]
    return Decisions(
        items,
        np.array([not isinstance(a, tuple) for a in answers], dtype=bool),
        np.array(queries).reshape(len(queries), keys.shape[1]),
        np.concatenate([[0], np.cumsum([len(c[0]) for c in inside])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *(c[0] for c in inside)]),
        np.concatenate([np.empty(0), *(c[1] for c in inside)]),
    )


def _by_length(weights: FloatArray, lengths: FloatArray) -> FloatArray:
    """Weights of vectors, from those of their unit vectors; in units of the largest that the lengths allow, so that
    lengths near the smallest float do not overflow."""
    fractions, exponents = np.frexp(lengths)
    return np.asarray(np.ldexp(weights / fractions, exponents.min() - exponents))


def _convex(members: IntArray, weights: FloatArray) -> Combination:
    used = np.flatnonzero(weights > 0)
    order = used[np.argsort(-weights[used], kind="stable")]
    return members[order], weights[order] / weights[order].sum()
