"""Statements "no query, or no W = QᵀK up to some norm, reads the wanted weights to within tol in total variation"."""

# The inequality that both statements rest on. Let w be the wanted weights, α those of a query, and T the largest sum of
# the shortfalls (w_i - α_i)+ that a total variation of tol allows: T = tol + (W - 1)/2 with W = Σ w_i, which is tol but
# for the rounding of w. Let δ_i be the shortfalls, so that δ >= 0, Σ δ_i <= T, δ_i <= w_i and α_i >= w_i - δ_i. With
# scores s and Z = Σ exp(s_j) the last one reads log Z - s_i <= -log(w_i - δ_i). For any λ >= 0 on the wanted items,
# with sum Λ, and any distribution p, with entropy H(p), log Z >= p·s + H(p), so
#     λ·s - Λ p·s >= Λ H(p) + Σ λ_i log(w_i - δ_i).
# The right side is concave in δ, hence smallest at a corner of the set of shortfalls, where one item has all of T:
#     λ·s - Λ p·s >= Λ H(p) + Σ λ_i log w_i + min_j λ_j log(1 - T/w_j),
# provided that λ_j = 0 wherever w_j <= T. With s_i = k_i·q this is g·q >= b, hence |q| >= b/|g|, and where g = 0 < b no
# query exists at all. To keep g exact, p is given as a `mix` μ of sum M, and everything is multiplied by M.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb, ctx

from qkv.core.display import lower_bound
from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import combine, flat, matrix, norm
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
from qkv.design.certificates.statements.wiring import read_rules

EXACT_BITS = 512
"""Precision of g, which is then exactly 0 where the numbers that cancel are floats of similar size."""


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
    _check_signs(parsed["multipliers"], mix)
    if not mix.any():
        raise InvalidCertificate("the mix is zero")
    return parsed


def _check_signs(multipliers: FloatArray, mix: FloatArray) -> None:
    if (multipliers < 0).any() or (mix < 0).any():
        raise InvalidCertificate("multipliers and mix must not be negative")


def inequality(
    rows: FloatArray, wanted: FloatArray, multipliers: FloatArray, others: list[int], mix: FloatArray, tol: float
) -> tuple[list[Any], Any]:
    """g and b of the inequality g·q >= b that every query within tol in total variation meets, as balls.

    Args:
        rows: The keys of all items.
        wanted: Wanted weight of every item, mostly 0.
        multipliers: λ of every item, 0 where nothing is wanted.
        others: Items of the mix.
        mix: Its weights.
        tol: Largest total variation.

    Returns:
        The entries of g, and b.
    """
    inside = [int(i) for i in np.flatnonzero(multipliers > 0)]
    want = {i: arb(float(wanted[i])) for i in inside}
    total = sum((arb(float(w)) for w in wanted[wanted > 0]), arb(0))
    most = arb(tol) + (total - 1) / 2
    if any(not most < w for w in want.values()):
        raise InvalidCertificate("a multiplier stands on a wanted weight that is not above tol")
    lam = {i: arb(float(multipliers[i])) for i in inside}
    mu = [(j, arb(float(m))) for j, m in zip(others, mix, strict=True) if m > 0]
    with ctx.workprec(max(ctx.prec, EXACT_BITS)):
        lam_sum, mu_sum = sum(lam.values(), arb(0)), sum((m for _, m in mu), arb(0))
        coefficients = [*(mu_sum * v for v in lam.values()), *(-lam_sum * m for _, m in mu)]
        g = combine(coefficients, rows[[*lam, *(j for j, _ in mu)]])
    entropy = -sum((m * (m / mu_sum).log() for _, m in mu), arb(0))
    gain = sum((v * want[i].log() for i, v in lam.items()), arb(0))
    corners = [v * (1 - most / want[i]).log() for i, v in lam.items()]
    worst = corners[0] if corners else arb(0)
    for corner in corners[1:]:
        worst = worst.min(corner)
    return g, lam_sum * entropy + mu_sum * (gain + worst)


def _norm_bound(g: list[Any], b: Any) -> Any:
    with ctx.workprec(max(ctx.prec, EXACT_BITS)):
        size = norm(g)
    if size.is_zero():
        return arb.pos_inf() if b > 0 else arb(0)
    return b / size


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    n = p["keys"].shape[0]
    wanted, multipliers = np.zeros(n), np.zeros(n)
    wanted[p["items"]], multipliers[p["items"]] = p["wanted"], p["multipliers"]
    g, b = inequality(p["keys"], wanted, multipliers, p["others"], p["mix"], p["tol"])
    return {"norm_at_least": _norm_bound(g, b)}


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound, tol = float(claims["norm_at_least"]), lower_bound(float(data["tol"]), 6)
    if bound == np.inf:
        return f"no query at all reads {blend_text(data, name)} to within {tol} in total variation"
    return (
        f"every query that reads {blend_text(data, name)} to within {tol} in total variation has a norm of at least "
        f"{lower_bound(bound, 6)}"
    )


def _parse_wiring(data: Data) -> dict[str, Any]:
    x = array(data, "X", 2)
    parsed = {"X": x, **read_rules(data, x.shape[0]), "tol": tolerance(data)}
    for name in ("mix", "multipliers"):
        parsed[name] = array(data, name, 2)
        if parsed[name].shape != parsed["wanted"].shape:
            raise InvalidCertificate(
                f"{name} has shape {parsed[name].shape}, the wanted weights {parsed['wanted'].shape}"
            )
    _check_signs(parsed["multipliers"], parsed["mix"])
    if parsed["multipliers"][parsed["wanted"] <= 0].any():
        raise InvalidCertificate("multipliers belong on the wanted tokens")
    if (parsed["multipliers"].any(axis=1) & ~parsed["mix"].any(axis=1)).any():
        raise InvalidCertificate("a rule has multipliers and no mix")
    return parsed


def _measure_wiring(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """The unknown is W, and the scores of rule r are x_i·W x_j, so its inequality reads <x_i g_rᵀ, W> >= b_r.

    Their sum gives |W| >= Σ b_r / |Σ x_i g_rᵀ|.
    """
    x = p["X"]
    b, total = arb(0), matrix(np.zeros((x.shape[1], x.shape[1])))
    for row, i in enumerate(p["rules"]):
        if not p["multipliers"][row].any():
            continue
        others = [int(j) for j in np.flatnonzero(p["mix"][row] > 0)]
        g, gain = inequality(x, p["wanted"][row], p["multipliers"][row], others, p["mix"][row][others], p["tol"])
        b = b + gain
        with ctx.workprec(max(ctx.prec, EXACT_BITS)):
            total = total + matrix(x[i]) * type(total)(1, len(g), g)
    return {"norm_at_least": _norm_bound(flat(total), b)}


def _describe_wiring(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound, tol = float(claims["norm_at_least"]), lower_bound(float(data["tol"]), 6)
    if bound == np.inf:
        return f"no matrix W = QᵀK makes these tokens read as wanted, each to within {tol} in total variation"
    return (
        f"every W = QᵀK that makes these tokens read as wanted, each to within {tol} in total variation, has a norm of "
        f"at least {lower_bound(bound, 6)}"
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

NO_WIRING_WITHIN = Statement(
    fields=("X", "rules", "wanted", "reads", "mix", "multipliers", "tol"),
    parse=_parse_wiring,
    measure=_measure_wiring,
    describe=_describe_wiring,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every W within tol"},
    positive=("norm_at_least",),
)
