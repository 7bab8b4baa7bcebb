"""Evidence about every query whose weights are within tol in total variation, turned into certificates.

The inequality behind them is derived in certificates/statements/dual_bounds.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qkv.core.types import FloatArray
from qkv.design.certificates.certificate import Certificate
from qkv.design.solvers import conic
from qkv.design.solvers.infeasibility import MIN_NORM_BOUND
from qkv.design.solvers.newton import centred_on, min_kl_queries
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError

MAX_BOUND_SIZE = 200_000
"""Numbers in the keys up to which these certificates are computed: their ball arithmetic takes seconds beyond."""
MIN_RELATIVE_MIX = 1e-14
"""Items of the mix below this, relative to the largest, are left out."""
SAFE_DISTANCE = 1 - 1e-6
"""A lower bound on the distance is claimed this much below what was found, which makes its norm bound large."""
MIN_FACE_WEIGHT = 1e-5
"""Items with smaller weights are taken to vanish in the limit of long queries."""


def norm_bound_within_tol(keys: FloatArray, spec: BlendSpec, query: FloatArray) -> Certificate | None:
    """The largest lower bound found on the norm of every query within tol; None where none was found.

    Args:
        keys: Keys as rows, (n, d).
        spec: The wanted blend, with its tol.
        query: A query that reads the blend, near the shortest one with the exact ratios.
    """
    if keys.size > MAX_BOUND_SIZE:
        return None
    found = [_issue(keys, spec, *pair) for pair in _exact_evidence(keys, spec, query)]
    if (relaxed := _relaxed_evidence(keys, spec)) is not None:
        found.append(_issue(keys, spec, *relaxed))
    return _longest(found)


def exclusion_within_tol(keys: FloatArray, spec: BlendSpec) -> Certificate | None:
    """A certificate that no query, or none up to a very large norm, is within tol; None where none was found."""
    if keys.size > MAX_BOUND_SIZE:
        return None
    relaxed = _relaxed_evidence(keys, spec)
    best = _longest([_issue(keys, spec, *relaxed)]) if relaxed is not None else None
    return best if best is not None and _is_large(best, keys, spec) else None


def distance_bound(keys: FloatArray, spec: BlendSpec) -> Certificate | None:
    """A certificate that no query, or none up to a very large norm, is nearer than some distance; or None.

    For multipliers λ that sum to 1, let B be the least value of log Z - λ·s + Σ λ_i log w_i over all queries. It is
    reached at weights p with Σ p_i k_i = Σ λ_i k_i, where B = H(p) + Σ λ_i log w_i, so every distance below
    min_j w_j (1 - exp(-B/λ_j)) is excluded. Tried are λ in proportion to w on all items, and on single ones.
    """
    if keys.size > MAX_BOUND_SIZE:
        return None
    items, m = list(spec.items), len(spec.items)
    order = np.argsort(-spec.wanted).tolist()
    subsets = [list(range(m)), *([i] for i in order[: 8 if m > 1 else 0])]
    centred, _ = centred_on(keys, items)
    best: tuple[float, FloatArray, FloatArray] | None = None
    for subset in subsets:
        multipliers = np.zeros(m)
        multipliers[subset] = spec.wanted[subset] / spec.wanted[subset].sum()
        mix = _balanced_mix(centred, [items[i] for i in subset], multipliers[subset])
        if mix is None:
            continue
        p = mix[mix > 0]
        gain = float(-(p * np.log(p)).sum() + multipliers[subset] @ np.log(spec.wanted[subset]))
        if gain <= 0:
            continue
        reach = float((spec.wanted[subset] * -np.expm1(-gain / multipliers[subset])).min())
        if best is None or reach > best[0]:
            best = reach, multipliers, mix
    if best is None or not best[0] * SAFE_DISTANCE > 1e-9:
        return None
    claimed = BlendSpec(spec.items, spec.weights, best[0] * SAFE_DISTANCE)
    found = _longest([_issue(keys, claimed, best[1], best[2])])
    return found if found is not None and _is_large(found, keys, spec) else None


def excludes_all(certificate: Certificate) -> bool:
    """Whether a certificate of this kind excludes every query, not only those up to some norm."""
    return bool(np.isinf(float(certificate.claims["norm_at_least"])))


def _balanced_mix(keys: FloatArray, items: list[int], multipliers: FloatArray) -> FloatArray | None:
    """Weights p with Σ p_i k_i = Σ λ_i k_i of the largest entropy: those of the query that minimises the divergence.

    Where that query is only approached as it grows, the items whose weights vanish are left out and the rest is solved
    again, until the sums agree to rounding.
    """
    n = len(keys)
    chosen = np.arange(n)
    target = multipliers @ keys[items]
    for _ in range(4):
        places = [int(np.flatnonzero(chosen == i)[0]) for i in items]
        part = keys[chosen]
        q = min_kl_queries(part, places, multipliers)[-1]
        p = _weights(part @ q)
        for _ in range(6):  # Newton's method without a ridge
            mean = p @ part
            covariance = (part * p[:, None]).T @ part - np.outer(mean, mean)
            if not np.isfinite(covariance).all():
                return None
            trial = q - np.linalg.lstsq(covariance, mean - target, rcond=1e-12)[0]
            better = _weights(part @ trial)
            if not np.linalg.norm(better @ part - target) < np.linalg.norm(mean - target):
                break
            q, p = trial, better
        mix = np.zeros(n)
        mix[chosen] = p
        kept = np.union1d(chosen[p > MIN_FACE_WEIGHT], items)
        if len(kept) == len(chosen):
            return mix if np.isfinite(mix).all() else None
        chosen = kept
    return mix if np.isfinite(mix).all() else None


def _weights(scores: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        raw = np.exp(scores - scores.max())
        return np.asarray(raw / raw.sum())


def _relaxed_evidence(keys: FloatArray, spec: BlendSpec) -> tuple[FloatArray, FloatArray] | None:
    """Multipliers and mix from the convex relaxation of "within tol"; None where the solver fails."""
    items = list(spec.items)
    centred, _ = centred_on(keys, items)
    above = [i for i, w in enumerate(spec.weights) if w > spec.tol * (1 + 1e-9) + 1e-12]
    if not above:
        return None
    rest = np.setdiff1d(np.arange(len(keys)), items)
    if len(rest) > conic.CONIC_LIMIT:
        strength = centred[rest] @ (spec.wanted @ centred[items]) - np.linalg.norm(centred[rest], axis=1)
        rest = rest[np.argpartition(-strength, conic.CONIC_LIMIT)[: conic.CONIC_LIMIT]]
    chosen = np.concatenate([items, rest]).astype(int)
    wanted = spec.wanted[above]
    rule = conic.NearRule(centred[chosen], above, np.log(wanted), -np.log1p(-spec.tol / wanted))
    found = conic.solve_near([rule], keys.shape[1])
    if found.status == "failed" or not found.multipliers[0].any():
        return None
    mix = np.zeros(len(keys))
    mix[chosen] = _weights(centred[chosen] @ found.x) if found.status == "solved" else found.mix[0]
    return found.multipliers[0][: len(items)], mix


def _exact_evidence(keys: FloatArray, spec: BlendSpec, query: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Multipliers near those of the shortest query with the exact ratios, with that query's weights as mix.

    There q is a combination λ·k - Σ p_i k_i with p the weights; λ is found by least squares on the wanted items and the
    weight of the others, and mixed with the wanted weights themselves, which cost less where the ratios are stiff.
    """
    items = list(spec.items)
    p = _weights(keys @ query)
    leak = float(np.delete(p, items).sum())
    if not np.isfinite(p).all() or leak <= 0:
        return []
    away = np.zeros(len(keys))
    away[:] = p
    away[items] = 0.0
    # g = Σ c_i k_i over the wanted items with Σ c_i = leak, less the mix of the others, should point along the query.
    base = leak * (spec.wanted @ keys[items]) - away @ keys
    ratios = keys[items] - keys[items[0]]
    size = float(np.linalg.norm(query))
    if size == 0:
        return []
    unit = query / size
    flat = ratios - np.outer(ratios @ unit, unit)
    shift = np.linalg.lstsq(flat.T, -(base - (base @ unit) * unit), rcond=None)[0]
    shift = shift - np.eye(len(items))[0] * shift.sum()
    out = []
    for factor in (1.0, 0.5, 0.1, 0.0):
        multipliers = p[items] + leak * spec.wanted + factor * shift
        if (multipliers >= 0).all():
            out.append((multipliers, p))
    return out


def _issue(keys: FloatArray, spec: BlendSpec, multipliers: FloatArray, mix: FloatArray) -> Certificate | None:
    """The certificate that this evidence supports; None where it proves nothing."""
    top = float(multipliers.max(initial=0.0))
    low = multipliers <= 1e-12 * top
    low |= spec.wanted <= spec.tol * (1 + 1e-9) + 1e-9
    multipliers = np.where(low, 0.0, multipliers / top if top > 0 else 0.0)
    others = np.flatnonzero(mix > MIN_RELATIVE_MIX * mix.max(initial=0.0))
    if not multipliers.any() or not len(others):
        return None
    data: dict[str, Any] = {
        "keys": keys, "items": list(spec.items), "wanted": spec.wanted, "tol": spec.tol,
        "multipliers": multipliers, "others": others, "mix": mix[others],
    }  # fmt: skip
    try:
        found = Certificate.issue("no query within tol", data)
    except QkvError:
        return None
    return found if float(found.claims["norm_at_least"]) > 0 else None


def _longest(found: list[Certificate | None]) -> Certificate | None:
    return max((c for c in found if c is not None), key=lambda c: float(c.claims["norm_at_least"]), default=None)


def _is_large(certificate: Certificate, keys: FloatArray, spec: BlendSpec) -> bool:
    return float(certificate.claims["norm_at_least"]) * centred_on(keys, list(spec.items))[1] > MIN_NORM_BOUND
