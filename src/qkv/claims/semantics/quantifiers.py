"""Quantified statements: one case for every named item that the index allows, and one for an unnamed item."""

from __future__ import annotations

from dataclasses import dataclass, replace

from qkv.claims.semantics.context import Context, bases_indexed_by, names_used
from qkv.claims.semantics.declarations import build_context
from qkv.claims.syntax import nodes as L


@dataclass(frozen=True)
class QuantifierCase:
    """The claim for one value of its index: `label` is such as "i = a", and "" without a quantifier."""

    label: str
    context: Context

    @property
    def core(self) -> L.Core:
        """What is claimed in this case."""
        return self.context.claim.statement.core


def instances(context: Context) -> list[QuantifierCase]:
    """One case for each value of the index of a claim: every named item that it allows, and an item without a name."""
    statement = context.claim.statement
    quantifier = kept = statement.quantifier
    if quantifier is not None and quantifier.index == "i":
        kept = None
    elif "i" in _free_indices(statement.core, context.claim):  # before the quantified index, which may depend on it
        quantifier = L.Quantifier("i", (), statement.at)
    else:
        kept = None
    if quantifier is None:
        return [QuantifierCase("", context)]
    values, unnamed = _index_values(context, quantifier)
    out = []
    for item in values:
        core, when, inner = L.renamed((statement.core, statement.when, kept), quantifier.index, item)
        label = f"{quantifier.index} another item" if item == unnamed else f"{quantifier.index} = {item}"
        claim = replace(context.claim, statement=replace(statement, core=core, when=when, quantifier=inner))
        one = build_context(claim)
        nested = instances(one) if inner else [QuantifierCase("", one)]
        out += [QuantifierCase(f"{label}, {more.label}" if more.label else label, more.context) for more in nested]
    return out


def _index_values(context: Context, quantifier: L.Quantifier) -> tuple[list[str], str]:
    """The items that an index takes in turn, and the name among them that stands for an unnamed item."""
    claim = context.claim
    values = [item for item in context.items if item not in quantifier.but]
    columns = bases_indexed_by(context, quantifier.index, claim.statement.core)
    if columns:  # columns of A and B are no items, and a column may be each of those that are named
        bases = {name.lower() for name in context.bases}
        parts = (*claim.lets, claim.statement)
        named = {s for n in names_used(context, *parts) if n.base in bases for s in n.subs}
        bound = {n.index for p in parts for n in L.nodes(p) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
        values += sorted(named - {*values, *quantifier.but, *bound})
    unnamed = "other"
    while unnamed in {*context.items, *values}:
        unnamed += "s"
    most = context.numbers["n"].hi if "n" in context.numbers else None
    if columns or (not context.all_items_named and (most is None or most > len(context.items))):
        values.append(unnamed)
    return values, unnamed


def _free_indices(core: L.Node, claim: L.Claim) -> set[str]:
    """The indices in a statement that no sum binds, except those of names defined or declared with their index."""
    defined = {str(let.name) for let in claim.lets}
    declared = {g.name for g in claim.given if isinstance(g, L.Gaussian)}
    bound = {n.index for n in L.nodes(core) if isinstance(n, L.Sum)}
    found: set[str] = set()
    for node in L.nodes(core):
        if isinstance(node, L.Name) and str(node) not in defined and node not in declared:
            found |= {s for s in node.subs if s not in bound}
    return found
