"""Where an index runs, where infinity stands, what a definition rests on; or the claim is malformed, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed

if TYPE_CHECKING:
    from qkv.claims.semantics.context import Context


def check_scopes(world: Context) -> None:
    """No index is free where nothing says what it runs over, no name is both an item and an index, no definition
    rests on itself, and infinity is only where a limit goes."""
    claim = world.claim
    running = {n.index for n in L.nodes(claim) if isinstance(n, L.Sum | L.Quantifier)}
    for part, bound, implied in _parts(world):
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
    _infinities(claim)
    _circles(world)


def _parts(world: Context) -> Iterator[tuple[Any, frozenset[str], bool]]:
    """Parts of a claim, the indices that are bound there, and whether i is meant for every item."""
    statement = world.claim.statement
    stands = frozenset() if statement.quantifier is None else frozenset({statement.quantifier.index})
    yield (statement.core, statement.when), stands, True
    for let in world.claim.lets:
        yield (let.name, let.value), frozenset(let.name.subs) & {"i"}, False
    for given in world.claim.given:
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


def _infinities(claim: L.Claim) -> None:
    """oo is no number: it may stand behind an arrow, alone or with a minus, and nowhere else."""
    ends = {id(_bare(n.to)) for n in L.nodes(claim) if isinstance(n, L.Approach)}
    ends |= {id(_bare(n.right)) for n in L.nodes(claim) if isinstance(n, L.Limit)}
    for node in L.nodes(claim):
        if isinstance(node, L.Name) and node.base == "oo" and (node.subs or id(node) not in ends):
            raise Malformed(node.at, "oo where a number is needed", "oo only behind ->")


def _bare(end: L.Expr) -> L.Expr:
    return end.inner if isinstance(end, L.Neg) else end


def _circles(world: Context) -> None:
    """Follow every definition to what it rests on; weights and outputs rest on queries, keys and values."""
    done: set[str] = set()
    for let in world.claim.lets:
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
            todo += [(under, True) for under in _under(world, name)]


def _under(world: Context, name: L.Name) -> list[L.Name]:
    value = world.let(name)
    if value is not None:
        return [n for n in L.nodes(value) if isinstance(n, L.Name)]
    if name.base not in ("alpha", "c") or str(name) in world.numbers:
        return []
    made = ("q", "k", "x", "Q", "K") if name.base == "alpha" else ("q", "k", "x", "Q", "K", "v", "V")
    return [let.name for let in world.claim.lets if let.name.base in made]
