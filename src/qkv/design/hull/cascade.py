"""Decide all keys by tests of increasing cost: candidate queries, duplicates, known vertices, active sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from qkv.core import rounding_bounds
from qkv.core.rounding_bounds import ScaledKeys
from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.design.hull import active_set, candidate_queries
from qkv.design.hull.active_set import Decisions
from qkv.parallel import Progress, WorkerPool

Combinations = dict[int, tuple[IntArray, FloatArray]]

PIECES_PER_WORKER = 4
"""Some keys take longer than others, so each worker gets several pieces."""


class HullDecisions(NamedTuple):
    """Decisions about all keys.

    Attributes:
        possible: Whether some query selects the key, per key.
        queries: A selecting query for each possible key, as rows.
        margins: Certified lower bounds on their margins.
        offsets: Row r of the sparse weights of the other keys is indices[offsets[r]:offsets[r + 1]].
        indices: Keys of the convex combinations.
        weights: Their weights.
        margins_at_most: Certified upper bounds on the margin of any unit query, per key that is not possible.
    """

    possible: BoolArray
    queries: FloatArray
    margins: FloatArray
    offsets: IntArray
    indices: IntArray
    weights: FloatArray
    margins_at_most: FloatArray


def decide_all(keys: FloatArray, pool: WorkerPool, progress: Progress | None = None) -> HullDecisions:
    """Decide every key. Margins are lower bounds that any recheck confirms."""
    n, d = keys.shape
    if n == 1:  # there is no rival, so any query selects it
        return _assembled(keys, np.eye(1, d), np.array([np.inf]), {})
    f = rounding_bounds.scaled_keys(keys)
    everyone = np.arange(n)
    queries = candidate_queries.centred(f, everyone)
    margins = candidate_queries.certified_margins(f, everyone, queries)
    if len(undecided := _undecided(margins, {})):
        guess = candidate_queries.whitened(f, undecided)
        queries[undecided], margins[undecided] = guess, candidate_queries.certified_margins(f, undecided, guess)
    vertices = np.flatnonzero(margins > 0)
    inside: Combinations = {
        j: (np.array([other]), np.ones(1)) for j, other in active_set.duplicates(keys, _undecided(margins, {})).items()
    }
    # Keys that add nothing to the hull of the others; of equal keys the first stays.
    redundant = [j for j, (other, _) in inside.items() if other[0] < j]
    if d < len(vertices) < n / 4:
        # Few keys are vertices, so most lie in the hull of the vertices found so far, and are redundant.
        for part in _decide(keys, _undecided(margins, inside), vertices, pool, progress):
            redundant += part.items[~part.found].tolist()
            inside |= _combinations(part)
    for part in _decide(keys, _undecided(margins, inside), np.setdiff1d(everyone, redundant), pool, progress):
        _store(f, part, queries, margins)
        inside |= _combinations(part)
    # A query that scores above the hull of the candidates may lose to a redundant key by a rounding error.
    if len(undecided := _undecided(margins, inside)):
        part = active_set.decide_by_linear_program(keys, undecided)
        _store(f, part, queries, margins)
        inside |= _combinations(part)
    return _assembled(keys, queries, margins, inside)


def _undecided(margins: FloatArray, inside: Combinations) -> IntArray:
    left = np.flatnonzero(~(margins > 0))
    return left[~np.isin(left, list(inside))] if inside else left


def _decide(
    keys: FloatArray, items: IntArray, candidates: IntArray, pool: WorkerPool, progress: Progress | None
) -> Iterable[Decisions]:
    """Active-set search for the items, in pieces of whole blocks, so that the pieces do not change the results."""
    block = active_set.block_size(len(candidates))
    size = block * max(1, round(len(items) / block / (PIECES_PER_WORKER * pool.size)))
    pieces = [(items[start : start + size], candidates) for start in range(0, len(items), size)]
    parts: list[Decisions] = pool.map(active_set.decide, keys, pieces, progress)
    return parts


def _store(f: ScaledKeys, part: Decisions, queries: FloatArray, margins: FloatArray) -> None:
    """Store the queries of a part, with certified margins."""
    chosen = part.items[part.found]
    queries[chosen] = part.queries
    margins[chosen] = rounding_bounds.margin_lower_bounds(f, chosen, part.queries, slack=candidate_queries.CLAIM_SLACK)


def _combinations(part: Decisions) -> Combinations:
    spans = zip(part.items[~part.found].tolist(), part.offsets[:-1], part.offsets[1:], strict=True)
    return {j: (part.indices[a:b], part.weights[a:b]) for j, a, b in spans}


def _assembled(keys: FloatArray, queries: FloatArray, margins: FloatArray, inside: Combinations) -> HullDecisions:
    possible = margins > 0
    items = np.flatnonzero(~possible)
    rows = [inside[j] for j in items.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(others) for others, _ in rows])]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int64), *(others for others, _ in rows)])
    weights = np.concatenate([np.empty(0), *(w for _, w in rows)])
    most = rounding_bounds.residual_upper_bounds(
        keys, items, offsets, indices, weights, slack=candidate_queries.CLAIM_SLACK
    )
    queries = queries if possible.all() else queries[possible]
    return HullDecisions(possible, queries, margins[possible], offsets, indices, weights, most)
