"""Impossibility: no real number, or no query, makes a statement true; or a witness that does."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce as fold
from itertools import combinations, product

import sympy as sp

from qkv.claims.semantics.context import Context
from qkv.claims.semantics.declarations import build_context
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic import attention_terms
from qkv.claims.symbolic.algebra import Algebra, orthogonal_terms, require_same_shape
from qkv.claims.symbolic.attention_terms import NOWHERE, softmax_steps
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.enclosures import constant_sign
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.limit_statements import follower, limit_cases, limit_statement, path_of
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial
from qkv.claims.symbolic.printing import scalar_text, step
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Proof, Witness
from qkv.claims.symbolic.relations import link
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, sign
from qkv.claims.symbolic.sign_arguments import argued_sign
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import NEGATED_OP
from qkv.claims.verdict import Step


def never(context: Context, core: L.Never) -> Proof:
    """Decide "no real r makes ..." and "no query q makes ..."."""
    if core.kind == "query":
        return _no_query(context, core)
    if isinstance(core.inner, L.Relation) and core.inner.ops in (("<",), ("<=",), (">",), (">=",)):
        return _no_order(context, core, core.inner)
    algebra, difference, cases = _parts_of_difference(context, core)
    if algebra.random:
        raise Unsupported("impossibility with random keys")
    r = algebra.symbol(str(core.name))
    if not r.is_Symbol:
        raise L.Malformed(core.at, f"{core.name}, which is fixed", "a number that may vary")
    steps = softmax_steps(algebra)
    for here, values in cases:
        apart = next((v for v in values if v.has(sp.oo, -sp.oo) or argued_sign(v, here) in ("+", "-")), None)
        if apart is not None:
            text = f"one part of left minus right stays {scalar_text(apart)}, which is never 0"
            steps.append(Step(text, sp.latex(apart)))
            continue
        root = _common_root(values, r, here)
        if root is not None:
            because = f"{core.name} = {scalar_text(root)} makes it true"
            return Proof(REFUTED, because, tuple(steps), witness=Witness(str(core.name), root))
        if all(is_zero(v, here) for v in values):
            value = here.put(r)
            where = f"{core.name} = {scalar_text(value)}" if value != r else f"every {core.name} in some range"
            return Proof(REFUTED, f"{where} makes it true", tuple(steps), witness=Witness(str(core.name), value))
        found = _common_root_with(values, r, here)
        if found is not None and algebra.declared_name(found[0]) is not None:
            other, at, root = found
            because = f"{core.name} = {scalar_text(root)} makes it true for {other} = {at}"
            witness = Witness(str(core.name), root, ((str(other), at),))
            return Proof(REFUTED, because, tuple(steps), witness=witness)
        _orthogonal_only(algebra, difference)
        if not _no_common_root(values, r, here):
            return Proof(UNKNOWN, "it is not settled whether all parts can vanish at once")
        steps.append(step("the parts of left minus right have no common zero"))
    _orthogonal_only(algebra, difference)
    return Proof(PROVED, f"left minus right cannot vanish for any {core.name}", tuple(steps))


def _no_order(context: Context, core: L.Never, order: L.Relation) -> Proof:
    """No number makes left < right where left minus right is never negative."""
    (left, right), (op,) = order.sides, order.ops
    algebra = Evaluator(context)
    one, two = algebra.value(left), algebra.value(right)
    require_same_shape(one, two, core.at)
    found = link(algebra, one, NEGATED_OP[op], two, assumptions_of(algebra))
    if found.kind != PROVED or algebra.random:
        raise Unsupported("the impossibility of an inequality")
    return replace(found, steps=(*softmax_steps(algebra), *found.steps))


def _parts_of_difference(
    context: Context, core: L.Never
) -> tuple[Algebra, MatrixPolynomial, list[tuple[Assumptions, tuple[Scalar, ...]]]]:
    """Left minus right, and its parts, in the limit where there is one, on every piece of the numbers' ranges."""
    if isinstance(core.inner, L.Limit):
        if not core.inner.tends:
            raise Unsupported("a double negation")
        path = path_of(context, core.inner.approach, core.at)
        algebra: Algebra = Evaluator(context, path.vanished)
        left, right = algebra.value(core.inner.left), algebra.value(core.inner.right)
        require_same_shape(left, right, core.at)
        difference = left.minus(right)
        assumptions = assumptions_of(algebra, path.moving)
        cases = limit_cases(algebra, difference, assumptions, follower(algebra, path), path)
        return algebra, difference, [(c.assumptions, c.found) for c in cases]
    algebra = Evaluator(context)
    (one, two), (op,) = core.inner.sides[:2], core.inner.ops[:1]
    if op != "=" or len(core.inner.ops) > 1:
        raise Unsupported("the impossibility of an inequality")
    left, right = algebra.value(one), algebra.value(two)
    require_same_shape(left, right, core.at)
    difference = left.minus(right)
    return algebra, difference, [(assumptions_of(algebra), tuple(difference.terms.values()))]


def _orthogonal_only(algebra: Algebra, difference: MatrixPolynomial) -> None:
    """Refuse vectors that may be dependent: only for independent ones does a nonzero coefficient show a difference."""
    if difference.terms and not difference.scalar and not orthogonal_terms(algebra, difference):
        raise Unsupported("impossibility for vectors that may depend on each other")


def _common_root(values: tuple[Scalar, ...], r: Scalar, assumptions: Assumptions) -> Scalar | None:
    """A value of r at which all parts vanish, for all values of the other numbers."""
    tops = _numerators(values, r, assumptions)
    if tops is None:
        return None
    shared = fold(sp.gcd, tops)
    if shared.free_symbols != {r}:
        return None
    where = assumptions.ranges.get(r, Range())
    for root in sp.Poly(shared, r).real_roots():
        if _lies_in(where, root) and all(is_zero(assumptions.put(v).subs(r, root)) for v in values):
            return root
    return None


def _lies_in(where: Range, root: Scalar) -> bool:
    """Whether an algebraic number lies in a range."""
    for end, is_open, outside in ((where.lo, where.lo_open, "-"), (where.hi, where.hi_open, "+")):
        side = None if end is None else constant_sign(root - sp.Rational(end.numerator, end.denominator))
        if end is not None and (side is None or side == outside or (side == "0" and is_open)):
            return False
    return not where.whole or bool(root.is_Integer)


def _no_common_root(values: tuple[Scalar, ...], r: Scalar, assumptions: Assumptions) -> bool:
    """Whether the parts have no common zero, for no value of the other numbers.

    Where the resultant of two polynomials in r is not 0, they have no common zero. A gcd of 1 would not do: at one
    value of another number a common zero may appear.
    """
    tops = _numerators(values, r, assumptions)
    if tops is None:
        return False
    for one, other in combinations(tops, 2):
        if one.has(r) or other.has(r):
            joint = sp.resultant(one, other, r)
            if sign(joint, assumptions) in ("+", "-"):
                return True
    return sign(sum(top**2 for top in tops), assumptions) == "+"


def _numerators(values: tuple[Scalar, ...], r: Scalar, assumptions: Assumptions) -> list[Scalar] | None:
    """The numerators of the parts that are not 0, as polynomials in r; None if one is no polynomial."""
    tops = [sp.fraction(sp.together(assumptions.put(v)))[0] for v in values if not is_zero(v, assumptions)]
    if not tops or any(not t.is_polynomial(r) or t.has(sp.exp) for t in tops):
        return None
    return [sp.expand(top) for top in tops]


def _common_root_with(
    values: tuple[Scalar, ...], r: Scalar, assumptions: Assumptions
) -> tuple[Scalar, Scalar, Scalar] | None:
    """Another number, a value of it, and a value of r at which all parts vanish: at a zero of a resultant."""
    tops = _numerators(values, r, assumptions)
    others = set() if tops is None else set().union(*(top.free_symbols for top in tops)) - {r}
    if tops is None or len(others) != 1:
        return None
    (other,) = others
    for one, two in combinations(tops, 2):
        joint = sp.resultant(one, two, r) if one.has(r) or two.has(r) else sp.Integer(1)
        if joint.free_symbols != {other} or not joint.is_polynomial(other):
            continue
        for at in sp.Poly(joint, other).real_roots():
            if at.is_Rational and _lies_in(assumptions.ranges.get(other, Range()), at):
                root = _common_root(values, r, assumptions.fix(other, at))
                if root is not None:
                    return other, at, root
    return None


def _no_query(context: Context, core: L.Never) -> Proof:
    """Search a query that makes the statement true, among sums of the keys' means with coefficients -1, 0 and 1."""
    if not isinstance(core.inner, L.Limit) or str(core.name) != "q":
        raise Unsupported("the impossibility of anything but a limit for q")
    path = path_of(context, core.inner.approach, core.at)
    scale = next((n for n, to in path.moving if to == sp.oo), None)
    if scale is None or context.tokens:
        raise Unsupported("a query without a scale that grows")
    own = None
    if "q" in context.lets:
        own = limit_statement(context, core.inner)
    base = next((g.mean.base for g in context.noise.values() if isinstance(g.mean, L.Name)), "k")
    for signs in _candidates(len(context.items)):
        q = _query(base, scale, context.items, signs)
        if not _has_certain_scores(context, q, path.vanished):
            continue
        claim = context.claim
        lets = (*tuple(let for let in claim.lets if str(let.name) != "q"), L.Let(L.Name("q", (), NOWHERE), q, NOWHERE))
        tried = build_context(replace(claim, lets=lets, statement=replace(claim.statement, core=core.inner)))
        try:
            found = limit_statement(tried, core.inner)
        except Unsupported:
            continue
        if found.kind == PROVED:
            words = _query_text(base, scale, context.items, signs)
            random = context.noise or context.random
            said = f"q = {words} makes it true{': its scores are not random' if random else ''}"
            if own is None or own.kind == PROVED:
                return Proof(REFUTED, said, found.steps, witness=Witness("q", words))
            mine = step(f"for the query of the claim: {own.because}")
            text = (
                f"true of the query given ({own.because}), false of single-head attention: {said}. "
                "qkv's `harden` designs such queries"
            )
            return Proof(CONDITIONAL, text, (*own.steps, mine, *found.steps, step(said)), witness=Witness("q", words))
    return Proof(UNKNOWN, "no query was found, and none was excluded")


def _candidates(items: int) -> list[tuple[int, ...]]:
    every = [s for s in product((0, 1, -1), repeat=items + 1) if any(s)]
    return sorted(every, key=lambda s: sum(map(abs, s)))


def _query(base: str, scale: str, items: tuple[str, ...], signs: tuple[int, ...]) -> L.Expr:
    total: L.Expr = L.Num(Fraction(0), NOWHERE)
    for item, factor in zip(items, signs, strict=False):
        if factor:
            total = L.Op(
                "+",
                total,
                L.Op("*", L.Num(Fraction(factor), NOWHERE), L.Name(base, (item,), NOWHERE), NOWHERE),
                NOWHERE,
            )
    if signs[-1]:
        rest = L.Sum("i", items, L.Name(base, ("i",), NOWHERE), NOWHERE)
        total = L.Op("+", total, L.Op("*", L.Num(Fraction(signs[-1]), NOWHERE), rest, NOWHERE), NOWHERE)
    return L.Op("*", L.Name(scale, (), NOWHERE), total, NOWHERE)


def _query_text(base: str, scale: str, items: tuple[str, ...], signs: tuple[int, ...]) -> str:
    parts = [f"{'-' if f < 0 else '+'} {base}_{i}" for i, f in zip(items, signs, strict=False) if f]
    if signs[-1]:
        parts.append(f"{'-' if signs[-1] < 0 else '+'} sum_{{i not in {', '.join(items)}}} {base}_i")
    return f"{scale}*({' '.join(parts).removeprefix('+ ')})"


def _has_certain_scores(context: Context, q: L.Expr, vanished: frozenset[str]) -> bool:
    """Whether no score of the query is random after the small noise has vanished."""
    lets = {**context.lets, "q": L.Let(L.Name("q", (), NOWHERE), q, NOWHERE)}
    algebra = Evaluator(replace(context, lets=lets), vanished)
    return not any(
        s in algebra.random for item in context.items for s in attention_terms.score(algebra, "", item).free_symbols
    )
