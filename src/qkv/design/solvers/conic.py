"""Conic programs for queries and wirings; the only module that imports Clarabel."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from qkv.core.types import FloatArray, IntArray
from qkv.design.solvers.newton import centred_on, min_norm_query

CONIC_LIMIT = 1500
"""Other items in the conic program, at most: it needs one exponential cone for each."""

MAX_ROUNDS = 4
"""Times that the strongest of the items left out are added to the program."""
SHORTFALL_RIDGE = 1e-9
STATUS = {
    "Solved": "solved",
    "AlmostSolved": "solved",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """Constraints of one reading on an unknown x: ratios·x = logs, and sum exp(rivals·x - edge) <= 1.

    Attributes:
        ratios: Rows of the wanted items less that of the first.
        logs: Logarithms of their weights relative to the first.
        rivals: Rows of the other items less that of the first wanted one.
        edge: log(tol / (1 - tol)) less the logarithm of the first weight.
    """

    ratios: FloatArray
    logs: FloatArray
    rivals: FloatArray
    edge: float

    @classmethod
    def of(cls, rows: FloatArray, wanted: FloatArray, inside: Sequence[int], rest: Any, tol: float) -> Rule:
        """The rule for scores rows[j]·x, with exact ratios and a leak of at most tol."""
        first, others = inside[0], list(inside[1:])
        edge = float(np.log(tol / (1 - tol)) - np.log(wanted[0]))
        return cls(rows[others] - rows[first], np.log(wanted[1:] / wanted[0]), rows[rest] - rows[first], edge)


@dataclasses.dataclass(frozen=True)
class Solution:
    """A solution x, or dual evidence that there is none.

    For each rule, `mix` holds the dual variables of the rivals (their sum is the factor of the leak inequality) and
    `multipliers` those of the ratios; together they prove a bound on the norm of every x, as derived in
    certificates/statements/dual_bounds.py.
    """

    status: str  # "solved", "infeasible" or "failed"
    x: FloatArray
    multipliers: tuple[FloatArray, ...]
    mix: tuple[FloatArray, ...]


def smallest_query(
    keys: FloatArray,
    items: list[int],
    wanted: FloatArray,
    tol: float,
    metric: FloatArray | None = None,
    start: FloatArray | None = None,
) -> Solution:
    """The query of least norm (or least qᵀ metric q) with the exact ratios and a leak of at most tol.

    The conic solver works on the CONIC_LIMIT strongest other items, and Newton's method finishes on all; where the
    rest matter, the strongest under the last query are added and the program is solved again. Leaving items out only
    loosens the leak inequality, so evidence against a query holds for all items too; but a solver's "infeasible" is a
    hypothesis (one far key can mislead it), which Newton's method has to confirm.
    """
    # Shifting all keys changes no weight and scaling them scales the query: the solvers work on numbers near 1.
    keys, size = centred_on(keys, items)
    metric = None if metric is None else metric / (float(np.trace(metric)) or 1.0)
    rest = np.setdiff1d(np.arange(len(keys)), items)
    first = np.zeros(keys.shape[1]) if start is None else start * size
    chosen = _strongest(keys[rest] @ keys[items].mean(axis=0) - np.linalg.norm(keys[rest], axis=1), rest, rest[:0])
    for _ in range(MAX_ROUNDS):
        rule = Rule.of(keys, wanted, items, chosen, tol)
        found = solve([rule], keys.shape[1], metric=metric)
        if found.status == "infeasible" and _newton(keys, items, chosen, rule, metric, first) is None:
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


def _newton(
    keys: FloatArray, items: list[int], rest: IntArray, rule: Rule, metric: FloatArray | None, start: FloatArray
) -> FloatArray | None:
    try:
        return min_norm_query(keys[rest], keys[items[0]], rule.edge, rule.ratios, rule.logs, metric, start)
    except np.linalg.LinAlgError:  # singular to float64
        return None


def _strongest(scores: FloatArray, rest: IntArray, chosen: IntArray) -> IntArray:
    """The items already chosen, and the CONIC_LIMIT strongest of all."""
    if len(rest) <= CONIC_LIMIT:
        return rest
    top = rest[np.argpartition(-scores, CONIC_LIMIT)[:CONIC_LIMIT]]
    return np.union1d(chosen, top)


def solve(rules: list[Rule], size: int, metric: FloatArray | None = None, nuclear: int = 0) -> Solution:
    """The x of that size that meets every rule and minimises xᵀ metric x, or the nuclear norm.

    Besides x there is one variable u per rival, with (rivals·x - edge, 1, u) in the exponential cone, and the u of
    one rule sum to at most 1. With `nuclear` = r, x is an r by r matrix Z and the objective is half the trace of
    [[A, Z], [Zᵀ, B]], which is positive semidefinite.
    """
    rivals = sum(len(rule.rivals) for rule in rules)
    lifted = _Lift(nuclear) if nuclear else None
    extra = lifted.count if lifted else 0
    width = size + rivals + extra
    program = _Program(width)
    ratio_rows = [program.zero(rule.ratios, rule.logs) for rule in rules]
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
    # Clarabel's dual variables have the opposite sign: here a multiplier nu enters as nu (s_i - s_a) = nu log.
    multipliers = tuple(-z[s] for s in ratio_rows)
    mix = tuple(np.maximum(-z[c][0::3], 0.0) for c in cones)
    return Solution(STATUS.get(str(found.status), "failed"), np.asarray(found.x)[:size], multipliers, mix)


@dataclasses.dataclass(frozen=True)
class NearRule:
    """Bounds from below on the weights of one reading: log Z - rows_i·x + logs_i <= slopes_i u_i, u >= 0, Σ u_i <= 1.

    With logs_i = log w_i and slopes_i = -log(1 - tol/w_i) this is a convex relaxation of "within tol in total
    variation": u_i = 1 allows item i the whole shortfall of tol, and the logarithm between both ends is replaced by
    its chord. With slopes 0 and logs_i = log(w_i - δ_i) the weights fall short of w by at most δ, which is a convex
    restriction.

    Attributes:
        rows: Row of every item.
        inside: Items whose weights are bounded.
        logs: As above, per bounded item.
        slopes: As above, per bounded item.
    """

    rows: FloatArray
    inside: list[int]
    logs: FloatArray
    slopes: FloatArray


def solve_near(rules: list[NearRule], size: int) -> Solution:
    """The x of least norm that meets every rule, or dual evidence that there is none.

    Variables: x, and per rule z >= log Z, the u_i, and one e_j per item with (rows_j·x - z, 1, e_j) in the exponential
    cone and Σ e_j <= 1. `multipliers` and `mix` of the solution hold, per rule and item, the λ and μ of the inequality
    in certificates/statements/dual_bounds.py.
    """
    counts = [1 + len(rule.inside) + len(rule.rows) for rule in rules]
    starts = size + np.concatenate([[0], np.cumsum(counts)]).astype(int)
    program = _Program(int(starts[-1]))
    bounds, cones = [], []
    for rule, z in zip(rules, starts[:-1].tolist(), strict=True):
        m = len(rule.inside)
        u, e = z + 1, z + 1 + m
        program.total(range(e, e + len(rule.rows)))
        program.total(range(u, u + m))
        program.below({u + i: -np.eye(m)[:, i] for i in range(m)}, np.zeros((m, size)), np.zeros(m))
        own: dict[int, FloatArray] = {u + i: -rule.slopes[i] * np.eye(m)[:, i] for i in range(m)}
        bounds.append(program.below(own | {z: np.ones(m)}, -rule.rows[rule.inside], -rule.logs))
    for rule, z in zip(rules, starts[:-1].tolist(), strict=True):
        cones.append(program.exponential(rule.rows, 0.0, z + 1 + len(rule.inside), shift=z))
    square = sparse.block_diag([sparse.identity(size), sparse.csc_matrix((program.width - size,) * 2)], format="csc")
    found = program.run(square, np.zeros(program.width))
    dual = np.asarray(found.z)
    multipliers, mix = [], []
    for rule, rows, cone in zip(rules, bounds, cones, strict=True):
        multipliers.append(np.zeros(len(rule.rows)))
        multipliers[-1][rule.inside] = np.maximum(dual[rows], 0.0)
        mix.append(np.maximum(-dual[cone][0::3], 0.0))
    status = STATUS.get(str(found.status), "failed")
    return Solution(status, np.asarray(found.x)[:size], tuple(multipliers), tuple(mix))


def min_shortfalls(rows: FloatArray, inside: list[int], logs: FloatArray, costs: FloatArray) -> FloatArray | None:
    """The x that minimises Σ costs_i max(0, logs_i - log α_i) + ½ ridge |x|² for the weights α of the scores rows·x.

    The logarithm of a weight is concave in x, so this is convex. None where the solver fails.
    """
    n, size = rows.shape
    m = len(inside)
    z, u, e = size, size + 1, size + 1 + m
    program = _Program(e + n)
    program.total(range(e, e + n))
    program.below({u + i: -np.eye(m)[:, i] for i in range(m)}, np.zeros((m, size)), np.zeros(m))
    own: dict[int, FloatArray] = {u + i: -np.eye(m)[:, i] for i in range(m)}
    program.below(own | {z: np.ones(m)}, -rows[inside], -logs)
    program.exponential(rows, 0.0, e, shift=z)
    P = sparse.block_diag(
        [SHORTFALL_RIDGE * sparse.identity(size), sparse.csc_matrix((program.width - size,) * 2)], format="csc"
    )
    cost = np.zeros(program.width)
    cost[u:e] = costs
    found = program.run(P, cost)
    x = np.asarray(found.x)[:size]
    return x if np.isfinite(x).all() else None


class _Lift:
    """Positions of the entries of Z, A and B in the upper triangle of [[A, Z], [Zᵀ, B]], column by column."""

    def __init__(self, r: int) -> None:
        triangle = [(i, j) for j in range(2 * r) for i in range(j + 1)]
        self.length = len(triangle)
        own = [(i, j) for i, j in triangle if (i < r) == (j < r)]
        self.count = len(own)
        self.cost = np.array([0.5 if i == j else 0.0 for i, j in own])
        column = {pair: position for position, pair in enumerate(own)}
        # (row of the cone, column, factor): columns below 0 address Z; off-diagonal entries count √2 in the cone.
        self.entries = [
            (row, column[i, j], 1.0 if i == j else np.sqrt(2))
            if (i, j) in column
            else (row, -1 - (i * r + (j - r)), np.sqrt(2))
            for row, (i, j) in enumerate(triangle)
        ]


class _Program:
    """Builder of a conic program: rows of A and b, and cones."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.blocks: list[Any] = []
        self.b: list[FloatArray] = []
        self.cones: list[Any] = []

    def _add(self, block: Any, b: FloatArray) -> slice:
        start = sum(len(part) for part in self.b)
        self.blocks.append(block)
        self.b.append(b)
        return slice(start, start + len(b))

    def _wide(self, left: FloatArray) -> Any:
        """Rows filled up with zeros to all columns."""
        return sparse.hstack([sparse.csc_matrix(left), sparse.csc_matrix((len(left), self.width - left.shape[1]))])

    def zero(self, rows: FloatArray, b: FloatArray) -> slice:
        """Equalities rows·x = b; returns where their dual variables are."""
        if len(rows):
            self.cones.append(clarabel.ZeroConeT(len(rows)))
        return self._add(self._wide(rows), b)

    def total(self, columns: range) -> slice:
        """The variables in these columns sum to at most 1."""
        row = np.zeros((1, self.width))
        row[0, list(columns)] = 1.0
        self.cones.append(clarabel.NonnegativeConeT(1))
        return self._add(sparse.csc_matrix(row), np.ones(1))

    def below(self, columns: dict[int, FloatArray], left: FloatArray, b: FloatArray) -> slice:
        """Inequalities left·x + Σ columns·(their variables) <= b; returns where their dual variables are."""
        place = np.zeros((len(b), self.width))
        place[:, : left.shape[1]] = left
        for at, column in columns.items():
            place[:, at] += column
        self.cones.append(clarabel.NonnegativeConeT(len(b)))
        return self._add(sparse.csc_matrix(place), b)

    def exponential(self, rivals: FloatArray, edge: float, at: int, shift: int | None = None) -> slice:
        """(rivals·x - edge, 1, u) in the exponential cone, with u in the columns from `at` on.

        With `shift`, the variable in that column is subtracted from rivals·x.
        """
        m = len(rivals)
        place = np.zeros((3 * m, rivals.shape[1] if shift is None else self.width))
        place[0::3, : rivals.shape[1]] = -rivals
        if shift is not None:
            place[0::3, shift] = 1.0
        bounds = sparse.csc_matrix((-np.ones(m), (np.arange(2, 3 * m, 3), np.arange(at, at + m))), (3 * m, self.width))
        self.cones.extend([clarabel.ExponentialConeT()] * m)
        return self._add(self._wide(place) + bounds, np.tile([-edge, 1.0, 0.0], m))

    def semidefinite(self, lift: _Lift, at: int) -> slice:
        """[[A, Z], [Zᵀ, B]] is positive semidefinite, with A and B in the columns from `at` on."""
        rows = [row for row, _, _ in lift.entries]
        columns = [at + c if c >= 0 else -1 - c for _, c, _ in lift.entries]
        block = sparse.csc_matrix(([-f for _, _, f in lift.entries], (rows, columns)), (lift.length, self.width))
        side = round((np.sqrt(8 * lift.length + 1) - 1) / 2)
        self.cones.append(clarabel.PSDTriangleConeT(side))
        return self._add(block, np.zeros(lift.length))

    def run(self, P: Any, cost: FloatArray) -> Any:
        """Minimise ½ xᵀPx + cost·x with Clarabel."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        A = sparse.vstack(self.blocks, format="csc")
        return clarabel.DefaultSolver(P, cost, A, np.concatenate(self.b), self.cones, settings).solve()
