"""Rules of sequences as convex constraints on W: a bound on each rule's leak, and the ratios of each blend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.design.solvers.sequence_rules import SequenceRules

RANK_TOLERANCE = 1e-13
"""Directions in which the tokens have a smaller part than this of the largest are taken for rounding errors."""


@dataclasses.dataclass(frozen=True, eq=False)
class ReducedTokens:
    """The tokens on bases of their spans, in units of their largest norms.

    Scores of one token depend on differences of keys only, so the keys of each sequence are centred first. Outside of
    the spans W changes no weight, so the smallest W is 0 there.
    """

    queries: list[FloatArray]
    keys: list[FloatArray]
    q_basis: FloatArray
    k_basis: FloatArray
    q_size: float
    k_size: float
    shortest_reader: float

    @classmethod
    def of(cls, sequences: Sequence[SequenceRules]) -> ReducedTokens:
        readers = [s.queries[s.readers] for s in sequences]
        centred = [s.keys - s.keys.mean(axis=0) for s in sequences]
        q_basis, k_basis = _span(np.vstack(readers)), _span(np.vstack(centred))
        lengths = np.concatenate([np.linalg.norm(r, axis=1) for r in readers])
        q_size = float(lengths.max()) or 1.0
        k_size = max(float(np.linalg.norm(k, axis=1).max()) for k in centred) or 1.0
        shortest = float(lengths[lengths > 0].min(initial=np.inf)) / q_size
        return cls(
            [r @ q_basis.T / q_size for r in readers], [k @ k_basis.T / k_size for k in centred],
            q_basis, k_basis, q_size, k_size, min(1.0, shortest),
        )  # fmt: skip


def _span(x: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of the rows, as rows."""
    tall = np.linalg.qr(x, mode="r") if len(x) > x.shape[1] else x
    if len(x) <= x.shape[1]:
        q, r = np.linalg.qr(x.T)  # x = rᵀ qᵀ
        u, s, _ = np.linalg.svd(r)
        basis = (q @ u).T
    else:
        _, s, basis = np.linalg.svd(tall)
    rank = max(1, int((s > RANK_TOLERANCE * max(s[0], 1e-300)).sum()))
    return np.ascontiguousarray(basis[:rank])


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """The leak constraints of one sequence: f = logsumexp of the scores that are not hidden, less own and edge."""

    rows: slice
    x: FloatArray
    keys: FloatArray
    own: IntArray
    hidden: BoolArray


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreConstraints:
    """All constraints: leaks (one per rule with rivals), and ratios (one per further item of a blend)."""

    blocks: list[Block]
    x: FloatArray  # readers of the leaks, (leaks, rq)
    edge: FloatArray
    ratio_x: FloatArray  # readers of the ratios, (ratios, rq)
    ratio_d: FloatArray  # differences of keys, (ratios, rk)
    ratio_value: FloatArray
    shape: tuple[int, int]
    leak_entry: IntArray  # entry of the leak's first item, counted over all sequences
    ratio_entry: IntArray

    @classmethod
    def of(cls, sequences: Sequence[SequenceRules], reduced: ReducedTokens, tol: float) -> ScoreConstraints:
        odds = float(np.log(tol) - np.log1p(-tol))
        blocks, edges, ratios, entries = [], [], [], []
        start, base = 0, 0
        for s, x, keys in zip(sequences, reduced.queries, reduced.keys, strict=True):
            firsts = s.offsets[:-1]
            sizes = np.diff(s.offsets)
            hidden = np.zeros((len(s.readers), len(keys)), dtype=bool) if s.mask is None else ~s.mask[s.readers]
            hidden[np.repeat(np.arange(len(s.readers)), sizes), s.items] = True
            used = np.flatnonzero(~hidden.all(axis=1))
            if len(used):
                rows = slice(start, start + len(used))
                blocks.append(Block(rows, x[used], keys, s.items[firsts][used], hidden[used]))
                edges.append(odds - np.log(s.weights[firsts][used]))
                entries.append(base + firsts[used])
                start += len(used)
            for r in np.flatnonzero(sizes > 1):
                first = int(firsts[r])
                others = np.arange(first + 1, int(s.offsets[r + 1]))
                d = keys[s.items[others]] - keys[s.items[first]]
                value = np.log(s.weights[others]) - np.log(s.weights[first])
                ratios.append((np.repeat(x[r : r + 1], len(others), axis=0), d, value, base + others))
            base += len(s.items)
        rq, rk = reduced.queries[0].shape[1], reduced.keys[0].shape[1]
        return cls(
            blocks,
            _stack([b.x for b in blocks], rq),
            np.concatenate(edges) if edges else np.zeros(0),
            _stack([r[0] for r in ratios], rq),
            _stack([r[1] for r in ratios], rk),
            np.concatenate([r[2] for r in ratios]) if ratios else np.zeros(0),
            (rq, rk),
            np.concatenate(entries) if entries else np.zeros(0, dtype=np.int64),
            np.concatenate([r[3] for r in ratios]) if ratios else np.zeros(0, dtype=np.int64),
        )

    @classmethod
    def of_floors(
        cls, sequences: Sequence[SequenceRules], reduced: ReducedTokens, floors: Sequence[FloatArray]
    ) -> ScoreConstraints:
        """Bounds from below on weights: α >= floor, that is lse of all other scores - s <= log((1 - floor)/floor)."""
        blocks, edges, entries = [], [], []
        start, base = 0, 0
        for s, x, keys, floor in zip(sequences, reduced.queries, reduced.keys, floors, strict=True):
            owner = np.repeat(np.arange(len(s.readers)), np.diff(s.offsets))
            used = np.flatnonzero(floor > 0)
            shape = (len(used), len(keys))
            hidden = np.zeros(shape, dtype=bool) if s.mask is None else ~s.mask[s.readers[owner[used]]]
            hidden[np.arange(len(used)), s.items[used]] = True
            kept = ~hidden.all(axis=1)
            used, hidden = used[kept], hidden[kept]
            if len(used):
                blocks.append(Block(slice(start, start + len(used)), x[owner[used]], keys, s.items[used], hidden))
                edges.append(np.log1p(-floor[used]) - np.log(floor[used]))
                entries.append(base + used)
                start += len(used)
            base += len(s.items)
        rq, rk = reduced.queries[0].shape[1], reduced.keys[0].shape[1]
        none = np.zeros(0, dtype=np.int64)
        return cls(
            blocks, _stack([b.x for b in blocks], rq), np.concatenate(edges) if edges else np.zeros(0),
            np.zeros((0, rq)), np.zeros((0, rk)), np.zeros(0), (rq, rk),
            np.concatenate(entries) if entries else none, none,
        )  # fmt: skip

    def scores(self, W: FloatArray) -> list[FloatArray]:
        """x_iᵀ W k_j per leak constraint, block by block."""
        return [(b.x @ W) @ b.keys.T for b in self.blocks]

    def leaks(self, scores: list[FloatArray]) -> tuple[FloatArray, list[FloatArray], FloatArray]:
        """f of every leak, the softmax over its rivals, and its entropy."""
        f, entropy, weights = np.zeros(len(self.x)), np.zeros(len(self.x)), []
        for b, s in zip(self.blocks, scores, strict=True):
            masked = np.where(b.hidden, -np.inf, s)
            top = masked.max(axis=1)
            masked -= top[:, None]
            p = np.exp(masked)
            total = p.sum(axis=1)
            p /= total[:, None]
            lse = np.log(total)
            f[b.rows] = lse + top - s[np.arange(len(s)), b.own] - self.edge[b.rows]
            masked[b.hidden] = 0.0
            entropy[b.rows] = lse - np.einsum("ij,ij->i", p, masked)
            weights.append(p)
        return f, weights, entropy

    def slopes(self, weights: list[FloatArray]) -> FloatArray:
        """h = Σ p_j k_j - k_own of every leak: the gradient of f is x hᵀ."""
        return _stack([p @ b.keys - b.keys[b.own] for b, p in zip(self.blocks, weights, strict=True)], self.shape[1])

    def split_multipliers(
        self, sequences: Sequence[SequenceRules], lam: FloatArray, nu: FloatArray
    ) -> tuple[FloatArray, ...]:
        """One multiplier per item: that of the leak on the first item of a rule, those of the ratios on the others."""
        out = np.zeros(sum(len(s.items) for s in sequences))
        out[self.leak_entry] = lam
        out[self.ratio_entry] = -nu
        return tuple(np.split(out, np.cumsum([len(s.items) for s in sequences])[:-1]))


def _stack(parts: list[FloatArray], width: int) -> FloatArray:
    return np.vstack(parts) if parts else np.zeros((0, width))
