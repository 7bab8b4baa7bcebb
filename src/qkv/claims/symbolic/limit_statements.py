"""Limit statements: limits of numbers, vectors and statistics, limits under noise, limiting probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy as sp

from qkv.claims.semantics.context import Context, names_used
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra, orthogonal_terms, require_same_shape
from qkv.claims.symbolic.attention_terms import softmax_steps
from qkv.claims.symbolic.case_split import Case, by_cases, described, half_line, region
from qkv.claims.symbolic.conditions import Moving, assumptions_of
from qkv.claims.symbolic.distinguishing_points import differs
from qkv.claims.symbolic.errors import Unsupported
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.factors import Factor, Member, Scalar, UnnamedMean
from qkv.claims.symbolic.growth_limits import limit
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, scalar
from qkv.claims.symbolic.node_conversion import expression_node
from qkv.claims.symbolic.printing import (
    polynomial_latex,
    polynomial_text,
    scalar_latex,
    scalar_text,
    sides_step,
    step,
    with_sign,
)
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Condition, Proof
from qkv.claims.symbolic.relations import link, relation
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, sign
from qkv.claims.symbolic.statistics import Follow, random_symbols, region_probability, regions, statistic_limit
from qkv.claims.symbolic.unknowns import Gap, RestSum, Score, Theta, factors_in
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import constant
from qkv.claims.verdict import Step

MAX_STEP_LENGTH = 400  # characters of a side that is printed in a derivation

Values = tuple[Scalar, ...]


@dataclass(frozen=True)
class Path:
    """The limits of a statement: noise sizes that vanish first, then the other numbers one after the other."""

    vanished: frozenset[str]
    moving: Moving

    @property
    def words(self) -> str:
        """The limits as text."""
        return ", ".join([*(f"{s} -> 0" for s in sorted(self.vanished)), *(f"{n} -> {to}" for n, to in self.moving)])


def path_of(context: Context, approach: tuple[L.Approach, ...], at: L.At) -> Path:
    """The limits of a statement after those that are given for all of them."""
    every = (*context.limits, *approach)
    if not every:
        raise L.Malformed(at, "a limit or an ≈ that does not say in which limit it is meant", "as t -> oo")
    sizes = context.noise_sizes
    vanished: set[str] = set()
    moving: list[tuple[str, Scalar]] = []
    for one in every:
        to = _target(one)
        where = context.numbers.get(one.name)
        if where is not None and not _reachable(where, to):
            raise L.Malformed(one.at, f"{one.name} -> {to} outside its range", "a place in the range of the number")
        if one.name == "n" and to != sp.oo:
            raise L.Malformed(one.at, f"n -> {to}", "n -> oo")
        if one.name in sizes and to == 0:
            if moving:
                raise Unsupported(f"{one.name} -> 0 after another limit: let the noise vanish first")
            vanished.add(one.name)
        elif any(n == one.name for n, _ in moving):
            raise L.Malformed(one.at, f"a second limit for {one.name}", "one limit for each number")
        else:
            moving.append((one.name, to))
    return Path(frozenset(vanished), tuple(moving))


def _target(one: L.Approach) -> Scalar:
    if isinstance(one.to, L.Name) and one.to.base == "oo":
        return sp.oo
    if isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name) and one.to.inner.base == "oo":
        return -sp.oo
    value = constant(one.to)
    if value is None:
        raise L.Malformed(one.at, "a limit that is no number", "oo, -oo or a number")
    return sp.Rational(value.numerator, value.denominator)


def _reachable(where: Range, to: Scalar) -> bool:
    """Whether numbers of a range come as near to a limit as one likes."""
    low = -sp.oo if where.lo is None else sp.Rational(where.lo.numerator, where.lo.denominator)
    high = sp.oo if where.hi is None else sp.Rational(where.hi.numerator, where.hi.denominator)
    return bool(low <= to <= high)


def follower(algebra: Algebra, path: Path) -> Follow:
    """Take all limits of a scalar in their order."""
    loose_with = {name: _may_move_with(algebra, name) for name, _ in path.moving}

    def follow(expr: Scalar, assumptions: Assumptions) -> Scalar:
        for name, to in path.moving:
            x = algebra.symbol(name)
            if not x.is_Symbol:
                raise Unsupported(f"a limit of {name}, which is fixed")
            expr = assumptions.put(expr)
            loose = frozenset(s for s in expr.free_symbols if loose_with[name](s))
            if name == "n" and any(isinstance(s, Theta | RestSum) for s in loose):
                raise Unsupported("free keys as their number grows")
            expr = limit(expr, x, to, assumptions, loose)
            if expr.has(sp.zoo, sp.nan):
                raise Unsupported(f"a limit without a value as {name} -> {to}")
            if expr.has(sp.oo, -sp.oo):
                return expr
        return expr

    return follow


def _may_move_with(algebra: Algebra, name: str) -> Callable[[Scalar], bool]:
    """Which unknowns may move with a number: sums of unnamed exponentials always; scores and gaps when the number
    occurs in a condition on them, directly or by a definition; products of vectors whose norm moves."""
    context = algebra.context
    bounds_scores = name in names_in_conditions(context)
    grown = {
        base
        for base, family in context.families.items()
        if family.norm is not None and name in {str(n) for n in names_used(context, family.norm)}
    }

    def moves(symbol: Scalar) -> bool:
        if isinstance(symbol, Theta | RestSum):
            return True
        if not isinstance(symbol, Gap | Score):
            return False
        return bounds_scores or any(factor.family_name in grown for factor in factors_in(symbol))

    return moves


def names_in_conditions(context: Context) -> set[str]:
    """The names in all given conditions between scores or between numbers, and in the definitions that they use."""
    given = (*(fact.relation for fact in context.score_conditions), *context.number_conditions)
    return {str(name) for name in names_used(context, *given)}


def settled(algebra: Algebra, expr: Scalar, assumptions: Assumptions, follow: Follow) -> Scalar:
    """Put in the limit of every statistic that has no closed form."""
    gone = {algebra.symbol(n) for n in algebra.context.limit_variables}
    every = dict.fromkeys(algebra.statistics, sp.Integer(1))
    for name in sorted(expr.free_symbols & algebra.statistics, key=str):
        factor = sp.expand(sp.diff(expr, name))
        if factor.free_symbols & gone:  # a statistic that vanishes may be multiplied by a number that grows
            parts = [follow(part.xreplace(every), assumptions) for part in sp.Add.make_args(factor)]
            if factor.has(name) or any(part.has(sp.oo, -sp.oo) for part in parts):
                raise Unsupported("a statistic times a number that grows")
        expr = expr.subs(name, statistic_limit(algebra, assumptions, name, follow))
    return expr


def limit_statement(context: Context, core: L.Limit) -> Proof:
    """left -> right, or the contrary; the arrow between both sides is printed only as far as it is shown to hold."""
    found = _limit_statement(context, core)
    if found.kind not in (PROVED, REFUTED):
        return found
    tends = core.tends == (found.kind == PROVED)
    return replace(found, steps=with_sign(found.steps, r"\to" if tends else r"\not\to"))


def _limit_statement(context: Context, core: L.Limit) -> Proof:
    """left -> right: every coefficient of their difference, times the length of its vector, goes to 0."""
    path = path_of(context, core.approach, core.at)
    algebra = Evaluator(context, path.vanished)
    one, two = algebra.value(core.left), algebra.value(core.right)
    require_same_shape(one, two, core.at)
    assumptions = assumptions_of(algebra, path.moving)
    follow = follower(algebra, path)
    steps = softmax_steps(algebra)
    if two.scalar and two.number() in (sp.oo, -sp.oo):
        return _to_infinity(algebra, one.number(), two.number(), assumptions, follow, core.tends, steps)
    cases = limit_cases(algebra, one.minus(two), assumptions, follow, path)
    if len(polynomial_text(one)) < MAX_STEP_LENGTH:
        steps.append(sides_step(one, two))
    steps += _region_steps(algebra, one, assumptions, follow)
    steps += _limit_steps(algebra, one, assumptions, follow, path)
    good = [c for c in cases if all(is_zero(v, c.assumptions) for v in c.found)]
    random = frozenset().union(*(random_symbols(algebra, c) for c in one.minus(two).terms.values()), frozenset())
    if random and 0 < len(good) < len(cases):
        return _with_probability(algebra, cases, good, random, core.tends, steps)
    words = f" as {path.words}"
    if len(good) == len(cases):
        kind = PROVED if core.tends else REFUTED
        sure = "; almost surely, so in probability" if random else ""
        return Proof(kind, f"every part of left minus right goes to 0{words}{sure}", tuple(steps))
    found = "; ".join(filter(None, (_in_case(algebra, one, c, follow) for c in cases)))
    bad = [c for c in cases if c not in good]
    if not all(any(v.has(sp.oo, -sp.oo) or differs(v, c.assumptions) for v in c.found) for c in bad):
        return Proof(UNKNOWN, "it is not settled whether left minus right goes to 0", tuple(steps))
    if not good:
        apart = _surely_apart(algebra, one.minus(two), cases)
        if not core.tends and not apart:
            return Proof(UNKNOWN, "the limit differs for some vectors at most", tuple(steps))
        because = f"the limit is {found}{words}" if found else f"left minus right does not go to 0{words}"
        return Proof(REFUTED if core.tends else PROVED, because, tuple(steps), sure=apart)
    if not _surely_apart(algebra, one.minus(two), bad):
        return Proof(UNKNOWN, f"true when {described(good)}, and perhaps elsewhere", tuple(steps))
    true, false = described(good), described(bad)
    if not core.tends:
        true, false = false, true
    condition = _condition(algebra, true, good if core.tends else bad)
    return Proof(CONDITIONAL, f"true when {true}; false when {false}", tuple(steps), condition=condition)


def _condition(algebra: Algebra, text: str, cases: list[Case[Values]]) -> Condition:
    """Where some cases lie, as text and, if it is one comparison with a bound, as that."""
    side, at = half_line(cases), algebra.context.claim.at
    name = None if side is None else expression_node(algebra, side[0], at)
    if side is None or name is None:
        return Condition(text, region=region(cases))
    return Condition(text, L.Relation((name, L.Num(side[2], at)), (side[1],), at), region(cases))


def limit_cases(
    algebra: Algebra,
    difference: MatrixPolynomial,
    assumptions: Assumptions,
    follow: Follow,
    path: Path,
) -> list[Case[Values]]:
    if not difference.scalar and any(name == "n" for name, _ in path.moving):
        raise Unsupported("vectors as the number of items grows")
    _require_fixed_vectors(algebra, difference, path)
    coefficients = [
        settled(algebra, c, assumptions, follow) * _length(algebra, w, path) for w, c in difference.terms.items()
    ]
    random = frozenset().union(*(random_symbols(algebra, c) for c in coefficients), frozenset())
    moving = {algebra.symbol(n) for n, _ in path.moving}
    numbers = {s for n, s in algebra.symbols.items() if s.is_Symbol and n != "n" and s not in moving}
    return by_cases(
        assumptions, lambda f: tuple(follow(c, f) for c in coefficients), frozenset(numbers) | random, random
    )


def _require_fixed_vectors(algebra: Algebra, difference: MatrixPolynomial, path: Path) -> None:
    """Refuse vectors that a condition on scores lets move with a number of which a limit is taken."""
    context = algebra.context
    if not names_in_conditions(context) & {name for name, _ in path.moving}:
        return
    bound = {name.base for fact in context.score_conditions for name in names_used(context, fact.relation)}
    for word in difference.terms:
        if any((getattr(part, "of", None) or part).family_name in bound or part.name in bound for part in word):
            raise Unsupported("a vector that may move")


def _length(algebra: Algebra, word: tuple[Factor, ...], path: Path) -> Scalar:
    """The norms that move with the limit, of the vectors in a product: a coefficient counts with them."""
    out: Scalar = sp.Integer(1)
    for part in word:
        of = part.of if isinstance(part, UnnamedMean) and part.of is not None else part
        family = algebra.context.families.get(of.family_name)
        if family is not None and family.norm is not None:
            norm = algebra.number(family.norm)
            if any(norm.has(algebra.symbol(n)) for n, _ in path.moving):
                out *= norm
    return out


def _surely_apart(algebra: Algebra, difference: MatrixPolynomial, cases: list[Case[Values]]) -> bool:
    """For "does not tend" the limit must differ for all vectors: numbers, or members of orthogonal families."""
    if not difference.scalar and not orthogonal_terms(algebra, difference):
        return False
    return all(any(v.has(sp.oo, -sp.oo) or sign(v, c.assumptions) in ("+", "-") for v in c.found) for c in cases)


def _with_probability(
    algebra: Algebra,
    cases: list[Case[Values]],
    good: list[Case[Values]],
    random: frozenset[Scalar],
    tends: bool,
    steps: list[Step],
) -> Proof:
    if any(c.assumptions.fixed != cases[0].assumptions.fixed for c in cases):
        raise Unsupported("cases in numbers and in chance at once")
    chance = sp.Integer(0)
    lines = []
    for case in cases:
        p = region_probability(algebra, case.assumptions, random)
        lines.append(step(f"{described([case])}: probability {float(p):.4f}, {'true' if case in good else 'false'}"))
        chance += p if case in good else 0
    total = sum((region_probability(algebra, case.assumptions, random) for case in cases), sp.Integer(0))
    value = float(sp.simplify(chance / total))  # given the condition, where there is one
    if not tends:
        value = 1 - value
        good = [c for c in cases if c not in good]
    where = described(good)
    because = f"true with probability {value:.4f} in the limit, that is when {where}; false otherwise"
    joined = region(good)
    law = None if joined is None else algebra.random.get(joined[0])
    return Proof(CONDITIONAL, because, (*steps, *lines), value, condition=Condition(where, region=joined, law=law))


def _to_infinity(
    algebra: Algebra,
    value: Scalar,
    to: Scalar,
    assumptions: Assumptions,
    follow: Follow,
    tends: bool,
    steps: list[Step],
) -> Proof:
    found = follow(settled(algebra, value, assumptions, follow), assumptions)
    kind = PROVED if (found == to) == tends else REFUTED
    return Proof(
        kind, f"the limit is {scalar_text(found)}", (*steps, Step(f"limit: {scalar_text(found)}", scalar_latex(found)))
    )


def _in_case(algebra: Algebra, one: MatrixPolynomial, case: Case[Values], follow: Follow) -> str:
    found = _actual(algebra, one, case.assumptions, follow)
    return f"{found} when {described([case])}" if found and case.said else found


def _actual(algebra: Algebra, one: MatrixPolynomial, assumptions: Assumptions, follow: Follow) -> str:
    """The limit of the left side as text, or "" where it cannot be taken."""
    try:
        terms = {w: follow(settled(algebra, c, assumptions, follow), assumptions) for w, c in one.terms.items()}
    except Exception:  # it is only for the message
        return ""
    kept = MatrixPolynomial({w: c for w, c in terms.items() if not is_zero(c)}, one.shape)
    text = polynomial_text(kept)
    number = kept.number()
    if kept.scalar and number.is_number and not number.is_Rational and not number.has(sp.oo, -sp.oo):
        text += f" = {float(number):.4g}"
    return text


def _region_steps(algebra: Algebra, one: MatrixPolynomial, assumptions: Assumptions, follow: Follow) -> list[Step]:
    """For a statistic of weights: where the random numbers fall, with which probability, and the weights there."""
    found = sorted(set().union(*(c.free_symbols for c in one.terms.values()), set()) & algebra.statistics, key=str)
    steps = []
    for name in found[:1]:
        function, inner = name.function, name.inner
        for probability, values, case in regions(algebra, assumptions, inner, follow):
            place = described([case]) if case.said else "always"
            limits = ", ".join(f"{scalar_text(e)} -> {scalar_text(v)}" for e, v in zip(inner, values, strict=True))
            steps.append(step(f"{place}, with probability {scalar_text(sp.simplify(probability))}: {limits}"))
        text = (
            "weights lie in [0, 1], so the limit may be taken inside"
            if function != "P"
            else "off the edge, the event's limit decides"
        )
        steps.append(step(text))
    return steps


def _limit_steps(
    algebra: Algebra,
    one: MatrixPolynomial,
    assumptions: Assumptions,
    follow: Follow,
    path: Path,
) -> list[Step]:
    steps = []
    for word, coefficient in one.terms.items():
        name = polynomial_text(MatrixPolynomial({word: sp.Integer(1)}, one.shape)) if word else "left side"
        try:
            to = follow(settled(algebra, coefficient, assumptions, follow), assumptions)
        except Exception:  # a step that cannot be shown is left out
            continue
        said = f"coefficient of {name}" if word else name
        text = f"{said}: {scalar_text(coefficient)} -> {scalar_text(to)} as {path.words}"
        steps.append(Step(text, rf"{scalar_latex(coefficient)} \to {scalar_latex(to)}"))
    return steps


def relation_in_limit(context: Context, core: L.Relation) -> Proof:
    """A relation under given limits: noise that vanishes is put to 0, other limits are taken of both sides."""
    path = path_of(context, (), core.at)
    algebra = Evaluator(context, path.vanished)
    if not path.moving:
        return relation(context, core, algebra)
    follow = follower(algebra, path)
    steps: list[Step] = []
    for left, op, right in core.pairs():
        one, two = algebra.value(left), algebra.value(right)
        require_same_shape(one, two, core.at)
        assumptions = assumptions_of(algebra, path.moving)
        if not one.minus(two).scalar and not one.minus(two).anything:
            raise Unsupported("an order of vectors in a limit")
        sides = [scalar(follow(settled(algebra, e.number(), assumptions, follow), assumptions)) for e in (one, two)]
        if any(random_symbols(algebra, s.number()) or s.number().has(sp.oo, -sp.oo) for s in sides):
            raise Unsupported("a comparison of limits that are random or infinite")
        values = ", ".join(
            f"{polynomial_text(s)}" + (f" = {float(s.number()):.4g}" if s.number().is_number else "") for s in sides
        )
        steps.append(
            Step(
                f"limits of both sides as {path.words}: {values}",
                rf"{polynomial_latex(sides[0])},\; {polynomial_latex(sides[1])}",
            )
        )
        found = link(algebra, sides[0], op, sides[1], assumptions)
        if found.kind != PROVED:
            every = (*softmax_steps(algebra), *steps, *found.steps)
            return replace(found, because=f"in the limit, {found.because}", steps=every)
    return Proof(PROVED, f"the limits of both sides are {values}", (*softmax_steps(algebra), *steps))


def within(context: Context, core: L.Within) -> Proof:
    """The probability of ending within a distance: where the limit is the target itself, and where it is near."""
    if core.op not in (">=", ">"):
        raise L.Malformed(core.at, f"probability {core.op}", ">= or >")
    if not context.limits and not core.approach:
        raise Unsupported("a probability at a fixed scale has no closed form here")
    path = path_of(context, core.approach, core.at)
    algebra = Evaluator(context, path.vanished)
    one, two = algebra.value(core.left), algebra.value(core.target)
    require_same_shape(one, two, core.at)
    radius, wanted = algebra.number(core.radius), algebra.number(core.probability)
    assumptions = assumptions_of(algebra, path.moving)
    if sign(radius, assumptions) != "+":
        raise L.Malformed(core.at, "a distance that is not positive", "a positive distance")
    follow = follower(algebra, path)
    difference = one.minus(two)
    cases = limit_cases(algebra, difference, assumptions, follow, path)
    random = frozenset().union(*(random_symbols(algebra, c) for c in difference.terms.values()), frozenset())
    chance: Scalar = sp.Integer(0)
    unsure: Scalar = sp.Integer(0)
    steps = softmax_steps(algebra)
    for case in cases:
        ends = MatrixPolynomial(
            {w: v for w, v in zip(difference.terms, case.found, strict=True) if not is_zero(v, case.assumptions)},
            difference.shape,
        )
        square = ends.transposed().times(ends, algebra.inner).number() if ends.terms else sp.Integer(0)
        near = not ends.terms or sign(square - radius**2, case.assumptions) == "-"
        far = not near and (
            _can_be_long(algebra, ends, case.assumptions) or sign(square - radius**2, case.assumptions) == "+"
        )
        p = region_probability(algebra, case.assumptions, random)
        chance += p if near else 0
        unsure += 0 if near or far else p
        place = described([case]) if case.said else "always"
        outcome = f"off by {polynomial_text(ends)}: {'within' if near else 'outside'}"
        steps.append(step(f"{place}: probability {float(p):.4f}, {outcome}"))
    value = float(chance)
    exact = scalar_text(sp.simplify(chance))
    if abs(value - float(wanted)) < 1e-12:
        return Proof(UNKNOWN, "the probability is just the one claimed, in the limit", tuple(steps))
    kind = PROVED if value > float(wanted) else REFUTED
    if kind == REFUTED and value + float(unsure) >= float(wanted) - 1e-12:
        return Proof(UNKNOWN, "it is not settled how far the limit is from the target", tuple(steps))
    return Proof(kind, f"the probability tends to {exact} = {value:.4f} as {path.words}", tuple(steps), value)


def _can_be_long(algebra: Algebra, ends: MatrixPolynomial, assumptions: Assumptions) -> bool:
    """Whether a combination of vectors has a free value with a coefficient that is never 0: it may be of any length."""
    declared = algebra.context.families.get("v")
    if declared is not None and declared.kind != "free":
        return False
    many = algebra.context.all_items_named or algebra.context.numbers["n"].hi is None
    return any(
        len(word) == 1
        and word[0].family_name == "v"
        and (isinstance(word[0], Member) or many)
        and sign(coefficient, assumptions) in ("+", "-")
        for word, coefficient in ends.terms.items()
    )


@dataclass(frozen=True)
class ItemLimitFormula:
    """Left minus right of a limit in the number of items, for evaluation at large n by numeric.item_limit_checks."""

    difference: Scalar
    size: Scalar  # the symbol n
    others: tuple[tuple[Scalar, Range], ...]  # the other numbers and their ranges
    tends: bool


def item_limit_formula(context: Context, core: L.Limit) -> ItemLimitFormula | None:
    """The formula of a limit in n alone; None if it holds infinity, statistics, or anything but declared numbers."""
    path = path_of(context, core.approach, core.at)
    algebra = Evaluator(context, path.vanished)
    left, right = algebra.number(core.left), algebra.number(core.right)
    if right in (sp.oo, -sp.oo) or len(path.moving) != 1 or algebra.statistics or algebra.random:
        return None
    size = algebra.symbol("n")
    others = []
    for symbol in sorted((left - right).free_symbols - {size}, key=str):
        name = algebra.declared_name(symbol)
        if name is None:
            return None
        others.append((symbol, context.numbers[name]))
    return ItemLimitFormula(left - right, size, tuple(others), core.tends)
