"""Whether a clause defines or chooses something, and so asserts nothing."""

from __future__ import annotations

from qkv.sheets.statements import tree as T
from qkv.sheets.statements.circumstances import Circumstances
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.links import EXACT, LIMIT, OPEN, Finding, Setting, decide_link
from qkv.sheets.statements.notation import Notation, is_key, is_mean, is_query
from qkv.sheets.statements.reading_of import Reading
from qkv.sheets.statements.worlds import World


def choice(
    clause: T.Clause, around: Circumstances, worlds: tuple[World, ...], notation: Notation, budget: Budget
) -> Finding | None:
    """The finding for a clause that defines or chooses, or None if it asserts; `worlds` are those of its part."""
    head = clause.sides[0]
    kind = worlds[0].kind if worlds else ""
    if clause.signs[0] == "=" and isinstance(head, T.Symbol):
        if is_query(head) and kind not in ("tokens", "bases") and _is_query_value(clause):
            return Finding(OPEN, "", "a query that is not chosen" if around.negated else "chooses a query")
        if all(isinstance(s, T.Symbol) and is_query(s) for s in clause.sides):
            return Finding(OPEN, "", "supposes that queries are alike")
        if head.base == "M" and not head.index and kind == "bases" and len(clause.sides) == 2:
            return Finding(OPEN, "", "chooses a matrix")
        if head.base in ("V", "K", "Q") and not head.index and kind == "tokens" and len(clause.sides) == 2:
            return Finding(OPEN, "", "chooses a matrix")
        token = head.base == "x" and head.index and kind == "tokens" and len(clause.sides) == 2
        if token and _is_other_input(clause, worlds[0], notation, budget):
            return Finding(OPEN, "", "another input, supposed")
        if head.base in ("A", "B") and not head.index and isinstance(clause.sides[1], T.Matrix):
            return Finding(OPEN, "", "names a matrix")
    if kind == "tokens" and clause.signs[0] == "=" and T.bases(head) == {"K", "Q"}:
        return Finding(OPEN, "", "chooses a matrix")
    return None


def begins_with_matrix(clause: T.Clause, kind: str) -> bool:
    """Whether a chain begins with the choice of a matrix, in a world of this kind."""
    head = clause.sides[0]
    wanted = {"bases": ("M",), "tokens": ("V", "K", "Q")}.get(kind, ())
    chosen = isinstance(head, T.Symbol) and head.base in wanted and not head.index
    return chosen and len(clause.sides) > 2 and clause.signs[0] == "="


def _is_other_input(clause: T.Clause, world: World, notation: Notation, budget: Budget) -> bool:
    """Whether a token gets another value than the given one."""
    found = decide_link(clause.sides[0], "=", clause.sides[1], Reading(world, notation, {}), Setting(), budget)
    return found.kind not in (EXACT, LIMIT)


def _is_query_value(clause: T.Clause) -> bool:
    last = clause.sides[-1]
    others = [s for s in clause.sides if not (isinstance(s, T.Symbol) and is_query(s))]
    if any(sign != "=" for sign in clause.signs):
        return False
    inside = [s for side in others for s in T.symbols(side)]
    return (
        bool(others) and any(is_key(s) or is_mean(s) for s in inside) and not any(is_query(s) for s in T.symbols(last))
    )
