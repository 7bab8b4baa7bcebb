"""Checks that one query reads the wanted blend, and bounds on every query that could."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.design.balls import combine, norm, products, softmax
from qkv.design.checks.kind import (
    Bounds,
    Data,
    Kind,
    Measured,
    Refused,
    array,
    distribution,
    indices,
    matching,
)
from qkv.design.checks.rough import rough_weights

LARGE = 200_000
"""Numbers in the keys from which float64 with a rounding bound is tried before balls."""


def _parse(data: Data) -> dict[str, Any]:
    keys, values, query = array(data, "keys", 2), array(data, "values", 2), array(data, "query", 1)
    matching("keys and values", keys.shape[0], values.shape[0])
    matching("the keys and the query", keys.shape[1], query.shape[0])
    items = indices(data, "items", keys.shape[0])
    wanted = distribution(data, "wanted", len(items))
    parsed: dict[str, Any] = {"keys": keys, "values": values, "query": query, "items": items, "wanted": wanted}
    if "multipliers" in data:
        parsed |= {"multipliers": array(data, "multipliers", 1), "tol": _tolerance(data)}
        matching("items and multipliers", len(items), parsed["multipliers"].shape[0])
    return parsed


def _measure(p: dict[str, Any], rough: bool, claims: Bounds) -> Measured:
    if rough:
        return rough_weights(p)
    scores = products(p["keys"], p["query"])
    alpha, _ = softmax(scores)
    want = dict(zip(p["items"], (arb(float(w)) for w in p["wanted"]), strict=True))
    gap = [a - want[i] if i in want else a for i, a in enumerate(alpha)]
    out: Measured = {
        "distance": sum((abs(g) for g in gap), arb(0)) / 2,
        "output": norm(combine(gap, p["values"])),
    }
    if "multipliers" in p:
        inside = set(p["items"])
        rest = [i for i in range(len(scores)) if i not in inside]
        tilt = softmax([scores[i] for i in rest])[0] if rest else []
        out["norm_at_least"] = least_norm(p, rest, tilt)
    return out


def least_norm(p: dict[str, Any], rest: list[int], tilt: list[Any]) -> Any:
    """A bound from below on the norm of every query with the exact ratios and a leak of at most tol.

    Write s_i = k_i·q, a for the first wanted item, and L = log(tol/(1-tol)). For any distribution p on the
    other items, logsumexp(s) >= p·s + H(p), so "leak <= tol" implies
        s_a - p·s_rest >= log w_a + H(p) - L,
    and the exact ratios give nu_i (s_i - s_a) = nu_i log(w_i/w_a). Added up: g·q >= b with
        g = k_a - sum p_i k_i + sum nu_i (k_i - k_a),   b = log w_a + H(p) - L + sum nu_i log(w_i/w_a),
    hence |q| >= b/|g|. With no other items, only the second part remains. A bound of infinity needs g = 0.
    """
    first = p["items"][0]
    logs = [arb(float(w)).log() for w in p["wanted"]]
    nu = [arb(float(v)) for v in p["multipliers"]]
    pull = sum(nu, arb(0))
    b = sum((v * (log - logs[0]) for v, log in zip(nu, logs, strict=True)), arb(0))
    g = combine([*nu, -pull], p["keys"][[*p["items"], first]])
    if rest:
        tol = arb(p["tol"])
        entropy = -sum((t * t.log() for t in tilt if not t.is_zero()), arb(0))
        b = b + logs[0] + entropy - (tol / (1 - tol)).log()
        own = combine([arb(1)], p["keys"][[first]])
        others = combine(tilt, p["keys"][rest])
        g = [x + o - r for x, o, r in zip(g, own, others, strict=True)]
    size = norm(g)
    if size.is_zero():
        return arb.pos_inf() if b > 0 else arb(0)
    return b / size


def _says(data: Data, claims: Mapping[str, Any]) -> str:
    wanted = _blend_text(data)
    text = f"this query reads {wanted} to within {float(claims['distance']):.6g} in total variation"
    if "output" in claims:
        text += f" and {float(claims['output']):.6g} in the output"
    if "norm_at_least" in claims:
        text += f"; no query of norm below {float(claims['norm_at_least']):.6g} does it to {data['tol']:g}"
    return text


def _blend_text(data: Data) -> str:
    pairs = zip(np.atleast_1d(data["items"]), np.atleast_1d(data["wanted"]), strict=False)
    parts = [f"{float(w):.4g} of item {int(i)}" for i, w in pairs]
    return " + ".join(parts[:6]) + (f" + … {len(parts) - 6} more" if len(parts) > 6 else "")


def _tolerance(data: Data) -> float:
    tol = float(data["tol"])
    if not 0 < tol < 1:
        raise Refused(f"tol is {tol}, not between 0 and 1")
    return tol


def _parse_none(data: Data) -> dict[str, Any]:
    keys = array(data, "keys", 2)
    items = indices(data, "items", keys.shape[0])
    parsed: dict[str, Any] = {
        "keys": keys,
        "items": items,
        "wanted": distribution(data, "wanted", len(items)),
    }
    parsed |= {"multipliers": array(data, "multipliers", 1), "tol": _tolerance(data), "rest": [], "mix": []}
    matching("items and multipliers", len(items), parsed["multipliers"].shape[0])
    if np.size(data.get("others", ())):
        parsed["rest"] = indices(data, "others", keys.shape[0])
        parsed["mix"] = array(data, "mix", 1)
        matching("others and mix", len(parsed["rest"]), parsed["mix"].shape[0])
        if set(parsed["rest"]) & set(items):
            raise Refused("others names a wanted item")
        if (parsed["mix"] <= 0).any():
            raise Refused("mix must be positive")
    return parsed


def _measure_none(p: dict[str, Any], rough: bool, claims: Bounds) -> Measured:
    total = sum((arb(float(m)) for m in p["mix"]), arb(0))
    tilt = [arb(float(m)) / total for m in p["mix"]]
    return {"norm_at_least": least_norm(p, p["rest"], tilt)}


def _says_none(data: Data, claims: Mapping[str, Any]) -> str:
    bound = float(claims["norm_at_least"])
    reach = "no query at all" if np.isinf(bound) else f"no query of norm below {bound:.4g}"
    return f"{reach} reads {_blend_text(data)} in these exact ratios with a leak of at most {data['tol']:g}"


def large(data: Data) -> bool:
    """Whether the keys are so many that float64 is worth trying first."""
    return int(np.size(data["keys"])) > LARGE


WEIGHTS = Kind(
    parse=_parse,
    measure=_measure,
    says=_says,
    senses={"distance": "<=", "output": "<=", "norm_at_least": ">="},
    required=("distance",),
    names={
        "distance": "distance of the weights",
        "output": "distance of the output",
        "norm_at_least": "norm of every such query",
    },
    large=large,
)

NO_QUERY = Kind(
    parse=_parse_none,
    measure=_measure_none,
    says=_says_none,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    names={"norm_at_least": "norm of every such query"},
)
