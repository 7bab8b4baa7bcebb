"""The result of project: the matrix that keeps one span and removes another, or a vector in both."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, ctx

from qkv.core.types import FloatArray
from qkv.design.certificates.ball_arithmetic import matrix, norm, products
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
"""A matrix that keeps or removes each vector of a basis to within this part of its length does so, if roughly."""
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
    """Whether the matrix keeps and removes every vector of both bases, if roughly."""
    a, b = _bases(certificate)
    with ctx.workprec(PRECISION):
        m, kept, removed = matrix(numbers(certificate.data["M"])), matrix(a), matrix(b)
        pairs = [*zip(_columns(m * kept - kept), _columns(kept), strict=True)]
        pairs += zip(_columns(m * removed), _columns(removed), strict=True)
        return all(_is_small(off, vector) for off, vector in pairs)


def _gives_coordinates(certificate: Stated) -> bool:
    """Whether the parts that C finds in each vector of both bases, each part times its vector, are off by at most a
    small share of that vector."""
    a, b = _bases(certificate)
    with ctx.workprec(PRECISION):
        c, kept, removed = matrix(numbers(certificate.data["C"])), matrix(a), matrix(b)
        lengths = [norm(column) for column in _columns(kept)]
        found = [*_columns(c * kept - matrix(np.eye(a.shape[1]))), *_columns(c * removed)]
        parts = [[part * length for part, length in zip(off, lengths, strict=True)] for off in found]
        return all(map(_is_small, parts, [*_columns(kept), *_columns(removed)]))


def _is_small(off: list[Any], vector: list[Any]) -> bool:
    """Whether one vector is at most a small share of another."""
    return bool(norm(off) <= arb(ROUGH) * norm(vector))


def _bases(certificate: Stated) -> tuple[FloatArray, FloatArray]:
    return numbers(certificate.data["A"]), numbers(certificate.data["B"])


def _columns(m: Any) -> list[list[Any]]:
    return [[m[i, j] for i in range(m.nrows())] for j in range(m.ncols())]


def _gap(certificate: Stated) -> float:
    """The certified distance of A x and B y, in lengths of A x."""
    return float(np.max(numbers(certificate.claims["gap"])))


FAMILY = Family(
    kinds=frozenset({MATRIX, INTERSECTION}),
    fields={"possible": _possible, "matrix": _matrix, "coordinates": _coordinates, "shared": _shared},
    unsaved=frozenset({"form", "says", "difference"}),
)
