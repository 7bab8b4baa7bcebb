"""The matrix W of least Frobenius norm with which tokens of one or many sequences read by rules.

Use `smallest_matrix` on a list of `SequenceRules`. The scores of a token x_i are x_iᵀ W k_j, so every rule is a convex
constraint on W, and the solution is a kernel machine: W = Σ x_i g_iᵀ, where g_i is a combination of the keys that token
i sees, with one multiplier per rule (and one per ratio where a rule reads a blend). The method is in
augmented_lagrangian.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from qkv.core.types import FloatArray
from qkv.design.solvers.augmented_lagrangian import MAX_FACTOR, AugmentedLagrangian, Progress, Status
from qkv.design.solvers.score_constraints import ReducedTokens, ScoreConstraints
from qkv.design.solvers.sequence_rules import SequenceRules as SequenceRules
from qkv.errors import QkvError


@dataclasses.dataclass(frozen=True, eq=False)
class KernelSolution:
    """The smallest W, or evidence that there is none.

    Attributes:
        status: "solved"; "infeasible" (the multipliers prove that every W is very large, or that there is none); or
            "unsolved" (neither, after all iterations).
        W: The matrix, (dq, dk); for "infeasible" and "unsolved" the last iterate.
        norm: Its Frobenius norm.
        norm_at_least: Every W with the exact ratios and a leak of at most tol has at least this norm, computed in
            float64 without rounding bounds; a certificate makes it rigorous.
        multipliers: Per sequence, one number per entry of its `items`: Λ >= 0 of the leak on the first item a of each
            rule, and ν of any sign for the ratio of every further item. With p the softmax of the scores x_iᵀ W k_j
            over the keys that the rule does not read and the mask does not hide, |W| >= b/|G| with
            G = Σ x_i (Λ (k_a - Σ_j p_j k_j) + Σ_c ν_c (k_c - k_a))ᵀ and
            b = Σ (Λ (log w_a + H(p) - log(tol/(1-tol))) + Σ_c ν_c log(w_c/w_a)). A common factor, which does not change
            the bound, is such that G is a multiple of W, not W itself.
        violation: Largest excess of a rule: of the logarithm of the odds of its leak, or of a logarithm of a ratio.
        products: Products with the second derivatives, the unit of cost.
    """

    status: Status
    W: FloatArray
    norm: float
    norm_at_least: float
    multipliers: tuple[FloatArray, ...]
    violation: float
    products: int


def smallest_matrix(
    sequences: Sequence[SequenceRules],
    tol: float,
    *,
    progress: Progress | None = None,
    memory_limit: float | None = None,
    max_products: int = 4000,
) -> KernelSolution:
    """The W of least Frobenius norm with which every rule of every sequence is followed.

    Each rule's weights, the softmax of x_iᵀ W k_j over the keys that its mask allows, have the wanted ratios exactly
    and a leak (weight on all other keys) of at most tol, so that they are within tol in total variation.

    Args:
        sequences: The sequences, with vectors of one size on each side.
        tol: Largest leak of each rule, between 0 and 1.
        progress: Called with percent done and 100.
        memory_limit: Bytes that may be used; None for no limit.
        max_products: Products with the second derivatives, at most.

    Returns:
        A `KernelSolution`.

    Raises:
        QkvError: If vectors differ in size, there is no rule, or the memory limit is too small; the message says what
            would fit.
    """
    _check_sizes(sequences)
    if memory_limit is not None:
        check_memory(sequences, memory_limit)
    reduced = ReducedTokens.of(sequences)
    return _solve(sequences, reduced, ScoreConstraints.of(sequences, reduced, tol), progress, max_products)


def smallest_matrix_above(
    sequences: Sequence[SequenceRules],
    floors: Sequence[FloatArray],
    *,
    progress: Progress | None = None,
    max_products: int = 4000,
) -> KernelSolution:
    """The W of least Frobenius norm with which the weight of every item is at least its floor.

    Args:
        sequences: The sequences; their wanted weights have no effect.
        floors: Per sequence, one number below 1 per entry of its `items`; 0 for none.
        progress: Called with percent done and 100.
        max_products: Products with the second derivatives, at most.

    Returns:
        A `KernelSolution`, whose multipliers are those of the floors.
    """
    _check_sizes(sequences)
    reduced = ReducedTokens.of(sequences)
    return _solve(sequences, reduced, ScoreConstraints.of_floors(sequences, reduced, floors), progress, max_products)


def _solve(
    sequences: Sequence[SequenceRules],
    reduced: ReducedTokens,
    program: ScoreConstraints,
    progress: Progress | None,
    max_products: int,
) -> KernelSolution:
    solver = AugmentedLagrangian(program, progress, max_products, reduced.shortest_reader)
    status = solver.run()
    unit = 1 / (reduced.q_size * reduced.k_size)
    W = reduced.q_basis.T @ solver.W @ reduced.k_basis * unit
    return KernelSolution(
        status, W, float(np.linalg.norm(solver.W)) * unit, solver.bound * unit,
        program.split_multipliers(sequences, solver.lam, solver.nu), solver.violation, solver.products,
    )  # fmt: skip


def memory_needed(sequences: Sequence[SequenceRules]) -> float:
    """Bytes that `smallest_matrix` uses at most, approximately."""
    return _bytes(
        sum(len(s.readers) * len(s.keys) for s in sequences),
        sum(len(s.items) for s in sequences),
        sum(s.queries.size + s.keys.size for s in sequences),
        sequences[0].queries.shape[1] * sequences[0].keys.shape[1],
    )


def _bytes(scores: float, entries: float, tokens: float, matrix: float) -> float:
    factor = entries**2 if entries <= MAX_FACTOR else 0.0
    return 8.0 * (7 * scores + 14 * matrix + 4 * tokens + 3 * factor)


def check_memory(sequences: Sequence[SequenceRules], limit: float) -> None:
    """Refuse what needs more than `limit` bytes, and say how many sequences, or rules and tokens, would fit."""
    needed = memory_needed(sequences)
    if needed <= limit:
        return
    rules = sum(len(s.readers) for s in sequences)
    hint = "Allow more memory"
    fits = [k for k in range(1, len(sequences)) if memory_needed(sequences[:k]) <= limit]
    if fits:
        hint += f", or wire the first {fits[-1]:,} of the {len(sequences):,} sequences, which would fit"
    elif len(sequences) == 1:
        one, matrix = sequences[0], sequences[0].queries.shape[1] * sequences[0].keys.shape[1]
        parts = (len(one.readers) * len(one.keys), len(one.items), one.queries.size + one.keys.size)
        low, high = 0.0, 1.0
        for _ in range(40):  # the share of the tokens, and of their rules, that fits
            share = (low + high) / 2
            fitting = _bytes(parts[0] * share**2, parts[1] * share, parts[2] * share, matrix) <= limit
            low, high = (share, high) if fitting else (low, share)
        if int(rules * low):
            tokens = f"{int(len(one.keys) * low):,} of the {len(one.keys):,} tokens"
            hint += f", or wire {tokens} with {int(rules * low):,} rules, which would fit"
    problem = f"it needs about {needed / 1e9:.2g} GB, and {limit / 1e9:.2g} GB are allowed"
    raise QkvError(f"wiring {rules:,} rules", problem, hint)


def _check_sizes(sequences: Sequence[SequenceRules]) -> None:
    if not sequences or not any(len(s.readers) for s in sequences):
        raise QkvError("wiring sequences", "there is no rule", "Give at least one rule")
    sizes = {(s.queries.shape[1], s.keys.shape[1]) for s in sequences}
    if len(sizes) != 1:
        raise QkvError("wiring sequences", f"their vectors have sizes {sorted(sizes)}", "Give vectors of one size")
