"""project: the matrix that reads one subspace out of a sum, or a vector that shows there is none."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from qkv.core import geometry
from qkv.core.display import Card, Displayable, number, power
from qkv.core.validation import ArrayLike, tensor
from qkv.design.certificates.certificate import Certificate
from qkv.errors import QkvError

Array = np.ndarray[Any, np.dtype[np.float64]]

MEET = 1e-9
"""Sine of the angle between two spans below which they count as meeting."""


@dataclasses.dataclass(frozen=True, eq=False)
class Projection(Displayable):
    """M with M(v_a + v_b) = v_a for every v_a in span A and v_b in span B; or a vector that lies in both spans.

    `matrix` reads the vector v_a, `coordinates` reads its m coordinates in the basis A: for orthonormal bases at
    right angles the first is A Aᵀ and the second Aᵀ, which is no answer to "give me v_a" unless A is put in front.
    """

    possible: bool
    matrix: torch.Tensor | None
    coordinates: torch.Tensor | None
    shared: torch.Tensor | None
    form: str
    certificate: Certificate = dataclasses.field(repr=False)

    @property
    def certificates(self) -> list[Certificate]:
        """What there is to recheck."""
        return [self.certificate]

    def card(self) -> Card:
        if not self.possible:
            assert self.shared is not None
            shared = ", ".join(number(v) for v in self.shared.tolist()[:8])
            facts: tuple[tuple[str, str], ...] = (("a vector in both", f"({shared})"),)
            return Card("No matrix reads A out of A + B", facts, note=self.certificate.statement + ".")
        assert self.matrix is not None and self.coordinates is not None
        d = len(self.matrix)
        facts = (
            ("matrix", f"{self.form}, {d} × {d}"),
            ("norm", number(float(torch.linalg.matrix_norm(self.matrix, 2)), 6)),
            ("M A = A", f"to {power(float(self.certificate.claims['keeps']))}"),
            ("M B = 0", f"to {power(float(self.certificate.claims['removes']))}"),
        )
        return Card("Read A out of A + B", facts, note=self.difference)

    @property
    def difference(self) -> str:
        """How reading coordinates differs from reading the vector."""
        if self.coordinates is None:
            return ""
        m, d = self.coordinates.shape
        what = "Aᵀ" if self.form == "A Aᵀ" else "C"
        return (
            f"{what} s is {m} number{'s' * (m > 1)}, the coordinates of v_a in the basis A; M s = A({what} s) is v_a "
            f"itself, a vector of {d}. They answer different questions"
            + (", even where the sizes agree." if m == d else ".")
        )

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"says": self.certificate.statement, "difference": self.difference}


def project(A: ArrayLike, B: ArrayLike) -> Projection:
    """The matrix that keeps span A and removes span B, from bases as columns, orthonormal or not."""
    a = _basis("A", A)
    b = _basis("B", B)
    asked = f"reading span A ({a.shape[1]} columns) out of span A + span B ({b.shape[1]} columns)"
    if a.shape[0] != b.shape[0]:
        came = f"A has vectors of {a.shape[0]} numbers and B of {b.shape[0]}"
        raise QkvError(asked, came, "Give both bases as columns of vectors in one space")
    for name, basis in (("A", a), ("B", b)):
        found = geometry.rank(basis)
        if found < basis.shape[1]:
            raise QkvError(
                asked,
                f"the {basis.shape[1]} columns of {name} span only {found} dimension{'s' * (found != 1)}",
                "Give independent columns; drop those that depend on the others",
            )
    x, y = geometry.meeting(a, b)
    if np.linalg.norm(a @ x - b @ y) <= MEET:
        return _meeting(a, b, x, y)
    plain = geometry.are_orthonormal(np.hstack([a, b]))
    m = a @ a.T if plain else geometry.oblique_projector(a, b)
    c = a.T if plain else np.linalg.pinv(a) @ m
    form = "A Aᵀ" if plain else "oblique projector"
    certificate = Certificate.issue("projection", {"A": a, "B": b, "M": m, "C": c})
    return Projection(True, torch.from_numpy(m), torch.from_numpy(c.copy()), None, form, certificate)


def _meeting(a: Array, b: Array, x: Array, y: Array) -> Projection:
    data = {"A": a, "B": b, "x": x, "y": y}
    exact = Certificate.issue("intersection", data)
    certificate = exact if exact.claims["exact"] <= 0 else Certificate.issue("intersection", data, "gap")
    return Projection(False, None, None, torch.from_numpy(a @ x), "none", certificate)


def _basis(name: str, value: ArrayLike) -> Array:
    basis = tensor(f"the basis {name}", value, "d m").numpy()
    if basis.shape[1] > basis.shape[0]:
        d, m = basis.shape
        raise QkvError(
            f"reading the basis {name} as columns",
            f"it has {m} columns of {d} numbers, so they cannot be independent",
            f"Give each basis vector as a column; if they are the rows, pass {name}.T",
        )
    return basis
