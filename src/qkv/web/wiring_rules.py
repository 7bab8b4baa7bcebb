"""Whether each rule of a wiring is met at a length of the vectors, and why where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from qkv.core.display import number

if TYPE_CHECKING:
    from qkv.core.types import FloatArray
    from qkv.design.wiring import Wiring

RELATIVE_RESIDUAL = 1e-9
"""A rule is taken as written by V if V is off by at most this, relative to what the rules write."""


@dataclass(frozen=True)
class RuleReport:
    """One rule and its outcome.

    Attributes:
        token: Name of the reading token.
        wanted: Wanted weights by token name.
        met: Whether the weights are within tol of the wanted ones, and V writes what the rule says.
        distance: Distance of the weights from the wanted ones, in total variation; None without a wiring.
        residual: Distance of what V writes from the rule for exact weights, in units of the named vectors; likewise.
        why: Why the rule is not met, in a sentence; empty where it is.
    """

    token: str
    wanted: dict[str, float]
    met: bool
    distance: float | None
    residual: float | None
    why: str


def rule_reports(
    names: Sequence[str],
    X: Sequence[Sequence[float]],
    readers: Sequence[int],
    reads: Sequence[Sequence[tuple[int, float]]],
    writes: Sequence[Sequence[float]],
    wiring: Wiring,
    weights: Any,
) -> list[RuleReport]:
    """The outcome of each rule.

    Args:
        names: Names of the tokens.
        X: Coefficients of the tokens, a row per token and a column per vector.
        readers: The reading token of each rule.
        reads: For each rule, pairs of token and wanted weight.
        writes: For each rule, what it writes, as coefficients of the vectors.
        wiring: The matrices, or the proof that there are none.
        weights: Attention weights at the length of the vectors that is shown; not read where there are no matrices.

    Returns:
        One report per rule, in their order.
    """
    x, y = np.array(X, dtype=float), np.array(writes, dtype=float)
    wanted = np.zeros((len(readers), len(names)))
    for row, parts in enumerate(reads):
        for j, weight in parts:
            wanted[row, j] = weight
    wanted /= wanted.sum(1, keepdims=True)
    by_name = [{names[j]: float(w) for j, w in enumerate(row) if w > 0} for row in wanted]
    if not wiring.possible:
        causes = contradictory_readings(names, x, readers, wanted, wiring.tol)
        return [
            RuleReport(names[i], by_name[row], row not in causes, None, None, causes.get(row, ""))
            for row, i in enumerate(readers)
        ]
    assert wiring.V is not None
    mixed = wanted @ x
    residuals = np.linalg.norm(mixed @ wiring.V.numpy().T - y, axis=1)
    unwritten = {int(row) for row in np.flatnonzero(residuals > RELATIVE_RESIDUAL * max(1.0, float(np.abs(y).max())))}
    out = []
    for row, i in enumerate(readers):
        distance = float(np.abs(np.array([float(w) for w in weights[i]]) - wanted[row]).sum() / 2)
        far = distance > wiring.tol * (1 + 1e-9)
        why = []
        if far:
            bound = number(wiring.tol)
            why.append(f"its weights are {number(distance, 3)} from the rule; at β = 1 they are within {bound}")
        if row in unwritten:
            why.append(contradictory_writing(names, readers, mixed, y, row))
        met = not far and row not in unwritten
        out.append(RuleReport(names[i], by_name[row], met, distance, float(residuals[row]), "; ".join(why)))
    return out


def contradictory_readings(
    names: Sequence[str], x: FloatArray, readers: Sequence[int], wanted: FloatArray, tol: float
) -> dict[int, str]:
    """Rules that no scores can satisfy since tokens are equal or zero, with the reason, by row.

    Empty where the contradiction is of another kind.
    """
    causes: dict[int, str] = {}
    for a, b in combinations(range(len(readers)), 2):
        same = (x[readers[a]] == x[readers[b]]).all()
        if same and np.abs(wanted[a] - wanted[b]).sum() / 2 > 2 * tol:
            pair = f"{names[readers[a]]} and {names[readers[b]]} are the same vector, so they read the same"
            causes.setdefault(a, pair)
            causes.setdefault(b, pair)
    for i, j in combinations(range(len(names)), 2):
        for row in range(len(readers)):
            if (x[i] == x[j]).all() and abs(wanted[row, i] - wanted[row, j]) / 2 > tol:
                pair = f"{names[i]} and {names[j]} are the same vector, so every token reads them in equal parts"
                causes.setdefault(row, pair)
    for row, i in enumerate(readers):
        uniform = np.abs(wanted[row] - 1 / len(names)).sum() / 2
        if not x[i].any() and uniform > tol:
            causes.setdefault(row, f"{names[i]} is the zero vector, so it reads all tokens in equal parts")
    return causes


def contradictory_writing(
    names: Sequence[str], readers: Sequence[int], mixed: FloatArray, writes: FloatArray, row: int
) -> str:
    """Why one linear map V cannot write what rule `row` says, given what all rules read (`mixed`) and write."""
    if not mixed[row].any():
        return "what it reads is the zero vector, so it writes 0"
    for other in range(len(readers)):
        if other == row:
            continue
        factor = float(mixed[row] @ mixed[other] / (mixed[other] @ mixed[other])) if mixed[other].any() else 0.0
        if not factor or np.abs(mixed[row] - factor * mixed[other]).max() > 1e-12 * np.abs(mixed[row]).max():
            continue
        if np.abs(writes[row] - factor * writes[other]).max() > RELATIVE_RESIDUAL * max(1.0, np.abs(writes).max()):
            times = "" if abs(factor - 1) < 1e-12 else f"{number(factor, 3)} times "
            reads = f"it reads {times}the same as {names[readers[other]]}"
            return f"{reads}, so it writes {times}the same, and the rules say otherwise"
    return "what it reads is a sum of multiples of what other tokens read, so what it writes follows from theirs"
