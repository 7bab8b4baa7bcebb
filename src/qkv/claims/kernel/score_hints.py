"""Scores as formulas, to guide a proof: Coq checks each of them, so that a wrong one fails there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from qkv.claims.kernel.terms import NotExported, rational
from qkv.claims.kernel.translation import Translator, spread_terms
from qkv.claims.semantics.context import REST, Context
from qkv.claims.syntax import nodes as L

Atom = tuple[str, str]
"""A member of a family: the family and the item."""

Scalar = Any
"""A SymPy number; SymPy has no types."""

Vector = dict[Atom, Scalar]


class NoHint(Exception):
    """A value that is no combination of known vectors."""


@dataclass(frozen=True)
class RowVector:
    vector: Vector


@dataclass(frozen=True)
class Outer:
    """A sum of multiples of outer products, and a multiple of the identity."""

    terms: tuple[tuple[Vector, Vector], ...]
    identity: Scalar = 0


Value = Any
"""A number, a Vector, a RowVector or an Outer."""


class Hints:
    """Values of expressions as combinations of the members of orthogonal families; noise that vanishes is left out."""

    def __init__(self, context: Context, translator: Translator) -> None:
        self.context = context
        self.translator = translator
        self.texts: dict[Scalar, str] = {}
        self.random = False  # within a statistic, keys are random
        self.forms: dict[Scalar, tuple[str, Atom]] = {}  # inner products of a random key with a vector

    def symbol(self, name: str, text: str, positive: bool = False) -> Scalar:
        found = sp.Symbol(name, positive=True) if positive else sp.Symbol(name, real=True)
        self.texts[found] = text
        return found

    # Scores.
    def key(self, item: str) -> Vector:
        context = self.context
        if context.tokens:
            return self._token_image("K", item)
        if context.noise:
            given = context.noise.get(item, context.noise.get("i"))
            if given is None:
                raise NoHint
            total = self.vector(L.renamed(given.mean, "i", item))
            for j, (_, direction) in enumerate(spread_terms(given.spread)):
                if direction is None:
                    continue
                size = self._noise_factor(given, item, j)
                total = plus(total, scaled(size, self.vector(L.renamed(direction, "i", item))))
            return total
        return self.vector(L.Name("k", (item,), (0, 0)))

    def _noise_factor(self, given: L.Gaussian, item: str, j: int) -> Scalar:
        if item == REST:
            raise NoHint
        weight, _ = spread_terms(given.spread)[j]
        text = f"((sqrt {self.translator.product(weight)}) * factor {j}%nat {self.translator.item(item)})"
        return self.symbol(f"factor {j} {item}", text)

    def value_of_item(self, item: str) -> Vector:
        if self.context.tokens:
            return self._token_image("V", item)
        return self.vector(L.Name("v", (item,), (0, 0)))

    def query(self, head: str) -> Vector:
        if self.context.tokens:
            return self._token_image("Q", head)
        return self.vector(L.Name("q", (head,) if head else (), (0, 0)))

    def _token_image(self, matrix: str, item: str) -> Vector:
        token = self.vector(L.Name("x", (item,), (0, 0)))
        let = self.context.lets.get(matrix)
        if let is None:
            return token
        found = self.times(self.value(let.value), token)
        if not isinstance(found, dict):
            raise NoHint
        return found

    def score(self, head: str, item: str) -> Scalar:
        """The score of an item, REST for one without a name."""
        return sp.expand(self.inner(self.key(item), self.query(head)))

    # Values.
    def vector(self, expr: L.Expr) -> Vector:
        found = self.value(expr)
        if isinstance(found, dict):
            return found
        if isinstance(found, sp.Expr) and found == 0:
            return {}
        raise NoHint

    def number(self, expr: L.Expr) -> Scalar:
        """The value of an expression that is a number."""
        found = self.value(expr)
        if not isinstance(found, sp.Expr):
            raise NoHint
        return found

    def value(self, expr: L.Expr) -> Value:
        if isinstance(expr, L.Num):
            return sp.Rational(expr.value.numerator, expr.value.denominator)
        if isinstance(expr, L.Name):
            return self._named(expr)
        if isinstance(expr, L.Neg):
            return self.times(sp.Integer(-1), self.value(expr.inner))
        if isinstance(expr, L.Transpose):
            inner = self.value(expr.inner)
            if isinstance(inner, dict):
                return RowVector(inner)
            if isinstance(inner, RowVector):
                return inner.vector
            if isinstance(inner, Outer):
                return Outer(tuple((b, a) for a, b in inner.terms), inner.identity)
            return inner
        if isinstance(expr, L.Op):
            return self._operation(expr)
        if isinstance(expr, L.Call):
            return self._call(expr)
        if isinstance(expr, L.Stat):
            return self._statistic(expr)
        raise NoHint

    def _statistic(self, expr: L.Stat) -> Scalar:
        """The mean or the covariance of linear forms in one random key."""
        self.random = True
        forms = [sp.expand(self.number(one)) for one in expr.inner]
        self.random = False
        keys = {s for form in forms for s in form.free_symbols if s in self.forms}
        if expr.function == "E":
            return forms[0].subs({s: self._mean(s) for s in keys})
        if expr.function not in ("Var", "Cov"):
            raise NoHint
        total: Scalar = sp.Integer(0)
        for one in keys:
            for two in keys:
                total += sp.diff(forms[0], one) * sp.diff(forms[-1], two) * self._covariance(one, two)
        return sp.expand(total)

    def _mean(self, form: Scalar) -> Scalar:
        item, atom = self.forms[form]
        given = self.context.noise.get(item, self.context.noise["i"])
        return self.inner(self.vector(L.renamed(given.mean, "i", item)), {atom: sp.Integer(1)})

    def _covariance(self, one: Scalar, two: Scalar) -> Scalar:
        (item, first), (other, second) = self.forms[one], self.forms[two]
        if item != other:
            raise NoHint
        given = self.context.noise.get(item, self.context.noise["i"])
        image = self.times(self.value(L.renamed(given.spread, "i", item)), {second: sp.Integer(1)})
        if not isinstance(image, dict):
            raise NoHint
        return self.inner({first: sp.Integer(1)}, image)

    def _call(self, expr: L.Call) -> Value:
        if expr.function == "norm":
            vector = self.vector(expr.inner)
            return sp.sqrt(self.inner(vector, vector))
        function = {"exp": sp.exp, "log": sp.log, "sqrt": sp.sqrt}.get(expr.function)
        if function is None:
            raise NoHint
        inner = self.number(expr.inner)
        if function is sp.log and not inner.is_Symbol:
            raise NoHint
        return function(inner)

    def _operation(self, expr: L.Op) -> Value:
        left, right = self.value(expr.left), self.value(expr.right)
        if expr.sign in "+-":
            return self.add(left, right if expr.sign == "+" else self.times(sp.Integer(-1), right))
        if expr.sign == "*":
            return self.times(left, right)
        if not isinstance(right, sp.Expr) or (expr.sign == "/" and right == 0):
            raise NoHint
        if expr.sign == "/":
            return self.times(1 / right, left)
        if not isinstance(left, sp.Expr):
            raise NoHint
        return left**right

    def _named(self, name: L.Name) -> Value:
        context = self.context
        if name.base == "I" and not name.subs:
            return Outer((), sp.Integer(1))
        if str(name) in context.numbers:
            where = context.numbers[str(name)]
            positive = where.lo is not None and (where.lo > 0 or (where.lo == 0 and where.lo_open))
            text = "(INR n)" if str(name) == "n" else self.translator.names.of("num", str(name))
            return self.symbol(str(name), text, positive)
        value = context.definition(name)
        if value is not None:
            return self.value(value)
        if name.base == "k" and context.noise and self.random:
            return {("random key", name.subs[0]): sp.Integer(1)}
        if name.base == "k" and context.noise:
            return self.key(name.subs[0])
        if name.base in ("k", "v", "q") and context.tokens and len(name.subs) == 1:
            return self._token_image({"k": "K", "v": "V", "q": "Q"}[name.base], name.subs[0])
        family = context.families.get(name.base)
        if family is None or family.kind == "free" or len(name.subs) != 1:
            raise NoHint
        return {(name.base, name.subs[0]): sp.Integer(1)}

    # Algebra.
    def add(self, left: Value, right: Value) -> Value:
        if isinstance(left, sp.Expr) and isinstance(right, sp.Expr):
            return left + right
        if isinstance(left, sp.Expr) and left == 0:
            return right
        if isinstance(right, sp.Expr) and right == 0:
            return left
        if isinstance(left, dict) and isinstance(right, dict):
            return plus(left, right)
        if isinstance(left, RowVector) and isinstance(right, RowVector):
            return RowVector(plus(left.vector, right.vector))
        if isinstance(left, Outer) and isinstance(right, Outer):
            return Outer((*left.terms, *right.terms), left.identity + right.identity)
        raise NoHint

    def times(self, left: Value, right: Value) -> Value:
        if isinstance(right, sp.Expr) and not isinstance(left, sp.Expr):
            left, right = right, left
        if isinstance(left, sp.Expr):
            return _multiple(left, right)
        if isinstance(left, RowVector) and isinstance(right, dict):
            return self.inner(left.vector, right)
        if isinstance(left, dict) and isinstance(right, RowVector):
            return Outer(((left, right.vector),), sp.Integer(0))
        if isinstance(left, Outer) and isinstance(right, dict):
            total = scaled(left.identity, right)
            for one, two in left.terms:
                total = plus(total, scaled(self.inner(two, right), one))
            return total
        if isinstance(left, RowVector) and isinstance(right, Outer):
            found = self.times(Outer(tuple((b, a) for a, b in right.terms), right.identity), left.vector)
            assert isinstance(found, dict)
            return RowVector(found)
        raise NoHint

    def inner(self, left: Vector, right: Vector) -> Scalar:
        total: Scalar = sp.Integer(0)
        for one, first in left.items():
            for two, second in right.items():
                total += first * second * self._gram(one, two)
        return sp.expand(total)

    def _gram(self, one: Atom, two: Atom) -> Scalar:
        if two[0] == "random key":
            one, two = two, one
        if one[0] == "random key":
            if two[0] == "random key":
                raise NoHint
            form = sp.Symbol(f"{one[1]} {two[0]} {two[1]}", real=True)
            self.forms[form] = (one[1], two)
            return form
        if one[0] == two[0]:
            family = self.context.families[one[0]]
            if one[1] != two[1]:
                return sp.Integer(0)
            return sp.Integer(1) if family.norm is None else self.number(family.norm) ** 2
        if frozenset({one[0], two[0]}) in self.context.orthogonal_families:
            return sp.Integer(0)
        raise NoHint

    def text(self, expr: Scalar) -> str:
        """A formula as a Coq real."""
        return coq_text(sp.sympify(expr), self.texts)


def plus(left: Vector, right: Vector) -> Vector:
    """The sum of two combinations."""
    out = dict(left)
    for atom, factor in right.items():
        out[atom] = sp.simplify(out.get(atom, sp.Integer(0)) + factor)
    return {atom: factor for atom, factor in out.items() if factor != 0}


def scaled(factor: Scalar, vector: Vector) -> Vector:
    """A multiple of a combination."""
    return {atom: sp.simplify(factor * one) for atom, one in vector.items() if factor != 0}


def _multiple(factor: Scalar, value: Value) -> Value:
    if isinstance(value, sp.Expr):
        return factor * value
    if isinstance(value, dict):
        return scaled(factor, value)
    if isinstance(value, RowVector):
        return RowVector(scaled(factor, value.vector))
    return Outer(tuple((scaled(factor, a), b) for a, b in value.terms), factor * value.identity)


def coq_text(expr: Scalar, texts: dict[Scalar, str]) -> str:
    """A SymPy formula as a Coq real."""
    if expr.is_Rational:
        return rational(Fraction(int(expr.p), int(expr.q)))
    if expr.is_Symbol:
        if expr not in texts:
            raise NotExported(f"a formula with {expr}")
        return texts[expr]
    if expr.is_Add or expr.is_Mul:
        sign = " + " if expr.is_Add else " * "
        return "(" + sign.join(coq_text(one, texts) for one in expr.args) + ")"
    if expr == sp.E:
        return "(exp 1)"
    if isinstance(expr, sp.exp):
        return f"(exp {coq_text(expr.args[0], texts)})"
    if isinstance(expr, sp.log):
        return f"(ln {coq_text(expr.args[0], texts)})"
    if expr.is_Pow:
        base, power = expr.as_base_exp()
        if power.is_Integer and power > 0:
            return f"({coq_text(base, texts)} ^ {power})"
        if power.is_Integer:
            return f"(/ ({coq_text(base, texts)} ^ {-power}))"
        if power == sp.Rational(1, 2):
            return f"(sqrt {coq_text(base, texts)})"
    raise NotExported("a formula of this form")
