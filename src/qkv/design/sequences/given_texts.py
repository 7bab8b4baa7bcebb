"""The head with the smallest W = QᵀK for the rules of given texts: a kernel machine over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from qkv.core.types import FloatArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.sequences.circuit import Circuit, Layer
from qkv.design.sequences.every_text import Progress
from qkv.design.sequences.rules import ListedReads, ReadRule
from qkv.design.sequences.texts import Sequences, as_array
from qkv.design.solvers.kernel_machine import KernelSolution, smallest_matrix
from qkv.design.solvers.sequence_rules import SequenceRules
from qkv.errors import QkvError

Rule = ReadRule | ListedReads
SAFETY_MARGINS = (1e-6, 1e-4, 1e-2)
"""The leak is aimed this much (relatively) below tol, so that Q and K rounded to float64 are certainly within it."""
MIN_NORM_BOUND = 1e9
"""Certified bound on the norm of every W, in units of the longest vectors, that counts as "out of reach"."""
RANK_TOLERANCE = 1e-13
MAX_NAMED = 3


def head_for_given_texts(
    texts: Sequences, rule: Rule, tol: float, memory_limit: float, callback: Progress | None
) -> Circuit:
    """The smallest head for the rules of given texts; `wire_texts` has the arguments."""
    if isinstance(rule, ListedReads):
        wanted = [read for _, read in rule.texts]
    else:
        wanted = [rule.targets(ids) for ids in texts.ids]
    count = sum(map(len, wanted))
    if not count:
        hint = "Give texts in which a token has something to read"
        raise QkvError(f"wiring {len(texts.ids)} texts by the rule {rule.name}", "they hold no rule", hint)
    vectors = [as_array(texts.vocabulary.vectors(ids)) for ids in texts.ids]
    sequences = [_sequence(x, read) for x, read in zip(vectors, wanted, strict=True)]
    solution = None
    for margin in SAFETY_MARGINS:
        aimed = tol * (1 - margin)
        solution = smallest_matrix(sequences, aimed, progress=callback, memory_limit=memory_limit)
        if solution.status != "solved":
            break
        q, k = _factors(solution.W)
        data = _data(texts, rule, q, k)
        certificate = Certificate.issue("given texts", data, "distance")
        if certificate.claims["distance"] <= tol:
            bound = data | {"tol": tol, "multipliers": np.concatenate(solution.multipliers)}
            return _found(texts, rule, tol, count, Certificate.issue("given texts", bound), q, k)
    assert solution is not None
    return _none(texts, rule, tol, count, wanted, solution, vectors)


def _sequence(x: FloatArray, wanted: Mapping[int, tuple[int, ...]]) -> SequenceRules:
    reads = [{j: 1 / len(wanted[i]) for j in wanted[i]} if i in wanted else None for i in range(len(x))]
    return SequenceRules.of(x, None, reads, np.tri(len(x), dtype=bool))


def _factors(w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Q and K with QᵀK = W, as high as the rank of W."""
    u, s, v = np.linalg.svd(w)
    rank = max(1, int((s > RANK_TOLERANCE * s[0]).sum()))
    root = np.sqrt(s[:rank])[:, None]
    return root * u.T[:rank], root * v[:rank]


def _data(texts: Sequences, rule: Rule, q: FloatArray, k: FloatArray) -> dict[str, Any]:
    """The data of a certificate: only the tokens that occur, numbered in their order."""
    flat = np.concatenate([np.array(ids) for ids in texts.ids])
    used, numbers = np.unique(flat, return_inverse=True)
    data: dict[str, Any] = {
        "tokens": texts.vocabulary.tokens[used.tolist()], "positions": texts.vocabulary.positions,
        "ids": numbers, "lengths": [len(ids) for ids in texts.ids], "rule": rule.name, "Q": q, "K": k,
    }  # fmt: skip
    if isinstance(rule, ListedReads):
        listed = [(t, i, j) for t, (_, read) in enumerate(rule.texts) for i, places in read.items() for j in places]
        data["reads"] = np.array(listed)
    if rule.sink is not None:
        data["sink"] = int(np.searchsorted(used, rule.sink))
    return data


def _found(
    texts: Sequences,
    rule: Rule,
    tol: float,
    count: int,
    certificate: Certificate,
    q: FloatArray,
    k: FloatArray,
) -> Circuit:
    t = texts.vocabulary.tokens.shape[1]
    wide = texts.vocabulary.widened(t)
    pad = ((0, 0), (0, t))
    read = np.eye(t, wide.width)
    write = np.eye(wide.width)[:, wide.width - t :]
    layer = Layer(*(torch.from_numpy(np.array(m)) for m in (np.pad(q, pad), np.pad(k, pad), read, write)))
    bound = float(certificate.claims["norm_at_least"])
    if not bound > 0:  # nothing is shown, as where no rule has a rival
        names = {name: value for name, value in certificate.claims.items() if name == "distance"}
        data = {name: v for name, v in certificate.data.items() if name not in ("multipliers", "tol")}
        certificate = Certificate(certificate.kind, data, names)
    return Circuit(
        status="found", scope="given texts", rule=rule, layers=(layer,), vocabulary=wide, tol=tol,
        distance=float(certificate.claims["distance"]), rules=count, norm=float(np.linalg.norm(q.T @ k)),
        least_norm=bound if bound > 0 else None, excluded=(), reasons=(), certificate=certificate,
    )  # fmt: skip


def _none(
    texts: Sequences,
    rule: Rule,
    tol: float,
    count: int,
    wanted: list[dict[int, tuple[int, ...]]],
    solution: KernelSolution,
    vectors: list[FloatArray],
) -> Circuit:
    """What is proved where no head was found: every W is larger than a bound, by the multipliers of the rules."""
    lengths = np.concatenate([np.linalg.norm(x, axis=1) for x in vectors])
    scale = float(lengths[lengths > 0].min(initial=np.inf))  # a longer one would make any bound look large
    data = _data(texts, rule, *_factors(solution.W)) | {
        "tol": tol, "multipliers": np.concatenate(solution.multipliers),
    }  # fmt: skip
    certificate: Certificate | None = Certificate.issue("no head for given texts", data)
    assert certificate is not None
    bound = float(certificate.claims["norm_at_least"])
    out_of_reach = bound * scale**2 >= MIN_NORM_BOUND
    return Circuit(
        status="out of reach" if out_of_reach else "not found", scope="given texts", rule=rule, layers=(),
        vocabulary=texts.vocabulary, tol=tol, distance=1.0, rules=count, norm=None,
        least_norm=bound if bound > 0 else None, excluded=(),
        reasons=_reasons(texts, wanted, solution) if bound > 0 else (), certificate=certificate if bound > 0 else None,
    )  # fmt: skip


def _reasons(texts: Sequences, wanted: list[dict[int, tuple[int, ...]]], solution: KernelSolution) -> tuple[str, ...]:
    """Rules that are impossible on their own, since equal vectors get equal weights; otherwise the rules with the
    largest multipliers, which together need the W that the certificate excludes."""
    equal = [text for number, read in enumerate(wanted) for text in _equal_vectors(texts, number, read)]
    if equal:
        more = (f"and {len(equal) - MAX_NAMED:,} rules more",) if len(equal) > MAX_NAMED else ()
        return (*equal[:MAX_NAMED], *more)
    heavy = []
    for number, (read, mu) in enumerate(zip(wanted, solution.multipliers, strict=True)):
        at = 0
        for i, places in read.items():
            heavy.append((float(np.abs(mu[at : at + len(places)]).sum()), number, i, places))
            at += len(places)
    heavy.sort(key=lambda rule: -rule[0])
    named = [_rule_text(texts, number, i, places) for _, number, i, places in heavy[:MAX_NAMED]]
    return (f"the rules that weigh most in the proof: {'; '.join(named)}",)


def _rule_text(texts: Sequences, number: int, i: int, places: tuple[int, ...]) -> str:
    labels, ids = texts.vocabulary.labels, texts.ids[number]
    read = " and ".join(f"{labels[ids[j]]} at {j}" for j in places[:MAX_NAMED])
    return f"in text {number}, {labels[ids[i]]} at {i} should read {read}"


def _equal_vectors(texts: Sequences, number: int, read: Mapping[int, tuple[int, ...]]) -> Iterator[str]:
    """Rules of a text with a target whose vector another key has too, which is not read."""
    x = as_array(texts.vocabulary.vectors(texts.ids[number]))
    _, first = np.unique(x, axis=0, return_inverse=True)
    labels, ids = texts.vocabulary.labels, texts.ids[number]
    for i, places in read.items():
        rivals = [j for j in range(i + 1) if j not in places and first[j] in first[list(places)]]
        if rivals:
            j = rivals[0]
            yield f"{_rule_text(texts, number, i, places)}, but {labels[ids[j]]} at {j} has the same vector"
