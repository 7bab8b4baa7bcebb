"""Equivalence: left iff right, decided as left under right and the contrary of left under the contrary of right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP
from qkv.claims.verdict import Verdict

_ORDER = ("malformed", "refuted", "undecided", "conditional", "holds", "proved")


def equivalence(claim: L.Claim, decide: Callable[[L.Claim], Verdict]) -> Verdict:
    """The verdict on `left iff right`: the weakest of those on its parts.

    Conditions may not be about weights, so the side without weights becomes the condition. Both sides must be single
    comparisons; a condition that is an equality is contradicted by > and by <.
    """
    core = claim.statement.core
    assert isinstance(core, L.Iff)
    left, right = core.left, core.right
    if len(left.ops) != 1 or len(right.ops) != 1:
        raise L.Malformed(core.at, "a chain of comparisons beside iff", "one comparison on each side")
    if _speaks_of_weights(right) and not _speaks_of_weights(left):
        left, right = right, left
    parts = [(left, right)]
    negated = replace(left, ops=(NEGATED_OP[left.ops[0]],))
    if right.ops == ("!=",):
        left, right = negated, replace(right, ops=("=",))
        negated = replace(left, ops=(NEGATED_OP[left.ops[0]],))
        parts = [(left, right)]
    others = ("<", ">") if right.ops == ("=",) else (NEGATED_OP[right.ops[0]],)
    parts += [(negated, replace(right, ops=(op,))) for op in others]
    found = []
    for core_part, condition in parts:
        direct = _under(claim, core_part, condition, decide)
        found.append(
            direct if direct.verdict == "proved" else _contrapositive(claim, core_part, condition, decide) or direct
        )
    worst = min(found, key=lambda v: _ORDER.index(v.verdict))
    names = ("from right to left", *("from left to right" for _ in others))
    place = names[found.index(worst)] if worst.verdict not in ("proved", "holds") else "in both directions"
    verdict = worst.verdict
    if verdict == "conditional":  # one direction holds under a further condition only, and fails for the numbers shown
        verdict = "undecided" if worst.counterexample is None else "refuted"
    steps = tuple(s for v in found for s in v.derivation) if verdict == "proved" else worst.derivation
    return Verdict(claim.id, verdict, claim.says, f"{place}: {worst.because}", steps, worst.counterexample)


def _under(claim: L.Claim, core: L.Relation, condition: L.Relation, decide: Callable[[L.Claim], Verdict]) -> Verdict:
    """The verdict on one comparison where another one holds."""
    return decide(
        replace(claim, statement=replace(claim.statement, core=core, when=(*claim.statement.when, condition)))
    )


def _contrapositive(
    claim: L.Claim, core: L.Relation, condition: L.Relation, decide: Callable[[L.Claim], Verdict]
) -> Verdict | None:
    """A proof that the condition fails where the comparison does; None if there is none, or it cannot be said."""
    if core.ops == ("=",) or _speaks_of_weights(core):
        return None
    contrary, failing = (replace(r, ops=(NEGATED_OP[r.ops[0]],)) for r in (condition, core))
    try:
        found = _under(claim, contrary, failing, decide)
    except L.Malformed:
        return None
    return found if found.verdict == "proved" else None


def _speaks_of_weights(relation: L.Relation) -> bool:
    return any(isinstance(n, L.Name) and n.base in ("alpha", "c") for n in L.nodes(relation))
