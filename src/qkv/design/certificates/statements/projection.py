"""Statements "this matrix keeps A and removes B" and "the subspaces intersect"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core.display import lower_bound, upper_bound
from qkv.design.certificates.ball_arithmetic import flat, matrix, norm, products, rational
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    matching,
)


def _parse(data: Data) -> dict[str, Any]:
    a, b, m = array(data, "A", 2), array(data, "B", 2), array(data, "M", 2)
    matching("A, B and M", a.shape[0], b.shape[0], *m.shape)
    parsed = {"A": a, "B": b, "M": m}
    if "C" in data:
        parsed["C"] = array(data, "C", 2)
        matching("C and A", parsed["C"].shape[0], a.shape[1])
        matching("C and the vectors", parsed["C"].shape[1], a.shape[0])
    return parsed


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    a, b, m = matrix(p["A"]), matrix(p["B"]), matrix(p["M"])
    out: Measured = {"keeps": norm(flat(m * a - a)), "removes": norm(flat(m * b))}
    if "C" in p:
        c = matrix(p["C"])
        identity = matrix(np.eye(p["A"].shape[1]))
        out["coordinates"] = norm(flat(c * a - identity) + flat(c * b))
    return out


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    keeps, removes = (upper_bound(float(claims[claim]), 3) for claim in ("keeps", "removes"))
    return (
        f"M A = A to within {keeps} and M B = 0 to within {removes}, so for v_a = A x and v_b = B y, M(v_a + v_b) "
        f"differs from v_a by at most {keeps}·|x| + {removes}·|y|"
    )


def _parse_intersection(data: Data) -> dict[str, Any]:
    a, b = array(data, "A", 2), array(data, "B", 2)
    x, y = array(data, "x", 1), array(data, "y", 1)
    matching("A and B", a.shape[0], b.shape[0])
    matching("A and x", a.shape[1], x.shape[0])
    matching("B and y", b.shape[1], y.shape[0])
    return {"A": a, "B": b, "x": x, "y": y}


def _measure_intersection(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    v = products(p["A"], p["x"])
    w = products(p["B"], p["y"])
    length = norm(v)
    if length.is_zero():
        raise InvalidCertificate("A x is the zero vector, which every span holds")
    gap = norm([s - t for s, t in zip(v, w, strict=True)]) / length
    if "exact" not in claims:
        return {"gap": gap}
    # dim(span A ∩ span B) = rank A + rank B - rank [A B], and ranks of fractions are exact.
    both = np.hstack([p["A"], p["B"]])
    ranks = [int(rational(m).rank()) for m in (p["A"], p["B"], both)]
    return {"gap": gap, "exact": arb(0) if ranks[2] < ranks[0] + ranks[1] else arb(1)}


def _describe_intersection(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    if "exact" in claims:
        return "span A and span B share a nonzero vector, which no matrix can both keep and remove"
    gap = float(claims["gap"])
    least = math.nextafter(1 / gap, 0) if gap else np.inf
    return (
        f"A x and B y differ by at most {upper_bound(gap, 3)} of the length of A x: a matrix that keeps the one and "
        f"removes the other has a norm of at least {lower_bound(least, 3)}"
    )


PROJECTION = Statement(
    fields=("A", "B", "M", "C"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"keeps": "<=", "removes": "<=", "coordinates": "<="},
    required=("keeps", "removes"),
    claim_names={"keeps": "‖MA − A‖", "removes": "‖MB‖", "coordinates": "‖C[A B] − [I 0]‖"},
)

INTERSECTION = Statement(
    fields=("A", "B", "x", "y"),
    parse=_parse_intersection,
    measure=_measure_intersection,
    describe=_describe_intersection,
    senses={"gap": "<=", "exact": "<="},
    required=("gap",),
    claim_names={"gap": "‖Ax − By‖/‖Ax‖", "exact": "spans that do not meet"},
    exact=("exact",),
)
