"""The result of copy and blend: a query, what it reads, and which norms and distances are proved."""

from __future__ import annotations

import math
from typing import Any

from flint import ctx

from qkv.design.certificates.results.base import (
    DIFFERENT,
    NOT_SHOWN,
    UNCOVERED,
    Family,
    Saved,
    Stated,
    labels,
    norm_at_least,
    numbers,
    of_claim,
    of_data,
    same,
    tolerance,
    verdict,
)
from qkv.design.certificates.statements import KINDS

READING, RATIOS, WITHIN = "weights", "no query", "no query within tol"
"""The reading of the query; bounds for every query with the exact ratios, and for every query within tol."""
PRECISIONS = (128, 512, 2048)
"""Bits that are tried in turn."""


def _possible(saved: Saved, value: Any) -> str:
    """Whether the query reads the wanted weights to within tol. That it does not is computed again, since the claimed
    distance is a bound from above, which may be large."""
    if value is True:
        return verdict(float(saved.first.claims["distance"]) <= saved.tol)
    return verdict(value is False and _is_farther(saved.first, saved.tol), NOT_SHOWN)


def _is_farther(certificate: Stated, tol: float) -> bool:
    """Whether the weights are proved to be farther than tol from the wanted ones."""
    spec = KINDS[READING]
    parsed = spec.parse({name: value for name, value in certificate.data.items() if name != "multipliers"})
    for bits in (0, *PRECISIONS) if spec.float64_first(certificate.data) else PRECISIONS:  # 0 stands for float64
        with ctx.workprec(bits or PRECISIONS[0]):
            distance = spec.measure(parsed, bits == 0, {})["distance"]
            if distance > tol or distance <= tol:
                return bool(distance > tol)
    return False


def _wanted(saved: Saved, value: Any) -> str:
    """Weights by name, in the order of the certificate; where the items have labels, by these."""
    names, items = saved.result.get("labels"), numbers(saved.first.data["items"])
    if not isinstance(value, dict):
        return DIFFERENT
    if names is not None and [str(names[int(i)]) for i in items] != list(value):
        return DIFFERENT
    return verdict(same(list(value.values()), saved.first.data["wanted"]))


def _distance_at_least(saved: Saved, value: Any) -> str:
    """A distance below which no query comes, if its norm is below `distance_at_least_below_norm`; null is any norm."""
    held = [each for each in saved.claiming("norm_at_least", WITHIN) if same(value, each.data["tol"])]
    if not held:
        return DIFFERENT if saved.claiming("norm_at_least", WITHIN) else UNCOVERED
    below = saved.result.get("distance_at_least_below_norm")
    norms = [float(each.claims["norm_at_least"]) for each in held]
    if below is None:
        return verdict(math.inf in norms, "its certificate leaves queries of larger norms")
    return verdict(any(same(below, norm) for norm in norms), "its certificate leaves queries of larger norms")


def _below_norm(saved: Saved, value: Any) -> str:
    """The norm belongs to the distance beside it, which is checked there."""
    return verdict(saved.result.get("distance_at_least") is not None, UNCOVERED) or _distance_at_least(
        saved, saved.result["distance_at_least"]
    )


FAMILY = Family(
    kinds=frozenset({READING}),
    beside=frozenset({RATIOS, WITHIN, "inside"}),
    fields={
        "labels": labels,
        "possible": _possible,
        "wanted": _wanted,
        "tol": lambda saved, value: tolerance(saved, value, (READING, RATIOS)),
        "query": of_data("query"),
        "distance": of_claim("distance"),
        "output_distance": of_claim("output"),
        "least_norm": norm_at_least(READING, RATIOS),
        "least_norm_within_tol": norm_at_least(WITHIN),
        "distance_at_least": _distance_at_least,
        "distance_at_least_below_norm": _below_norm,
    },
    unsaved=frozenset({"status", "scale", "says", "distance_bound", "obstacle", "measures"}),
)
