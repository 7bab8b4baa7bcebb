"""Dual evidence that no query reads a blend, turned into the strongest certificate that it supports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from qkv.core.geometry import min_norm_combination
from qkv.core.types import FloatArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers.conic import CONIC_LIMIT, Solution
from qkv.design.solvers.newton import centred_on
from qkv.design.specs import BlendSpec

MIN_NORM_BOUND = 1e6
"""Bounds on the norm of every query that are reported, at least, in units of one over the distance of the keys."""


def no_query_certificate(keys: FloatArray, spec: BlendSpec, evidence: Solution) -> Certificate | None:
    """The strongest proof that no query up to some norm reads the blend; None where the evidence proves little."""
    data = {"keys": keys, "items": list(spec.items), "wanted": spec.wanted, "tol": spec.tol}
    found = [Certificate.issue("no query", data | part) for part in _evidence(keys, spec, evidence)]
    best = max(found, key=lambda c: float(c.claims["norm_at_least"]), default=None)
    unit = centred_on(keys, list(spec.items))[1]
    return best if best is not None and float(best.claims["norm_at_least"]) * unit > MIN_NORM_BOUND else None


def _evidence(keys: FloatArray, spec: BlendSpec, evidence: Solution) -> Iterator[dict[str, Any]]:
    """Candidate multipliers and mixes, from the keys themselves and from the solver's dual variables."""
    items = list(spec.items)
    ratios = keys[items] - keys[items[0]]
    logs = np.log(spec.wanted / spec.wanted[0])
    u, s, _ = np.linalg.svd(ratios)
    rank = int((s > 1e-11 * max(s[0], 1e-300)).sum())
    left = logs - u[:, :rank] @ (u[:, :rank].T @ logs)
    if np.abs(left).max() > 1e-9:
        # The ratios contradict a linear dependence of the keys: the component of the logs outside the column space
        # of the ratios is itself the proof.
        yield {"multipliers": left}
    rest = np.setdiff1d(np.arange(len(keys)), items)
    if 0 < len(rest) <= CONIC_LIMIT:
        # The affine hull of the wanted keys meets, or nearly meets, the convex hull of the others.
        mix, multipliers = min_norm_combination(keys[items[0]] - keys[rest], ratios)
        positive = mix > 1e-14
        yield {"multipliers": multipliers, "others": rest[positive], "mix": mix[positive]}
    yield from _dual(evidence)


def _dual(evidence: Solution) -> list[dict[str, Any]]:
    """The solver's certificate of infeasibility, normalised so that the mix sums to 1."""
    if evidence.status != "infeasible" or not evidence.mix:
        return []
    mix = evidence.mix[0]
    multipliers = np.concatenate([[0.0], evidence.multipliers[0]])
    factor = float(mix.sum())
    if factor <= 0:
        return [{"multipliers": multipliers}]
    others = np.flatnonzero(mix > 1e-12 * mix.max())
    return [{"multipliers": multipliers / factor, "others": others, "mix": mix[others] / factor}]
