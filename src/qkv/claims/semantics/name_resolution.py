"""Every name in a claim is declared, defined or built in; or the claim is malformed, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed

if TYPE_CHECKING:
    from qkv.claims.semantics.context import Context


def check_names(world: Context) -> None:
    """Every name is declared, defined or built in."""
    claim = world.claim
    spread = tuple(g.mean for g in claim.given if isinstance(g, L.Gaussian))
    bound = {n.index for n in L.nodes(claim) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
    for node in L.nodes((claim.lets, claim.statement, spread, tuple(world.scores))):
        if isinstance(node, L.Name):
            _check_name(world, node, bound)
        elif isinstance(node, L.Sum):
            _check_sum(world, node)


def _check_sum(world: Context, node: L.Sum) -> None:
    """A sum runs over the n items, or over the m columns of A, or over the p columns of B."""
    from qkv.claims.semantics.context import bases_of

    columns = bases_of(world, node.index, node.inner)
    wanted = {world.bases[name] for name in columns} or {"n"}
    if node.upto and wanted != {node.upto}:
        raise Malformed(node.at, f"a sum up to {node.upto}", " or ".join(sorted(wanted)))


def _check_name(world: Context, name: L.Name, bound: set[str]) -> None:
    plain, base = str(name), name.base
    if len(name.subs) > 2 or (len(name.subs) == 2 and base != "alpha"):
        raise Malformed(name.at, f"{name} with {len(name.subs)} indices", "one index, or alpha_{head,item}")
    if plain in world.lets or f"{base}_i" in world.lets or plain in world.numbers or plain in world.vectors:
        return
    if plain in world.bases or plain in ("I", "oo"):
        return
    never = world.claim.statement.core
    if isinstance(never, L.Never) and never.kind == "query" and plain == str(never.name):
        return
    if world.tokens and base in ("q", "k", "v", "c", "x") and (name.subs and name.subs[0] in {*world.tokens, *bound}):
        return
    if world.tokens and base in ("Q", "K", "V") and not name.subs:
        return
    if base == "alpha" or (base == "c" and not any(s not in {*world.heads(), *bound} for s in name.subs)):
        if not world.heads():
            raise Malformed(name.at, f"{name} without a query", "a line such as: let q = t*(k_a + k_b)")
        if not (world.tokens or world.noise or "k" in world.families or "k" in world.template_bases):
            raise Malformed(name.at, f"{name} without keys", "keys such as: given k_1..k_n orthonormal")
        if base == "alpha" and len(name.subs) == 2 and name.subs[0] not in {*world.heads(), *bound}:
            raise Malformed(name.at, f"{name} without a query q_{name.subs[0]}", "a query with that index")
        of_item = base == "alpha" and (len(name.subs) == 2 or (name.subs and world.heads() == ("",)))
        if of_item and world.closed and name.subs[-1] not in {*world.items, *bound}:
            raise Malformed(name.at, f"{name}, whose item is not there", f"one of {', '.join(world.items)}")
        if base == "alpha" and len(name.subs) == 1 and world.heads() != ("",) and name.subs[0] not in world.heads():
            raise Malformed(name.at, f"{name} with several queries", f"alpha_{{1,{name.subs[0]}}}")
        return
    if base in world.families or (base == "k" and world.noise) or (base == "v" and not world.tokens):
        family = world.families.get(base)
        if len(name.subs) != 1:
            raise Malformed(name.at, f"{name} without an index", f"{base}_a")
        if family is not None and family.items is not None and name.subs[0] not in {*family.items, *bound}:
            raise Malformed(
                name.at, f"{name}, which is not in the family", ", ".join(f"{base}_{i}" for i in family.items)
            )
        return
    raise Malformed(name.at, f"{name}, which is neither declared nor built in", f"a line such as: given {name} real")
