"""Algebra: the symbols, inner products and shapes that every symbolic evaluation shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import sympy as sp

from qkv.claims.semantics.context import Context
from qkv.claims.symbolic.errors import Unsupported, WrongShape
from qkv.claims.symbolic.factors import Factor, Member, Scalar, UnnamedMean, UnnamedSum
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.printing import polynomial_text
from qkv.claims.symbolic.unknowns import InnerProduct, NoiseScore, RestWeight, Statistic, Theta
from qkv.claims.syntax import nodes as L


@dataclass
class SoftmaxTerms:
    """The softmax of one query: the exponentials of the named items, and what the unnamed items add.

    With known inner products every unnamed item has the same score, so they add (n - m) e^s. With free keys their
    scores differ; `uneven` says so, and `rest` is then the sum of their exponentials as one positive number.
    """

    head: str
    powers: dict[str, Scalar]  # the exponential of each named item
    rest: Scalar
    each: Scalar  # the exponential of one unnamed item
    uneven: bool
    scores: dict[str, Scalar] = field(default_factory=dict)

    @property
    def total(self) -> Scalar:
        """The sum of all exponentials."""
        return sum(self.powers.values(), sp.Integer(0)) + self.rest


class Algebra(ABC):
    """Symbols and inner products of one claim, and the values of its expressions.

    Expressions, weights and statistics are evaluated recursively through the abstract methods; `Evaluator` implements
    them. `vanished` are noise sizes that have gone to zero.
    """

    def __init__(self, context: Context, vanished: frozenset[str] = frozenset()) -> None:
        self.context = context
        self.vanished = vanished
        self.symbols: dict[str, Scalar] = {}  # of the declared numbers
        self.random: dict[Scalar, tuple[Scalar, Scalar]] = {}  # mean and variance, independent of each other
        self.thetas: set[Theta] = set()  # unknowns in (0, 1]
        self.softmaxes: dict[str, SoftmaxTerms] = {}
        self.queries: dict[str, MatrixPolynomial] = {}
        self.score_substitutions: list[tuple[Scalar, Scalar]] | None = None
        self.rest_weights: dict[RestWeight, Scalar] = {}  # the sum over all unnamed items, for one weight of them
        self.statistics: set[Statistic] = set()  # those without a closed form
        self.bounded_statistic = True  # whether the statistic being evaluated is of bounded expressions
        for name, given in context.random.items():
            self.random[self.symbol(name)] = (self.value(given.mean).number(), self.value(given.spread).number())

    @abstractmethod
    def value(self, expr: L.Expr) -> MatrixPolynomial:
        """The symbolic value of an expression."""

    @abstractmethod
    def named(self, name: L.Name) -> MatrixPolynomial:
        """The symbolic value of a name."""

    def number(self, expr: L.Expr) -> Scalar:
        """The value of an expression that must be a number."""
        return self.as_number(self.value(expr), expr.at)

    def as_number(self, value: MatrixPolynomial, at: L.At) -> Scalar:
        """A value that must be a number."""
        if value.anything:
            return sp.Integer(0)
        if not value.scalar:
            raise WrongShape(at, f"{shape_text(value)} where a number is needed", True)
        return value.number()

    # Numbers.
    def symbol(self, name: str) -> Scalar:
        """The symbol of a declared number, or its value where the claim fixes that."""
        if name not in self.symbols:
            self.symbols[name] = self._new_symbol(name)
        return self.symbols[name]

    def _new_symbol(self, name: str) -> Scalar:
        if name in self.vanished:
            return sp.Integer(0)
        where = self.context.numbers.get(name)
        if where is not None and where.point is not None:
            return sp.Rational(where.point.numerator, where.point.denominator)
        positive = where is not None and where.lo is not None and (where.lo > 0 or (where.lo == 0 and where.lo_open))
        options = {"positive": True} if positive else {"real": True}
        if where is not None and where.whole:
            options["integer"] = True
        return sp.Symbol(name, **options)

    def declared_name(self, symbol: Scalar) -> str | None:
        """The declared number that a symbol stands for; None for any other symbol."""
        return next((n for n, s in self.symbols.items() if s == symbol and n in self.context.numbers), None)

    @property
    def size(self) -> Scalar:
        """How many items there are."""
        return sp.Integer(len(self.context.items)) if self.context.all_items_named else self.symbol("n")

    # Inner products.
    def inner(self, left: Factor, right: Factor) -> Scalar:
        """x'y: known within an orthogonal family and between bases at right angles, else an unknown number."""
        one, two = sorted((left.upright(), right.upright()), key=lambda f: f.name)
        if one.is_noise or two.is_noise:
            return self._noise(one, two)
        members = isinstance(one, Member | UnnamedSum) and isinstance(two, Member | UnnamedSum)
        family = self.context.families.get(one.family_name) if members else None
        if one.family_name == two.family_name and family is not None and family.kind in ("orthonormal", "orthogonal"):
            square = sp.Integer(1) if family.norm is None else self.value(family.norm).number() ** 2
            return square * self._overlap(one, two)
        if self._at_right_angles(one, two):
            return sp.Integer(0)
        apart = {self._basis(one), self._basis(two)} == {"A", "B"} == set(self.context.bases)
        if apart and self.context.right_angles:
            return sp.Integer(0)
        return InnerProduct(one, two)

    def _at_right_angles(self, one: Factor, two: Factor) -> bool:
        """Whether two vectors are members, sums or means of members, of families in one declaration, and differ.

        A mean over unnamed members is orthogonal to every named one.
        """
        of = [f.of if isinstance(f, UnnamedMean) and f.of is not None else f for f in (one, two)]
        if not all(isinstance(f, Member | UnnamedSum) for f in of):
            return False
        if frozenset(f.family_name for f in of) not in self.context.orthogonal_families:
            return False
        named = any(isinstance(f, Member) and not f.of_unnamed_item for f in of)
        return of[0].family_name != of[1].family_name or (named and of[0] != of[1])

    def _basis(self, factor: Factor) -> str | None:
        """The basis that a factor is, or is a column of."""
        if factor.kind == "basis":
            return factor.name
        column = isinstance(factor, Member | UnnamedSum) and factor.family_name.upper() in self.context.bases
        return factor.family_name.upper() if column else None

    def _overlap(self, one: Factor, two: Factor) -> Scalar:
        """The inner product of two members of an orthonormal family, or of sums over its unnamed members."""
        if isinstance(one, UnnamedSum) and isinstance(two, UnnamedSum):
            return self.size - len(self.context.items)
        if isinstance(one, UnnamedSum) or isinstance(two, UnnamedSum):
            return sp.Integer(1 if one.of_unnamed_item or two.of_unnamed_item else 0)
        return sp.Integer(1 if one == two else 0)

    def _noise(self, one: Factor, two: Factor) -> Scalar:
        """z_x'u is normal with variance u'u; products of two noises are not supported."""
        if one.is_noise and two.is_noise:
            raise Unsupported("a product of two noises")
        if isinstance(one, UnnamedMean) or isinstance(two, UnnamedMean):
            raise Unsupported("noise beside a mean by random weights")
        return NoiseScore(one, two) if one.is_noise else NoiseScore(two, one)


def orthogonal_terms(algebra: Algebra, value: MatrixPolynomial) -> bool:
    """Whether the terms of a vector are multiples of different members of orthogonal families at right angles.

    Such terms are independent, so that the vector is 0 only if all coefficients are. A sum over the unnamed items
    counts only if there is one for sure.
    """
    context = algebra.context
    at_least = context.numbers["n"].lo if "n" in context.numbers else None
    names = set()
    for word in value.terms:
        if len(word) != 1 or not isinstance(word[0], Member | UnnamedSum):
            return False
        if isinstance(word[0], UnnamedSum) and not (at_least is not None and at_least > len(context.items)):
            return False
        names.add(word[0].family_name)
    return bool(names) and all(frozenset({a, b}) in context.orthogonal_families for a in names for b in names)


def require_same_shape(left: MatrixPolynomial, right: MatrixPolynomial, at: L.At) -> None:
    """Refuse to add or compare values of different shapes."""
    if left.anything or right.anything or left.shape == right.shape:
        return
    hard = left.scalar != right.scalar or (left.shape[1] == "1") != (right.shape[1] == "1")
    raise WrongShape(at, f"{described_value(left)} beside {described_value(right)}", hard)


def described_value(value: MatrixPolynomial) -> str:
    """The shape of a value, and the value itself if it is short."""
    text = polynomial_text(value)
    return f"{shape_text(value)} ({text})" if len(text) < 60 else shape_text(value)


def shape_text(value: MatrixPolynomial) -> str:
    """The shape of a value in words."""
    if value.scalar:
        return "a number"
    rows, cols = value.shape
    if cols == "1":
        return f"a vector of {rows} entries"
    return f"a row of {cols} entries" if rows == "1" else f"a {rows} x {cols} matrix"
