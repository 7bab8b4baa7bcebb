"""Nodes of a formula as an author wrote it, before letters get their roles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Node:
    """Any node."""


@dataclass(frozen=True)
class Number(Node):
    """A number as it is written, such as "0.5"."""

    text: str


@dataclass(frozen=True)
class Symbol(Node):
    """A letter with its index: base "k", index ("a",); accents and wrappers are dropped, a prime stays in the base."""

    base: str
    index: tuple[str, ...] = ()


@dataclass(frozen=True)
class Binary(Node):
    """left sign right, with sign one of + - * / ^ and "." for a dot between two factors."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Minus(Node):
    """-inner."""

    inner: Node


@dataclass(frozen=True)
class Transposed(Node):
    """inner^T."""

    inner: Node


@dataclass(frozen=True)
class Call(Node):
    """name(arguments): exp, log, sqrt, norm, abs, softmax, Var, Cov, E, P, N, max, min."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Total(Node):
    """A sum over an index: `but` are left out, `last` is where it ends."""

    index: str
    but: tuple[str, ...]
    last: str
    inner: Node


@dataclass(frozen=True)
class Matrix(Node):
    """Rows of cells; a list in square brackets is one row."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Piece(Node):
    """One case: its value and its condition as tokens joined to text."""

    value: Node
    condition: tuple[Condition, ...]


@dataclass(frozen=True)
class Cases(Node):
    """Values by cases."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Dots(Node):
    """An ellipsis."""


@dataclass(frozen=True)
class Missing(Node):
    """A side that is not written, as in "≈ 0"."""


@dataclass(frozen=True)
class Condition(Node):
    """A condition beside a formula.

    Attributes:
        kind: "index", of one index: `index` lies in `members` if `inside`, else outside of them; "all": every index;
            "relation": `clause` holds.
        index: The index.
        members: The items.
        inside: Whether the index is one of the members.
        clause: A relation between numbers.
    """

    kind: str
    index: str = ""
    members: tuple[str, ...] = ()
    inside: bool = False
    clause: Clause | None = None


@dataclass(frozen=True)
class Clause(Node):
    """A chain of sides and relations with the conditions beside it.

    Attributes:
        sides: At least two.
        signs: One fewer: = ~ (approximately) -> >> << < > <= >= != : (is distributed as) perp in.
        conditions: What is said beside it.
        lead: "implied" for what follows from the clause before, or empty.
        doubtful: Whether a slash leaves open what is divided by what.
    """

    sides: tuple[Node, ...]
    signs: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    lead: str = ""
    doubtful: bool = False


def below(node: Node) -> Iterator[Node]:
    """The nodes directly below a node."""
    for field in fields(node):
        value = getattr(node, field.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Node):
                yield inner
            elif isinstance(inner, tuple):
                yield from (cell for cell in inner if isinstance(cell, Node))


def nodes(node: Node) -> Iterator[Node]:
    """The node and every node below it."""
    yield node
    for inner in below(node):
        yield from nodes(inner)


def symbols(node: Node) -> list[Symbol]:
    """The symbols of a node in order, each once."""
    return list(dict.fromkeys(n for n in nodes(node) if isinstance(n, Symbol)))


def bases(node: Node) -> set[str]:
    """The letters of a node without their indices."""
    return {s.base for s in symbols(node)}


def with_base(node: Any, old: str, new: str) -> Any:
    """A node with one letter put for another."""
    if isinstance(node, Symbol):
        return replace(node, base=new) if node.base == old else node
    if isinstance(node, tuple):
        return tuple(with_base(one, old, new) for one in node)
    if isinstance(node, Node):
        return replace(node, **{f.name: with_base(getattr(node, f.name), old, new) for f in fields(node)})
    return node


def with_index(node: Any, old: str, new: str) -> Any:
    """A node with one index put for another."""
    if isinstance(node, Symbol):
        return replace(node, index=tuple(new if i == old else i for i in node.index))
    if isinstance(node, tuple):
        return tuple(with_index(one, old, new) for one in node)
    if isinstance(node, Node):
        return replace(node, **{f.name: with_index(getattr(node, f.name), old, new) for f in fields(node)})
    return node
