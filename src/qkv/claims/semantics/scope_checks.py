"""Scope checks: free indices, infinity outside a limit, circular definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qkv.claims.semantics.context import Context
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed


def check_scopes(context: Context) -> None:
    """Raise Malformed for a free index, a letter that is both item and index, a circular definition, a misplaced oo."""
    claim = context.claim
    running = {n.index for n in L.nodes(claim) if isinstance(n, L.Sum | L.Quantifier)}
    for part, bound, implied in _parts(context):
        for name, index in _free(part, bound):
            if index == "i" and implied:
                continue  # a statement with i is meant for every i
            if index == "i":
                raise Malformed(
                    name.at, f"{name} without saying what i runs over", "an item such as a, or a sum over i"
                )
            if index in running:
                came = f"{index}, which is an item here and an index elsewhere"
                raise Malformed(name.at, came, "two different letters")
    _misplaced_infinity(claim)
    _circular_definitions(context)


def _parts(context: Context) -> Iterator[tuple[Any, frozenset[str], bool]]:
    """Parts of a claim, the indices that are bound there, and whether i is meant for every item."""
    statement = context.claim.statement
    quantified = frozenset() if statement.quantifier is None else frozenset({statement.quantifier.index})
    yield (statement.core, statement.when), quantified, True
    for let in context.claim.lets:
        yield (let.name, let.value), frozenset(let.name.subs) & {"i"}, False
    for given in context.claim.given:
        if isinstance(given, L.Fact):
            own = given.quantifier
            yield given.relation, frozenset() if own is None else frozenset({own.index}), False
        elif isinstance(given, L.Gaussian):
            yield (given.mean, given.spread), frozenset(given.name.subs) & {"i"}, False


def _free(part: Any, bound: frozenset[str]) -> Iterator[tuple[L.Name, str]]:
    """Every index in a part that neither a sum nor a quantifier binds there."""
    if isinstance(part, tuple):
        for one in part:
            yield from _free(one, bound)
    elif isinstance(part, L.Name):
        yield from ((part, index) for index in part.subs if index not in bound)
    elif isinstance(part, L.Sum):
        yield from _free(part.inner, bound | {part.index})
    elif isinstance(part, L.Node):
        yield from (pair for name in L.parts(type(part).__name__) for pair in _free(getattr(part, name), bound))


def _misplaced_infinity(claim: L.Claim) -> None:
    """Refuse oo anywhere but behind an arrow, alone or with a minus: it is no number."""
    ends = {id(_bare(n.to)) for n in L.nodes(claim) if isinstance(n, L.Approach)}
    ends |= {id(_bare(n.right)) for n in L.nodes(claim) if isinstance(n, L.Limit)}
    for node in L.nodes(claim):
        if isinstance(node, L.Name) and node.base == "oo" and (node.subs or id(node) not in ends):
            raise Malformed(node.at, "oo where a number is needed", "oo only behind ->")


def _bare(end: L.Expr) -> L.Expr:
    return end.inner if isinstance(end, L.Neg) else end


def _circular_definitions(context: Context) -> None:
    """Refuse circular definitions, by depth-first search; weights and outputs use queries, keys and values."""
    done: set[str] = set()
    for let in context.claim.lets:
        path: list[str] = []
        todo: list[tuple[L.Name | None, bool]] = [(let.name, True)]
        while todo:
            name, entering = todo.pop()
            if name is None or not entering:
                done.add(path.pop())
                continue
            plain = str(name)
            if plain in path:
                raise Malformed(let.at, f"a definition of {name} that rests on itself", "one that rests on other names")
            if plain in done:
                continue
            path.append(plain)
            todo.append((name, False))
            todo += [(under, True) for under in _used_by(context, name)]


def _used_by(context: Context, name: L.Name) -> list[L.Name]:
    """The names that a name is defined by."""
    value = context.definition(name)
    if value is not None:
        return [n for n in L.nodes(value) if isinstance(n, L.Name)]
    if name.base not in ("alpha", "c") or str(name) in context.numbers:
        return []
    parts = ("q", "k", "x", "Q", "K") if name.base == "alpha" else ("q", "k", "x", "Q", "K", "v", "V")
    return [let.name for let in context.claim.lets if let.name.base in parts]
