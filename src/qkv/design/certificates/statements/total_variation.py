"""Statement "no query, up to some norm, reads the wanted weights to within tol in total variation"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qkv.core.display import lower_bound
from qkv.core.types import FloatArray
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
from qkv.design.certificates.statements.dual_bounds import norm_bound, total_variation_inequality


def _parse(data: Data) -> dict[str, Any]:
    keys = array(data, "keys", 2)
    items = indices(data, "items", keys.shape[0])
    others, mix = indices(data, "others", keys.shape[0]), array(data, "mix", 1)
    parsed: dict[str, Any] = {
        "keys": keys, "items": items, "wanted": distribution(data, "wanted", len(items)), "tol": tolerance(data),
        "multipliers": array(data, "multipliers", 1), "others": others, "mix": mix,
    }  # fmt: skip
    matching("items and multipliers", len(items), parsed["multipliers"].shape[0])
    matching("others and mix", len(others), mix.shape[0])
    check_signs(parsed["multipliers"], mix)
    if not mix.any():
        raise InvalidCertificate("the mix is zero")
    return parsed


def check_signs(multipliers: FloatArray, mix: FloatArray) -> None:
    """Refuse negative multipliers and mixes."""
    if (multipliers < 0).any() or (mix < 0).any():
        raise InvalidCertificate("multipliers and mix must not be negative")


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    n = p["keys"].shape[0]
    wanted, multipliers = np.zeros(n), np.zeros(n)
    wanted[p["items"]], multipliers[p["items"]] = p["wanted"], p["multipliers"]
    bound = norm_bound(*total_variation_inequality(p["keys"], wanted, multipliers, p["others"], p["mix"], p["tol"]))
    return {"norm_at_least": bound}


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound, tol = float(claims["norm_at_least"]), lower_bound(float(data["tol"]), 6)
    if bound == np.inf:
        return f"no query at all reads {blend_text(data, name)} to within {tol} in total variation"
    return (
        f"every query that reads {blend_text(data, name)} to within {tol} in total variation has a norm of at least "
        f"{lower_bound(bound, 6)}"
    )


NO_QUERY_WITHIN = Statement(
    fields=("keys", "items", "wanted", "multipliers", "tol", "others", "mix"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every query within tol"},
    positive=("norm_at_least",),
)
