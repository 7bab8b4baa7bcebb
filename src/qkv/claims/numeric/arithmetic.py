"""Two exact arithmetics for instances: balls that contain the value (python-flint), and symbols that are it (SymPy)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import sympy as sp
from flint import arb, arb_mat, fmpq

from qkv.claims.numeric.evaluator import CannotEvaluate

Number = Any
"""An arb or a SymPy expression."""

Matrix = Any
"""An arb_mat or a SymPy matrix; both have +, -, *, indexing and transpose()."""

MAX_EXPONENT = 64  # of a power that is multiplied out


class Arithmetic(Protocol):
    """What the exact evaluator asks of a kind of number."""

    def number(self, value: Fraction | float) -> Number:
        """A fraction, or the binary fraction that a float is."""

    def matrix(self, rows: int, columns: int, entries: Sequence[Number]) -> Matrix:
        """A matrix by rows."""

    def shape(self, matrix: Matrix) -> tuple[int, int]:
        """Rows and columns."""

    def times(self, factor: Number, matrix: Matrix) -> Matrix:
        """A number times a matrix."""

    def power(self, base: Number, exponent: Number) -> Number:
        """A power."""

    def function(self, name: str, x: Number) -> Number:
        """exp, log, sqrt, Phi, sin or cos."""

    def norm(self, entries: Sequence[Number]) -> Number:
        """The root of the sum of the squares of some numbers."""

    def require_finite(self, x: Number) -> None:
        """Raise CannotEvaluate for what is not finite, or not known to be."""

    def surely_positive(self, x: Number) -> bool:
        """Whether a number is positive for certain."""

    def largest(self, values: Sequence[Number]) -> Number:
        """A number near the largest of some numbers."""


class Balls:
    """Balls of python-flint at the precision of its context: every result contains the exact value."""

    def number(self, value: Fraction | float) -> arb:
        if isinstance(value, Fraction):
            return arb(fmpq(value.numerator, value.denominator))
        return arb(value)

    def matrix(self, rows: int, columns: int, entries: Sequence[Number]) -> arb_mat:
        return arb_mat(rows, columns, list(entries))

    def shape(self, matrix: arb_mat) -> tuple[int, int]:
        return matrix.nrows(), matrix.ncols()

    def times(self, factor: arb, matrix: arb_mat) -> arb_mat:
        return factor * matrix

    def power(self, base: arb, exponent: arb) -> arb:
        integer = exponent.unique_fmpz() if exponent.is_exact() and exponent.is_integer() else None
        whole = None if integer is None else int(integer)
        if whole is None or abs(whole) > MAX_EXPONENT:
            return base**exponent
        out = arb(1)
        for _ in range(abs(whole)):  # the power of python-flint is not finite for a ball that holds 0
            out = out * base
        return out if whole >= 0 else 1 / out

    def function(self, name: str, x: arb) -> arb:
        if name == "Phi":
            return (-x / arb(2).sqrt()).erfc() / 2
        return getattr(x, name)()

    def norm(self, entries: Sequence[arb]) -> arb:
        return sum((x * x for x in entries), arb(0)).nonnegative_part().sqrt()

    def require_finite(self, x: arb) -> None:
        if not x.is_finite():
            raise CannotEvaluate("a value that is not finite, or not known well enough")

    def surely_positive(self, x: arb) -> bool:
        return bool(x > 0)

    def largest(self, values: Sequence[arb]) -> arb:
        most = values[0].mid()
        for x in values[1:]:
            most = x.mid() if x.mid() > most else most
        return most


class Symbols:
    """SymPy expressions without symbols: slow, but two numbers can be shown to be equal."""

    def number(self, value: Fraction | float) -> sp.Expr:
        exact = Fraction(value)
        return sp.Rational(exact.numerator, exact.denominator)

    def matrix(self, rows: int, columns: int, entries: Sequence[Number]) -> sp.Matrix:
        return sp.Matrix(rows, columns, list(entries))

    def shape(self, matrix: sp.Matrix) -> tuple[int, int]:
        return matrix.rows, matrix.cols

    def times(self, factor: sp.Expr, matrix: sp.Matrix) -> sp.Matrix:
        return factor * matrix

    def power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        return base**exponent

    def function(self, name: str, x: sp.Expr) -> sp.Expr:
        if name == "Phi":
            return sp.erfc(-x / sp.sqrt(2)) / 2
        return getattr(sp, name)(x)

    def norm(self, entries: Sequence[sp.Expr]) -> sp.Expr:
        return sp.sqrt(sum((x**2 for x in entries), sp.Integer(0)))

    def require_finite(self, x: sp.Expr) -> None:
        if x.is_finite is not True or x.is_real is not True:
            raise CannotEvaluate("a value that is not finite")

    def surely_positive(self, x: sp.Expr) -> bool:
        return x.is_positive is True

    def largest(self, values: Sequence[sp.Expr]) -> sp.Expr:
        return sp.Integer(0)
