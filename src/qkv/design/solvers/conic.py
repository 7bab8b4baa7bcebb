"""The convex programs behind every design; the only module that knows the conic solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from qkv.design.solvers.newton import around, least_query

Array = np.ndarray[Any, np.dtype[np.float64]]

CONIC_LIMIT = 1500
"""Other items that the conic program holds at most: it needs one exponential cone for each."""

ROUNDS = 4
STATUS = {
    "Solved": "solved",
    "AlmostSolved": "solved",
    "PrimalInfeasible": "none",
    "AlmostPrimalInfeasible": "none",
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """One reading wanted of an unknown x: ratios·x = logs, and sum exp(rivals·x - edge) <= 1."""

    ratios: Array
    logs: Array
    rivals: Array
    edge: float

    @classmethod
    def of(cls, rows: Array, wanted: Array, inside: Sequence[int], rest: Any, tol: float) -> Rule:
        """The rule whose score of item j is rows[j]·x; the leak is at most tol, the ratios are exact."""
        first, others = inside[0], list(inside[1:])
        edge = float(np.log(tol / (1 - tol)) - np.log(wanted[0]))
        return cls(rows[others] - rows[first], np.log(wanted[1:] / wanted[0]), rows[rest] - rows[first], edge)


@dataclasses.dataclass(frozen=True)
class Solution:
    """What was found: x, or evidence that there is none.

    For each rule, `mix` weighs the rivals (its sum is the factor of the leak inequality) and `multipliers` the
    ratios; together they prove a bound on the norm of every x, as derived in checks/weights.py.
    """

    status: str  # "solved", "none" or "failed"
    x: Array
    multipliers: tuple[Array, ...]
    mix: tuple[Array, ...]


def smallest_query(
    keys: Array, items: list[int], wanted: Array, tol: float, metric: Array | None = None, start: Array | None = None
) -> Solution:
    """The query of least norm (or least qᵀ metric q) with the exact ratios and a leak of at most tol.

    The conic solver works on up to CONIC_LIMIT other items, the strongest rivals, and Newton's method finishes on all;
    where the rest turn out to matter, the strongest under the last query join and it starts again. Leaving items out
    only loosens the leak inequality, so evidence against a query holds for all items too; but a solver's "none" is a
    hypothesis (one far key can mislead it), and Newton's method is asked before it is believed.
    """
    # Shifting all keys changes no weight and scaling them scales the query: the solvers see numbers near 1.
    keys, size = around(keys, items)
    metric = None if metric is None else metric / (float(np.trace(metric)) or 1.0)
    rest = np.setdiff1d(np.arange(len(keys)), items)
    first = np.zeros(keys.shape[1]) if start is None else start * size
    chosen = _strongest(keys[rest] @ keys[items].mean(axis=0) - np.linalg.norm(keys[rest], axis=1), rest, rest[:0])
    for _ in range(ROUNDS):
        rule = Rule.of(keys, wanted, items, chosen, tol)
        found = solve([rule], keys.shape[1], metric=metric)
        if found.status == "none" and _newton(keys, items, chosen, rule, metric, first) is None:
            mix = np.zeros(len(keys))
            mix[chosen] = found.mix[0]
            return dataclasses.replace(found, mix=(mix,), x=found.x / size)
        for guess in (found.x,) if found.status == "solved" else (found.x, first):
            polished = _newton(keys, items, rest, rule, metric, guess)
            if polished is not None:
                return Solution("solved", polished / size, (np.zeros(0),), (np.zeros(0),))
        if len(chosen) == len(rest):
            break
        chosen = _strongest(keys[rest] @ found.x, rest, chosen)
    return dataclasses.replace(found, status="failed", x=found.x / size)


def _newton(keys: Array, items: list[int], rest: Any, rule: Rule, metric: Array | None, start: Array) -> Array | None:
    try:
        return least_query(keys[rest], keys[items[0]], rule.edge, rule.ratios, rule.logs, metric, start)
    except np.linalg.LinAlgError:  # beyond what float64 can factorise
        return None


def _strongest(scores: Array, rest: Any, chosen: Any) -> Any:
    """Those already chosen, and the strongest of the others, up to CONIC_LIMIT more."""
    if len(rest) <= CONIC_LIMIT:
        return rest
    top = rest[np.argpartition(-scores, CONIC_LIMIT)[:CONIC_LIMIT]]
    return np.union1d(chosen, top)


def solve(rules: list[Rule], size: int, metric: Array | None = None, nuclear: int = 0) -> Solution:
    """The x of that size that meets every rule with the least xᵀ metric x, or the least nuclear norm.

    Besides x there is one bound u a rival, with (rivals·x - edge, 1, u) in the exponential cone and the u of one
    rule summing to at most 1. With `nuclear` = r, x is an r by r matrix Z and the objective is half the trace of
    [[A, Z], [Zᵀ, B]], which is positive semidefinite.
    """
    rivals = sum(len(rule.rivals) for rule in rules)
    lifted = _Lift(nuclear) if nuclear else None
    extra = lifted.count if lifted else 0
    width = size + rivals + extra
    program = _Program(width)
    spots = []
    for rule in rules:
        spots.append(program.zero(rule.ratios, rule.logs))
    at = size
    for rule in rules:
        if len(rule.rivals):
            program.total(range(at, at + len(rule.rivals)))
            at += len(rule.rivals)
    at = size
    cones = []
    for rule in rules:
        cones.append(program.exponential(rule.rivals, rule.edge, at))
        at += len(rule.rivals)
    cost = np.zeros(width)
    if lifted:
        cost[size + rivals :] = lifted.cost
        program.semidefinite(lifted, size + rivals)
        P = sparse.csc_matrix((width, width))
    else:
        square = np.eye(size) if metric is None else metric
        P = sparse.block_diag(
            [sparse.triu(sparse.csc_matrix(square)), sparse.csc_matrix((rivals, rivals))], format="csc"
        )
    if not program.cones:
        return Solution("solved", np.zeros(size), tuple(np.zeros(0) for _ in rules), tuple(np.zeros(0) for _ in rules))
    found = program.run(P, cost)
    z = np.asarray(found.z)
    # Only the sign convention of the dual is the solver's: a ratio's multiplier enters as nu (s_i - s_a) = nu log.
    multipliers = tuple(-z[s] for s in spots)
    mix = tuple(np.maximum(-z[c][0::3], 0.0) for c in cones)
    return Solution(STATUS.get(str(found.status), "failed"), np.asarray(found.x)[:size], multipliers, mix)


class _Lift:
    """Where the entries of Z, A and B stand in the upper triangle of [[A, Z], [Zᵀ, B]], column by column."""

    def __init__(self, r: int) -> None:
        triangle = [(i, j) for j in range(2 * r) for i in range(j + 1)]
        self.length = len(triangle)
        own = [(i, j) for i, j in triangle if (i < r) == (j < r)]
        self.count = len(own)
        self.cost = np.array([0.5 if i == j else 0.0 for i, j in own])
        column = {pair: size for size, pair in enumerate(own)}
        # (row of the cone, column, factor): columns below 0 address Z; off-diagonal entries count √2 in the cone.
        self.entries = [
            (row, column[i, j], 1.0 if i == j else np.sqrt(2))
            if (i, j) in column
            else (row, -1 - (i * r + (j - r)), np.sqrt(2))
            for row, (i, j) in enumerate(triangle)
        ]


class _Program:
    """Rows A, b and cones of one conic program, gathered piece by piece."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.blocks: list[Any] = []
        self.b: list[Array] = []
        self.cones: list[Any] = []

    def _add(self, block: Any, b: Array) -> slice:
        start = sum(len(part) for part in self.b)
        self.blocks.append(block)
        self.b.append(b)
        return slice(start, start + len(b))

    def _wide(self, left: Array) -> Any:
        return sparse.hstack([sparse.csc_matrix(left), sparse.csc_matrix((len(left), self.width - left.shape[1]))])

    def zero(self, rows: Array, b: Array) -> slice:
        if len(rows):
            self.cones.append(clarabel.ZeroConeT(len(rows)))
        return self._add(self._wide(rows), b)

    def total(self, columns: range) -> slice:
        row = np.zeros((1, self.width))
        row[0, list(columns)] = 1.0
        self.cones.append(clarabel.NonnegativeConeT(1))
        return self._add(sparse.csc_matrix(row), np.ones(1))

    def exponential(self, rivals: Array, edge: float, at: int) -> slice:
        m = len(rivals)
        place = np.zeros((3 * m, rivals.shape[1]))
        place[0::3] = -rivals
        bounds = sparse.csc_matrix((-np.ones(m), (np.arange(2, 3 * m, 3), np.arange(at, at + m))), (3 * m, self.width))
        self.cones.extend([clarabel.ExponentialConeT()] * m)
        return self._add(self._wide(place) + bounds, np.tile([-edge, 1.0, 0.0], m))

    def semidefinite(self, lift: _Lift, at: int) -> slice:
        rows = [row for row, _, _ in lift.entries]
        columns = [at + c if c >= 0 else -1 - c for _, c, _ in lift.entries]
        block = sparse.csc_matrix(([-f for _, _, f in lift.entries], (rows, columns)), (lift.length, self.width))
        side = round((np.sqrt(8 * lift.length + 1) - 1) / 2)
        self.cones.append(clarabel.PSDTriangleConeT(side))
        return self._add(block, np.zeros(lift.length))

    def run(self, P: Any, cost: Array) -> Any:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        A = sparse.vstack(self.blocks, format="csc")
        return clarabel.DefaultSolver(P, cost, A, np.concatenate(self.b), self.cones, settings).solve()
