"""What the letters of indices stand for: one item, every item, or all but some."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from qkv.sheets.problems.problem import Problem
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.notation import Definition, is_query
from qkv.sheets.statements.parsed_formulas import Parsed
from qkv.sheets.statements.worlds import World, worlds_of

INDICES = "ijkl"


def indices(
    both: T.Node, conditions: tuple[T.Condition, ...], definitions: dict[T.Symbol, Definition], world: World
) -> Iterator[tuple[dict[str, str], str]]:
    """What the letters of indices stand for: replaced letters, and the condition of the statement."""
    inside = T.symbols(both)
    free = list(dict.fromkeys(_free(both, frozenset())))
    own = [c for s in inside for c in _inner_condition(s)]
    given = [*own, *(c for c in conditions if c.kind in ("index", "all") and c.index in free)]
    item = re.search(r"k_(\w)'q - k_i'q >= m", world.text)
    if not free:
        yield {}, ""
        return
    letter = free[0]
    mine = [c for c in given if c.index == letter] or list(given)
    if world.kind == "margin" and item:
        yield from _margin(free, mine, item[1])
        return
    if mine and mine[0].kind == "index":
        first = mine[0]
        others = [m for m in first.members if m != first.index]
        if (
            not first.inside
            and others
            and all(m in INDICES and m not in free for m in others)
            and world.kind != "bases"
        ):
            others = []
        if first.inside:
            for member in others:
                yield {first.index: member}, ""
            return
        if others:
            yield {}, f" for {first.index} != {', '.join(others)}"
            return
    if mine and mine[0].kind == "all" and world.kind != "tokens":
        yield {}, f" for all {mine[0].index}"
        yield from _unnamed(letter, definitions, world)
        return
    if world.kind == "tokens":
        yield {}, "" if letter == "i" else f" for all {letter}"
        return
    if world.kind == "bases":
        yield {}, f" for {free[0]} != {free[1]}" if len(free) > 1 and _one_family(inside) else ""
        return
    if len(free) > 1:
        yield {}, f" for {free[0]} != {free[1]}"
        return
    yield from _unnamed(letter, definitions, world)
    yield {}, f" for all {letter}"


def _one_family(inside: list[T.Symbol]) -> bool:
    return len({s.base for s in inside if s.index and s.index[-1] in INDICES}) == 1


def _unnamed(
    letter: str, definitions: dict[T.Symbol, Definition], world: World
) -> Iterator[tuple[dict[str, str], str]]:
    """The items that the author's queries do not name."""
    named = sorted(
        {
            i
            for d in definitions.values()
            if is_query(d.symbol)
            for s in T.symbols(d.value)
            for i in s.index
            if len(i) == 1 and i.isalpha() and i not in INDICES
        }
    )
    named = named or (["a"] if "gamma" in world.text else [])
    if named:
        yield {}, f" for {letter} != {', '.join(named)}"


def _margin(free: list[str], mine: list[T.Condition], item: str) -> Iterator[tuple[dict[str, str], str]]:
    """Which letter is the item whose score is largest."""
    if len(free) == 1:
        letter = free[0]
        if letter == item:
            yield {}, ""
        else:
            yield {}, f" for {letter} != {item}"
            yield {letter: item}, ""
        return
    first, second = free[:2]
    yield {first: item, second: "i"}, f" for i != {item}"
    if first != item:
        yield {first: "i", second: item}, f" for i != {item}"


def _inner_condition(s: T.Symbol) -> list[T.Condition]:
    """k_{i ≠ a,b}: the condition inside an index."""
    if "!=" not in s.index:
        return []
    place = s.index.index("!=")
    return [T.Condition("index", s.index[place - 1], tuple(i for i in s.index[place + 1 :] if i != "!="))]


def _free(node: T.Node, bound: frozenset[str]) -> Iterator[str]:
    """The letters of indices that no sum binds."""
    if isinstance(node, T.Symbol):
        cut = node.index.index("!=") if "!=" in node.index else len(node.index)
        yield from (i for i in node.index[:cut] if len(i) == 1 and i in INDICES and i not in bound)
    elif isinstance(node, T.Total):
        yield from _free(node.inner, bound | {node.index})
        yield from (b for b in node.but if b in INDICES and b not in bound)
    else:
        for below in T.below(node):
            yield from _free(below, bound)


def rest(named: list[T.Condition]) -> tuple[T.Condition, ...]:
    """What cases leave over: outside of all that they name, or inside of the one that they exclude."""
    inside = [c for c in named if c.kind == "index" and c.inside]
    if inside:
        members = tuple(m for c in inside for m in c.members)
        return (replace(inside[0], members=members, inside=False),)
    return tuple(replace(c, inside=True) for c in named if c.kind == "index")


def entries(left: T.Symbol, right: T.Matrix) -> list[tuple[T.Node, T.Node]]:
    """α_1 ≈ [0, 0, 1] entry by entry."""
    cells = [c for row in right.rows for c in row]
    if left.base != "alpha" or len(left.index) != 1 or not left.index[0].isdigit() or not 2 <= len(cells) <= 6:
        return []
    return [(T.Symbol("alpha", (left.index[0], str(place))), cell) for place, cell in enumerate(cells, 1)]


MAX_ENTRIES = 6


def by_entries(left: T.Node, right: T.Node) -> list[tuple[T.Node, T.Node]]:
    """(k_1, k_2)·q = (x, y) entry by entry: both sides hold lists of one length; empty for anything else."""
    lists = [[n for n in T.nodes(side) if isinstance(n, T.Matrix)] for side in (left, right)]
    sizes = {len(n.rows[0]) for both in lists for n in both if len(n.rows) == 1 and n.rows}
    every = all(len(n.rows) == 1 for both in lists for n in both)
    if not (lists[0] and lists[1] and every and len(sizes) == 1 and 2 <= max(sizes) <= MAX_ENTRIES):
        return []
    if any(isinstance(n, (T.Call, T.Dots)) for side in (left, right) for n in T.nodes(side)):
        return []
    return [(_entry(left, place), _entry(right, place)) for place in range(max(sizes))]


def _entry(node: T.Node, place: int) -> T.Node:
    """A node with one entry in the place of each list."""
    if isinstance(node, T.Matrix):
        return node.rows[0][place]
    if isinstance(node, T.Binary):
        return T.Binary(node.sign, _entry(node.left, place), _entry(node.right, place))
    if isinstance(node, T.Transposed):
        return T.Transposed(_entry(node.inner, place))
    if isinstance(node, T.Minus):
        return T.Minus(_entry(node.inner, place))
    return node


def in_subpart(parsed: Parsed, problem: Problem) -> Parsed:
    """The formula under the subpart whose givens speak of its letters, where the sheet labels none."""
    part = problem.part(parsed.formula.part)
    if part is None or part.given:
        return parsed
    kinds = {worlds_of(problem, p.id)[0].kind: p.id for p in problem.parts if p.id.startswith(f"{part.id}.")}
    letters = {base for clause in parsed.clauses for base in T.bases(clause)}
    kind = "bases" if letters & {"M", "A", "B", "s"} or not letters & {"q", "k", "K", "g", "alpha"} else "keys"
    return replace(parsed, formula=replace(parsed.formula, part=kinds[kind])) if kind in kinds else parsed
