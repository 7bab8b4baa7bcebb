"""Statements "in these texts, each token reads by the rule" and "no W of norm below N makes them"."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.core.rounding_bounds import TINY, U, gamma, norms
from qkv.core.types import FloatArray
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    indices,
    matching,
    numbers,
    scalar,
    tolerance,
    whole,
)
from qkv.design.certificates.statements.score_tables import Rows, table_error
from qkv.design.certificates.statements.text_rules import (
    LISTED,
    LISTED_SENTENCE,
    RULES,
    SENTENCES,
    SINK_SENTENCE,
    targets,
)
from qkv.design.certificates.statements.wiring_bounds import UNDERFLOW, scaled

ISSUE_SLACK = 4.0
"""Factor of rounding bounds when a certificate is issued: a machine that sums in another order confirms it with 1."""
EXP_ULPS = 8.0
"""Assumed error of numpy's exp and log, in units in the last place, as in float_bounds.py."""
MAX_SCORE_ERROR = 2.0**-6
"""Scores must be known to this for bounds on weights."""

Rule = tuple[int, tuple[int, ...]]
"""A position, and the positions that it reads."""


def _parse(data: Data) -> dict[str, Any]:
    tokens, positions = array(data, "tokens", 2), array(data, "positions", 2)
    q, k = array(data, "Q", 2), array(data, "K", 2)
    matching("the positions, Q and K", positions.shape[1], q.shape[1], k.shape[1])
    matching("the rows of Q and K", q.shape[0], k.shape[0])
    if tokens.shape[1] > positions.shape[1]:
        raise InvalidCertificate(f"the tokens are wider ({tokens.shape[1]}) than the positions ({positions.shape[1]})")
    if data["rule"] not in (*RULES, LISTED):
        raise InvalidCertificate(f"there is no rule {data['rule']!r}; there are {', '.join((*RULES, LISTED))}")
    texts = _texts(data, len(tokens), len(positions))
    if "sink" in data:
        _check_sink(data, texts, len(tokens))
    if (data["rule"] == LISTED) != ("reads" in data):
        raise InvalidCertificate("reads are listed if and only if the rule is 'listed'")
    if data["rule"] == LISTED:
        rules = _listed(data, texts)
    else:
        rules = [list(targets(data["rule"], text, "sink" in data).items()) for text in texts]
    if not any(rules):
        raise InvalidCertificate("the texts hold no rule")
    parsed = {"tokens": tokens, "positions": positions, "Q": q, "K": k, "texts": texts, "rules": rules}
    if "multipliers" in data:
        parsed |= {"tol": tolerance(data), "multipliers": _multipliers(data, rules)}
    elif "tol" in data:
        raise InvalidCertificate("tol belongs to multipliers, and there are none")
    return parsed


def _texts(data: Data, n_tokens: int, length: int) -> list[list[int]]:
    """The texts, each a part of `ids` as long as `lengths` says."""
    ids = whole("ids", array(data, "ids", 1), n_tokens - 1)
    lengths = whole("lengths", array(data, "lengths", 1), length)
    if (lengths < 1).any():
        raise InvalidCertificate("a text is empty")
    matching("ids and the sum of lengths", len(ids), int(lengths.sum()))
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


def _listed(data: Data, texts: list[list[int]]) -> list[list[Rule]]:
    """The rules from rows (text, position, position that it reads), in order."""
    reads = array(data, "reads", 2)
    matching("the columns of reads and 3", reads.shape[1], 3)
    rows = [tuple(map(int, row)) for row in whole("reads", reads.ravel(), 2**31).reshape(-1, 3).tolist()]
    if any(row >= after for row, after in itertools.pairwise(rows)):
        raise InvalidCertificate("reads are not in order, or one is listed twice")
    rules: list[dict[int, tuple[int, ...]]] = [{} for _ in texts]
    for text, i, j in rows:
        if text >= len(texts) or not j <= i < len(texts[text]):
            raise InvalidCertificate(f"position {i} of text {text} cannot read position {j}")
        rules[text][i] = (*rules[text].get(i, ()), j)
    return [list(one.items()) for one in rules]


def _check_sink(data: Data, texts: list[list[int]], n_tokens: int) -> None:
    scalar(data, "sink")
    (sink,) = indices(data, "sink", n_tokens)
    if data["rule"] in ("previous", LISTED):
        raise InvalidCertificate(f"the rule {data['rule']} has no sink")
    if any(text[0] != sink or sink in text[1:] for text in texts):
        raise InvalidCertificate("a text does not begin with the sink, or holds it again")


def _multipliers(data: Data, rules: list[list[Rule]]) -> list[FloatArray]:
    """The multipliers of each text: for each rule one of its leak, then one for the ratio of each further target."""
    flat = numbers(data, "multipliers")
    sizes = [[len(read) for _, read in one] for one in rules]
    matching("the targets and the multipliers", flat.size, sum(map(sum, sizes)))
    if flat.ndim != 1 or not np.isfinite(flat).all():
        raise InvalidCertificate("a multiplier is no number")
    if (flat[np.cumsum([0, *(s for one in sizes for s in one)])[:-1]] < 0).any():
        raise InvalidCertificate("the multiplier of a leak is negative")
    return np.split(flat, np.cumsum([sum(one) for one in sizes])[:-1])


def _scores(p: Mapping[str, Any]) -> Iterator[tuple[FloatArray, FloatArray, float, list[Rule]]]:
    """For each text: its vectors, its scores with -inf where the mask hides, a bound on their error, and its rules."""
    t = p["tokens"].shape[1]
    for text, rules in zip(p["texts"], p["rules"], strict=True):
        x = p["positions"][: len(text)].copy()
        x[:, :t] += p["tokens"][text]
        rows = Rows.exact(x)
        rows = Rows(x, 2 * U * rows.size, rows.size * (1 + 4 * U))  # one rounding of each sum of two vectors
        queries, keys = rows.times(p["Q"]), rows.times(p["K"])
        scores = queries.values @ keys.values.T
        scores[~np.tri(len(text), dtype=bool)] = -np.inf
        yield x, scores, table_error(queries, keys), rules


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    slack = 1.0 if any(claims.values()) else ISSUE_SLACK
    out: Measured = {}
    with np.errstate(all="ignore"):
        if "distance" in claims:
            worst = max(_distance(scores, slack * error, rules) for _, scores, error, rules in _scores(p) if rules)
            out["distance"] = arb(min(worst, 1.0))  # 1 bounds every distance
        if "norm_at_least" in claims and "multipliers" in p:
            bound = _least_norm(p, slack)
            out["norm_at_least"] = arb(bound) if math.isfinite(bound) else arb.nan()
    return out


def _distance(scores: FloatArray, error: float, rules: list[Rule]) -> float:
    """A bound from above on the total-variation distance of every rule of a text.

    A score that is off by e, and n additions, change each weight by a relative error of at most 2.1 (exp(e) - 1 + a few
    roundings) + 2 gamma(n): `kappa`. Half of the sum of all weights times kappa bounds the change of the distance.
    """
    readers = [i for i, _ in rules]
    s = scores[readers]
    s = s - s.max(axis=1, keepdims=True)
    each = error + U * float(np.abs(s[np.isfinite(s)]).max(initial=0.0))
    if not each < MAX_SCORE_ERROR:
        return math.inf
    n = s.shape[1]
    kappa = 2.1 * (math.expm1(each) + EXP_ULPS * 2 * U) + 2 * gamma(n + 2)
    raw = np.exp(s)
    gap = raw / raw.sum(axis=1, keepdims=True)
    for row, (_, read) in enumerate(rules):
        gap[row, list(read)] -= 1 / len(read)
    totals = 0.5 * np.abs(gap).sum(axis=1)
    found = float(totals.max()) * (1 + 2 * gamma(n + 8)) + kappa + 8 * U + n * TINY
    return found if math.isfinite(found) else math.inf


def _least_norm(p: Mapping[str, Any], slack: float) -> float:
    """A bound from below on the norm of every W with equal parts exactly and a leak of at most tol, for all rules.

    As in `weights.least_norm`: let a rule of x_i have the targets A, of which a is the first. Equal parts are equal
    scores, so "leak at most tol" is logsumexp(s_rest) <= s_a + log |A| + log(tol/(1-tol)). For any numbers m_j >= 0 on
    the rest, with f = Σ m_j, f logsumexp(s_rest) >= Σ m_j s_j - Σ m_j log(m_j/f), hence
        f s_a - Σ m_j s_j >= -f (log |A| + log(tol/(1-tol))) - Σ m_j log(m_j/f),
    and equal parts give ν_c (s_c - s_a) = 0. All rules add up to <G, W> >= b with G = Σ x_i z_iᵀ. The numbers m are the
    softmax of the given scores times the rule's multiplier; any others would give a bound too, so they need no proof.
    Vectors and multipliers are scaled by powers of two to entries of at most 1, so that UNDERFLOW covers what is lost.
    """
    d = p["positions"].shape[1]
    exponent = int(np.frexp(np.abs(p["positions"]).max() + np.abs(p["tokens"]).max(initial=0.0))[1])
    each = np.split(scaled(np.concatenate(p["multipliers"]))[0], np.cumsum([len(mu) for mu in p["multipliers"]])[:-1])
    G, size = np.zeros((d, d)), np.zeros((d, d))
    b = b_size = 0.0
    longest = max(map(len, p["texts"]))
    edge = math.log(p["tol"]) - math.log1p(-p["tol"])
    for (x, scores, _, rules), mu in zip(_scores(p), each, strict=True):
        x = np.ldexp(x, -exponent)
        z, z_size = np.zeros(scores.shape), np.zeros(scores.shape)
        at = 0
        for i, read in rules:
            first, rest, leak = read[0], list(read[1:]), float(mu[at])
            nu = mu[at + 1 : at + len(read)]
            at += len(read)
            mix = _mix(scores[i, : i + 1], read, leak)
            used = np.flatnonzero(mix > 0)
            m = mix[used]
            f = float(m.sum())
            z[i, used] -= m
            z[i, rest] += nu
            z[i, first] += f - float(nu.sum())
            z_size[i] += np.abs(z[i])
            z_size[i, first] += f + float(np.abs(nu).sum())
            if f > 0:
                logs = np.log(m / f)
                constant = -math.log(len(read)) - edge
                b += f * constant - float(m @ logs)
                b_size += f * (2 + abs(math.log(len(read))) + abs(edge)) + float(m @ (1 + np.abs(logs)))
        G += x.T @ (z @ x)
        size += np.abs(x).T @ (z_size @ np.abs(x))
    terms = len(p["texts"]) * (longest + 2) ** 2 + 200
    b_error = slack * 2 * gamma(terms) * b_size + UNDERFLOW
    size_norm, G_norm = (float(norms(a.reshape(1, -1))[0]) for a in (size, G))
    G_error = slack * 2 * gamma(4 * longest + len(p["texts"]) + 40) * size_norm + UNDERFLOW
    norm = (G_norm + G_error) * (1 + 2 * gamma(d * d + 8))
    if not math.isfinite(norm):
        return math.nan
    if not b > b_error:
        return -1.0
    try:
        return math.nextafter(math.ldexp((b - b_error) / norm * (1 - 8 * U), -2 * exponent), 0.0)
    except OverflowError:
        return math.nan


def _mix(scores: FloatArray, read: tuple[int, ...], leak: float) -> FloatArray:
    """The multiplier of the leak, spread over the keys that are not read by the softmax of their scores."""
    rivals = scores.copy()
    rivals[list(read)] = -np.inf
    top = float(rivals.max())
    if not leak > 0 or not math.isfinite(top):
        return np.zeros(len(scores))
    raw = np.exp(rivals - top)
    return leak * (raw / raw.sum())


def _which(data: Data) -> tuple[str, str]:
    """The texts and the rule in words."""
    texts = int(np.size(data["lengths"]))
    what = LISTED_SENTENCE if data["rule"] == LISTED else SENTENCES.get(str(data["rule"]), str(data["rule"]))
    if "sink" in data:
        what += f", and {SINK_SENTENCE}"
    return ("in the one given text" if texts == 1 else f"in the {texts} given texts"), what


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    which, what = _which(data)
    within = upper_bound(float(claims["distance"]), 6)
    text = f"{which}, {what}, to within {within} in total variation, by one head of causal attention"
    if "norm_at_least" in claims:
        text += f"; {_norm_text(data, claims)}"
    return text


def _norm_text(data: Data, claims: Mapping[str, Any]) -> str:
    tol, norm = lower_bound(float(data["tol"]), 6), lower_bound(float(claims["norm_at_least"]), 6)
    return (
        f"every W = QᵀK that does so in these texts, in equal parts exactly and with a leak of at most {tol}, "
        f"has a norm of at least {norm}"
    )


def _describe_none(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    which, what = _which(data)
    return f"{which}, by the rule that {what}: {_norm_text(data, claims)}"


_FIELDS = ("tokens", "positions", "ids", "lengths", "rule", "reads", "sink", "Q", "K", "multipliers", "tol")
_NORM = "norm of every W with equal parts exactly"

GIVEN_TEXTS = Statement(
    fields=_FIELDS,
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": "<=", "norm_at_least": ">="},
    required=("distance",),
    claim_names={"distance": "distance of the weights of every rule of these texts", "norm_at_least": _NORM},
    float64_first=lambda data: True,
    positive=("norm_at_least",),
)

NO_HEAD_FOR_TEXTS = Statement(
    fields=_FIELDS,
    parse=_parse,
    measure=_measure,
    describe=_describe_none,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": _NORM},
    float64_first=lambda data: True,
    positive=("norm_at_least",),
)
