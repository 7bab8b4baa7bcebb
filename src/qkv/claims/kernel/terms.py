"""Terms of Attention.v: numbers, columns, rows and matrices as Coq text with their shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


class NotExported(Exception):
    """A claim, or a part of one, that has no form in Attention.v; the message says which."""


@dataclass(frozen=True)
class Number:
    """A real number."""

    text: str


@dataclass(frozen=True)
class Column:
    """A vector: of the inner product space ("d"), or coordinates of m or p entries as a function nat -> R."""

    text: str
    space: str = "d"


@dataclass(frozen=True)
class Row:
    """The transpose of a column."""

    column: Column


@dataclass(frozen=True)
class Matrix:
    """A linear map, by what it and its transpose do to a column; a space that is "" fits any."""

    rows: str
    cols: str
    apply: Callable[[Column], Column]
    apply_transposed: Callable[[Column], Column]


@dataclass(frozen=True)
class Zero:
    """The number 0, or a zero of any shape."""

    text: str = "0"


Term = Number | Column | Row | Matrix | Zero

IDENTITY = Matrix("", "", lambda x: x, lambda x: x)


def rational(value: Fraction) -> str:
    """A fraction as a Coq real."""
    top = str(value.numerator) if value >= 0 else f"(- {-value.numerator})"
    return top if value.denominator == 1 else f"({top} / {value.denominator})"


def zero_column(space: str) -> Column:
    """The zero vector of a space."""
    return Column("vzero") if space == "d" else Column("(fun _ : nat => 0)", space)


def transposed(term: Term) -> Term:
    """The transpose."""
    if isinstance(term, Column):
        return Row(term)
    if isinstance(term, Row):
        return term.column
    if isinstance(term, Matrix):
        return Matrix(term.cols, term.rows, term.apply_transposed, term.apply)
    return term


def scaled(factor: str, term: Term) -> Term:
    """A number times a term."""
    if isinstance(term, Number):
        return Number(f"({factor} * {term.text})")
    if isinstance(term, Column):
        if term.space == "d":
            return Column(f"({factor} *v {term.text})")
        return Column(f"(fun i : nat => {factor} * {term.text} i)", term.space)
    if isinstance(term, Row):
        return Row(_column(scaled(factor, term.column)))
    if isinstance(term, Matrix):
        inner = term
        return Matrix(
            inner.rows,
            inner.cols,
            lambda x: _column(scaled(factor, inner.apply(x))),
            lambda x: _column(scaled(factor, inner.apply_transposed(x))),
        )
    return term


def negated(term: Term) -> Term:
    """Minus a term."""
    return Number(f"(- {term.text})") if isinstance(term, Number) else scaled("(-1)", term)


def _column(term: Term) -> Column:
    if not isinstance(term, Column):
        raise NotExported("a product whose shapes do not fit")
    return term


def added(one: Term, two: Term, sign: str) -> Term:
    """The sum, or the difference, of two terms of one shape."""
    if isinstance(two, Zero):
        return Number(f"({one.text} {sign} 0)") if isinstance(one, Number) else one
    if isinstance(one, Zero):
        if isinstance(two, Number):
            return Number(f"(0 {sign} {two.text})")
        return two if sign == "+" else negated(two)
    if isinstance(one, Number) and isinstance(two, Number):
        return Number(f"({one.text} {sign} {two.text})")
    if isinstance(one, Column) and isinstance(two, Column) and one.space == two.space:
        if one.space == "d":
            return Column(f"({one.text} {sign}v {two.text})")
        return Column(f"(fun i : nat => {one.text} i {sign} {two.text} i)", one.space)
    if isinstance(one, Row) and isinstance(two, Row):
        return Row(_column(added(one.column, two.column, sign)))
    if isinstance(one, Matrix) and isinstance(two, Matrix):
        left, right = one, two
        return Matrix(
            left.rows or right.rows,
            left.cols or right.cols,
            lambda x: _column(added(left.apply(x), right.apply(x), sign)),
            lambda x: _column(added(left.apply_transposed(x), right.apply_transposed(x), sign)),
        )
    raise NotExported("a sum whose shapes do not fit")


def inner(one: Column, two: Column) -> Number:
    """The inner product of two columns of the space."""
    if (one.space, two.space) != ("d", "d"):
        raise NotExported("an inner product of coordinates")
    return Number(f"({one.text} dot {two.text})")


def multiplied(one: Term, two: Term) -> Term:
    """The product of two terms."""
    if isinstance(one, Zero) or isinstance(two, Zero):
        if isinstance(one, Number | Zero) and isinstance(two, Number | Zero):
            return Number(f"({one.text} * {two.text})")
        return Zero()
    if isinstance(one, Number):
        return scaled(one.text, two)
    if isinstance(two, Number):
        return scaled(two.text, one)
    if isinstance(one, Row):
        if isinstance(two, Column):
            return inner(one.column, two)
        if isinstance(two, Matrix):
            return Row(two.apply_transposed(one.column))
    if isinstance(one, Matrix):
        if isinstance(two, Column):
            return one.apply(two)
        if isinstance(two, Matrix):
            return _composed(one, two)
    if isinstance(one, Column) and isinstance(two, Row):
        return outer(one, two.column)
    raise NotExported("a product whose shapes do not fit")


def _composed(one: Matrix, two: Matrix) -> Matrix:
    return Matrix(
        one.rows or two.rows,
        two.cols or one.cols,
        lambda x: one.apply(two.apply(x)),
        lambda x: two.apply_transposed(one.apply_transposed(x)),
    )


def outer(u: Column, w: Column) -> Matrix:
    """The matrix u w'."""
    if (u.space, w.space) != ("d", "d"):
        raise NotExported("an outer product of coordinates")
    return Matrix(
        "d",
        "d",
        lambda x: Column(f"(outer {u.text} {w.text} {x.text})"),
        lambda x: Column(f"(outer {w.text} {u.text} {x.text})"),
    )


def divided(one: Term, two: Term) -> Term:
    """A term over a number."""
    if not isinstance(two, Number):
        raise NotExported("a division by something that is no number")
    if isinstance(one, Number | Zero):
        return Number(f"({one.text} / {two.text})")
    return scaled(f"(/ {two.text})", one)


def equation(one: Term, two: Term, sizes: dict[str, str]) -> str:
    """The proposition that two terms of one shape are equal; `sizes` are the numbers of coordinates."""
    if isinstance(one, Zero):
        one, two = two, one
    if isinstance(one, Number | Zero) and isinstance(two, Number | Zero):
        return f"{one.text} = {two.text}"
    if isinstance(one, Row):
        return equation(one.column, two.column if isinstance(two, Row) else two, sizes)
    if isinstance(one, Column):
        other = zero_column(one.space) if isinstance(two, Zero) else two
        if not isinstance(other, Column) or other.space != one.space:
            raise NotExported("an equation whose shapes do not fit")
        if one.space == "d":
            return f"{one.text} = {other.text}"
        return f"(forall e : nat, (e < {sizes[one.space]})%nat -> {one.text} e = {other.text} e)"
    if isinstance(one, Matrix) and isinstance(two, Matrix | Zero):
        cols = one.cols or (two.cols if isinstance(two, Matrix) else "") or "d"
        kind = "E" if cols == "d" else "nat -> R"
        argument = Column("arg", cols)
        image = Zero() if isinstance(two, Zero) else two.apply(argument)
        return f"(forall arg : {kind}, {equation(one.apply(argument), image, sizes)})"
    raise NotExported("an equation whose shapes do not fit")
