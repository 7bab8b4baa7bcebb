"""Search for the query whose weights are nearest to wanted ones in total variation.

The total variation is not convex in the query, so nothing here is proved: starts of several kinds are compared, and the
best ones are improved, first on a smoothed distance by L-BFGS, then on the distance itself by linear programs and, in
few dimensions, by the simplex method of Nelder and Mead, which needs no slopes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy.optimize import linprog, minimize

from qkv.core.types import FloatArray
from qkv.design.solvers.conic import min_shortfalls
from qkv.design.solvers.newton import min_kl_queries

MAX_SUBSET_ITEMS = 5
"""Up to this many wanted items, every subset of them gives a start."""
KL_BUDGET = 3e8
"""Starts by KL divergence are limited to about this many multiplications."""
GRID_SIZE = 4e6
"""Numbers of weights that are computed for queries on a grid of directions and scales, at most."""
MIN_PIVOTS, PIVOTS_PER_ROW = 1000, 50
"""Limits of the simplex method: what takes longer has met a cycle."""
SMOOTHINGS = (3e-2, 1e-3, 1e-5)
N_SMOOTHED, N_POLISHED = 4, 2
"""Starts that are improved on the smoothed distance, and of those the ones that linear programs improve."""
N_MAJORISED, MAX_SHORTFALL_STARTS, MAX_CONIC_KEYS = 2, 12, 1500
MAX_LINEAR_PROGRAMS = 25
MAX_RESTARTS, MIN_RESTART_GAIN = 12, 1e-7
SCORE_STEP, N_RIVALS = 1.0, 3
MAX_LAG = 2e-3
"""In few dimensions a query whose distance is larger than the best by more than this is not polished."""
MIN_GAIN = 1e-9
"""Gains in distance below this end the linear programs, unless tol is as near."""
MIN_VISIBLE_SHARE = 1e-2
"""An item with less than this part of its wanted weight has slopes that are too small for the other methods."""
MAX_LP_SIZE = 20_000
MAX_SIMPLEX_DIMENSION, N_SIMPLEX, SIMPLEX_STEPS = 6, 3, 400
"""Dimensions up to which the simplex method is used, queries that it improves, and its steps for each."""
MAX_LOG_SCALE = 5.0
SHARP_MARGIN = 50.0
"""By how much an item's score exceeds the others where it takes all weight but rounding."""
MAX_SPREAD_RATIO = 30.0


@dataclasses.dataclass(frozen=True)
class _Distance:
    """The total variation between the weights of a query and the wanted ones, on centred and scaled keys."""

    keys: FloatArray
    items: list[int]
    wanted: FloatArray

    def weights(self, queries: FloatArray) -> FloatArray:
        """Weights of one query or of each of several; NaN where scores overflow."""
        with np.errstate(all="ignore"):
            scores = queries @ self.keys.T
            raw = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return np.asarray(raw / raw.sum(axis=-1, keepdims=True))

    def __call__(self, queries: FloatArray) -> FloatArray:
        """Distances; infinite where scores overflow."""
        short = np.maximum(self.wanted - self.weights(queries)[..., self.items], 0.0).sum(axis=-1)
        return np.where(np.isfinite(short), short, np.inf)

    def smoothed(self, query: FloatArray, h: float) -> tuple[float, FloatArray]:
        """Σ (x + √(x² + h²))/2 over the shortfalls x = w_i - α_i, and its gradient."""
        alpha = self.weights(query)
        x = self.wanted - alpha[self.items]
        root = np.hypot(x, h)
        slopes = 0.5 * (1 + x / root) * alpha[self.items]
        gradient = slopes.sum() * (alpha @ self.keys) - slopes @ self.keys[self.items]
        value = 0.5 * float((x + root).sum())
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e3, np.zeros_like(query)
        return value, gradient


def nearest_query(keys: FloatArray, items: list[int], wanted: FloatArray, tol: float) -> FloatArray:
    """The query with the smallest total variation that was found; the search ends early within tol.

    Args:
        keys: Keys as rows, (n, d).
        items: Wanted items.
        wanted: Their weights.
        tol: Total variation at which the search may end.

    Returns:
        The query, (d,).
    """
    # Shifting all keys changes no weight. The median stays near most keys where one of them is very far away, so that
    # the differences between the others keep their digits.
    centred = keys - np.median(keys, axis=0)
    lengths = np.linalg.norm(centred, axis=1)
    size = float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 1.0
    centred = centred / size
    enough = tol * (1 - 1e-6)
    plain = _Distance(centred, items, wanted)
    query = _search(plain, enough)
    if float(plain(query)) > enough and (axes := _anisotropic_axes(centred)) is not None:
        query = _best(plain, np.vstack([query, axes @ _search(_Distance(centred @ axes, items, wanted), enough)]))
    return np.asarray(query / size)


def _anisotropic_axes(keys: FloatArray) -> FloatArray | None:
    """Axes, as columns, along which the keys have equal spread; None where their spread differs little anyway.

    Nearly dependent keys need queries that are long in some directions only, which steps of one length do not find.
    """
    _, s, vt = np.linalg.svd(keys, full_matrices=False)
    if not s[0] > 0 or s[-1] > s[0] / MAX_SPREAD_RATIO:
        return None
    kept = s > 1e-13 * s[0]
    return np.asarray(vt[kept].T / s[kept] * np.sqrt(len(keys)))


def _search(distance: _Distance, enough: float) -> FloatArray:
    starts: list[FloatArray] = [np.zeros((1, distance.keys.shape[1]))]
    for group in _kl_starts(distance.keys, distance.items, distance.wanted):
        starts.append(group)
        if float(distance(group).min()) <= enough:
            return _best(distance, group)
    if len(distance.items) == 1:  # the distance is 1 - α, and α is largest where the divergence is smallest
        return _best(distance, np.vstack([*starts, *(_sharpened(distance, q)[None] for q in starts[-1])]))
    starts.extend(_shortfall_starts(distance))
    starts.append(_rays(distance, np.vstack(starts)))
    ranked = _distinct(distance, np.vstack(starts), N_SMOOTHED)
    if float(distance(ranked).min()) <= enough:
        return _best(distance, ranked)
    improved = np.vstack([ranked, *(_minimise_smoothed(distance, q)[None] for q in ranked)])
    ranked = _distinct(distance, improved, N_POLISHED)
    if float(distance(ranked).min()) <= enough:
        return _best(distance, ranked)
    hidden = (distance.weights(ranked)[:, distance.items] < MIN_VISIBLE_SHARE * distance.wanted).any(axis=1)
    ranked = np.vstack([ranked, *(_majorise(distance, q)[None] for q in ranked[hidden][:N_MAJORISED])])
    small = distance.keys.shape[1] <= MAX_SIMPLEX_DIMENSION
    if small:
        near = _distinct(distance, np.vstack([ranked, improved]), N_SIMPLEX)
        ranked = np.vstack([ranked, *(_simplex(distance, q)[None] for q in near)])
    ranked = _distinct(distance, ranked, N_POLISHED)
    values = distance(ranked)
    if float(values.min()) > enough and distance.keys.shape[1] * len(distance.items) <= MAX_LP_SIZE:
        near = ranked[values <= values.min() + (MAX_LAG if small else 1.0)]
        ranked = np.vstack([ranked, *(_polish(distance, q, enough)[None] for q in near)])
    return _restarted(distance, _best(distance, ranked)) if small else _best(distance, ranked)


def _sharpened(distance: _Distance, query: FloatArray) -> FloatArray:
    """The query made so long that the one wanted item takes all weight; as it is if another item scores more.

    Where one key is very far away, the divergence is flat along its minimum, and a descent stops at a query too short.
    """
    scores = distance.keys @ query
    margin = float((scores[distance.items[0]] - np.delete(scores, distance.items[0])).min(initial=np.inf))
    if not 0 < margin < np.inf:
        return query
    return np.asarray(query * max(1.0, SHARP_MARGIN / margin))


def _restarted(distance: _Distance, query: FloatArray) -> FloatArray:
    """The simplex method from fresh simplices, in queries and in scores, as long as each round gains something."""
    for _ in range(MAX_RESTARTS):
        trial = _simplex(distance, query)
        for rival in [None, *_strongest_rivals(distance, query)]:
            trial = _best(distance, np.vstack([query, trial, _simplex_in_scores(distance, trial, rival)]))
        gain = float(distance(query)) - float(distance(trial))
        query = trial if gain > 0 else query
        if gain < MIN_RESTART_GAIN:
            break
    return query


def _simplex(distance: _Distance, query: FloatArray) -> FloatArray:
    """Nelder and Mead's method on the distance itself; it also leaves kinks at which no linear program improves."""
    unit = max(1.0, float(np.linalg.norm(query)))
    steps = {"maxfev": SIMPLEX_STEPS, "xatol": 1e-12, "fatol": 1e-14}
    found = minimize(lambda x: float(distance(unit * x)), query / unit, method="Nelder-Mead", options=steps)
    return np.asarray(unit * found.x)


def _strongest_rivals(distance: _Distance, query: FloatArray) -> list[int]:
    """The items of largest score that are not wanted, a few of them."""
    scores = distance.keys @ query
    scores[distance.items] = -np.inf
    return [int(i) for i in np.argsort(-scores, kind="stable")[:N_RIVALS] if scores[i] > -np.inf]


def _simplex_in_scores(distance: _Distance, query: FloatArray, rival: int | None) -> FloatArray:
    """The same with the scores of a few keys as coordinates: a step of 1 in them matters for keys of every size.

    Where keys differ in size by many powers of ten, a step that moves the score of a small key overturns the large
    ones; with the score of a large rival as a coordinate, the others move while that one stays.
    """
    axes = _score_axes(distance, query, rival)
    if not axes.size:
        return query
    first = np.vstack([np.zeros(axes.shape[1]), SCORE_STEP * np.eye(axes.shape[1])])
    steps = {"maxfev": SIMPLEX_STEPS, "xatol": 1e-12, "fatol": 1e-14, "initial_simplex": first}
    found = minimize(lambda s: float(distance(query + axes @ s)), first[0], method="Nelder-Mead", options=steps)
    return np.asarray(query + axes @ found.x)


def _score_axes(distance: _Distance, query: FloatArray, rival: int | None) -> FloatArray:
    """Changes of the query, as columns, that move one score by 1 against a reference and keep some others.

    The reference is one of the two wanted items that lie nearest to each other. The scores are those of the wanted
    items, of the rival, and then of the items of largest weight, as many as are independent; with fewer dimensions
    than wanted items the rival comes first.
    """
    wanted = distance.keys[distance.items]
    apart = np.linalg.norm(wanted[:, None] - wanted, axis=2)
    apart[apart == 0] = np.inf
    keys = distance.keys - wanted[int(apart.min(axis=1).argmin())]
    rank = -distance.weights(query)
    rank[distance.items] = -1 - distance.wanted
    if rival is not None:
        rank[rival] = -1 if len(distance.items) <= len(query) else -3
    chosen: list[FloatArray] = []
    basis = np.zeros((0, len(query)))
    for key in keys[np.argsort(rank, kind="stable")]:
        left = key - basis.T @ (basis @ key)
        length = float(np.linalg.norm(left))
        if length > 1e-9 * float(np.linalg.norm(key)):
            chosen.append(key)
            basis = np.vstack([basis, left / length])
        if len(chosen) == len(query):
            break
    return np.asarray(np.linalg.pinv(np.array(chosen).reshape(-1, len(query)), rcond=0.0))


def _best(distance: _Distance, queries: FloatArray) -> FloatArray:
    """The nearest query; of those that are equally near to rounding, the last, which is the most converged."""
    values = distance(queries)
    return np.asarray(queries[int(np.flatnonzero(values <= values.min() + 1e-15)[-1])])


def _kl_starts(keys: FloatArray, items: list[int], wanted: FloatArray) -> Iterator[FloatArray]:
    """Minimisers of the KL divergence from the wanted weights, and from their parts on subsets of the items.

    Where a part of the items cannot be reached together with the rest, the nearest weights leave it out.
    """
    m = len(items)
    if m <= MAX_SUBSET_ITEMS:
        subsets = [list(c) for size in range(m, 0, -1) for c in combinations(range(m), size)]
    else:
        order = np.argsort(-wanted).tolist()
        prefixes = [order[:size] for size in range(m, 0, -1)]
        subsets = prefixes + [[i] for i in order[1:]] + [[j for j in range(m) if j != i] for i in order]
    most = max(1, int(KL_BUDGET / (40 * keys.size * keys.shape[1])))
    for subset in subsets[:most]:
        part = wanted[subset] / wanted[subset].sum()
        yield min_kl_queries(keys, [items[i] for i in subset], part)


def _shortfall_starts(distance: _Distance) -> list[FloatArray]:
    """Minimisers of Σ c_i (log(w_i/α_i))+ for several costs c: each item in turn matters little, or much."""
    m = len(distance.items)
    if len(distance.keys) > MAX_CONIC_KEYS:
        return []
    costs = [np.ones(m), distance.wanted, *(0.02 + 0.98 * row for row in np.eye(m)[: m if m > 1 else 0])]
    costs += [1.0 - 0.99 * row for row in np.eye(m)[: m if m > 2 else 0]]
    found = (
        min_shortfalls(distance.keys, distance.items, np.log(distance.wanted), c) for c in costs[:MAX_SHORTFALL_STARTS]
    )
    return [q[None] for q in found if q is not None]


def _majorise(distance: _Distance, query: FloatArray) -> FloatArray:
    """Improve a query by minimising convex upper bounds of the distance that touch it at the query.

    α >= a (1 + log(α/a)) for every a > 0, so with the weights a of the query the distance is at most
    Σ a_i (log a_i + (w_i - a_i)/a_i - log α_i)+. Items with tiny weights, which steps on the distance itself do not
    see, are raised here by as much as the others allow.
    """
    value = float(distance(query))
    if len(distance.keys) > MAX_CONIC_KEYS:
        return query
    for floor in (1e-2, 1e-4, 0.0, 0.0, 0.0):
        own = np.maximum(distance.weights(query)[distance.items], 1e-280)
        logs = np.log(own) + np.minimum((distance.wanted - own) / own, 50.0)
        costs = np.maximum(own / own.max(), max(floor, 1e-7))
        trial = min_shortfalls(distance.keys, distance.items, logs, costs)
        if trial is None or not (found := float(distance(trial))) < value - 1e-12:
            continue
        query, value = trial, found
    return query


def _rays(distance: _Distance, starts: FloatArray) -> FloatArray:
    """The best points on rays: through the starts, through keys, and in random directions."""
    n, d = distance.keys.shape
    random = np.random.default_rng(0)
    directions = np.vstack([starts, distance.keys[distance.items], -distance.keys[distance.items],
                            random.standard_normal((4 if d == 1 else 64 * min(d, 4), d))])  # fmt: skip
    sizes = np.linalg.norm(directions, axis=1)
    directions = directions[sizes > 0] / sizes[sizes > 0, None]
    scales = np.geomspace(10.0**-2, 10.0**MAX_LOG_SCALE, 400 if d == 1 else 60)
    per_direction = len(scales) * n
    directions = directions[: max(1, int(GRID_SIZE / per_direction))] if per_direction <= GRID_SIZE else directions[:0]
    best = [_best(distance, scales[:, None] * u) for u in directions]
    return np.array(best).reshape(len(best), d)


def _distinct(distance: _Distance, queries: FloatArray, most: int) -> FloatArray:
    """The best queries, at most one of those whose weights are nearly equal."""
    values = distance(queries)
    chosen: list[int] = []
    weights: list[FloatArray] = []
    for i in np.argsort(values, kind="stable"):
        own = distance.weights(queries[i])[distance.items]
        if all(np.abs(own - other).max() > 1e-3 for other in weights) or not chosen:
            chosen.append(int(i))
            weights.append(own)
        if len(chosen) == most:
            break
    return np.asarray(queries[chosen])


def _minimise_smoothed(distance: _Distance, query: FloatArray) -> FloatArray:
    """L-BFGS on the distance with less and less smoothing; the best query on the way."""
    best, value = query, float(distance(query))
    for h in SMOOTHINGS:
        # Scaling the query to size 1 gives L-BFGS steps of the right order.
        unit = max(1.0, float(np.linalg.norm(query)))

        def scaled(x: FloatArray, h: float = h, unit: float = unit) -> tuple[float, FloatArray]:
            f, g = distance.smoothed(unit * x, h)
            return f, unit * g

        query = unit * minimize(scaled, query / unit, jac=True, method="L-BFGS-B", options={"maxiter": 80}).x
        if (found := float(distance(query))) < value:
            best, value = query, found
    return best


def _polish(distance: _Distance, query: FloatArray, enough: float) -> FloatArray:
    """Sequential linear programming: minimise the distance with linearised weights in a box around the query.

    At a minimum the distance usually has a kink, where methods for smooth functions stop early. Variables: the step,
    and one shortfall t_i >= 0 per item with t_i >= w_i - α_i - ∇α_i·step.
    """
    m, d = len(distance.items), len(query)
    radius = 0.1 * max(1.0, float(np.abs(query).max()))
    value = float(distance(query))
    cost = np.concatenate([np.zeros(d), np.ones(m)])
    for _ in range(MAX_LINEAR_PROGRAMS):
        alpha = distance.weights(query)
        own = alpha[distance.items]
        slopes = own[:, None] * (distance.keys[distance.items] - alpha @ distance.keys)
        found = linprog(
            cost,
            np.hstack([-slopes, -np.eye(m)]),
            own - distance.wanted,
            bounds=[(-radius, radius)] * d + [(0, None)] * m,
            method="highs",
            options={
                "maxiter": MIN_PIVOTS + PIVOTS_PER_ROW * (m + d)
            },  # HiGHS may cycle on keys of very unlike lengths
        )
        if found.x is None:
            radius /= 8
        else:
            predicted = value - float(found.fun)
            trial = query + found.x[:d]
            gained = value - float(distance(trial))
            if gained > 0:
                query, value = trial, value - gained
            radius *= 2.0 if gained > 0.75 * predicted else 0.25 if gained < 0.25 * predicted else 1.0
            if predicted <= min(MIN_GAIN, 1e-3 * max(value - enough, 0.0)):
                break
        if value <= enough or radius < 1e-12 * max(1.0, float(np.abs(query).max())):
            break
    return query
