"""Syntax tree of a claim: frozen expressions, declarations and statements with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

from qkv.errors import QkvError

At = tuple[int, int]
"""Line and column in the document, both from 1."""


class Malformed(QkvError):
    """A claim that cannot be read: the position, what is there, and what was expected."""

    def __init__(self, at: At, came: str, expected: str) -> None:
        super().__init__(f"line {at[0]}, column {at[1]}", came, f"Expected {expected}")
        self.at = at
        self.expected = expected


MIRRORED_OP = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""The comparison that holds with the sides exchanged: x < y is y > x."""

NEGATED_OP = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}
"""The comparison that holds exactly when the other does not."""


@dataclass(frozen=True)
class Node:
    """A part of a claim."""


@dataclass(frozen=True)
class Num(Node):
    value: Fraction
    at: At


@dataclass(frozen=True)
class Name(Node):
    """A name with its indices: `t` is ("t", ()), `k_a` is ("k", ("a",)), `alpha_{2,1}` is ("alpha", ("2", "1"))."""

    base: str
    subs: tuple[str, ...]
    at: At

    @classmethod
    def parsed(cls, text: str, at: At) -> Name:
        """The name that `str` writes as `text`."""
        base, _, subs = text.partition("_")
        return cls(base, tuple(subs.strip("{}").split(",")) if subs else (), at)

    def __str__(self) -> str:
        if not self.subs:
            return self.base
        return f"{self.base}_{self.subs[0]}" if len(self.subs) == 1 else f"{self.base}_{{{','.join(self.subs)}}}"


@dataclass(frozen=True)
class Op(Node):
    """A binary operation: + - * / ^."""

    sign: str
    left: Expr
    right: Expr
    at: At


@dataclass(frozen=True)
class Neg(Node):
    inner: Expr
    at: At


@dataclass(frozen=True)
class Transpose(Node):
    inner: Expr
    at: At


@dataclass(frozen=True)
class Call(Node):
    """exp, log, sqrt, norm, Phi or R of an expression."""

    function: str
    inner: Expr
    at: At


@dataclass(frozen=True)
class Sum(Node):
    """The sum of a term over every item, or over every item but some; `upto` is its upper end, if it was written."""

    index: str
    but: tuple[str, ...]
    inner: Expr
    at: At
    upto: str = ""


@dataclass(frozen=True)
class Stat(Node):
    """Var, Cov, Corr or E of one or two expressions."""

    function: str
    inner: tuple[Expr, ...]
    at: At


@dataclass(frozen=True)
class Chance(Node):
    """The probability that a relation holds."""

    event: Relation
    at: At


@dataclass(frozen=True)
class Apply(Node):
    """A function of the wider language, such as softmax, trace, max or sin, of one or more expressions.

    A product entry by entry is "odot", and an outer product "otimes".
    """

    function: str
    args: tuple[Expr, ...]
    at: At


@dataclass(frozen=True)
class Cases(Node):
    """An expression defined by cases: the first whose relation holds; None stands for "otherwise"."""

    pieces: tuple[tuple[Expr, Relation | None], ...]
    at: At


Expr = Num | Name | Op | Neg | Transpose | Call | Sum | Stat | Chance | Apply | Cases


@dataclass(frozen=True)
class Relation(Node):
    """A chain such as a = b < c; ops are = != < <= > >=."""

    sides: tuple[Expr, ...]
    ops: tuple[str, ...]
    at: At

    def pairs(self) -> Iterator[tuple[Expr, str, Expr]]:
        yield from zip(self.sides, self.ops, self.sides[1:], strict=False)


@dataclass(frozen=True)
class Quantifier(Node):
    """For every item, or for every item but some."""

    index: str
    but: tuple[str, ...]
    at: At


@dataclass(frozen=True)
class Approach(Node):
    """A limit of a number: t -> oo."""

    name: str
    to: Expr
    at: At


@dataclass(frozen=True)
class Limit(Node):
    """A limit statement: left tends (or does not tend) to right as limits of numbers are taken, one after the other."""

    left: Expr
    right: Expr
    approach: tuple[Approach, ...]
    tends: bool
    at: At


@dataclass(frozen=True)
class Distribution(Node):
    """The weights of a query are a probability distribution."""

    name: Name
    at: At


@dataclass(frozen=True)
class Never(Node):
    """No real number, or no query, makes a limit or relation true."""

    kind: str
    name: Name
    inner: Limit | Relation
    at: At


@dataclass(frozen=True)
class Within(Node):
    """An output lies within a distance of a target with some probability."""

    left: Expr
    radius: Expr
    target: Expr
    op: str
    probability: Expr
    approach: tuple[Approach, ...]
    at: At


@dataclass(frozen=True)
class Equivariant(Node):
    """Permuting the inputs permutes the outputs in the same way."""

    name: Name
    at: At


@dataclass(frozen=True)
class Iff(Node):
    """Two relations of which one holds exactly when the other does."""

    left: Relation
    right: Relation
    at: At


@dataclass(frozen=True)
class Exists(Node):
    """Some values of the named things, and some sizes, make a relation true."""

    names: tuple[Name, ...]
    inner: Relation
    at: At


@dataclass(frozen=True)
class Growth(Node):
    """left = O(right) as a number grows: left is at most a constant times right, in absolute value."""

    left: Expr
    right: Expr
    approach: tuple[Approach, ...]
    at: At


Core = Relation | Limit | Distribution | Never | Within | Equivariant | Iff | Exists | Growth


@dataclass(frozen=True)
class Statement(Node):
    """What a claim says, for which items and under which conditions."""

    core: Core
    quantifier: Quantifier | None
    when: tuple[Relation, ...]
    text: str
    at: At


@dataclass(frozen=True)
class Family(Node):
    """Vectors or matrices of a kind: orthonormal, orthogonal, free, basis, real, R^m, R^p."""

    names: tuple[Name, ...]
    upto: tuple[Name | None, ...]
    kind: str
    norm: Expr | None
    at: At


@dataclass(frozen=True)
class Gaussian(Node):
    """A random key or number with a mean and a covariance."""

    name: Name
    mean: Expr
    spread: Expr
    at: At


@dataclass(frozen=True)
class Fact(Node):
    """A range or a condition that is given."""

    relation: Relation
    quantifier: Quantifier | None
    at: At


@dataclass(frozen=True)
class Space(Node):
    """Vectors and matrices of given sizes; `kind` is "", simplex, permutation, orthogonal, symmetric or invertible."""

    names: tuple[Name, ...]
    rows: str
    cols: str
    kind: str
    at: At


@dataclass(frozen=True)
class Mask(Node):
    """Scores that are left out of the softmax: of later tokens (kind "causal"), or of some items (kind "items")."""

    kind: str
    items: tuple[str, ...]
    at: At


Given = Family | Gaussian | Fact | Approach | Space | Mask


@dataclass(frozen=True)
class Let(Node):
    name: Name
    value: Expr
    at: At


@dataclass(frozen=True)
class FunctionLet(Node):
    """A definition H(X) = ...; the parser puts it in where the function is used."""

    name: str
    parameters: tuple[Name, ...]
    value: Expr
    at: At


@dataclass(frozen=True)
class Claim:
    """One statement with the declarations and definitions of its block."""

    id: str
    given: tuple[Given, ...]
    lets: tuple[Let, ...]
    statement: Statement
    source: str
    at: At
    says: str = ""  # the statement as it was written
    moving: tuple[str, ...] = ()  # numbers of which some statement of the same block takes a limit


def constant(expr: Expr | None) -> Fraction | None:
    """The value of an expression that is made of numbers and + - * / only; None for any other."""
    if isinstance(expr, Num):
        return expr.value
    if isinstance(expr, Neg):
        inner = constant(expr.inner)
        return None if inner is None else -inner
    if isinstance(expr, Op) and expr.sign in "+-*/":
        left, right = constant(expr.left), constant(expr.right)
        if left is None or right is None or (expr.sign == "/" and right == 0):
            return None
        if expr.sign == "/":
            return left / right
        return {"+": left + right, "-": left - right, "*": left * right}[expr.sign]
    return None


Part = TypeVar("Part")


@cache
def parts(kind: str) -> tuple[str, ...]:
    """The fields of a kind of node that can hold other nodes."""
    return tuple(
        f.name
        for f in fields(globals()[kind])
        if f.name not in ("at", "text", "source", "id", "says", "moving", "upto", "rows", "cols")
    )


def nodes(part: Any) -> Iterator[Node]:
    """Every node in a claim, an expression or a tuple of them."""
    todo = [part]
    while todo:
        here = todo.pop()
        if isinstance(here, Node):
            yield here
            todo += [getattr(here, name) for name in reversed(parts(type(here).__name__))]
        elif isinstance(here, tuple):
            todo += reversed(here)
        elif isinstance(here, Claim):
            todo += [getattr(here, name) for name in reversed(parts("Claim"))]


def renamed(part: Part, index: str, item: str) -> Part:
    """The part with one index replaced by another, except where a sum binds it."""
    if isinstance(part, tuple):
        return tuple(renamed(one, index, item) for one in part)  # type: ignore[return-value]
    if isinstance(part, Name):
        return replace(part, subs=tuple(item if s == index else s for s in part.subs)) if index in part.subs else part
    if isinstance(part, Sum | Quantifier):
        but = tuple(item if s == index else s for s in part.but)
        if part.index == index:
            return part
        if isinstance(part, Quantifier):
            return replace(part, but=but)
        return replace(part, but=but, inner=renamed(part.inner, index, item))
    if isinstance(part, Node):
        old = {name: getattr(part, name) for name in parts(type(part).__name__)}
        new = {name: renamed(value, index, item) for name, value in old.items()}
        return replace(part, **new) if any(new[name] is not old[name] for name in new) else part
    return part
