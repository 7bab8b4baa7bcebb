"""Statements "this query reads this blend" and "no query does, up to some norm"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.design.certificates.ball_arithmetic import combine, exponentials, norm, products, weight_gaps
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    blend_text,
    distribution,
    indices,
    matching,
    tolerance,
)
from qkv.design.certificates.statements.dual_bounds import exact_ratios_inequality, norm_bound
from qkv.design.certificates.statements.float_bounds import weights_in_float64

FLOAT64_FIRST_SIZE = 200_000
"""Above this many numbers in the keys, float64 with rounding bounds is tried before balls."""


def _parse(data: Data) -> dict[str, Any]:
    keys, values, query = array(data, "keys", 2), array(data, "values", 2), array(data, "query", 1)
    matching("keys and values", keys.shape[0], values.shape[0])
    matching("the keys and the query", keys.shape[1], query.shape[0])
    items = indices(data, "items", keys.shape[0])
    wanted = distribution(data, "wanted", len(items))
    parsed: dict[str, Any] = {"keys": keys, "values": values, "query": query, "items": items, "wanted": wanted}
    if "multipliers" in data:
        parsed |= {"multipliers": array(data, "multipliers", 1), "tol": tolerance(data)}
        matching("items and multipliers", len(items), parsed["multipliers"].shape[0])
    return parsed


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    if in_float64:
        return weights_in_float64(p)
    scores = products(p["keys"], p["query"])
    raw, total = exponentials(scores)
    gap = weight_gaps(raw, dict(zip(p["items"], p["wanted"].tolist(), strict=True)))
    out: Measured = {
        "distance": sum((abs(g) for g in gap), arb(0)) / (2 * total),
        "output": norm(combine(gap, p["values"])) / total,
    }
    if "multipliers" in p:
        inside = set(p["items"])
        rest = [i for i in range(len(scores)) if i not in inside]
        mix = exponentials([scores[i] for i in rest])[0] if rest else []
        out["norm_at_least"] = least_norm(p, rest, mix)
    return out


def least_norm(p: dict[str, Any], rest: list[int], mix: list[Any]) -> Any:
    """A bound from below on the norm of every query with the exact ratios and a leak of at most tol.

    The inequality is derived in dual_bounds.py. A bound of infinity needs g = 0; to keep g exact, the ratios are
    multiplied by the sum of the mix instead of dividing the mix by it.
    """
    factor = sum(mix, arb(0)) if rest else arb(1)
    ratios = [factor * arb(float(v)) for v in p["multipliers"]]
    return norm_bound(*exact_ratios_inequality(p["keys"], p["items"], p["wanted"], ratios, rest, mix, p["tol"]))


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    distance = upper_bound(float(claims["distance"]), 6)
    text = f"this query reads {blend_text(data, name)} to within {distance} in total variation"
    if "output" in claims:
        text += f", with an output within {upper_bound(float(claims['output']), 6)} of the wanted one"
    if "norm_at_least" in claims:
        tol = lower_bound(float(data["tol"]), 6)
        text += (
            f"; every query with these exact ratios and a leak of at most {tol} has a norm of at least "
            f"{lower_bound(float(claims['norm_at_least']), 6)}"
        )
    return text


def _parse_no_query(data: Data) -> dict[str, Any]:
    keys = array(data, "keys", 2)
    items = indices(data, "items", keys.shape[0])
    parsed: dict[str, Any] = {
        "keys": keys,
        "items": items,
        "wanted": distribution(data, "wanted", len(items)),
    }
    parsed |= {"multipliers": array(data, "multipliers", 1), "tol": tolerance(data), "rest": [], "mix": []}
    matching("items and multipliers", len(items), parsed["multipliers"].shape[0])
    if np.size(data.get("others", ())):
        parsed["rest"] = indices(data, "others", keys.shape[0])
        parsed["mix"] = array(data, "mix", 1)
        matching("others and mix", len(parsed["rest"]), parsed["mix"].shape[0])
        if set(parsed["rest"]) & set(items):
            raise InvalidCertificate("others names a wanted item")
        if (parsed["mix"] <= 0).any():
            raise InvalidCertificate("mix must be positive")
    return parsed


def _measure_no_query(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    return {"norm_at_least": least_norm(p, p["rest"], [arb(float(m)) for m in p["mix"]])}


def _describe_no_query(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound = float(claims["norm_at_least"])
    reach = "no query at all" if bound == np.inf else f"no query of norm below {lower_bound(bound)}"
    tol = lower_bound(float(data["tol"]), 6)
    return f"{reach} reads {blend_text(data, name)} in these exact ratios with a leak of at most {tol}"


def float64_first(data: Data) -> bool:
    """Whether the keys are so large that float64 is worth trying first."""
    return int(np.size(data["keys"])) > FLOAT64_FIRST_SIZE


WEIGHTS = Statement(
    fields=("keys", "values", "query", "items", "wanted", "multipliers", "tol"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": "<=", "output": "<=", "norm_at_least": ">="},
    required=("distance",),
    claim_names={
        "distance": "distance of the weights",
        "output": "distance of the output",
        "norm_at_least": "norm of every query with the exact ratios",
    },
    float64_first=float64_first,
    positive=("norm_at_least",),
)

NO_QUERY = Statement(
    fields=("keys", "items", "wanted", "multipliers", "tol", "others", "mix"),
    parse=_parse_no_query,
    measure=_measure_no_query,
    describe=_describe_no_query,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every query with the exact ratios"},
    positive=("norm_at_least",),
)
