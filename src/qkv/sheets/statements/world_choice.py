"""Which worlds a formula may speak of: its part's or a sibling part's, with noise or without."""

from __future__ import annotations

from qkv.sheets.problems.problem import Problem
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.notation import Notation
from qkv.sheets.statements.parsed_formulas import Parsed
from qkv.sheets.statements.worlds import World, worlds_of


def siblings(problem: Problem, part: str) -> list[World]:
    """The worlds of the other parts under the same letter."""
    family = [p.id for p in problem.parts if p.id.split(".")[0] == part.split(".")[0] and p.id != part]
    return [w for id in family for w in worlds_of(problem, id)]


def speaks_of_length(
    parsed: Parsed, inside: list[T.Symbol], conditions: tuple[T.Condition, ...], notation: Notation
) -> bool:
    """Whether the random length of a key matters: it is named in the formula, beside it, or earlier in its part."""
    length = notation.length
    if length is None:
        return False
    if length in inside or any(c.clause is not None and length in T.symbols(c.clause) for c in conditions):
        return True
    order, part = notation.length_at
    return part == parsed.formula.part and order < parsed.order


def speaks_of_noise(inside: list[T.Symbol], notation: Notation) -> bool:
    """Whether the noise of keys or its size is spoken of."""
    sizes = T.symbols(notation.noise) if notation.noise is not None else []
    return any(
        (s.base == notation.noise_vector and s.index) or s.base == "Sigma" or s in (T.Symbol("alpha"), *sizes)
        for s in inside
    )


def fitting_worlds(
    problem: Problem, notation: Notation, part: str, inside: list[T.Symbol], statistics: str, spoken: bool
) -> list[World]:
    """The worlds in which a formula of a part is read, by its letters and statistics."""
    found = list(worlds_of(problem, part))
    if spoken and not any("gamma" in w.text for w in found):
        found = [*(w for w in siblings(problem, part) if "gamma" in w.text or "mu_a'" in w.text), *found]
    if statistics or speaks_of_noise(inside, notation):
        mine = [w for w in found if w.kind == "noise"]
        if any(s.base == "Sigma" for s in inside) or statistics == "N":
            mine += [w for w in siblings(problem, part) if w.kind == "noise" and w not in mine]
        return mine or found
    if any(w.kind == "means" for w in found):
        return [w for w in found if w.kind == "means"]
    return found
