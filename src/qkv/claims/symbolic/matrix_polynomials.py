"""Vectors and matrices as sums of words: products of named atoms, reduced by known inner products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

Scalar = Any  # a SymPy expression; SymPy's own stubs are too loose to be of use
MOST_TERMS = 400


class TooLarge(Exception):
    """An expression that outgrew its bounds."""


@dataclass(frozen=True)
class Factor:
    """A vector (d x 1), a basis (d x m), or a rotation R(angle), perhaps transposed.

    `kind` is "vector", "basis" or "turn"; `rows` is the dimension it lives in and `cols` what it takes.
    """

    name: str
    kind: str
    rows: str = "d"
    cols: str = "1"
    flipped: bool = False
    angle: Scalar = None

    @property
    def shape(self) -> tuple[str, str]:
        return (self.cols, self.rows) if self.flipped else (self.rows, self.cols)

    def turned(self) -> Factor:
        if self.kind == "turn":  # R(m)ᵀ = R(-m)
            return turn(-self.angle)
        return Factor(self.name, self.kind, self.rows, self.cols, not self.flipped)

    def __str__(self) -> str:
        return self.name + ("'" if self.flipped else "")


def turn(angle: Scalar) -> Factor:
    angle = sp.expand(angle)
    return Factor(f"R({angle})", "turn", "d", "d", angle=angle)


Monomial = tuple[Factor, ...]
Inner = Callable[[Factor, Factor], Scalar]
"""The inner product of two vector atoms."""


@dataclass(frozen=True)
class MatrixPolynomial:
    """A sum of words of one shape; the empty word is 1 for a scalar and the identity for a square matrix.

    `anything` marks a bare 0, which has every shape.
    """

    terms: Mapping[Monomial, Scalar]
    shape: tuple[str, str]
    anything: bool = False

    @property
    def scalar(self) -> bool:
        return self.shape == ("1", "1")

    def number(self) -> Scalar:
        return self.terms.get((), sp.Integer(0))

    def scaled(self, factor: Scalar) -> MatrixPolynomial:
        if factor == 0:
            return MatrixPolynomial({}, self.shape)
        return MatrixPolynomial({w: c * factor for w, c in self.terms.items()}, self.shape, self.anything)

    def plus(self, other: MatrixPolynomial) -> MatrixPolynomial:
        if self.anything or other.anything:
            return other if self.anything else self
        terms = dict(self.terms)
        for word, coefficient in other.terms.items():
            terms[word] = terms.get(word, sp.Integer(0)) + coefficient
        if len(terms) > MOST_TERMS:
            raise TooLarge(f"more than {MOST_TERMS} terms")
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, self.shape)

    def minus(self, other: MatrixPolynomial) -> MatrixPolynomial:
        return self.plus(other.scaled(sp.Integer(-1)))

    def transposed(self) -> MatrixPolynomial:
        flipped = {tuple(a.turned() for a in reversed(w)): c for w, c in self.terms.items()}
        return MatrixPolynomial(flipped, (self.shape[1], self.shape[0]), self.anything)

    def times(self, other: MatrixPolynomial, inner: Inner) -> MatrixPolynomial:
        """The product; one of two 1 x 1 factors scales the other."""
        if self.anything or other.anything:  # in a product a bare 0 is the number
            return MatrixPolynomial({}, other.shape if self.anything else self.shape, self.anything and other.anything)
        if self.scalar:
            return other.scaled(self.number())
        if other.scalar:
            return self.scaled(other.number())
        shape = (self.shape[0], other.shape[1])
        if len(self.terms) * len(other.terms) > MOST_TERMS:
            raise TooLarge(f"more than {MOST_TERMS} terms")
        terms: dict[Monomial, Scalar] = {}
        for left, c in self.terms.items():
            for right, e in other.terms.items():
                reduced = reduce(left + right, c * e, inner)
                if reduced is not None:
                    word, factor = reduced
                    if shape == ("1", "1"):
                        word, factor = (), factor * _named(word)
                    terms[word] = terms.get(word, sp.Integer(0)) + factor
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, shape)


def reduce(word: Monomial, factor: Scalar, inner: Inner) -> tuple[Monomial, Scalar] | None:
    """Apply AᵀA = I, R(x)R(y) = R(x+y) and known inner products until none applies; None is zero."""
    done: list[Factor] = []
    for atom in word:
        if atom.kind == "turn" and atom.angle == 0:
            continue
        if not done:
            done.append(atom)
            continue
        last = done[-1]
        if last.kind == "turn" and atom.kind == "turn":
            done.pop()
            joint = turn(last.angle + atom.angle)
            if joint.angle != 0:
                done.append(joint)
        elif last.kind == "vector" and atom.kind == "vector" and last.flipped and not atom.flipped:
            done.pop()
            factor = factor * inner(last, atom)
            if factor == 0:
                return None
        elif last.kind == "basis" and atom.kind == "basis" and last.flipped and not atom.flipped:
            if last.name == atom.name:
                done.pop()
            elif inner(last, atom) == 0:
                return None
            else:
                done.append(atom)
        elif _column_beside(last, atom) and inner(last, atom) == 0:  # A'b_j = 0 when the bases are at right angles
            return None
        else:
            done.append(atom)
    return tuple(done), factor


def _column_beside(last: Factor, atom: Factor) -> bool:
    """Whether a basis meets a column of another one: A'b_j, or b_j'A."""
    if not last.flipped or atom.flipped or {last.kind, atom.kind} != {"basis", "vector"}:
        return False
    basis, column = (last, atom) if last.kind == "basis" else (atom, last)
    return (basis.name, column.name.split("_")[0]) in (("A", "b"), ("B", "a"))


def _named(word: Monomial) -> Scalar:
    """A 1 x 1 word that nothing reduces is an unknown number; a word and its transpose are the same one."""
    if not word:
        return sp.Integer(1)
    mirrored = tuple(a.turned() for a in reversed(word))
    texts = sorted("*".join(str(a) for a in w) for w in (word, mirrored))
    return sp.Symbol(f"<{texts[0]}>", real=True)


def scalar(value: Scalar) -> MatrixPolynomial:
    value = sp.sympify(value) if isinstance(value, int) else value
    return MatrixPolynomial({(): value} if value != 0 else {}, ("1", "1"))


def vector(atom: Factor, factor: Scalar = None) -> MatrixPolynomial:
    return MatrixPolynomial({(atom,): sp.Integer(1) if factor is None else factor}, atom.shape)


def identity(space: str) -> MatrixPolynomial:
    return MatrixPolynomial({(): sp.Integer(1)}, (space, space))


ZERO = MatrixPolynomial({}, ("1", "1"), True)
