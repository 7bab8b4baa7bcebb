"""Worlds of formulas about tokens: with an input that the author supposed or changed in words, and as it is given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from qkv.sheets.problems.problem import Problem
from qkv.sheets.reading.sheet import Sheet
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.changes import Change, changes_in, sentence
from qkv.sheets.statements.notation import Definition, Notation
from qkv.sheets.statements.parsed_formulas import Parsed
from qkv.sheets.statements.reading_of import Reading
from qkv.sheets.statements.worlds import World
from qkv.sheets.statements.writing import Unwritable


def told_changes(sheet: Sheet, problem: Problem) -> tuple[Change, ...]:
    """All changes of tokens that a sheet tells, in reading order."""
    found: dict[tuple[str, T.Node, bool, str], Change] = {}
    for order, formula in enumerate(sheet.formulas):
        token = asked_token(problem, formula.part)
        if not token or formula.own_text:
            continue
        for one in changes_in(sentence(formula), token):
            found.setdefault(
                (one.token, one.value, one.added, formula.part), replace(one, order=order, part=formula.part)
            )
    return tuple(found.values())


def asked_token(problem: Problem, part: str) -> str:
    """The token whose change the problem asks about in this part, or empty."""
    letter = part.split(".")[0]
    for question in problem.questions:
        if question.kind == "possibility" and question.part.split(".")[0] == letter:
            return question.holes[0]
    return ""


def changed_inputs(world: World, changes: Iterable[Change], notation: Notation) -> list[World]:
    """The world with each change of a token made."""
    found: list[World] = []
    for change in changes:
        given = next((one for one in world.let if one.split("=")[0].strip() == change.token), "")
        try:
            value = Reading(world, notation, {}).writer().write(change.value).text
        except Unwritable:
            continue
        if not given:
            continue
        whole = f"{given.partition('=')[2].strip()} + {value}" if change.added else value
        lets = tuple(f"{change.token} = {whole}" if one == given else one for one in world.let)
        if lets != world.let and (made := replace(world, let=lets)) not in found:
            found.append(made)
    return found


def other_inputs(world: World, definitions: dict[T.Symbol, Definition], notation: Notation) -> list[World]:
    """The world with a token that the author supposed to be another one."""
    for s, d in definitions.items():
        if s.base == "x" and len(s.index) == 1:
            try:
                value = Reading(world, notation, {}).writer().write(d.value).text
            except Unwritable:
                continue
            name = f"x_{s.index[0]}"
            lets = tuple(f"{name} = {value}" if one.split("=")[0].strip() == name else one for one in world.let)
            return [replace(world, let=lets)] if lets != world.let else []
    return []


def token_worlds(
    parsed: Parsed,
    world: World,
    definitions: dict[T.Symbol, Definition],
    changes: tuple[Change, ...],
    problem: Problem,
    notation: Notation,
) -> list[World]:
    """The worlds of a formula about tokens: with what the author supposed or changed, and as the problem gives it.

    What its own sentence supposes before it, or the sentence before if this one begins with "then", is all that it can
    be about.
    """
    formula = parsed.formula
    supposed = other_inputs(world, definitions, notation)
    if supposed and is_supposed_here(parsed, definitions):
        return supposed
    told = changes_in(formula.before, asked_token(problem, formula.part))
    here = changed_inputs(world, told, notation)
    if here:
        return here
    earlier = [c for c in changes if c.part == formula.part and c.order <= parsed.order + _LATER]
    return [*supposed, *changed_inputs(world, earlier, notation), world]


_LATER = 3  # formulas of its own sentence after which a change may be told: "we get $x$ after adding $u_d$ to $x_2$"
_THEN = re.compile(r"^\W*(?:then|now|in (?:that|this|which) case|则|那么|此时|这时)(?![a-z])", re.I)


def is_supposed_here(parsed: Parsed, definitions: dict[T.Symbol, Definition]) -> bool:
    """Whether another token is supposed in the words before a formula, or right before its sentence."""
    formula = parsed.formula
    others = re.findall(r"\$([^$]*)\$", formula.before)
    for s, d in definitions.items():
        if s.base != "x" or d.order >= parsed.order:
            continue
        ahead = parsed.order - d.order
        if ahead <= len(others) or (ahead == len(others) + 1 and _THEN.match(formula.before)):
            return True
    return False
