"""Conditions on numbers beside a formula: limits and ranges of the length of a key, values of scales."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import compared_keys, is_norm_of_key
from qkv.sheets.statements.circumstances import Circumstances
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.links import WRONG, Finding, Setting, decide_link
from qkv.sheets.statements.notation import Notation, written
from qkv.sheets.statements.reading_of import Reading
from qkv.sheets.statements.worlds import World
from qkv.sheets.statements.writing import Unwritable


def is_length(node: T.Node, notation: Notation) -> bool:
    """Whether a node is the random length of a key."""
    if is_norm_of_key(node):
        return T.symbols(node)[0].index[-1] == "a"
    return node == notation.length and node is not None


def limits_length(conditions: tuple[T.Condition, ...], notation: Notation) -> bool:
    """Whether a condition says that the random length of a key is above or below a number, so that it is no mean."""
    clauses = [c.clause for c in conditions if c.clause is not None]
    return any(
        (len(c.sides) == 2 and is_length(c.sides[0], notation) and c.signs[0] in ("<", ">", "<<", ">>"))
        or bool(compared_keys(c))
        for c in clauses
    )


def moves(
    world: World, conditions: tuple[T.Condition, ...], around: Circumstances, notation: Notation
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Further limits and conditions on numbers: γ ≫ 1 is a limit, γ > 1 a condition."""
    if "gamma" not in world.text:
        yield (), ()
        return
    limits: list[str] = []
    when: list[str] = []
    for condition in conditions:
        if condition.clause is not None:
            _move(condition.clause, world, notation, limits, when)
    if not limits and not when:
        if any(_is_long_key(name, notation) for name in around.large):
            when.append("gamma > 1")
        elif any(_is_long_key(name, notation) for name in around.small):
            when.append("gamma < 1")
    yield tuple(limits), tuple(when)
    if limits:
        yield (), ("gamma > 1" if any("oo" in x for x in limits) else "gamma < 1",)
    elif not when and around.some:  # in some samples: one range of lengths is enough
        yield (), ("gamma > 1",)
        yield (), ("gamma < 1",)


def _move(clause: T.Clause, world: World, notation: Notation, limits: list[str], when: list[str]) -> None:
    """One condition as a limit or as a range."""
    compared = compared_keys(clause)
    if compared:
        when.append(f"gamma {compared} 1")
        return
    if not is_length(clause.sides[0], notation):
        return
    value = T.Number("1") if is_norm_of_key(clause.sides[1]) else clause.sides[1]
    if not isinstance(value, (T.Number, T.Binary, T.Minus)) and clause.sides[1] != T.Symbol("oo"):
        return
    sign = clause.signs[0]
    if sign == ">>" or (sign == "->" and value == T.Symbol("oo")):
        limits.append("gamma -> oo")
    elif sign == "<<" and not notation.length_less_one:
        limits.append("gamma -> 0")
    else:
        try:
            text = Reading(world, notation, {}).writer().write(value).text
        except Unwritable:
            return
        less_one = notation.length_less_one and clause.sides[0] == notation.length
        text += " + 1" if less_one else ""
        text = "0" if text == "-1 + 1" else text
        when.append(f"gamma {'=' if sign in ('->', '~') else sign} {text}")


def _is_long_key(name: str, notation: Notation) -> bool:
    """Whether what is said to be large or small is the key of random length, its norm or the letter of its length."""
    if re.search(r"k_\{?a|\\lVert|\\\|", name):
        return True
    return notation.length is not None and name.strip("\\ ") in (notation.length.base, written(notation.length))


def for_no_length(
    left: T.Node, sign: str, right: T.Node, reading: Reading, setting: Setting, budget: Budget, around: Circumstances
) -> Finding | None:
    """The refutation of what is true at most at one length of the key; else None.

    Only of what is said of every sample, or of two formulas in numbers alone: a score may be meant on average.
    """
    if "gamma" not in reading.world.text or setting.when or setting.limits or around.some:
        return None
    numbers = {*reading.letters, reading.notation.length, T.Symbol("n"), T.Symbol("e")}
    inside = set(T.symbols(T.Binary("+", left, right)))
    known = all(s in numbers or s.base in ("alpha", "k", "K", "q", "g", "c", "C") for s in T.symbols(left))
    named = reading.notation.length in T.symbols(right) and known
    if not around.every and not named and not inside <= numbers:
        return None
    found = None
    for when in ("gamma > 1", "gamma < 1"):
        found = decide_link(left, sign, right, reading, replace(setting, when=(when,)), budget)
        if found.kind != WRONG:
            return None
    return found


def with_values(reading: Reading, conditions: tuple[T.Condition, ...]) -> None:
    """Put in the values that conditions give to scales and to the number of items: λ = 10, n = 4."""
    for condition in conditions:
        clause = condition.clause
        if clause is None or len(clause.sides) != 2 or not isinstance(clause.sides[0], T.Symbol):
            continue
        if clause.signs == ("->",) and clause.sides[0] in reading.letters and clause.sides[1] == T.Number("0"):
            reading.small.add(clause.sides[0])  # a scale that goes to 0
        if clause.signs != ("=",):
            continue
        head, value = clause.sides
        if not isinstance(value, T.Number):
            continue
        if head in reading.letters:
            reading.letters[head] = value.text
        elif head == T.Symbol("n"):
            given = tuple(g for g in reading.world.given if not re.match(r"n\s*>", g))
            reading.world = replace(reading.world, given=(*given, f"n = {value.text}"))
