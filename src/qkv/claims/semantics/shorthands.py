"""Shorthands that the language says by other words: the logistic function, tanh, absolute values, inner products."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.rewriting import mapped


def without_shorthands(claim: L.Claim) -> L.Claim:
    """A claim in which sigmoid, tanh, abs and inner are written out by exp, roots and products."""
    if not any(isinstance(n, L.Apply) for n in L.nodes(claim)):
        return claim
    return replace(
        claim,
        given=mapped(claim.given, _written_out),
        lets=mapped(claim.lets, _written_out),
        statement=mapped(claim.statement, _written_out),
    )


def _written_out(node: L.Node) -> L.Node:
    if not isinstance(node, L.Apply):
        return node
    at, x = node.at, node.args[0]
    one, two = L.Num(Fraction(1), at), L.Num(Fraction(2), at)
    if node.function == "sigmoid":
        return L.Op("/", one, L.Op("+", one, L.Call("exp", L.Neg(x, at), at), at), at)
    if node.function == "tanh":
        power = L.Call("exp", L.Op("*", two, x, at), at)
        return L.Op("/", L.Op("-", power, one, at), L.Op("+", power, one, at), at)
    if node.function == "abs":
        return L.Call("sqrt", L.Op("^", x, two, at), at)
    if node.function == "inner":
        return L.Op("*", L.Transpose(x, at), node.args[1], at)
    return node
