"""Statements "this query reads this blend" and "no query does, up to some norm"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.design.certificates.ball_arithmetic import combine, exponentials, norm, products
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
    want = dict(zip(p["items"], (arb(float(w)) for w in p["wanted"]), strict=True))
    gap = [e - want[i] * total if i in want else e for i, e in enumerate(raw)]
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

    Write s_i = k_i·q, a for the first wanted item, W for the sum of the wanted weights (1, but for rounding), and
    L = log(tol/(1-tol)). For any distribution p on the other items, logsumexp(s) >= p·s + H(p), so "leak <= tol"
    implies
        s_a - p·s_rest >= log(w_a/W) + H(p) - L,
    and the exact ratios give nu_i (s_i - s_a) = nu_i log(w_i/w_a). Added up: g·q >= b with
        g = k_a - sum p_i k_i + sum nu_i (k_i - k_a),   b = log(w_a/W) + H(p) - L + sum nu_i log(w_i/w_a),
    hence |q| >= b/|g|. With no other items, only the second part remains. A bound of infinity needs g = 0; to keep g
    exact, both sides are multiplied by the sum f of the `mix` instead of dividing the mix by f.
    """
    first = p["items"][0]
    logs = [arb(float(w)).log() for w in p["wanted"]]
    nu = [arb(float(v)) for v in p["multipliers"]]
    f = sum(mix, arb(0)) if rest else arb(1)
    nu_sum = sum(nu, arb(0))
    b = f * sum((v * (log - logs[0]) for v, log in zip(nu, logs, strict=True)), arb(0))
    if rest:
        tol = arb(p["tol"])
        whole = sum((arb(float(w)) for w in p["wanted"]), arb(0))
        b = b + f * (logs[0] - whole.log() - (tol / (1 - tol)).log()) + sum((_entropy_term(m, f) for m in mix), arb(0))
    coefficients = [f * v for v in nu] + [(f if rest else arb(0)) - f * nu_sum]
    g = combine([*coefficients, *(-m for m in mix)], p["keys"][[*p["items"], first, *rest]])
    size = norm(g)
    if size.is_zero():
        return arb.pos_inf() if b > 0 else arb(0)
    return b / size


def _entropy_term(m: Any, f: Any) -> Any:
    """-m log(m/f), also where m is so small that its ball contains 0.

    There the value lies between 0 and that at the upper end of m, since -x log x increases up to x = 1/e.
    """
    if m > 0:
        return -m * (m / f).log()
    top = (m / f).abs_upper()
    return f * arb(0).union(-top * top.log()) if 0 < top < 0.25 else arb.nan()


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
