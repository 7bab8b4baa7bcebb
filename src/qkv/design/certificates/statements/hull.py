"""Statements "this query selects the key", "the key is inside the hull", and both for every key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core import rounding_bounds
from qkv.core.display import lower_bound, upper_bound
from qkv.design.certificates.ball_arithmetic import combine, in_hull_exactly, norm, products
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
    whole,
)

MAX_BALLS_FIRST = 16
"""Claims left open by float64 that balls decide in the first pass: one refuted claim is enough to refuse."""


def _parse_selects(data: Data) -> dict[str, Any]:
    keys, query = array(data, "keys", 2), array(data, "query", 1)
    matching("the keys and the query", keys.shape[1], query.shape[0])
    (item,) = indices(data, "item", keys.shape[0])
    if not query.any():
        raise InvalidCertificate("the query is zero, so it selects nothing")
    return {"keys": keys, "query": query, "item": item}


def _measure_selects(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    scores = products(p["keys"], p["query"])
    own = scores.pop(p["item"])
    if not scores:
        return {"margin": arb.pos_inf()}
    rival = scores[0]
    for s in scores[1:]:
        rival = rival.max(s)
    return {"margin": (own - rival) / norm(arb(float(x)) for x in p["query"])}


def _describe_selects(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    margin = lower_bound(float(claims["margin"]), 6)
    return f"this query, at unit norm, scores key {name(int(data['item']))} above every other by at least {margin}"


def _parse_inside(data: Data) -> dict[str, Any]:
    keys = array(data, "keys", 2)
    (item,) = indices(data, "item", keys.shape[0])
    others, weights = indices(data, "indices", keys.shape[0]), array(data, "weights", 1)
    matching("indices and weights", len(others), weights.shape[0])
    if item in others:
        raise InvalidCertificate("the combination uses the key itself")
    if (weights < 0).any() or not weights.any():
        raise InvalidCertificate("the weights of a convex combination are not negative, and not all zero")
    return {"keys": keys, "item": item, "others": others, "weights": weights}


def _measure_inside(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """Averaged by the weights, (k_j - k_i)·q is residual·q / sum, so the smallest is at most |residual| |q| / sum."""
    out: Measured = {"margin_at_most": _residual(p)}
    if "exact" in claims:
        out["exact"] = arb(0 if in_hull_exactly(p["keys"][p["others"]], p["keys"][p["item"]]) else 1)
    return out


def _residual(p: dict[str, Any]) -> Any:
    weights = [arb(float(w)) for w in p["weights"]]
    total = sum(weights, arb(0))
    return norm(combine([*weights, -total], p["keys"][[*p["others"], p["item"]]])) / total


def _describe_inside(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    item, size = name(int(data["item"])), int(np.size(data["indices"]))
    if "exact" in claims:
        return f"key {item} is exactly a convex combination of {size} independent other keys: no query selects it"
    bound = upper_bound(float(claims["margin_at_most"]), 3)
    which = f"key {item} is a convex combination of {size} other keys to within {bound}"
    return f"{which}: no unit query scores it above all other keys by more"


def _parse_copyable(data: Data) -> dict[str, Any]:
    keys, possible = array(data, "keys", 2), array(data, "possible", 1)
    matching("keys and answers", keys.shape[0], possible.shape[0])
    if not np.isin(possible, (0.0, 1.0)).all():
        raise InvalidCertificate("an answer is neither possible (1) nor impossible (0)")
    yes, no = np.flatnonzero(possible == 1), np.flatnonzero(possible == 0)
    queries = numbers(data, "queries")
    queries = queries if queries.size else queries.reshape(0, keys.shape[1])
    matching("possible keys and queries", len(yes), len(queries))
    matching("the keys and the queries", keys.shape[1], *queries.shape[1:])
    if not np.isfinite(queries).all() or (~queries.any(axis=1)).any():
        raise InvalidCertificate("a selecting query is zero, NaN or infinite")
    which = whole("indices", numbers(data, "indices"), len(keys) - 1)
    offsets = whole("offsets", numbers(data, "offsets"), len(which))
    weights = numbers(data, "weights")
    matching("impossible keys and combinations", len(no) + 1, len(offsets))
    matching("indices, weights and offsets", len(which), len(weights), int(offsets[-1]))
    if offsets[0] != 0 or (np.diff(offsets) < 1).any() or not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidCertificate("a combination is empty, or has a weight that is negative or no number")
    if len(no) and not np.logical_or.reduceat(weights > 0, offsets[:-1]).all():
        raise InvalidCertificate("the weights of a combination are all zero")
    if (which == np.repeat(no, np.diff(offsets))).any():
        raise InvalidCertificate("a combination uses the key itself")
    return {
        "keys": keys, "yes": yes, "no": no, "queries": queries,
        "offsets": offsets, "indices": which, "weights": weights,
    }  # fmt: skip


def _measure_copyable(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """The margin or residual of every key: float64 with rounding bounds for all, balls for those it leaves open."""
    keys = p["keys"]
    low = rounding_bounds.margin_lower_bounds(
        keys, p["yes"], p["queries"], claimed=_claimed(claims["margin"], p["yes"])
    )
    high = rounding_bounds.residual_upper_bounds(keys, p["no"], p["offsets"], p["indices"], p["weights"])
    open_yes = np.flatnonzero(~(low >= _claimed(claims["margin"], p["yes"])))
    open_no = np.flatnonzero(~(high <= _claimed(claims["margin_at_most"], p["no"])))
    # The true margin is at least `low` and the true residual at most `high`. Where that proves the claim, the bound
    # is used in place of the true number; elsewhere NaN, which proves nothing.
    margin, residual = [arb(float(v)) for v in low], [arb(float(v)) for v in high]
    for balls, undecided in ((margin, open_yes), (residual, open_no)):
        for r in undecided:
            balls[r] = arb.nan()
    most = MAX_BALLS_FIRST if in_float64 else len(keys)
    for r in open_yes[:most]:
        one = {"keys": keys, "query": p["queries"][r], "item": int(p["yes"][r])}
        margin[r] = _measure_selects(one, False, {})["margin"]
    for r in open_no[:most]:
        a, b = p["offsets"][r : r + 2]
        one = {
            "keys": keys,
            "item": int(p["no"][r]),
            "others": p["indices"][a:b].tolist(),
            "weights": p["weights"][a:b],
        }
        residual[r] = _residual(one)
    return {"margin": margin, "margin_at_most": residual}


def _claimed(claimed: list[float], items: Any) -> Any:
    """The claimed bounds as an array, one for each item."""
    if len(claimed) != len(items):
        raise InvalidCertificate(f"{len(claimed)} bounds for {len(items)} keys")
    return np.asarray(claimed, dtype=np.float64)


def _describe_copyable(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    possible = np.asarray(data["possible"], dtype=float)
    yes, no = int(possible.sum()), int((1 - possible).sum())
    margins, rest = (np.asarray(claims[name], dtype=float) for name in ("margin", "margin_at_most"))
    by = f" with a margin of at least {lower_bound(float(margins.min()), 3)}" if yes else ""
    more = f", {no} cannot with a margin above {upper_bound(float(rest.max()), 3)}" if no else ""
    return f"of {possible.size} keys, {yes} can be selected by a unit query{by}{more}, by these witnesses"


SELECTS = Statement(
    fields=("keys", "item", "query"),
    parse=_parse_selects,
    measure=_measure_selects,
    describe=_describe_selects,
    senses={"margin": ">="},
    required=("margin",),
    positive=("margin",),
)
INSIDE = Statement(
    fields=("keys", "item", "indices", "weights"),
    parse=_parse_inside,
    measure=_measure_inside,
    describe=_describe_inside,
    senses={"margin_at_most": "<=", "exact": "<="},
    required=("margin_at_most",),
    claim_names={"margin_at_most": "margin of every unit query", "exact": "keys outside the exact hull"},
    exact=("exact",),
)
COPYABLE = Statement(
    fields=("keys", "possible", "queries", "offsets", "indices", "weights"),
    parse=_parse_copyable,
    measure=_measure_copyable,
    describe=_describe_copyable,
    senses={"margin": ">=", "margin_at_most": "<="},
    required=("margin", "margin_at_most"),
    claim_names={"margin": "margins of the selecting queries", "margin_at_most": "residuals of the combinations"},
    float64_first=lambda data: True,
    positive=("margin",),
)
