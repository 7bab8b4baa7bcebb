"""Why a blend is out of reach: evidence turned into the strongest certificate it supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkv.design.certificate import Certificate
from qkv.design.convex import Solution
from qkv.design.hull import settle
from qkv.design.problem import Blend

Array = np.ndarray[Any, np.dtype[np.float64]]


def obstacle_to(keys: Array, wanted: Blend, evidence: Solution) -> Certificate | None:
    """A proof that no query (of any norm worth having) reads the blend; None where the evidence proves little."""
    items = list(wanted.items)
    if len(items) == 1:
        inside = inside_hull(keys, items[0])
        if inside is not None:
            return inside
    base = {"keys": keys, "items": items, "wanted": wanted.wanted, "tol": wanted.tol}
    found = [Certificate.issue("no query", base | part) for part in (*_clash(keys, wanted), *_dual(wanted, evidence))]
    best = max(found, key=lambda c: float(c.claims["norm_at_least"]), default=None)
    # A query of norm 1e6 times what separates the keys is no query that anyone would use.
    scale = 1e6 / max(1e-300, float(np.linalg.norm(keys, axis=1).max()))
    return best if best is not None and float(best.claims["norm_at_least"]) > scale else None


def inside_hull(keys: Array, item: int) -> Certificate | None:
    """The combination of other keys that dominates this one, exactly where fractions can show it."""
    answer = settle(keys, np.array([item]), np.arange(len(keys)))
    if answer.found[0]:
        return None
    data = {"keys": keys, "item": item, "indices": answer.indices, "weights": answer.weights}
    exact = Certificate.issue("inside", data)
    return exact if exact.claims["exact"] <= 0 else Certificate.issue("inside", data, "margin_at_most")


def _clash(keys: Array, wanted: Blend) -> list[dict[str, Any]]:
    """Ratios that dependent keys cannot have: the part of the logs that no query explains is itself the proof."""
    items = list(wanted.items)
    ratios = keys[items] - keys[items[0]]
    logs = np.log(wanted.wanted / wanted.wanted[0])
    u, s, _ = np.linalg.svd(ratios)
    rank = int((s > 1e-11 * max(s[0], 1e-300)).sum())
    left = logs - u[:, :rank] @ (u[:, :rank].T @ logs)
    return [{"multipliers": left}] if np.abs(left).max() > 1e-9 else []


def _dual(wanted: Blend, evidence: Solution) -> list[dict[str, Any]]:
    if evidence.status != "none" or not evidence.mix:
        return []
    mix = evidence.mix[0]
    multipliers = np.concatenate([[0.0], evidence.multipliers[0]])
    factor = float(mix.sum())
    if factor <= 0:
        return [{"multipliers": multipliers}]
    others = np.flatnonzero(mix > 1e-12 * mix.max())
    return [{"multipliers": multipliers / factor, "others": others, "mix": mix[others] / factor}]
