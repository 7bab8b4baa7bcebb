"""False variants of true claims: a negated comparison, another constant, another limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP, Claim


def flipped(claim: Claim) -> list[Claim]:
    """Variants of a true claim that are false."""
    core = claim.statement.core
    found: list[L.Core] = []
    if isinstance(core, L.Relation):
        found.append(replace(core, ops=(*core.ops[:-1], NEGATED_OP[core.ops[-1]])))
        if core.ops[-1] == "=" and _is_number(core.sides[-1]):
            found.append(replace(core, sides=(*core.sides[:-1], _plus_one(core.sides[-1]))))
    elif isinstance(core, L.Limit):
        found.append(replace(core, tends=not core.tends))
        if core.tends and _is_number(core.right):
            found.append(replace(core, right=_plus_one(core.right)))
        elif core.tends and not (isinstance(core.right, L.Num) and core.right.value == 0):
            found.append(replace(core, right=L.Op("*", L.Num(Fraction(2), core.at), core.right, core.at)))
    return [replace(claim, statement=replace(claim.statement, core=one)) for one in found]


def _is_number(expr: L.Expr) -> bool:
    return isinstance(expr, L.Num) and expr.value != 0


def _plus_one(expr: L.Expr) -> L.Expr:
    return L.Op("+", expr, L.Num(Fraction(1), expr.at), expr.at)
