"""Name resolution: every name in a claim is declared, defined or built in."""

from __future__ import annotations

from qkv.claims.semantics.context import Context, bases_indexed_by
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed


def check_names(context: Context) -> None:
    """Raise Malformed for the first name that is neither declared, defined nor built in."""
    claim = context.claim
    spread = tuple(g.mean for g in claim.given if isinstance(g, L.Gaussian))
    bound = {n.index for n in L.nodes(claim) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
    for node in L.nodes((claim.lets, claim.statement, spread, tuple(context.score_conditions))):
        if isinstance(node, L.Name):
            _check_name(context, node, bound)
        elif isinstance(node, L.Sum):
            _check_sum(context, node)


def _check_sum(context: Context, node: L.Sum) -> None:
    """A sum runs over the n items, or over the m columns of A, or over the p columns of B."""
    columns = bases_indexed_by(context, node.index, node.inner)
    wanted = {context.bases[name] for name in columns} or {"n"}
    if node.upto and wanted != {node.upto}:
        raise Malformed(node.at, f"a sum up to {node.upto}", " or ".join(sorted(wanted)))


def _check_name(context: Context, name: L.Name, bound: set[str]) -> None:
    """Accept a name for the first reason that applies: its definition, declaration, or meaning in attention."""
    plain, base = str(name), name.base
    if len(name.subs) > 2 or (len(name.subs) == 2 and base != "alpha"):
        raise Malformed(name.at, f"{name} with {len(name.subs)} indices", "one index, or alpha_{head,item}")
    if plain in context.lets or f"{base}_i" in context.lets or plain in context.numbers or plain in context.vectors:
        return
    if plain in context.bases or plain in ("I", "oo"):
        return
    never = context.claim.statement.core
    if isinstance(never, L.Never) and never.kind == "query" and plain == str(never.name):
        return
    if (
        context.tokens
        and base in ("q", "k", "v", "c", "x")
        and (name.subs and name.subs[0] in {*context.tokens, *bound})
    ):
        return
    if context.tokens and base in ("Q", "K", "V") and not name.subs:
        return
    if base == "alpha" or (base == "c" and not any(s not in {*context.heads(), *bound} for s in name.subs)):
        if not context.heads():
            raise Malformed(name.at, f"{name} without a query", "a line such as: let q = t*(k_a + k_b)")
        if not (context.tokens or context.noise or "k" in context.families or "k" in context.template_names):
            raise Malformed(name.at, f"{name} without keys", "keys such as: given k_1..k_n orthonormal")
        if base == "alpha" and len(name.subs) == 2 and name.subs[0] not in {*context.heads(), *bound}:
            raise Malformed(name.at, f"{name} without a query q_{name.subs[0]}", "a query with that index")
        of_item = base == "alpha" and (len(name.subs) == 2 or (name.subs and context.heads() == ("",)))
        if of_item and context.all_items_named and name.subs[-1] not in {*context.items, *bound}:
            raise Malformed(name.at, f"{name}, whose item is not there", f"one of {', '.join(context.items)}")
        if base == "alpha" and len(name.subs) == 1 and context.heads() != ("",) and name.subs[0] not in context.heads():
            raise Malformed(name.at, f"{name} with several queries", f"alpha_{{1,{name.subs[0]}}}")
        return
    if base in context.families or (base == "k" and context.noise) or (base == "v" and not context.tokens):
        family = context.families.get(base)
        if len(name.subs) != 1:
            raise Malformed(name.at, f"{name} without an index", f"{base}_a")
        if family is not None and family.items is not None and name.subs[0] not in {*family.items, *bound}:
            raise Malformed(
                name.at, f"{name}, which is not in the family", ", ".join(f"{base}_{i}" for i in family.items)
            )
        return
    raise Malformed(name.at, f"{name}, which is neither declared nor built in", _declaration(name))


def _declaration(name: L.Name) -> str:
    """A line that would declare a name, by what such names usually stand for."""
    if name.base == "q":
        return f"a line such as: let {name} = t*k_a, or: given {name} free"
    if name.base.isupper():
        return f"a line such as: let {name} = 2*I"
    if name.subs:
        return f"a line such as: given {name.base}_1..{name.base}_n free, or: given {name} real"
    return f"a line such as: given {name} real, or: given {name} free for a vector"
