"""The result of project: the matrix that keeps one span and removes another, or a vector in both."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import matrix, products
from qkv.design.certificates.results.base import (
    NEAR,
    PRECISION,
    UNCOVERED,
    Family,
    Saved,
    Stated,
    are_numbers,
    numbers,
    of_data,
    verdict,
)

MATRIX, INTERSECTION = "projection", "intersection"
ROUGH = 1e-3
"""A matrix that keeps or removes each vector of a span to within this part of its length does so, if roughly."""
SMALL_GAP = 1.01e-9
"""Spans whose certified gap is not above this are told as sharing a vector (`design/projection.py`)."""
EXACT_GAP = 1e-5
"""The same where fractions show that the spans share a vector: so near float64 comes to it with nearly dependent
columns."""


def _possible(saved: Saved, value: Any) -> str:
    if saved.first.kind == MATRIX:
        shown = value is True and _is_a_projection(saved.first)
        return verdict(shown, "its certificate does not show that the matrix does it")
    shown = value is False and ("exact" in saved.first.claims or _gap(saved.first) <= SMALL_GAP)
    return verdict(shown, "its certificate does not show that the spans intersect")


def _matrix(saved: Saved, value: Any) -> str:
    return of_data("M")(saved, value) or verdict(
        _is_a_projection(saved.first), "its certificate does not show that the matrix does it"
    )


def _coordinates(saved: Saved, value: Any) -> str:
    if "coordinates" not in saved.first.claims:
        return UNCOVERED
    return of_data("C")(saved, value) or verdict(
        _gives_coordinates(saved.first), "its certificate does not show that these are the coordinates"
    )


def _shared(saved: Saved, value: Any) -> str:
    """The vector in both spans is A x for the certified x, to rounding."""
    if saved.first.kind != INTERSECTION:
        return UNCOVERED
    with ctx.workprec(PRECISION):
        held = products(numbers(saved.first.data["A"]), numbers(saved.first.data["x"]))
        given = numbers(value)
        if not are_numbers(value) or given.shape != (len(held),) or not np.isfinite(given).all():
            return verdict(False)
        largest = max((abs(each) for each in held), key=lambda each: float(each.mid()))
        near = all(bool(abs(arb(float(g)) - h) <= arb(NEAR) * largest) for g, h in zip(given, held, strict=True))
    allowed = EXACT_GAP if "exact" in saved.first.claims else SMALL_GAP
    return verdict(near and _gap(saved.first) <= allowed)


def _is_a_projection(certificate: Stated) -> bool:
    """Whether the matrix keeps every vector of span A and removes every vector of span B, if roughly."""
    a, b = _bases(certificate)
    with ctx.workprec(PRECISION):
        m, kept, removed = matrix(numbers(certificate.data["M"])), matrix(a), matrix(b)
        return _is_small(m * kept - kept, a) and _is_small(m * removed, b)


def _gives_coordinates(certificate: Stated) -> bool:
    """Whether A times the coordinates of a vector is the vector, for span A, or nothing, for span B, if roughly."""
    a, b = _bases(certificate)
    with ctx.workprec(PRECISION):
        c, kept, removed = matrix(numbers(certificate.data["C"])), matrix(a), matrix(b)
        return _is_small(kept * (c * kept) - kept, a) and _is_small(kept * (c * removed), b)


def _is_small(off: arb_mat, basis: FloatArray) -> bool:
    """Whether E x is at most a small share of A x for every x.

    The largest |E x|²/|A x|² is the largest eigenvalue of (AᵀA)⁻¹ EᵀE, which is at most the trace. Columns are divided
    by powers of two first, so that short ones count as long ones do.
    """
    exponents = np.frexp(np.abs(basis).max(axis=0))[1].tolist()
    sizes = arb_mat(
        [[arb(2) ** -e if i == j else arb(0) for j in range(len(exponents))] for i, e in enumerate(exponents)]
    )
    columns, errors = matrix(basis) * sizes, off * sizes
    try:
        share = (columns.transpose() * columns).solve(errors.transpose() * errors).trace()
    except ZeroDivisionError:  # dependent columns
        return False
    return bool(share <= arb(ROUGH) ** 2)


def _bases(certificate: Stated) -> tuple[FloatArray, FloatArray]:
    return numbers(certificate.data["A"]), numbers(certificate.data["B"])


def _gap(certificate: Stated) -> float:
    """The certified distance of A x and B y, in lengths of A x."""
    return float(np.max(numbers(certificate.claims["gap"])))


FAMILY = Family(
    kinds=frozenset({MATRIX, INTERSECTION}),
    fields={"possible": _possible, "matrix": _matrix, "coordinates": _coordinates, "shared": _shared},
    unsaved=frozenset({"form", "says", "difference"}),
)
