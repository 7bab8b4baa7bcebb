"""Vectors and matrices as sums of monomials: products of factors, reduced by known inner products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sympy as sp

from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.factors import Factor, Scalar, turn
from qkv.claims.symbolic.unknowns import UnreducedProduct

MAX_TERMS = 400  # of one polynomial


Monomial = tuple[Factor, ...]
Inner = Callable[[Factor, Factor], Scalar]
"""The inner product of two vectors."""


@dataclass(frozen=True)
class MatrixPolynomial:
    """A sum of monomials of one shape; the empty monomial is 1 for a scalar and the identity for a square matrix.

    `anything` marks a 0 without a shape, which fits every shape.
    """

    terms: Mapping[Monomial, Scalar]
    shape: tuple[str, str]
    anything: bool = False

    @property
    def scalar(self) -> bool:
        """Whether it is a 1 x 1 polynomial, that is, a number."""
        return self.shape == ("1", "1")

    def number(self) -> Scalar:
        """The value of a scalar."""
        return self.terms.get((), sp.Integer(0))

    def scaled(self, factor: Scalar) -> MatrixPolynomial:
        """The product with a number."""
        if factor == 0:
            return MatrixPolynomial({}, self.shape)
        return MatrixPolynomial({w: c * factor for w, c in self.terms.items()}, self.shape, self.anything)

    def plus(self, other: MatrixPolynomial) -> MatrixPolynomial:
        """The sum of two polynomials of one shape."""
        if self.anything or other.anything:
            return other if self.anything else self
        terms = dict(self.terms)
        for word, coefficient in other.terms.items():
            terms[word] = terms.get(word, sp.Integer(0)) + coefficient
        if len(terms) > MAX_TERMS:
            raise TooLarge(f"more than {MAX_TERMS} terms")
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, self.shape)

    def minus(self, other: MatrixPolynomial) -> MatrixPolynomial:
        """The difference of two polynomials of one shape."""
        return self.plus(other.scaled(sp.Integer(-1)))

    def transposed(self) -> MatrixPolynomial:
        """The transpose."""
        flipped = {tuple(a.turned() for a in reversed(w)): c for w, c in self.terms.items()}
        return MatrixPolynomial(flipped, (self.shape[1], self.shape[0]), self.anything)

    def times(self, other: MatrixPolynomial, inner: Inner) -> MatrixPolynomial:
        """The product; one of two 1 x 1 factors scales the other."""
        if self.anything or other.anything:  # in a product, 0 without a shape is a scalar
            return MatrixPolynomial({}, other.shape if self.anything else self.shape, self.anything and other.anything)
        if self.scalar:
            return other.scaled(self.number())
        if other.scalar:
            return self.scaled(other.number())
        shape = (self.shape[0], other.shape[1])
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            raise TooLarge(f"more than {MAX_TERMS} terms")
        terms: dict[Monomial, Scalar] = {}
        for left, c in self.terms.items():
            for right, e in other.terms.items():
                reduced = reduce(left + right, c * e, inner)
                if reduced is not None:
                    word, factor = reduced
                    if shape == ("1", "1") and word:
                        word, factor = (), factor * UnreducedProduct(word)
                    terms[word] = terms.get(word, sp.Integer(0)) + factor
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, shape)


def reduce(word: Monomial, factor: Scalar, inner: Inner) -> tuple[Monomial, Scalar] | None:
    """Apply AᵀA = I, R(x)R(y) = R(x+y) and known inner products until none applies; None stands for zero."""
    done: list[Factor] = []
    for place, part in enumerate(word):
        if part.kind == "turn" and part.angle == 0:
            continue
        if not done:
            done.append(part)
            continue
        last = done[-1]
        if last.kind == "turn" and part.kind == "turn":
            done.pop()
            joint = turn(last.angle + part.angle)
            if joint.angle != 0:
                done.append(joint)
        elif last.kind == "vector" and part.kind == "vector" and last.flipped and not part.flipped:
            done.pop()
            factor = factor * inner(last, part)
            if factor == 0:
                return None
        elif last.kind == "basis" and part.kind == "basis" and last.flipped and not part.flipped:
            if last.name == part.name:
                done.pop()
            elif inner(last, part) == 0:
                return None
            else:
                done.append(part)
        elif _column_beside(last, part) and inner(last, part) == 0:  # A'b_j = 0 when the bases are at right angles
            return None
        else:
            done.append(part)
        if len(done) > 2 and _keeps_column(*done[-3:]):  # A A' a_i = a_i, and a_i' A A' = a_i'
            column = done[-1] if done[-1].kind == "vector" else done[-3]
            return reduce((*done[:-3], column, *word[place + 1 :]), factor, inner)
    return tuple(done), factor


def _keeps_column(one: Factor, two: Factor, three: Factor) -> bool:
    """Whether three factors are A A' a_i, or a_i' A A': a projection applied to a column of its own basis."""
    parts = (one, two) if three.kind == "vector" else (two, three)
    column = three if three.kind == "vector" else one
    if any(part.kind != "basis" for part in parts) or column.kind != "vector":
        return False
    turned = parts[0].name == parts[1].name and not parts[0].flipped and parts[1].flipped
    return turned and column.family_name == parts[0].name.lower() and column.flipped == (column is one)


def _column_beside(last: Factor, part: Factor) -> bool:
    """Whether the product is a basis times a column of another basis: A'b_j, or b_j'A."""
    if not last.flipped or part.flipped or {last.kind, part.kind} != {"basis", "vector"}:
        return False
    basis, column = (last, part) if last.kind == "basis" else (part, last)
    return (basis.name, column.family_name) in (("A", "b"), ("B", "a"))


def scalar(value: Scalar) -> MatrixPolynomial:
    """A number as a polynomial."""
    value = sp.sympify(value) if isinstance(value, int) else value
    return MatrixPolynomial({(): value} if value != 0 else {}, ("1", "1"))


def vector(part: Factor, factor: Scalar = None) -> MatrixPolynomial:
    """A multiple of one vector."""
    return MatrixPolynomial({(part,): sp.Integer(1) if factor is None else factor}, part.shape)


def identity(space: str) -> MatrixPolynomial:
    """The identity of the space of d, m or p dimensions."""
    return MatrixPolynomial({(): sp.Integer(1)}, (space, space))


ZERO = MatrixPolynomial({}, ("1", "1"), True)
