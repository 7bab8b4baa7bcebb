"""Why a formula that is refuted as it was read is not called wrong: examples, later choices, unclear conditions."""

from __future__ import annotations

from qkv.sheets.problems.problem import Problem
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.changed_tokens import asked_token, changed_inputs
from qkv.sheets.statements.changes import changes_in, sentence
from qkv.sheets.statements.moves import is_length
from qkv.sheets.statements.notation import Notation, is_query
from qkv.sheets.statements.parsed_formulas import Parsed
from qkv.sheets.statements.worlds import worlds_of


def is_example(clause: T.Clause, conditions: tuple[T.Condition, ...], scales: list[T.Symbol]) -> bool:
    """Whether a side is a decimal number such as 0.4999, of values that conditions beside it do not give for all scales."""
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


def is_understood(condition: T.Condition, notation: Notation) -> bool:
    """Whether a condition beside a formula was taken into account or does not matter."""
    if condition.clause is None:
        return True
    left, right = condition.clause.sides[0], condition.clause.sides[-1]
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
