"""From cheap to dear, until every key is decided: witnesses, twins, known vertices, working sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qkv.core import rounding_bounds
from qkv.core.rounding_bounds import Floats, Ints, ScaledKeys
from qkv.design.hull import active_set, candidate_queries
from qkv.design.hull.active_set import Settled
from qkv.parallel import Progress, WorkerPool

Combinations = dict[int, tuple[Ints, Floats]]

PIECES = 4
"""Pieces of work for each worker: some keys are slower than others."""


class Sieved(NamedTuple):
    """All answers: queries and margins of the possible keys in order, and sparse rows for the others."""

    possible: NDArray[np.bool_]
    queries: Floats
    margins: Floats
    offsets: Ints
    indices: Ints
    weights: Floats
    margins_at_most: Floats


def sieve(keys: Floats, crew: WorkerPool, progress: Progress | None = None) -> Sieved:
    """Decide every key. Margins are claims: lower bounds that any recheck confirms."""
    n, d = keys.shape
    if n == 1:  # nobody to lose to: any query will do
        return _sieved(keys, np.eye(1, d), np.array([np.inf]), {})
    f = rounding_bounds.frame(keys)
    everyone = np.arange(n)
    queries = candidate_queries.centred(f, everyone)
    margins = candidate_queries.claims(f, everyone, queries)
    if len(open_ := _open(margins, {})):
        guess = candidate_queries.whitened(f, open_)
        queries[open_], margins[open_] = guess, candidate_queries.claims(f, open_, guess)
    vertices = np.flatnonzero(margins > 0)
    inside: Combinations = {
        j: (np.array([twin]), np.ones(1)) for j, twin in active_set.twins(keys, _open(margins, {})).items()
    }
    # Of equal keys the first stands for all.
    spare = [j for j, (twin, _) in inside.items() if twin[0] < j]
    if d < len(vertices) < n / 4:
        # Most keys are no vertices, then, and lie in the hull of those found so far; they add nothing to any
        # hull.
        for part in _settle(keys, _open(margins, inside), vertices, crew, progress):
            spare += part.items[~part.found].tolist()
            inside |= _combinations(part)
    for part in _settle(keys, _open(margins, inside), np.setdiff1d(everyone, spare), crew, progress):
        _adopt(f, part, queries, margins)
        inside |= _combinations(part)
    # A query that beats the hull of the candidates may lose to a spared key by a rounding error.
    if len(open_ := _open(margins, inside)):
        part = active_set.insist(keys, open_)
        _adopt(f, part, queries, margins)
        inside |= _combinations(part)
    return _sieved(keys, queries, margins, inside)


def _open(margins: Floats, inside: Combinations) -> Ints:
    left = np.flatnonzero(~(margins > 0))
    return left[~np.isin(left, list(inside))] if inside else left


def _settle(
    keys: Floats, items: Ints, candidates: Ints, crew: WorkerPool, progress: Progress | None
) -> Iterable[Settled]:
    """Working sets for the items, in pieces of whole blocks: it does not matter who does which piece."""
    block = active_set.block_size(len(candidates))
    size = block * max(1, round(len(items) / block / (PIECES * crew.size)))
    pieces = [(items[start : start + size], candidates) for start in range(0, len(items), size)]
    parts: list[Settled] = crew.map(active_set.settle, keys, pieces, progress)
    return parts


def _adopt(f: ScaledKeys, part: Settled, queries: Floats, margins: Floats) -> None:
    """Take over the queries of a part, with what can be claimed for them."""
    chosen = part.items[part.found]
    queries[chosen] = part.queries
    margins[chosen] = rounding_bounds.margins(f, chosen, part.queries, slack=candidate_queries.SLACK)


def _combinations(part: Settled) -> Combinations:
    spans = zip(part.items[~part.found].tolist(), part.offsets[:-1], part.offsets[1:], strict=True)
    return {j: (part.indices[a:b], part.weights[a:b]) for j, a, b in spans}


def _sieved(keys: Floats, queries: Floats, margins: Floats, inside: Combinations) -> Sieved:
    possible = margins > 0
    items = np.flatnonzero(~possible)
    rows = [inside[j] for j in items.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(others) for others, _ in rows])]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int64), *(others for others, _ in rows)])
    weights = np.concatenate([np.empty(0), *(w for _, w in rows)])
    most = rounding_bounds.residuals(keys, items, offsets, indices, weights, slack=candidate_queries.SLACK)
    queries = queries if possible.all() else queries[possible]
    return Sieved(possible, queries, margins[possible], offsets, indices, weights, most)
