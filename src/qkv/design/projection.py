"""project: the matrix that keeps one subspace and removes another, or a vector in both."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from qkv.core import geometry
from qkv.core.display import Card, Displayable, number, power
from qkv.core.types import ArrayLike, FloatArray
from qkv.core.validation import tensor
from qkv.design.certificates.certificate import Certificate
from qkv.design.certificates.results import differences, kept
from qkv.design.solvers.subspaces import nearest_vectors, projector, vector_of
from qkv.errors import QkvError, with_full_stop

MIN_SINE = 1e-9
"""Two spans count as intersecting if the sine of the smallest angle between them is at most this."""

MAX_CONDITION = 1e4
"""Up to this condition number of both bases together, with columns of one size, float64 is enough."""


@dataclasses.dataclass(frozen=True, eq=False)
class Projection(Displayable):
    """M with M(v_a + v_b) = v_a for all v_a in span A and v_b in span B; or a vector that lies in both spans.

    For orthonormal bases at right angles `matrix` is A Aᵀ and `coordinates` is Aᵀ, which gives the coordinates of
    v_a, and v_a itself only after multiplication by A.

    Attributes:
        possible: Whether the matrix was found. If not, the spans intersect: exactly, or, where the certificate states a
            gap, so nearly that no matrix is computed in float64.
        matrix: M, (d, d), which gives the vector v_a; or None.
        coordinates: C, (m, d), which gives the m coordinates of v_a in the basis A; or None.
        shared: A nonzero vector in span A that is in span B too, or within the certified gap of it; or None.
        form: "A Aᵀ", "oblique projector" or "none".
        certificate: The certificate of the bounds on MA − A and MB, or of the intersection.
    """

    possible: bool
    matrix: torch.Tensor | None
    coordinates: torch.Tensor | None
    shared: torch.Tensor | None
    form: str
    certificate: Certificate = dataclasses.field(repr=False)

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result."""
        return [self.certificate]

    def card(self) -> Card:
        if not self.possible:
            assert self.shared is not None
            shared = ", ".join(number(v) for v in self.shared.tolist()[:8])
            exact = "exact" in self.certificate.claims
            title = "No matrix reads A out of A + B" if exact else "The spans of A and B are too near to tell apart"
            where = "a vector in both" if exact else "a vector in A, near B"
            facts: tuple[tuple[str, str], ...] = ((where, f"({shared})"),)
            return Card(title, facts, note=with_full_stop(self.certificate.statement))
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
        """How the coordinates differ from the vector, in words."""
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
    """Find the matrix that keeps span A and removes span B.

    Args:
        A: Basis of the span to keep, as columns, (d, m); it need not be orthonormal.
        B: Basis of the span to remove, as columns, (d, k).

    Returns:
        A `Projection` with the matrix and its certificate; or, if the spans intersect, with a vector in both.

    Raises:
        QkvError: If the bases are of different dimensions or their columns are dependent.

    Example:
        >>> import qkv
        >>> found = qkv.design.project(A=[[1], [0]], B=[[1], [1]])
        >>> found.matrix.round(decimals=6).tolist()
        [[1.0, -1.0], [0.0, 0.0]]
    """
    a = _basis("A", A)
    b = _basis("B", B)
    request = f"reading span A ({a.shape[1]} columns) out of span A + span B ({b.shape[1]} columns)"
    if a.shape[0] != b.shape[0]:
        problem = f"A has vectors of {a.shape[0]} numbers and B of {b.shape[0]}"
        raise QkvError(request, problem, "Give both bases as columns of vectors in one space")
    for name, basis in (("A", a), ("B", b)):
        _check_independent(request, name, basis)
    conditioned = np.linalg.cond(geometry.of_one_size(np.hstack([a, b]))) <= MAX_CONDITION
    for in_balls in (False, True) if conditioned else (True,):  # what is found is checked
        found = _projection(a, b, in_balls)
        if found is not None:
            return found
    problem = "their columns are so nearly dependent, or so short, that numbers in float64 do not hold the answer"
    raise QkvError(request, problem, "Give bases whose columns are further from dependent, and have lengths near 1")


def _projection(a: FloatArray, b: FloatArray, in_balls: bool) -> Projection | None:
    """What is found in float64 or in balls; None where its certificate does not show it."""
    x, y, apart = nearest_vectors(a, b, in_balls)
    with np.errstate(over="ignore"):
        orthonormal = geometry.are_orthonormal(np.hstack([a, b]))
    if apart <= MIN_SINE:
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return None
        found = _intersection(a, b, x, y)
    else:
        m, c = (a @ a.T, a.T) if orthonormal else projector(a, b, in_balls)
        if not (np.isfinite(m).all() and np.isfinite(c).all()):
            return None
        form = "A Aᵀ" if orthonormal else "oblique projector"
        certificate = Certificate.issue("projection", {"A": a, "B": b, "M": m, "C": c})
        found = Projection(True, torch.from_numpy(m), torch.from_numpy(c.copy()), None, form, certificate)
    return None if any(differences(kept(found.to_json(), found.certificates), found.certificates)) else found


def _intersection(a: FloatArray, b: FloatArray, x: FloatArray, y: FloatArray) -> Projection:
    """The certificate that the spans intersect: exact where fractions show it, else to within a small gap."""
    data = {"A": a, "B": b, "x": x, "y": y}
    exact = Certificate.issue("intersection", data)
    certificate = exact if exact.claims["exact"] <= 0 else Certificate.issue("intersection", data, "gap")
    return Projection(False, None, None, torch.from_numpy(vector_of(a, x)), "none", certificate)


def _check_independent(request: str, name: str, basis: FloatArray) -> None:
    """Refuse columns that are dependent, exactly or nearly, whatever their lengths."""
    found = geometry.rank(geometry.of_one_size(basis))
    if found < basis.shape[1]:
        raise QkvError(
            request,
            f"the {basis.shape[1]} columns of {name} span only {found} dimension{'s' * (found != 1)}, to within 1e-10 "
            "of their lengths",
            "Give independent columns; drop those that depend on the others",
        )


def _basis(name: str, value: ArrayLike) -> FloatArray:
    basis = tensor(f"the basis {name}", value, "d m").numpy()
    if basis.shape[1] > basis.shape[0]:
        d, m = basis.shape
        raise QkvError(
            f"reading the basis {name} as columns",
            f"it has {m} columns of {d} numbers, so they cannot be independent",
            f"Give each basis vector as a column; if they are the rows, pass {name}.T",
        )
    return basis
