"""Statements "no W = QᵀK, up to some norm, makes tokens read as wanted": in exact ratios, or within tol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound
from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import Ball
from qkv.design.certificates.statements import rules as rule_parsing
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    tolerance,
)
from qkv.design.certificates.statements.dual_bounds import (
    exact_ratios_inequality,
    matrix_norm_bound,
    total_variation_inequality,
)
from qkv.design.certificates.statements.rules import Rules, parse_rules, scope
from qkv.design.certificates.statements.total_variation import check_signs
from qkv.design.certificates.statements.wiring_bounds import (
    MatrixBound,
    centred,
    lower_bound_ball,
    scaled,
    tiles,
    within_tol,
)

FLOAT64_FIRST_SIZE = 50_000
"""Above this many numbers in tokens and mix, float64 with rounding bounds is tried before balls."""
MAX_BALL_WORK = 5e7
"""Above this many products of balls, only float64 is tried."""
FIELDS = ("X", *rule_parsing.FIELDS, "mix", "multipliers", "tol")


def _parse(data: Data) -> dict[str, Any]:
    x = array(data, "X", 2)
    rules = parse_rules(data, x.shape[0])
    parsed: dict[str, Any] = {"X": x, "rules": rules, "wanted": rules.wanted(len(x)), "tol": tolerance(data)}
    for name in ("mix", "multipliers"):
        parsed[name] = array(data, name, 2)
        if parsed[name].shape != parsed["wanted"].shape:
            raise InvalidCertificate(
                f"{name} has shape {parsed[name].shape}, the wanted weights {parsed['wanted'].shape}"
            )
    _check_seen(rules, parsed["mix"])
    return parsed


def _check_seen(rules: Rules, mix: FloatArray) -> None:
    for rows, start, stop in rules.sequences():
        used = mix[rows] != 0
        used[:, start:stop] &= ~rules.visible(rows, start, stop)
        if used.any():
            raise InvalidCertificate("the mix uses tokens that a rule's token does not see")


def _parse_exact(data: Data) -> dict[str, Any]:
    parsed = _parse(data)
    inside = parsed["wanted"] > 0
    if (parsed["mix"] < 0).any() or parsed["mix"][inside].any() or parsed["multipliers"][~inside].any():
        raise InvalidCertificate("mix belongs on the unwanted tokens and multipliers on the wanted ones")
    return parsed


def _parse_within(data: Data) -> dict[str, Any]:
    parsed = _parse(data)
    check_signs(parsed["multipliers"], parsed["mix"])
    if parsed["multipliers"][parsed["wanted"] <= 0].any():
        raise InvalidCertificate("multipliers belong on the wanted tokens")
    if (parsed["multipliers"].any(axis=1) & ~parsed["mix"].any(axis=1)).any():
        raise InvalidCertificate("a rule has multipliers and no mix")
    return parsed


def _measure_exact(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """A rule's mix need not sum to 1: its sum is the factor in front of that rule's leak inequality."""

    def inequalities() -> Iterator[tuple[int, list[Ball], Ball]]:
        for row, token in enumerate(p["rules"].readers):
            entries = p["rules"].entries(row)
            items, rest = p["rules"].items[entries].tolist(), np.flatnonzero(p["mix"][row] > 0).tolist()
            ratios = [arb(float(v)) for v in p["multipliers"][row, items]]
            mix = [arb(float(m)) for m in p["mix"][row, rest]]
            yield (
                int(token),
                *exact_ratios_inequality(p["X"], items, p["rules"].weights[entries], ratios, rest, mix, p["tol"]),
            )

    return {"norm_at_least": matrix_norm_bound(p["X"], inequalities())}


def _measure_within(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """The unknown is W, and the scores of rule r are x_i·W x_j, so its inequality reads <x_i g_rᵀ, W> >= b_r."""
    work = p["wanted"].size * p["X"].shape[1]
    if in_float64 or work > MAX_BALL_WORK:
        return {"norm_at_least": lower_bound_ball(_within_in_float64(p), list(claims.get("norm_at_least", [])))}

    def inequalities() -> Iterator[tuple[int, list[Ball], Ball]]:
        for row, token in enumerate(p["rules"].readers):
            if p["multipliers"][row].any():
                others = np.flatnonzero(p["mix"][row] > 0).tolist()
                mix = p["mix"][row][others]
                yield (
                    int(token),
                    *total_variation_inequality(p["X"], p["wanted"][row], p["multipliers"][row], others, mix, p["tol"]),
                )

    return {"norm_at_least": matrix_norm_bound(p["X"], inequalities())}


def _within_in_float64(p: dict[str, Any]) -> float:
    with np.errstate(all="ignore"):
        x, exponent = scaled(p["X"])
        bound, each = MatrixBound(x, exponent, p["rules"].count), scaled(p["multipliers"])[0]
        for tile in tiles(p["rules"]):
            part = slice(tile.start, tile.stop)
            tokens, lengths = centred(x[part])
            mix, multipliers = p["mix"][tile.rows, part], each[tile.rows, part]
            coefficients, doubt, b, b_error = within_tol(tile, mix, multipliers, p["tol"])
            bound.add(tile, tokens, lengths, coefficients, doubt * lengths.max(), b, b_error)
        return bound.at_least()


def _float64_first(data: Data) -> bool:
    return int(np.size(data["X"]) + np.size(data["mix"])) > FLOAT64_FIRST_SIZE


def _which(claims: Mapping[str, Any]) -> str:
    bound = float(claims["norm_at_least"])
    return "no matrix W = QᵀK" if bound == np.inf else f"no W = QᵀK of norm below {lower_bound(bound)}"


def _describe_exact(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    tol = lower_bound(float(data["tol"]), 6)
    return (
        f"{scope(data)}{_which(claims)} makes these tokens read as wanted, in exact ratios with a leak of at most {tol}"
    )


def _describe_within(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound, tol = float(claims["norm_at_least"]), lower_bound(float(data["tol"]), 6)
    if bound == np.inf:
        which = "no matrix W = QᵀK makes these tokens read as wanted"
        return f"{scope(data)}{which}, each to within {tol} in total variation"
    return (
        f"{scope(data)}every W = QᵀK that makes these tokens read as wanted, each to within {tol} in total variation, "
        f"has a norm of at least {lower_bound(bound, 6)}"
    )


NO_WIRING = Statement(
    fields=FIELDS,
    parse=_parse_exact,
    measure=_measure_exact,
    describe=_describe_exact,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every W with the exact ratios"},
    positive=("norm_at_least",),
)

NO_WIRING_WITHIN = Statement(
    fields=FIELDS,
    parse=_parse_within,
    measure=_measure_within,
    describe=_describe_within,
    senses={"norm_at_least": ">="},
    required=("norm_at_least",),
    claim_names={"norm_at_least": "norm of every W within tol"},
    float64_first=_float64_first,
    positive=("norm_at_least",),
)
