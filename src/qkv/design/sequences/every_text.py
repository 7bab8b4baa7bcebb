"""Circuits for every text over a vocabulary, in closed form: each token's vector is looked up by itself."""

# Scores are chosen, and matrices follow. F are the dual vectors of the positions: F_i·p_j = 1 if i = j, else 0, and
# F_i·e_u = 0; R reads tokens and gives 0 for positions. A table C of scores between positions is W = Fᵀ C F, and
# W = β RᵀR gives e'_u·e'_v with e' = R e. So:
#   previous   C, row by row: the smallest row with a margin m over i other keys is m i/(i+1) and -m/(i+1).
#   duplicate  β e'_u·e'_v - γ [i = j]: equal tokens score highest, and the token itself is not read.
#   induction  layer 1 is `previous` and copies R x into entries of its own; layer 2 compares e'_u with what was copied,
#              β e'_u·e'_r - γ [j = 0]: position 0 has no token before it, so it copied itself.
# With a sink s in position 0, its score is made the same for every token: β e'_u·e'_s is subtracted there, and a
# constant between the scores of equal and of other tokens is added.

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import torch

from qkv.core.types import FloatArray, IntArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.sequences.circuit import Circuit, Layer
from qkv.design.sequences.rules import ReadRule
from qkv.design.sequences.texts import Vocabulary, as_array
from qkv.errors import QkvError

Progress = Callable[[int, int], None]
FIRST_LAYER_LEAK = 1e-13
"""Leak of the first of two layers: what it copies, times the scores of the second, stays far below tol."""
SAFETY = (1e-6, 1e-3, 1.0)
"""Added to margins, in turn, until the certificate confirms tol: rounding bounds need a little."""
MIN_SINE = 1e-6
"""Singular values, relative to the largest, below which position vectors count as dependent."""
BLOCK_ROWS = 512
MAX_NAMED = 5


@dataclasses.dataclass(frozen=True, eq=False)
class _Readouts:
    """Matrices that read tokens and positions apart.

    Attributes:
        tokens: R, (t, d): R e_u tells tokens apart and R p_j = 0.
        positions: F, (length, d): F_i·p_j = 1 if i = j, else 0, and F_i·e_u = 0.
        vectors: R e_u for every token.
    """

    tokens: FloatArray
    positions: FloatArray
    vectors: FloatArray

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> _Readouts:
        e, p = as_array(vocabulary.tokens), as_array(vocabulary.positions)
        t, d = e.shape[1], p.shape[1]
        if not p[:, :t].any():  # side by side
            read = np.eye(t, d)
            return cls(read, _dual(p), e)
        wide = np.zeros((len(e), d))
        wide[:, :t] = e
        away = _complement(p)  # rows: an orthonormal basis of what is orthogonal to every position
        if not len(away):
            raise _inseparable("the positions span all dimensions, so that no matrix reads tokens alone")
        from_tokens = _complement(wide)
        if not len(from_tokens):
            raise _inseparable("the tokens span all dimensions, so that no matrix reads positions alone")
        return cls(away, _dual(p @ from_tokens.T) @ from_tokens, wide @ away.T)


def _inseparable(problem: str) -> QkvError:
    hint = "Use Vocabulary.side_by_side, or wire given texts: wire_texts(Sequences(vocabulary, ids), …)"
    return QkvError("a circuit for every text", problem, hint)


def _complement(rows: FloatArray) -> FloatArray:
    """An orthonormal basis, as rows, of the vectors that are orthogonal to all rows."""
    gram = rows.T @ rows
    values, basis = np.linalg.eigh(gram)
    return np.ascontiguousarray(basis[:, values <= MIN_SINE**2 * max(float(values[-1]), 1e-300)].T)


def _dual(p: FloatArray) -> FloatArray:
    """F with F_i·p_j = 1 if i = j, else 0."""
    if np.array_equal(p @ p.T, np.eye(len(p))):
        return p
    sizes = np.linalg.svd(p, compute_uv=False)
    if len(p) > p.shape[1] or sizes[-1] <= MIN_SINE * sizes[0]:
        rank = int((sizes > MIN_SINE * sizes[0]).sum())
        raise _inseparable(f"the {len(p)} position vectors span {rank} dimensions beside the tokens")
    return np.ascontiguousarray(np.linalg.pinv(p).T)


@dataclasses.dataclass(frozen=True, eq=False)
class _Margins:
    """How well each token's vector is told from all others.

    Attributes:
        own: e'_u·e'_u.
        rival: The largest e'_u·e'_v over the other tokens.
        nearest: The token v with it.
    """

    own: FloatArray
    rival: FloatArray
    nearest: IntArray

    @classmethod
    def of(cls, vectors: FloatArray, callback: Progress | None) -> _Margins:
        n = len(vectors)
        small = vectors.astype(np.float32)
        nearest = np.zeros(n, dtype=np.int64)
        for start in range(0, n, BLOCK_ROWS):
            scores = small[start : start + BLOCK_ROWS] @ small.T
            scores[np.arange(len(scores)), np.arange(start, start + len(scores))] = -np.inf
            nearest[start : start + len(scores)] = scores.argmax(axis=1)
            if callback is not None:
                callback(start + len(scores), n)
        own = np.einsum("ij,ij->i", vectors, vectors)
        rival = np.einsum("ij,ij->i", vectors, vectors[nearest]) if n > 1 else np.full(n, -np.inf)
        return cls(own, rival, nearest)


def circuit_for_every_text(
    vocabulary: Vocabulary, rule: ReadRule, tol: float, least_gap: float, callback: Progress | None = None
) -> Circuit:
    """The circuit of a rule for every text over a vocabulary; `wire_texts` has the arguments."""
    readouts = _Readouts.of(vocabulary)
    if rule.sink is not None and rule.sink >= len(vocabulary.tokens):
        problem = f"the sink is token {rule.sink}, and there are {len(vocabulary.tokens)}"
        raise QkvError(f"the rule {rule.name}", problem, "Name a token of the vocabulary")
    excluded: IntArray = np.zeros(0, dtype=np.int64)
    reasons: tuple[str, ...] = ()
    margins = None
    if rule.name != "previous":
        margins = _Margins.of(readouts.vectors, callback)
        gaps = margins.own - margins.rival
        scale = float(margins.own.max())
        near = gaps <= least_gap * scale
        if rule.sink is not None:
            near[rule.sink] = False
        excluded = np.flatnonzero(near)
        if len(excluded) >= len(gaps) - (rule.sink is not None):
            tokens = "no token" if rule.sink is None else "no token but the sink"
            problem = f"{tokens} scores itself above all others by {least_gap:g} of the largest such score, {scale:.3g}"
            hint = "Give tokens that differ; normalised vectors and a smaller least_gap tell more of them apart"
            raise QkvError(f"the rule {rule.name}", problem, hint)
        reasons = _reasons(vocabulary, margins, excluded, least_gap * scale)
    slots = len(readouts.tokens) * (2 if rule.name == "induction" else 1)
    wide = vocabulary.widened(slots)
    worst = math.inf
    for safety in SAFETY:
        layers = _layers(wide, readouts, margins, excluded, rule, tol, safety)
        certificate = Certificate.issue("every text", _data(wide, layers, rule, excluded))
        worst = float(certificate.claims["distance"])
        if worst <= tol:
            last = layers[-1]
            return Circuit(
                status="found for some tokens" if len(excluded) else "found",
                scope="every text", rule=rule, layers=layers, vocabulary=wide, tol=tol, distance=worst, rules=None,
                norm=_norm(last), least_norm=None, excluded=tuple(excluded.tolist()), reasons=reasons,
                certificate=certificate,
            )  # fmt: skip
    problem = f"the best that was found is within {worst:.3g}"
    raise QkvError(f"a circuit for every text within {tol:g}", problem, "Choose a larger least_gap or tol")


def _norm(layer: Layer) -> float:
    """The Frobenius norm of QᵀK, from Gram matrices of the size of the head."""
    return float(torch.sqrt(((layer.Q @ layer.Q.T) * (layer.K @ layer.K.T)).sum()))


def _reasons(vocabulary: Vocabulary, margins: _Margins, excluded: IntArray, least: float) -> tuple[str, ...]:
    """Why tokens are excluded: the tokens whose vectors score at least as high, or less than `least` below."""
    out = []
    for u in excluded[:MAX_NAMED].tolist():
        v = int(margins.nearest[u])
        same = np.array_equal(as_array(vocabulary.tokens[u]), as_array(vocabulary.tokens[v]))
        own, rival = float(margins.own[u]), float(margins.rival[u])
        scores = f"scores {rival:.6g}, and it scores itself {own:.6g}"
        how = "has the same vector" if same else f"{scores}: the difference is not above {least:.3g}"
        out.append(f"{vocabulary.labels[u]} looks for itself, but {vocabulary.labels[v]} {how}")
    if len(excluded) > MAX_NAMED:
        out.append(f"and {len(excluded) - MAX_NAMED:,} tokens more")
    return tuple(out)


def _layers(
    wide: Vocabulary, r: _Readouts, m: _Margins | None, excluded: IntArray, rule: ReadRule, tol: float, safety: float
) -> tuple[Layer, ...]:
    """The layers of a rule with margins for a leak of tol, plus `safety`."""
    d, t = wide.width, len(r.tokens)
    tokens, positions = np.zeros((t, d)), np.zeros((wide.length, d))
    tokens[:, : r.tokens.shape[1]], positions[:, : r.positions.shape[1]] = r.tokens, r.positions
    slots = np.eye(d)[r.tokens.shape[1] :].reshape(-1, t, d)
    copy = [(tokens, slot) for slot in slots]
    if rule.name == "previous":
        return (_layer(*_previous_scores(positions, tol, safety), *copy[0]),)
    assert m is not None
    reading = np.ones(len(m.own), dtype=bool)
    reading[excluded] = False
    if rule.sink is not None:
        reading[rule.sink] = False
    margin = math.log(wide.length / tol) + safety
    own, rival = m.own[reading], m.rival[reading]
    gap = float((own - rival).min()) if len(m.own) > 1 else 1.0
    between = 0.0
    if rule.sink is not None:
        between = float(own.min()) - max(float(rival.max()), 0.0)
        if not between > 0:
            problem = "some token scores itself lower than another token scores its nearest"
            raise QkvError(f"the rule {rule.name} with a sink", problem, "Normalise the tokens, or leave the sink out")
        gap = between / 2
    beta = margin / gap
    level = 0.0 if rule.sink is None else beta * (float(own.min()) - between / 2)
    seek = tokens if rule.name == "duplicate" else slots[0]
    if rule.sink is not None:
        seek = seek - np.outer(r.vectors[rule.sink], positions[0])
    every = positions.sum(axis=0, keepdims=True)
    queries, keys = [math.sqrt(beta) * tokens], [math.sqrt(beta) * seek]
    if rule.name == "duplicate":
        below = margin + max(0.0, beta * float(own.max()) - level if rule.sink is not None else 0.0)
        queries.append(-math.sqrt(below) * positions)
        keys.append(math.sqrt(below) * positions)
    # What is added to key 0 for every query: the level of the sink, or a penalty where key 0 must not be read.
    bias = level if rule.sink is not None else (-margin if rule.name == "induction" else 0.0)
    if bias:
        queries.append(math.copysign(math.sqrt(abs(bias)), bias) * every)
        keys.append(math.sqrt(abs(bias)) * positions[:1])
    last = _layer(np.vstack(queries), np.vstack(keys), *copy[-1])
    if rule.name == "duplicate":
        return (last,)
    return (_layer(*_previous_scores(positions, FIRST_LAYER_LEAK, safety), *copy[0]), last)


def _previous_scores(positions: FloatArray, tol: float, safety: float) -> tuple[FloatArray, FloatArray]:
    """Q and K with the smallest scores between positions with which each reads the one before it."""
    n = len(positions)
    scores = np.zeros((n, n))
    for i in range(1, n):
        margin = math.log(i / tol) + safety
        scores[i, : i + 1] = -margin / (i + 1)
        scores[i, i - 1] = margin * i / (i + 1)
    return scores.T @ positions, positions


def _layer(q: FloatArray, k: FloatArray, v: FloatArray, slot: FloatArray) -> Layer:
    return Layer(*(torch.from_numpy(np.array(m, order="C")) for m in (q, k, v, slot.T)))


def _data(wide: Vocabulary, layers: tuple[Layer, ...], rule: ReadRule, excluded: IntArray) -> dict[str, object]:
    """The data of the certificate."""
    last = layers[-1]
    data: dict[str, object] = {"tokens": wide.tokens, "positions": wide.positions, "rule": rule.name}
    data |= {"Q": last.Q, "K": last.K}
    if len(layers) > 1:
        data |= {"Q1": layers[0].Q, "K1": layers[0].K, "V1": layers[0].V, "O1": layers[0].O}
    if rule.sink is not None:
        data["sink"] = rule.sink
    if len(excluded):
        data["excluded"] = excluded
    return data
