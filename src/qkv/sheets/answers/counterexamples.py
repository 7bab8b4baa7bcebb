"""Constructions of what is arbitrary, values for keys or unknown coefficients: refuted by one choice of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from qkv.sheets.answers.construction import Construction, declared_names, joined, names, renamed
from qkv.sheets.answers.goal_check import LIMITS, Found, decided, in_limit
from qkv.sheets.answers.letters import Put, put_in
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import dotted_sum, said
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.statements import tree as T

OTHER = "d"
"""An item that is neither a nor b, whose key the values of a counterexample equal."""
PUT_NUMBER = "2"
"""What is put for a coefficient that may be any number."""


@dataclass(frozen=True)
class Example:
    """A choice of what is arbitrary with which a construction fails: in words, and the block that shows it."""

    words: str
    found: Found


def uses_values(question: Question, construction: Construction, problem: Problem | None) -> bool:
    """Whether queries are built of values, which are arbitrary vectors."""
    return bool(_values(question, construction, problem))


def _values(question: Question, construction: Construction, problem: Problem | None) -> list[str]:
    letters = (problem.letters_for("value") if problem is not None else ()) or ("v",)
    if not all(hole.startswith("q") for hole in question.holes):
        return []
    found = [pair for _, value in construction.values for pair in names(value)]
    return list(dict.fromkeys(joined(base, index) for base, index in found if base in letters and index))


def fails_for_some_values(question: Question, construction: Construction, problem: Problem | None) -> Example | None:
    """A choice of values with which an item that is neither a nor b keeps its weight; None if that is not shown.

    The values in the queries are taken to be the key of another item d (or its mean). The weight of d does not go to
    0 then, so that its own value, which may be any vector, is part of the output.
    """
    own = _values(question, construction, problem)
    family = "mu" if "mu" in declared_names(question.given, question.let) else "k"
    key = f"{family}_{OTHER}"
    replaced = replace(
        construction,
        values=tuple(
            (hole, renamed(value, lambda base, index: key if joined(base, index) in own else None))
            for hole, value in construction.values
        ),
    )
    put = put_in(question, replaced, problem)
    if put is None:
        return None
    heads = [f"{n + 1}," for n in range(len(question.holes))] if len(question.holes) > 1 else [""]
    for head in heads:
        weight = f"alpha_{{{head}{OTHER}}}" if head else f"alpha_{OTHER}"
        limits = LIMITS.search(question.goal[0])
        goal = in_limit(f"{weight} -> 0{limits[0] if limits else ''}", put.scales)
        found = decided(question.given, _lets(question, put), (goal,))
        if found.kind == "refuted":
            what = "key" if family == "k" else "mean of the key"
            words = (
                f"values are arbitrary, and if {' = '.join(own)} = {put.said(key)}, the {what} of another item "
                f"{OTHER}, {put.said(weight)} does not go to 0: {put.said(found.because)}; build queries of {what}s"
            )
            return Example(words, found)
    return None


def _lets(question: Question, put: Put) -> tuple[str, ...]:
    return (*question.let, *(f"{hole} = {value}" for hole, value in put.values))


@dataclass(frozen=True)
class Weighted:
    """A sum of projections with a number for its coefficients, and what was supposed for that, if anything."""

    supposed: str
    side: T.Node


def weighted_sum(side: T.Node, region: Region) -> Weighted | None:
    """Σ c_j a_j a_j' for coefficients c_j that are known to be numbers, or to be those of v_a; None for others.

    A number that the author gives for all c_j is put in; otherwise PUT_NUMBER is supposed.
    """
    total = side if isinstance(side, T.Total) else dotted_sum(side) if isinstance(side, T.Binary) else None
    if total is None:
        return None
    factors = _factors(total.inner)
    if len(factors) == 4:
        return _by_products(total, factors)
    vectors = [f for f in factors if _base(f) == "a"]
    coefficients = [f for f in factors if isinstance(f, T.Symbol) and f.base not in ("a", "b")]
    if len(vectors) != 2 or len(coefficients) != 1 or len(factors) != 3 or coefficients[0].index != (total.index,):
        return None
    letter = coefficients[0].base
    known = _meaning(letter, region)
    if known is None:
        return None
    inner = T.Binary("*", T.Binary("*", T.Number(known or PUT_NUMBER), vectors[0]), vectors[1])
    supposed = "" if known else f"{letter}_{total.index} = {PUT_NUMBER}"
    return Weighted(supposed, replace(total, inner=inner))


def _by_products(total: T.Total, factors: list[T.Node]) -> Weighted | None:
    """Σ (a_j'v_a) a_j a_j': the coefficients of v_a, written out."""
    if [_base(f) for f in factors] not in (["a", "v", "a", "a"], ["v", "a", "a", "a"]):
        return None
    if [isinstance(f, T.Transposed) for f in factors] != [True, False, False, True]:
        return None
    inner = T.Binary("*", T.Binary("*", T.Number(PUT_NUMBER), factors[2]), factors[3])
    return Weighted(f"a_{total.index}ᵀv_a = {PUT_NUMBER}", replace(total, inner=inner))


def _factors(node: T.Node) -> list[T.Node]:
    if isinstance(node, T.Binary) and node.sign in ("*", "."):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _base(node: T.Node) -> str:
    inner = node.inner if isinstance(node, T.Transposed) else node
    return inner.base if isinstance(inner, T.Symbol) else ""


def _meaning(letter: str, region: Region) -> str | None:
    """The number that all coefficients are, "" if they are those of v_a and so may be any, None if it is not said."""
    found: str | None = None
    for one in said(list(region.formulas)):
        head, rest = one.clause.sides[0], one.clause.sides[1:]
        if isinstance(head, T.Symbol) and head.base == letter:
            numbers = [s.text for s in rest if isinstance(s, T.Number)]
            if numbers:
                return numbers[0]
            if any(_holds(s, "v") for s in rest):
                found = ""
            elif len(rest) == 1:
                return None
        if isinstance(head, T.Symbol) and head.base == "v" and any(_holds(s, letter) and _holds(s, "a") for s in rest):
            found = ""
    return found


def _holds(node: T.Node, base: str) -> bool:
    return any(isinstance(n, T.Symbol) and n.base == base and n.index for n in T.nodes(node))


SIZE_OF_BASIS = re.compile(r"(?<![\w^{])m(?![\w}])")


def with_small_basis(construction: Construction) -> Construction | None:
    """The construction with 2 for the number m of basis vectors, where it is a number beside the sum; else None."""
    values = tuple((hole, SIZE_OF_BASIS.sub(f"({PUT_NUMBER})", value)) for hole, value in construction.values)
    if values == construction.values:
        return None
    return replace(construction, values=values, supposed=f"m = {PUT_NUMBER}")
