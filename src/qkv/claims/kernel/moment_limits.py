"""Proof scripts of limits of means and variances of scores: the difference is a multiple of the size of the noise."""

from __future__ import annotations

import sympy as sp

from qkv.claims.kernel.relation_proofs import RelationProof
from qkv.claims.kernel.score_hints import Hints, NoHint
from qkv.claims.kernel.statement import Statement
from qkv.claims.kernel.terms import NotExported
from qkv.claims.kernel.translation import LimitTerms, Translator
from qkv.claims.semantics.context import Context
from qkv.claims.syntax import nodes as L


def moment_limit(context: Context, statement: Statement, core: L.Limit) -> str:
    """The script of `Var[...] -> ... as eps -> 0`."""
    if len(statement.approaches) != 1 or statement.approaches[0][1] != "above_zero" or not core.tends:
        raise NotExported("a limit of a statistic of this form")
    name = statement.approaches[0][0]
    hints = Hints(context, Translator(context, (name,), LimitTerms()))
    try:
        difference = hints.number(core.left) - hints.number(core.right)
        size = hints.number(L.Name.parsed(name, core.at))
    except NoHint:
        raise NotExported("a statistic that has no formula") from None
    factor = sp.expand(difference / size)
    if factor.has(size):
        raise NotExported("a statistic that is no multiple of the noise")
    word = hints.text(size)
    proof = RelationProof(context, statement, core)
    proof.moments()
    lines = [
        "cbv zeta beta; intros; cbv beta.",
        f"apply (tends_linear _ _ {hints.text(factor)}).",
        f"intros {word} Near. at_scale {word}.",
        *proof.lines,
        "expand. number.",
    ]
    return "\n".join("  " + line for line in lines)
