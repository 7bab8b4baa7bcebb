"""Scores, softmax weights and outputs of a query; items are the named ones and the others."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import sympy as sp

from qkv.claims.semantics.context import REST
from qkv.claims.symbolic.algebra import Algebra, SoftmaxTerms
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.printing import scalar_latex, scalar_text, step
from qkv.claims.symbolic.unknowns import (
    Gap,
    RestSum,
    RestWeight,
    Score,
    Theta,
    is_of_unnamed_item,
    varies_over_unnamed_items,
)
from qkv.claims.syntax import nodes as L
from qkv.claims.verdict import Step

NOWHERE: L.At = (0, 0)  # the place of nodes that are in no document
SIMPLIFIED_BELOW = 40  # operations of a sum of exponentials that is simplified for printing


def query(algebra: Algebra, head: str) -> MatrixPolynomial:
    """q, or q_head."""
    return algebra.named(L.Name("q", (head,) if head else (), NOWHERE))


def score(algebra: Algebra, head: str, item: str) -> Scalar:
    """k_item'q as a scalar."""
    key = algebra.named(L.Name("k", (item,), NOWHERE))
    asked = query(algebra, head)
    if asked.anything:
        return sp.Integer(0)
    if key.shape != ("d", "1") or asked.shape != ("d", "1"):
        raise Unsupported("keys and queries that are not vectors of one space")
    return sp.expand(key.transposed().times(asked, algebra.inner).number())


def softmax_terms(algebra: Algebra, head: str) -> SoftmaxTerms:
    """The exponentials of one query's scores, computed once."""
    if head in algebra.softmaxes:
        return algebra.softmaxes[head]
    context = algebra.context
    asked = query(algebra, head)
    for other_head, known in algebra.queries.items():
        same = dict(known.terms) == dict(asked.terms) and not context.causal
        if same and other_head in algebra.softmaxes:
            return algebra.softmaxes[other_head]  # equal queries have equal weights
    algebra.queries[head] = asked
    scores = {item: score(algebra, head, item) for item in context.items}
    count = algebra.size - len(context.items)
    conditions = _score_substitutions(algebra)
    shown = {item: sp.expand(s.subs(conditions)) for item, s in scores.items()}
    powers = {item: sp.Integer(0) if context.hidden(head, item) else sp.exp(s) for item, s in shown.items()}
    shown = {item: s for item, s in shown.items() if not context.hidden(head, item)}
    each = rest = sp.Integer(0)
    uneven = False
    if not context.all_items_named and count != 0:
        other = score(algebra, head, REST)
        uneven = varies_over_unnamed_items(other)
        each = sp.exp(other)
        if uneven:
            rest = _uneven_rest(algebra, head, other, count, conditions)
        else:
            rest = count * each
            shown[REST] = other
    algebra.softmaxes[head] = SoftmaxTerms(head, powers, rest, each, uneven, shown)
    return algebra.softmaxes[head]


def weight(algebra: Algebra, head: str, item: str) -> Scalar:
    """alpha_{head,item}."""
    terms = softmax_terms(algebra, head)
    if item == REST:
        if terms.uneven:
            single = RestWeight(terms.head)
            algebra.rest_weights[single] = terms.rest / terms.total
            return single
        return terms.each / terms.total
    if item not in terms.powers:
        raise Unsupported(f"the weight of item {item}")
    return terms.powers[item] / terms.total


def output(algebra: Algebra, head: str) -> MatrixPolynomial:
    """c or c_head; with several heads and no definition, c is their average."""
    heads = algebra.context.heads()
    if head == "" and heads != ("",):
        if algebra.context.tokens:
            raise Unsupported("c without an index, with several tokens")
        mean = algebra.value(L.Num(Fraction(0), NOWHERE))
        for one in heads:
            mean = mean.plus(output(algebra, one))
        return mean.scaled(sp.Rational(1, len(heads)))
    index = "i"
    while index in algebra.context.items:
        index = chr(ord(index) + 1)
    subs = (head, index) if head else (index,)
    value = L.Op("*", L.Name("alpha", subs, NOWHERE), L.Name("v", (index,), NOWHERE), NOWHERE)
    return algebra.value(L.Sum(index, (), value, NOWHERE))


def with_score_conditions(algebra: Algebra, value: MatrixPolynomial) -> MatrixPolynomial:
    """A value in which the scores of the given conditions are replaced by their bounds and gaps."""
    conditions = _score_substitutions(algebra) if algebra.context.score_conditions else []
    if not conditions or value.anything:
        return value
    terms = {word: sp.expand(c.subs(conditions)) for word, c in value.terms.items()}
    return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, value.shape, value.anything)


def _score_substitutions(algebra: Algebra) -> list[tuple[Scalar, Scalar]]:
    """Given relations between free scores, as substitutions s_i = s_j - bound - gap with gap >= 0."""
    if algebra.score_substitutions is not None:
        return algebra.score_substitutions
    algebra.score_substitutions = []
    context = algebra.context
    for fact in context.score_conditions:
        (left, right), (op,) = fact.relation.sides, fact.relation.ops
        if fact.quantifier is None:
            _substitute(algebra, (left, right), op, "")
            continue
        items = [i for i in context.items if i not in fact.quantifier.but]
        for item in [*items, *([] if context.all_items_named else [REST])]:
            _substitute(algebra, L.renamed((left, right), fact.quantifier.index, item), op, item)
    return algebra.score_substitutions


def _substitute(algebra: Algebra, pair: tuple[L.Expr, L.Expr], op: str, item: str) -> None:
    """Solve one condition for a score, and add the substitution."""
    if op == "!=":
        raise Unsupported("a condition with !=")
    known = algebra.score_substitutions
    assert known is not None
    difference = sp.expand((algebra.number(pair[0]) - algebra.number(pair[1])).subs(known))
    if op in ("<", "<="):
        difference = -difference
    # difference = gap >= 0 (or > 0, or = 0); solve for the score with coefficient -1 that has not been used yet.
    scores = [s for s in difference.free_symbols if isinstance(s, Score)]
    unknown = [s for s in scores if difference.coeff(s) == -1]
    unknown.sort(key=lambda s: (item == REST and not is_of_unnamed_item(s), str(s)))
    if op == "=" and not unknown:
        unknown = [s for s in scores if difference.coeff(s) == 1]
        difference = -difference
    done = {s for s, _ in known}
    unknown = [s for s in unknown if s not in done]
    if not unknown or sp.diff(difference, unknown[0], 2) != 0:
        raise Unsupported("a condition on scores that is not of the form k_j'q - k_i'q >= bound")
    target = unknown[0]
    gap = sp.Integer(0) if op == "=" else Gap(target, op in ("<", ">"))
    known.append((target, sp.expand(target + difference - gap)))


def _uneven_rest(
    algebra: Algebra, head: str, other: Scalar, count: Scalar, conditions: list[tuple[Scalar, Scalar]]
) -> Scalar:
    """What the unnamed items add when their scores differ.

    Without a condition: some positive number. With s_i <= s_j - bound - gap for each of them: θ·(n - m)·e^(that score),
    for some θ in (0, 1], since the sum of n - m numbers in (0, M] is θ(n - m)M. A scale τ > 0 in front changes nothing.
    """
    bounded = sp.expand(other.subs(conditions))
    differing = [s for s in bounded.free_symbols if is_of_unnamed_item(s)]
    if any(not isinstance(s, Gap) for s in differing):
        # With as many items as names there is no rest: it is positive only when n must exceed their number.
        return RestSum(head, (algebra.context.numbers["n"].lo or 0) > len(algebra.context.items))
    if not differing:
        return count * sp.exp(bounded)
    scale = -bounded.coeff(differing[0])
    if len(differing) > 1 or not (scale.is_positive or (scale.is_number and scale > 0)):
        raise Unsupported("a scale whose sign is not given: say that it is positive")
    theta = Theta(head)
    algebra.thetas.add(theta)
    return theta * count * sp.exp(bounded)


def softmax_steps(algebra: Algebra) -> list[Step]:
    """The steps of a derivation that say which random numbers, scores and sums of exponentials were used."""
    out: list[Step] = []
    for symbol, (mean, variance) in algebra.random.items():
        text = f"{scalar_text(symbol)} is normal with mean {scalar_text(mean)} and variance {scalar_text(variance)}"
        law = rf"\mathcal{{N}}({scalar_latex(mean)}, {scalar_latex(variance)})"
        out.append(Step(text, rf"{scalar_latex(symbol)} \sim {law}"))
    for head, terms in algebra.softmaxes.items():
        q = f"q_{head}" if head else "q"
        if terms.scores and not terms.uneven:
            scores = [(item.replace(REST, "i"), value) for item, value in terms.scores.items()]
            text = "scores: " + ", ".join(f"k_{item}'{q} = {scalar_text(value)}" for item, value in scores)
            tex = r",\quad ".join(f"{_score_latex(item, head)} = {scalar_latex(value)}" for item, value in scores)
            if REST in terms.scores:
                text += f" for the other {scalar_text(algebra.size - len(terms.powers))} items"
            out.append(Step(text, tex))
        if terms.uneven and algebra.thetas:
            text = "the other scores lie at least the given gap below: their exponentials sum to theta times"
            out.append(step(f"{text} their number times the largest one allowed, with 0 < theta <= 1"))
        elif terms.uneven:
            out.append(step("the exponentials of the other items sum to a number that is not negative, called rest"))
        total = _simplified(terms.total)
        where = f" of {q}" if head else ""
        out.append(Step(f"sum of exponentials{where}: Z = {scalar_text(total)}", f"Z = {scalar_latex(total)}"))
    return out


@lru_cache(maxsize=256)
def _simplified(expr: Scalar) -> Scalar:
    """A sum of exponentials for printing; cached, as the statements of one block share them."""
    return sp.simplify(expr) if expr.count_ops() < SIMPLIFIED_BELOW else expr


def _score_latex(item: str, head: str) -> str:
    return rf"k_{{{item}}}^\top q" + (f"_{{{head}}}" if head else "")
