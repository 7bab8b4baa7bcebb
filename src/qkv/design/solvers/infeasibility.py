"""Why a blend is out of reach: evidence turned into the strongest certificate it supports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from qkv.core.geometry import balance
from qkv.design.certificates.certificate import Certificate
from qkv.design.hull.active_set import settle
from qkv.design.solvers.conic import CONIC_LIMIT, Solution
from qkv.design.solvers.newton import around
from qkv.design.specs import BlendSpec

Array = np.ndarray[Any, np.dtype[np.float64]]

WORTH = 1e6
"""A bound on the norm of every query says something from here on, in units of the distance between keys."""


def obstacle_to(keys: Array, wanted: BlendSpec, evidence: Solution) -> Certificate | None:
    """A proof that no query (of any norm worth having) reads the blend; None where the evidence proves little."""
    items = list(wanted.items)
    if len(items) == 1:
        inside = inside_hull(keys, items[0])
        if inside is not None:
            return inside
    base = {"keys": keys, "items": items, "wanted": wanted.wanted, "tol": wanted.tol}
    found = [Certificate.issue("no query", base | part) for part in _evidence(keys, wanted, evidence)]
    best = max(found, key=lambda c: float(c.claims["norm_at_least"]), default=None)
    unit = around(keys, items)[1]
    return best if best is not None and float(best.claims["norm_at_least"]) * unit > WORTH else None


def is_absolute(obstacle: Certificate) -> bool:
    """Whether it excludes every query, not only those up to some norm or margin."""
    return "exact" in obstacle.claims or bool(np.isinf(float(obstacle.claims.get("norm_at_least", 0.0))))


def selecting_query(keys: Array, item: int) -> Array | None:
    """A unit query that scores one key above all others, and by what margin; None if there is none."""
    answer = settle(keys, np.array([item]), np.arange(len(keys)))
    return answer.queries[0] / np.linalg.norm(answer.queries[0]) if answer.found[0] else None


def inside_hull(keys: Array, item: int) -> Certificate | None:
    """The combination of other keys that dominates this one, exactly where fractions can show it."""
    answer = settle(keys, np.array([item]), np.arange(len(keys)))
    if answer.found[0]:
        return None
    data = {"keys": keys, "item": item, "indices": answer.indices, "weights": answer.weights}
    exact = Certificate.issue("inside", data)
    return exact if exact.claims["exact"] <= 0 else Certificate.issue("inside", data, "margin_at_most")


def _evidence(keys: Array, wanted: BlendSpec, evidence: Solution) -> Iterator[dict[str, Any]]:
    """Multipliers and mixes that may prove something, from the keys themselves and from the solver."""
    items = list(wanted.items)
    ratios = keys[items] - keys[items[0]]
    logs = np.log(wanted.wanted / wanted.wanted[0])
    u, s, _ = np.linalg.svd(ratios)
    rank = int((s > 1e-11 * max(s[0], 1e-300)).sum())
    left = logs - u[:, :rank] @ (u[:, :rank].T @ logs)
    if np.abs(left).max() > 1e-9:
        # Ratios that dependent keys cannot have: the part of the logs that no query explains is itself the proof.
        yield {"multipliers": left}
    rest = np.setdiff1d(np.arange(len(keys)), items)
    if 0 < len(rest) <= CONIC_LIMIT:
        # The flat through the wanted keys meets the hull of the others.
        mix, multipliers = balance(keys[items[0]] - keys[rest], ratios)
        held = mix > 1e-14
        yield {"multipliers": multipliers, "others": rest[held], "mix": mix[held]}
    yield from _dual(evidence)


def _dual(evidence: Solution) -> list[dict[str, Any]]:
    if evidence.status != "none" or not evidence.mix:
        return []
    mix = evidence.mix[0]
    multipliers = np.concatenate([[0.0], evidence.multipliers[0]])
    factor = float(mix.sum())
    if factor <= 0:
        return [{"multipliers": multipliers}]
    others = np.flatnonzero(mix > 1e-12 * mix.max())
    return [{"multipliers": multipliers / factor, "others": others, "mix": mix[others] / factor}]
