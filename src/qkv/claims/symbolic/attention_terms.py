"""Weights and outputs as small expressions: items fall into the named ones and the others."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.evaluator import Algebra, Reading, Unsupported
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, Scalar
from qkv.claims.syntax import nodes as L

HERE: L.At = (0, 0)


def query(algebra: Algebra, head: str) -> MatrixPolynomial:
    return algebra.named(L.Name("q", (head,) if head else (), HERE))


def score(algebra: Algebra, head: str, item: str) -> Scalar:
    """k_item'q as a scalar."""
    key = algebra.named(L.Name("k", (item,), HERE))
    asked = query(algebra, head)
    if asked.anything:
        return sp.Integer(0)
    if key.shape != ("d", "1") or asked.shape != ("d", "1"):
        raise Unsupported("keys and queries that are not vectors of one space")
    return sp.expand(key.transposed().times(asked, algebra.inner).number())


def reading(algebra: Algebra, head: str) -> Reading:
    """The exponentials of one query's scores, computed once."""
    if head in algebra.readings:
        return algebra.readings[head]
    world = algebra.world
    asked = query(algebra, head)
    for other_head, known in algebra.queries.items():
        if dict(known.terms) == dict(asked.terms) and other_head in algebra.readings:
            return algebra.readings[other_head]  # equal queries read alike
    algebra.queries[head] = asked
    scores = {item: score(algebra, head, item) for item in world.items}
    count = algebra.size - len(world.items)
    facts = _facts(algebra)
    each = sp.Integer(0)
    rest: Scalar = sp.Integer(0)
    uneven = False
    if not world.closed and count != 0:
        other = score(algebra, head, REST)
        uneven = any(REST in s.name for s in other.free_symbols)
        each = sp.exp(other)
        rest = _uneven(algebra, head, other, count, facts) if uneven else count * each
    powers = {item: sp.exp(sp.expand(s.subs(facts))) for item, s in scores.items()}
    shown = {item: sp.expand(s.subs(facts)) for item, s in scores.items()}
    if not uneven and not world.closed and count != 0:
        shown[REST] = other
    made = Reading(head, powers, rest, each, uneven, shown)
    algebra.readings[head] = made
    return made


def weight(algebra: Algebra, head: str, item: str) -> Scalar:
    """alpha_{head,item}."""
    got = reading(algebra, head)
    if item == REST:
        if got.uneven:
            single = sp.Symbol(f"w({REST},{got.name})", positive=True)
            algebra.weights_of_rest[single] = got.rest / got.total
            return single
        return got.each / got.total
    if item not in got.powers:
        raise Unsupported(f"the weight of item {item}")
    return got.powers[item] / got.total


def output(algebra: Algebra, head: str) -> MatrixPolynomial:
    """c or c_head; with several heads and no definition, c is their average."""
    heads = algebra.world.heads()
    if head == "" and heads != ("",):
        if algebra.world.tokens:
            raise Unsupported("c without an index, with several tokens")
        mean = algebra.value(L.Num(Fraction(0), HERE))
        for one in heads:
            mean = mean.plus(output(algebra, one))
        return mean.scaled(sp.Rational(1, len(heads)))
    index = "i"
    while index in algebra.world.items:
        index = chr(ord(index) + 1)
    subs = (head, index) if head else (index,)
    value = L.Op("*", L.Name("alpha", subs, HERE), L.Name("v", (index,), HERE), HERE)
    return algebra.value(L.Sum(index, (), value, HERE))


def _facts(algebra: Algebra) -> list[tuple[Scalar, Scalar]]:
    """Given relations between free scores, as substitutions s_i = s_j - bound - slack with slack >= 0."""
    if algebra._scored:
        return algebra.substituted
    algebra._scored = True
    world = algebra.world
    for fact in world.scores:
        (left, right), (op,) = fact.relation.sides, fact.relation.ops
        names: tuple[str, ...] = ("",)
        if fact.quantifier is not None:
            names = tuple(i for i in world.items if i not in fact.quantifier.but)
        for item in names:
            pair = (left, right) if not item else L.renamed((left, right), fact.quantifier.index, item)  # type: ignore[union-attr]
            _substitute(algebra, pair, op, item)
        if fact.quantifier is not None and not world.closed:
            _substitute(algebra, L.renamed((left, right), fact.quantifier.index, REST), op, REST)
    return algebra.substituted


def _substitute(algebra: Algebra, pair: tuple[L.Expr, L.Expr], op: str, item: str) -> None:
    if op not in ("<", "<=", ">", ">=", "="):
        raise Unsupported("a condition with !=")
    difference = sp.expand((algebra.number(pair[0]) - algebra.number(pair[1])).subs(algebra.substituted))
    if op in ("<", "<="):
        difference = -difference
    # difference = slack >= 0 (or > 0, or = 0); solve for the score with coefficient -1 that has not been used yet.
    unknown = [s for s in difference.free_symbols if s.name.startswith("<") and difference.coeff(s) == -1]
    unknown.sort(key=lambda s: (item == REST and REST not in s.name, str(s)))
    if op == "=" and not unknown:
        unknown = [s for s in difference.free_symbols if s.name.startswith("<") and difference.coeff(s) == 1]
        difference = -difference
    done = {s for s, _ in algebra.substituted}
    unknown = [s for s in unknown if s not in done]
    if not unknown or sp.diff(difference, unknown[0], 2) != 0:
        raise Unsupported("a condition on scores that is not of the form k_j'q - k_i'q >= bound")
    target = unknown[0]
    slack: Scalar = sp.Integer(0)
    if op != "=":
        slack = (
            sp.Symbol(f"gap({target.name})", positive=True)
            if op in ("<", ">")
            else sp.Symbol(f"gap({target.name})", nonnegative=True)
        )
    algebra.substituted.append((target, sp.expand(target + difference - slack)))


def _uneven(algebra: Algebra, head: str, other: Scalar, count: Scalar, facts: list[tuple[Scalar, Scalar]]) -> Scalar:
    """What the unnamed items add when their scores differ.

    Without a condition: some positive number. With s_i <= s_j - bound - gap for each of them: θ·(n - m)·e^(that score),
    for some θ in (0, 1], since the sum of n - m numbers in (0, M] is θ(n - m)M. A scale τ > 0 in front changes nothing.
    """
    bounded = sp.expand(other.subs(facts))
    loose = [s for s in bounded.free_symbols if REST in s.name and not s.name.startswith("gap(")]
    if loose:
        # With as many items as names there is no rest: it is positive only when n must exceed their number.
        low = algebra.world.numbers["n"].lo or 0
        kind = {"positive": True} if low > len(algebra.world.items) else {"nonnegative": True}
        return sp.Symbol(f"rest({head})", **kind)
    slack = [s for s in bounded.free_symbols if s.name.startswith("gap(") and REST in s.name]
    if not slack:
        return count * sp.exp(bounded)
    scale = -bounded.coeff(slack[0])
    if len(slack) > 1 or not (scale.is_positive or (scale.is_number and scale > 0)):
        raise Unsupported("a scale whose sign is not given: say that it is positive")
    theta = sp.Symbol(f"theta({head})", positive=True)
    algebra.bounded[theta] = "unit"
    return theta * count * sp.exp(bounded)
