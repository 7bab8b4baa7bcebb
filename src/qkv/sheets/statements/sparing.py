"""Why a formula that is refuted as it was read is not called wrong: examples, later choices, unclear conditions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qkv.sheets.problems.problem import Problem
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.bindings import is_norm_of_key
from qkv.sheets.statements.changed_tokens import asked_token, changed_inputs
from qkv.sheets.statements.changes import changes_in, sentence
from qkv.sheets.statements.moves import is_length
from qkv.sheets.statements.notation import Notation, is_key, is_mean, is_query
from qkv.sheets.statements.parsed_formulas import Parsed
from qkv.sheets.statements.worlds import worlds_of


@dataclass(frozen=True)
class Refuted:
    """A clause that is refuted as it was read, with what bears on whether it is called wrong.

    Attributes:
        problem: The problem.
        notation: The letters of the sheet.
        parsed: The formula.
        clause: The clause of it.
        around: What the words around it say.
        extra: Conditions in the formula itself.
        because: How it was refuted.
    """

    problem: Problem
    notation: Notation
    parsed: Parsed
    clause: T.Clause
    around: Circumstances
    extra: tuple[T.Condition, ...]
    because: str

    @property
    def kind(self) -> str:
        """The kind of world of its part."""
        worlds = worlds_of(self.problem, self.parsed.formula.part)
        return worlds[0].kind if worlds else ""

    @property
    def conditions(self) -> tuple[T.Condition, ...]:
        """The conditions beside it and in it."""
        return (*self.around.conditions, *self.extra)


def spared(case: Refuted) -> tuple[str, str] | None:
    """Why a clause that is refuted is not called wrong: its verdict and the reason; or None."""
    not_asserted = _not_asserted(case)
    if not_asserted:
        return "choice", not_asserted
    uncertain = _uncertain_words(case) or _uncertain_letters(case)
    return ("not_read", uncertain) if uncertain else None


_WHERE = re.compile(r"\b(?:where|with)\s*$|其中\s*$", re.I)


def _not_asserted(case: Refuted) -> str:
    """Why a clause asserts nothing, or empty."""
    clause, around, notation = case.clause, case.around, case.notation
    told = clause.signs == (":",) and clause.sides[0] == notation.length  # "where $\\gamma \\sim N(1, 1)$"
    supposed = around.hypothesis and not (told and _WHERE.search(case.parsed.formula.before))
    if around.negated or supposed or around.perhaps_goal:
        return "supposed, wanted or denied, not asserted"
    if around.choice:
        return "chosen, not asserted"
    if not around.by_choice and comes_first(case.problem, notation, case.parsed, clause):
        return "a goal: what it speaks of is chosen later"
    head = clause.sides[0]
    if clause.signs == ("=",) and _gives_value(clause, notation):
        return "a letter is given a value"
    if told or not isinstance(head, T.Symbol):
        return ""
    if _names_length(clause, notation) and case.parsed.order == notation.length_at[0]:
        return "a length is named"
    if not head.index and not any(T.symbols(s) for s in clause.sides[1:]):
        return "a letter is given a value"
    scales = [s for symbols in notation.scales.values() for s in symbols]
    valued = head in scales or head in (notation.length, T.Symbol("n"))
    output = head.base in ("c", "C") and any(s.base == "v" or is_mean(s) for s in T.symbols(clause))
    return "a letter is given a value" if valued and not output else ""


def _gives_value(clause: T.Clause, notation: Notation) -> bool:
    """Whether a clause says which number an expression in the length of a key is, as 1 + w = 0.5 does."""
    inside = T.symbols(clause)
    return bool(inside) and set(inside) == {notation.length} and not T.symbols(clause.sides[1])


def _names_length(clause: T.Clause, notation: Notation) -> bool:
    """Whether a clause says what a key is made of in a letter of the author's own, as k_a = γ μ_a + σ ξ_a does."""
    head = clause.sides[0]
    return isinstance(head, T.Symbol) and is_key(head) and notation.length in T.symbols(clause)


def _uncertain_words(case: Refuted) -> str:
    """Why the words around a clause leave open what it speaks of, or empty."""
    around = case.around
    if around.changed and not understood_changes(case.problem, case.parsed, case.notation):
        return "a change told in words that was not understood"
    if around.unclear or any(not is_understood(c, case.notation, case.kind) for c in case.conditions):
        return "it stands under a condition that was not understood"
    if around.likewise or around.unreal or (around.one_head and _is_of_one_head(case)):
        return "said of another case, or of what would be"
    return ""


def _uncertain_letters(case: Refuted) -> str:
    """Why the letters of a clause leave open what it says, or empty."""
    clause, parsed = case.clause, case.parsed
    inside = T.symbols(clause)
    if re.search(r"_\{?\s*\\(?:tilde|hat|bar)|_\{\d,\s*\\(?:tilde|hat)", parsed.formula.math):
        return "an index with an accent, which may stand for another one"
    if case.because.startswith("the shapes do not fit") and _has_number_c(case):
        return "a letter c that may be the output or a number"
    if clause.doubtful:
        return "a slash leaves open what is divided by what"
    if is_example(clause, case.conditions, case.notation.scales.get(parsed.formula.part.split(".")[0], [])):
        return "numbers of an example whose values were not read"
    if is_output_statistic(case.problem, parsed, clause):
        return "a statistic of outputs, which depends on the samples that are left out"
    free = case.kind == "margin" and len(set(clause.sides)) > 1
    if free and any(is_key(s) or is_query(s) or s in (T.Symbol("n"), T.Symbol("e")) for s in inside):
        return "keys and query are not fixed in this part"
    if lacks_matrices(case.problem, case.notation, parsed, clause):
        return "a matrix that was not read"
    if grows_with_items(case.notation, parsed):
        return "a query that grows with the number of items"
    return ""


def _has_number_c(case: Refuted) -> bool:
    """Whether c is a factor of a product, and so perhaps a number and not the output."""
    factors = [f for n in T.nodes(case.clause) if isinstance(n, T.Binary) and n.sign in "*." for f in (n.left, n.right)]
    return case.kind not in ("bases", "tokens") and bool({T.Symbol("c"), T.Symbol("C")} & set(factors))


def _is_of_one_head(case: Refuted) -> bool:
    """Whether a clause names none of the two heads that the author's part has."""
    found = case.notation.in_part(case.parsed.formula.part, case.parsed.order)
    heads = any(is_query(s) and s.index for s in found)
    return heads and not any(s.base in ("q", "g", "c", "C") and s.index for s in T.symbols(case.clause))


def is_example(clause: T.Clause, conditions: tuple[T.Condition, ...], scales: list[T.Symbol]) -> bool:
    """Whether a side is a decimal number such as 0.4999, and conditions beside it do not give values to all scales."""
    last = clause.sides[-1]
    given = {c.clause.sides[0] for c in conditions if c.clause is not None and c.clause.signs == ("=",)}
    decimal = isinstance(last, T.Number) and len(last.text.partition(".")[2]) > 1
    return decimal and (not given or any(s not in given for s in scales))


def is_output_statistic(problem: Problem, parsed: Parsed, clause: T.Clause) -> bool:
    """Whether a variance or a mean of outputs or weights is spoken of where one key has a random length."""
    calls = [n for n in T.nodes(clause) if isinstance(n, T.Call) and n.name in ("Var", "Cov", "E")]
    inside = {base for call in calls for base in T.bases(call)}
    return bool(inside & {"c", "C", "alpha"}) and any(
        "gamma" in w.text for w in worlds_of(problem, parsed.formula.part)
    )


def is_understood(condition: T.Condition, notation: Notation, kind: str) -> bool:
    """Whether a condition beside a formula was taken into account or does not matter, in a world of this kind."""
    if condition.clause is None:
        return True
    left, right = condition.clause.sides[0], condition.clause.sides[-1]
    if is_norm_of_key(left) and kind == "keys" and right != T.Number("1"):
        return False  # keys have unit length there
    scales = [s for symbols in notation.scales.values() for s in symbols]
    known = (
        is_length(left, notation)
        or (left in scales and (condition.clause.signs[0] != "=" or isinstance(right, T.Number)))
        or (left.base == "alpha" if isinstance(left, T.Symbol) else False)
    )
    return known or left in (T.Symbol("n"), T.Symbol("beta"), T.Symbol("d"))


def understood_changes(problem: Problem, parsed: Parsed, notation: Notation) -> bool:
    """Whether the change that the words around a formula tell is one of a token that could be put in."""
    worlds = worlds_of(problem, parsed.formula.part)
    token = asked_token(problem, parsed.formula.part)
    if not token or not worlds or worlds[0].kind != "tokens":
        return False
    found = changes_in(f"{parsed.formula.previous}. {sentence(parsed.formula)}", token)
    return bool(changed_inputs(worlds[0], found, notation))


def lacks_matrices(problem: Problem, notation: Notation, parsed: Parsed, clause: T.Clause) -> bool:
    """Whether the part asks for matrices of which not all that a clause rests on are known."""
    part = problem.part(parsed.formula.part)
    asked = {h for q in part.questions for h in q.holes if h in ("V", "K", "Q")} if part else set()
    found = notation.in_part(parsed.formula.part, parsed.order)
    return bool((asked & _matrices_of(clause)) - {s.base for s in found})


def grows_with_items(notation: Notation, parsed: Parsed) -> bool:
    """Whether a query is a multiple of n, which may be meant as a large number."""
    found = notation.in_part(parsed.formula.part, parsed.order)
    return any(is_query(s) and T.Symbol("n") in T.symbols(d.value) for s, d in found.items())


def comes_first(problem: Problem, notation: Notation, parsed: Parsed, clause: T.Clause) -> bool:
    """Whether the construction that a clause speaks of is chosen only after it."""
    worlds = worlds_of(problem, parsed.formula.part)
    kind = worlds[0].kind if worlds else ""
    found = notation.in_part(parsed.formula.part, parsed.order)
    mine = [
        d
        for s, d in found.items()
        if (is_query(s) if kind not in ("tokens", "bases") else s.base in ("M", "V", "K", "Q"))
    ]
    if kind == "tokens":
        needed = _matrices_of(clause)
        return any(d.order >= parsed.order for d in mine if d.part == parsed.formula.part and d.symbol.base in needed)
    return bool(mine) and all(d.order >= parsed.order for d in mine)


def _matrices_of(clause: T.Clause) -> set[str]:
    """The matrices that a clause about tokens rests on: V for values, K for keys, Q for queries, all for outputs."""
    bases = {s.base for s in T.symbols(clause)}
    if bases & {"alpha", "a", "c", "C", "s", "S"} or not bases & {"v", "k", "q", "V", "K", "Q"}:
        return {"V", "K", "Q"}
    return {base.upper() for base in bases & {"v", "k", "q", "V", "K", "Q"}}
