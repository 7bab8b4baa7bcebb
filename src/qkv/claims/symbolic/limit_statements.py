"""Limits: of numbers, vectors and statistics, for all numbers in range, or with a probability when keys are random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from qkv.claims.semantics.context import Context, constant
from qkv.claims.symbolic.case_split import Case, by_cases, described
from qkv.claims.symbolic.evaluator import Algebra, Unsupported, fit
from qkv.claims.symbolic.growth_limits import limit
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, Scalar, scalar
from qkv.claims.symbolic.proof import (
    CONDITIONAL,
    PROVED,
    REFUTED,
    UNKNOWN,
    Proof,
    Step,
    element,
    element_latex,
    latex,
    reading_steps,
    shown,
    step,
)
from qkv.claims.symbolic.prover import frame_of, link, relation
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, sign
from qkv.claims.symbolic.statistics import chances, limit_of, region_probability, regions
from qkv.claims.syntax import nodes as L

Values = tuple[Scalar, ...]


@dataclass(frozen=True)
class Path:
    """Where the numbers go: noise sizes that vanish first, then the others one after the other."""

    still: frozenset[str]
    moving: tuple[tuple[str, Scalar], ...]

    @property
    def words(self) -> str:
        return ", ".join([*(f"{s} -> 0" for s in sorted(self.still)), *(f"{n} -> {to}" for n, to in self.moving)])


def path_of(world: Context, approach: tuple[L.Approach, ...], at: L.At) -> Path:
    """The limits of a statement after those that are given for all of them."""
    every = (*world.limits, *approach)
    if not every:
        raise L.Malformed(at, "a limit or an ≈ that does not say in which limit it is meant", "as t -> oo")
    sizes = world.noise_sizes
    still: set[str] = set()
    moving: list[tuple[str, Scalar]] = []
    for one in every:
        to = _target(one)
        where = world.numbers.get(one.name)
        if where is not None and not _reachable(where.lo, where.hi, to):
            raise L.Malformed(one.at, f"{one.name} -> {to} outside its range", "a place in the range of the number")
        if one.name == "n" and to != sp.oo:
            raise L.Malformed(one.at, f"n -> {to}", "n -> oo")
        if one.name in sizes and to == 0:
            if moving:
                raise Unsupported(f"{one.name} -> 0 after another limit: let the noise vanish first")
            still.add(one.name)
        elif any(n == one.name for n, _ in moving):
            raise L.Malformed(one.at, f"a second limit for {one.name}", "one limit for each number")
        else:
            moving.append((one.name, to))
    return Path(frozenset(still), tuple(moving))


def _target(one: L.Approach) -> Scalar:
    if isinstance(one.to, L.Name) and one.to.base == "oo":
        return sp.oo
    if isinstance(one.to, L.Neg) and isinstance(one.to.inner, L.Name) and one.to.inner.base == "oo":
        return -sp.oo
    value = constant(one.to)
    if value is None:
        raise L.Malformed(one.at, "a limit that is no number", "oo, -oo or a number")
    return sp.Rational(value.numerator, value.denominator)


def _reachable(lo: object, hi: object, to: Scalar) -> bool:
    low = -sp.oo if lo is None else sp.Rational(str(lo))
    high = sp.oo if hi is None else sp.Rational(str(hi))
    return bool(low <= to <= high)


def follower(algebra: Algebra, path: Path) -> Callable[[Scalar, Assumptions], Scalar]:
    """Take all limits of a scalar in their order."""
    given = (*(f.relation for f in algebra.world.scores), *(order.sides for order in algebra.world.orders))
    facts = {str(n) for relation in given for n in L.nodes(relation) if isinstance(n, L.Name)}

    def follow(expr: Scalar, frame: Assumptions) -> Scalar:
        for name, to in path.moving:
            x = algebra.symbol(name)
            if not x.is_Symbol:
                raise Unsupported(f"a limit of {name}, which is fixed")
            # Unknowns that may move with x: sums of unnamed exponentials always, scores when x bounds them.
            expr = frame.put(expr)
            loose = {s for s in expr.free_symbols if s.name.startswith(("theta(", "rest("))}
            if loose and name == "n":
                raise Unsupported("free keys as their number grows")
            if name in facts:
                loose |= {s for s in expr.free_symbols if s.name.startswith(("gap(", "<"))}
            expr = limit(expr, x, to, frame, frozenset(loose))
            if expr.has(sp.oo, sp.zoo, sp.nan):
                return expr if not expr.has(sp.nan, sp.zoo) else sp.nan
        return expr

    return follow


def settled(
    algebra: Algebra, expr: Scalar, frame: Assumptions, follow: Callable[[Scalar, Assumptions], Scalar]
) -> Scalar:
    """Put in the limit of every statistic that has no closed form."""
    gone = {algebra.symbol(n) for n in algebra.world.gone}
    every = dict.fromkeys(algebra.statistics, sp.Integer(1))
    for name in sorted(expr.free_symbols & set(algebra.statistics), key=str):
        factor = sp.expand(sp.diff(expr, name))
        if factor.free_symbols & gone:  # a statistic that vanishes may be multiplied by a number that grows
            parts = [follow(part.xreplace(every), frame) for part in sp.Add.make_args(factor)]
            if factor.has(name) or any(part.has(sp.oo, sp.zoo, sp.nan) for part in parts):
                raise Unsupported("a statistic times a number that grows")
        expr = expr.subs(name, limit_of(algebra, frame, name, follow))
    return expr


def limit_statement(world: Context, core: L.Limit) -> Proof:
    """left -> right: every coefficient of their difference, times the length of its vector, goes to 0."""
    path = path_of(world, core.approach, core.at)
    algebra = Algebra(world, path.still)
    one, two = algebra.value(core.left), algebra.value(core.right)
    fit(one, two, core.at)
    frame = frame_of(algebra, path.moving)
    follow = follower(algebra, path)
    steps = reading_steps(algebra)
    if two.scalar and two.number() in (sp.oo, -sp.oo):
        return _to_infinity(algebra, one.number(), two.number(), frame, follow, core.tends, steps)
    cases = limit_cases(algebra, one.minus(two), frame, follow, path)
    if len(element(one)) < 400:
        text = f"left side: {element(one)}; right side: {element(two)}"
        steps.append(Step(text, rf"{element_latex(one)} \to {element_latex(two)}"))
    steps += _region_steps(algebra, one, frame, follow)
    steps += _limit_steps(algebra, one, frame, follow, path)
    good = [c for c in cases if all(is_zero(v, c.frame) for v in c.found)]
    random = frozenset().union(*(chances(algebra, c) for c in one.minus(two).terms.values()), frozenset())
    if random and 0 < len(good) < len(cases):
        return _with_probability(algebra, cases, good, random, core.tends, steps)
    words = f" as {path.words}"
    if len(good) == len(cases):
        kind = PROVED if core.tends else REFUTED
        sure = "; almost surely, so in probability" if random else ""
        return Proof(kind, f"every part of left minus right goes to 0{words}{sure}", tuple(steps))
    found = "; ".join(filter(None, (_in_case(algebra, one, c, follow) for c in cases)))
    if not good:
        apart = _surely_apart(algebra, one.minus(two), cases)
        if not core.tends and not apart:
            return Proof(UNKNOWN, "the limit differs for some vectors at most", tuple(steps))
        because = f"the limit is {found}{words}" if found else f"left minus right does not go to 0{words}"
        return Proof(REFUTED if core.tends else PROVED, because, tuple(steps), sure=apart)
    true, false = described(good), described([c for c in cases if c not in good])
    if not core.tends:
        true, false = false, true
    return Proof(CONDITIONAL, f"true when {true}; false when {false}", tuple(steps), notes={"when": true})


def limit_cases(
    algebra: Algebra,
    difference: MatrixPolynomial,
    frame: Assumptions,
    follow: Callable[[Scalar, Assumptions], Scalar],
    path: Path,
) -> list[Case[Values]]:
    if not difference.scalar and any(name == "n" for name, _ in path.moving):
        raise Unsupported("vectors as the number of items grows")
    coefficients = [settled(algebra, c, frame, follow) * _length(algebra, w, path) for w, c in difference.terms.items()]
    random = frozenset().union(*(chances(algebra, c) for c in coefficients), frozenset())
    moving = {algebra.symbol(n) for n, _ in path.moving}
    numbers = {s for n, s in algebra.symbols.items() if s.is_Symbol and n != "n" and s not in moving}
    return by_cases(frame, lambda f: tuple(follow(c, f) for c in coefficients), frozenset(numbers) | random, random)


def _length(algebra: Algebra, word: tuple[object, ...], path: Path) -> Scalar:
    """Vectors whose norm moves with the limit count with that norm."""
    out: Scalar = sp.Integer(1)
    for atom in word:
        family = algebra.world.families.get(atom.name.removeprefix("mean(").split("_")[0])  # type: ignore[attr-defined]
        if family is not None and family.norm is not None:
            norm = algebra.number(family.norm)
            if any(norm.has(algebra.symbol(n)) for n, _ in path.moving):
                out *= norm
    return out


def _surely_apart(algebra: Algebra, difference: MatrixPolynomial, cases: list[Case[Values]]) -> bool:
    """For "does not tend" the limit must differ for all vectors: numbers, or members of orthogonal families."""
    if not difference.scalar:
        bases = {w[0].name.split("_")[0] for w in difference.terms if len(w) == 1}
        kinds = {algebra.world.families[b].kind for b in bases if b in algebra.world.families}
        if len(bases) != 1 or not kinds <= {"orthonormal", "orthogonal"} or not kinds:
            return False
    return all(any(v.has(sp.oo) or sign(v, c.frame) in ("+", "-") for v in c.found) for c in cases)


def _with_probability(
    algebra: Algebra,
    cases: list[Case[Values]],
    good: list[Case[Values]],
    random: frozenset[Scalar],
    tends: bool,
    steps: list[Step],
) -> Proof:
    if any(c.frame.fixed != cases[0].frame.fixed for c in cases):
        raise Unsupported("cases in numbers and in chance at once")
    chance = sp.Integer(0)
    lines = []
    for case in cases:
        p = region_probability(algebra, case.frame, random)
        lines.append(step(f"{described([case])}: probability {float(p):.4f}, {'true' if case in good else 'false'}"))
        chance += p if case in good else 0
    total = sum((region_probability(algebra, case.frame, random) for case in cases), sp.Integer(0))
    exact = sp.simplify(chance / total)  # given the condition, where there is one
    value = float(exact)
    if not tends:
        value, exact = 1 - value, 1 - exact
        good = [c for c in cases if c not in good]
    where = described(good)
    because = f"true with probability {value:.4f} in the limit, that is when {where}; false otherwise"
    return Proof(CONDITIONAL, because, (*steps, *lines), value, {"probability": shown(exact), "when": where})


def _to_infinity(
    algebra: Algebra,
    value: Scalar,
    to: Scalar,
    frame: Assumptions,
    follow: Callable[[Scalar, Assumptions], Scalar],
    tends: bool,
    steps: list[Step],
) -> Proof:
    found = follow(settled(algebra, value, frame, follow), frame)
    kind = PROVED if (found == to) == tends else REFUTED
    return Proof(kind, f"the limit is {shown(found)}", (*steps, Step(f"limit: {shown(found)}", latex(found))))


def _in_case(
    algebra: Algebra, one: MatrixPolynomial, case: Case[Values], follow: Callable[[Scalar, Assumptions], Scalar]
) -> str:
    found = _actual(algebra, one, case.frame, follow)
    return f"{found} when {described([case])}" if found and case.said else found


def _actual(
    algebra: Algebra, one: MatrixPolynomial, frame: Assumptions, follow: Callable[[Scalar, Assumptions], Scalar]
) -> str:
    """What the left side really tends to, where that can be said."""
    try:
        terms = {w: follow(settled(algebra, c, frame, follow), frame) for w, c in one.terms.items()}
    except Exception:  # it is only for the message
        return ""
    kept = MatrixPolynomial({w: c for w, c in terms.items() if not is_zero(c)}, one.shape)
    text = element(kept)
    number = kept.number()
    if kept.scalar and number.is_number and not number.is_Rational and not number.has(sp.oo):
        text += f" = {float(number):.4g}"
    return text


def _region_steps(
    algebra: Algebra, one: MatrixPolynomial, frame: Assumptions, follow: Callable[[Scalar, Assumptions], Scalar]
) -> list[Step]:
    """For a statistic of weights: where the random numbers fall, with which probability, and the weights there."""
    found = sorted(set().union(*(c.free_symbols for c in one.terms.values()), set()) & set(algebra.statistics), key=str)
    steps = []
    for name in found[:1]:
        function, inner = algebra.statistics[name]
        for probability, values, case in regions(algebra, frame, inner, follow):
            place = described([case]) if case.said else "always"
            limits = ", ".join(f"{shown(e)} -> {shown(v)}" for e, v in zip(inner, values, strict=True))
            steps.append(step(f"{place}, with probability {shown(sp.simplify(probability))}: {limits}"))
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
    frame: Assumptions,
    follow: Callable[[Scalar, Assumptions], Scalar],
    path: Path,
) -> list[Step]:
    steps = []
    for word, coefficient in one.terms.items():
        name = element(MatrixPolynomial({word: sp.Integer(1)}, one.shape)) if word else "left side"
        try:
            to = follow(settled(algebra, coefficient, frame, follow), frame)
        except Exception:  # a step that cannot be shown is left out
            continue
        said = f"coefficient of {name}" if word else name
        text = f"{said}: {shown(coefficient)} -> {shown(to)} as {path.words}"
        steps.append(Step(text, rf"{latex(coefficient)} \to {latex(to)}"))
    return steps


def relation_in_limit(world: Context, core: L.Relation) -> Proof:
    """A relation under given limits: noise that vanishes is put to 0, other limits are taken of both sides."""
    path = path_of(world, (), core.at)
    algebra = Algebra(world, path.still)
    if not path.moving:
        return relation(world, core, algebra)
    follow = follower(algebra, path)
    steps: list[Step] = []
    for left, op, right in core.pairs():
        one, two = algebra.value(left), algebra.value(right)
        fit(one, two, core.at)
        frame = frame_of(algebra, path.moving)
        if not one.minus(two).scalar and not one.minus(two).anything:
            raise Unsupported("an order of vectors in a limit")
        sides = [scalar(follow(settled(algebra, e.number(), frame, follow), frame)) for e in (one, two)]
        if any(chances(algebra, s.number()) or s.number().has(sp.oo, sp.nan) for s in sides):
            raise Unsupported("a comparison of limits that are random or infinite")
        values = ", ".join(
            f"{element(s)}" + (f" = {float(s.number()):.4g}" if s.number().is_number else "") for s in sides
        )
        steps.append(
            Step(
                f"limits of both sides as {path.words}: {values}",
                rf"{element_latex(sides[0])},\; {element_latex(sides[1])}",
            )
        )
        found = link(algebra, sides[0], op, sides[1], frame)
        if found.kind != PROVED:
            return Proof(
                found.kind,
                f"in the limit, {found.because}",
                (*reading_steps(algebra), *steps, *found.steps),
                notes=found.notes,
                sure=found.sure,
            )
    return Proof(PROVED, f"the limits of both sides are {values}", (*reading_steps(algebra), *steps))


def within(world: Context, core: L.Within) -> Proof:
    """The probability of ending within a distance: where the limit is the target itself, and where it is near."""
    if core.op not in (">=", ">"):
        raise L.Malformed(core.at, f"probability {core.op}", ">= or >")
    if not world.limits and not core.approach:
        raise Unsupported("a probability at a fixed scale has no closed form here")
    path = path_of(world, core.approach, core.at)
    algebra = Algebra(world, path.still)
    one, two = algebra.value(core.left), algebra.value(core.target)
    fit(one, two, core.at)
    radius, wanted = algebra.number(core.radius), algebra.number(core.probability)
    frame = frame_of(algebra, path.moving)
    if sign(radius, frame) != "+":
        raise L.Malformed(core.at, "a distance that is not positive", "a positive distance")
    follow = follower(algebra, path)
    difference = one.minus(two)
    cases = limit_cases(algebra, difference, frame, follow, path)
    random = frozenset().union(*(chances(algebra, c) for c in difference.terms.values()), frozenset())
    chance: Scalar = sp.Integer(0)
    steps = reading_steps(algebra)
    for case in cases:
        ends = MatrixPolynomial(
            {w: v for w, v in zip(difference.terms, case.found, strict=True) if not is_zero(v, case.frame)},
            difference.shape,
        )
        square = ends.transposed().times(ends, algebra.inner).number() if ends.terms else sp.Integer(0)
        near = not ends.terms or sign(square - radius**2, case.frame) == "-"
        p = region_probability(algebra, case.frame, random)
        chance += p if near else 0
        place = described([case]) if case.said else "always"
        steps.append(
            step(f"{place}: probability {float(p):.4f}, off by {element(ends)}: {'within' if near else 'outside'}")
        )
    value = float(chance)
    exact = shown(sp.simplify(chance))
    if abs(value - float(wanted)) < 1e-12:
        return Proof(UNKNOWN, "the probability is just the one claimed, in the limit", tuple(steps))
    kind = PROVED if value > float(wanted) else REFUTED
    return Proof(kind, f"the probability tends to {exact} = {value:.4f} as {path.words}", tuple(steps), value)
