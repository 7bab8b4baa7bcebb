"""Impossibility: no real number, or no query, makes a statement true; or the one that does."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import sympy as sp

from qkv.claims.semantics.context import Context, built
from qkv.claims.symbolic.evaluator import Algebra, Unsupported, fit
from qkv.claims.symbolic.limit_statements import follower, limit_cases, limit_statement, path_of
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, Scalar
from qkv.claims.symbolic.proof import CONDITIONAL, PROVED, REFUTED, UNKNOWN, Proof, Step, reading_steps, shown, step
from qkv.claims.symbolic.prover import frame_of
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, sign
from qkv.claims.syntax import nodes as L

HERE: L.At = (0, 0)


def never(world: Context, core: L.Never) -> Proof:
    if core.kind == "query":
        return _no_query(world, core)
    algebra, difference, _frame, cases = _every(world, core)
    if algebra.random:
        raise Unsupported("impossibility with random keys")
    r = algebra.symbol(str(core.name))
    if not r.is_Symbol:
        raise L.Malformed(core.at, f"{core.name}, which is fixed", "a number that may vary")
    steps = reading_steps(algebra)
    for here, values in cases:
        apart = next((v for v in values if v.has(sp.oo) or sign(v, here) in ("+", "-")), None)
        if apart is None:
            root = _common_root(values, r, here)
            if root is not None:
                return Proof(
                    REFUTED,
                    f"{core.name} = {shown(root)} makes it true",
                    tuple(steps),
                    notes={str(core.name): str(root) if root.is_Rational else repr(float(root))},
                )
            if all(is_zero(v, here) for v in values):
                value = here.put(r)
                where = f"{core.name} = {shown(value)}" if value != r else f"every {core.name} in some range"
                return Proof(REFUTED, f"{where} makes it true", tuple(steps), notes={str(core.name): str(value)})
            if not _no_common_root(values, r, here):
                return Proof(UNKNOWN, "it is not settled whether all parts can vanish at once")
            steps.append(step("the parts of left minus right have no common zero"))
        else:
            steps.append(Step(f"one part of left minus right stays {shown(apart)}, which is never 0", sp.latex(apart)))
    del difference
    return Proof(PROVED, f"left minus right cannot vanish for any {core.name}", tuple(steps))


def _every(
    world: Context, core: L.Never
) -> tuple[Algebra, MatrixPolynomial, Assumptions, list[tuple[Assumptions, tuple[Scalar, ...]]]]:
    """The parts of left minus right, in the limit where there is one, on every piece of the numbers' ranges."""
    if isinstance(core.inner, L.Limit):
        if not core.inner.tends:
            raise Unsupported("a double negation")
        path = path_of(world, core.inner.approach, core.at)
        algebra = Algebra(world, path.still)
        left, right = algebra.value(core.inner.left), algebra.value(core.inner.right)
        fit(left, right, core.at)
        frame = frame_of(algebra, path.moving)
        difference = left.minus(right)
        _orthogonal_only(algebra, difference)
        cases = limit_cases(algebra, difference, frame, follower(algebra, path), path)
        return algebra, difference, frame, [(c.frame, c.found) for c in cases]
    algebra = Algebra(world)
    (one, two), (op,) = core.inner.sides[:2], core.inner.ops[:1]
    if op != "=" or len(core.inner.ops) > 1:
        raise Unsupported("the impossibility of an inequality")
    left, right = algebra.value(one), algebra.value(two)
    fit(left, right, core.at)
    difference = left.minus(right)
    _orthogonal_only(algebra, difference)
    frame = frame_of(algebra)
    return algebra, difference, frame, [(frame, tuple(difference.terms.values()))]


def _orthogonal_only(algebra: Algebra, difference: MatrixPolynomial) -> None:
    """A nonzero coefficient keeps vectors apart only if they are independent for sure."""
    if difference.scalar:
        return
    for word in difference.terms:
        family = algebra.world.families.get(word[0].name.split("_")[0]) if len(word) == 1 else None
        if family is None or family.kind not in ("orthonormal", "orthogonal"):
            raise Unsupported("impossibility for vectors that may depend on each other")
    if len({word[0].name.split("_")[0] for word in difference.terms}) > 1:
        raise Unsupported("impossibility for vectors of several families, which may depend on each other")


def _common_root(values: tuple[Scalar, ...], r: Scalar, frame: Assumptions) -> Scalar | None:
    """A value of r at which all parts vanish, whatever the other numbers are."""
    shared = _shared(values, r, frame)
    if shared is None or not shared.has(r) or shared.free_symbols != {r}:
        return None
    where = frame.ranges.get(r)
    for root in sp.Poly(shared, r).real_roots():
        if root.is_Rational and (where is None or not where.meet("=", Fraction(int(root.p), int(root.q))).empty):
            return root
        if not root.is_Rational and (where is None or where.holds(float(root))):
            return root
    return None


def _no_common_root(values: tuple[Scalar, ...], r: Scalar, frame: Assumptions) -> bool:
    shared = _shared(values, r, frame)
    return shared is not None and not shared.has(r) and sign(shared, frame) in ("+", "-")


def _shared(values: tuple[Scalar, ...], r: Scalar, frame: Assumptions) -> Scalar | None:
    tops = [sp.fraction(sp.together(frame.put(v)))[0] for v in values if not is_zero(v, frame)]
    if not tops or any(not t.is_polynomial(r) or t.has(sp.exp) for t in tops):
        return None
    out = tops[0]
    for top in tops[1:]:
        out = sp.gcd(out, top)
    return out


def _no_query(world: Context, core: L.Never) -> Proof:
    """Look for a query that does it, among sums of the keys' means with coefficients -1, 0 and 1."""
    if not isinstance(core.inner, L.Limit) or str(core.name) != "q":
        raise Unsupported("the impossibility of anything but a limit for q")
    path = path_of(world, core.inner.approach, core.at)
    scale = next((n for n, to in path.moving if to == sp.oo), None)
    if scale is None or world.tokens:
        raise Unsupported("a query without a scale that grows")
    own = None
    if "q" in world.lets:
        own = limit_statement(world, core.inner)
    base = next((g.mean.base for g in world.noise.values() if isinstance(g.mean, L.Name)), "k")
    for signs in _candidates(len(world.items)):
        q = _query(base, scale, world.items, signs)
        if not _promising(world, q, path.still):
            continue
        claim = world.claim
        lets = (*tuple(let for let in claim.lets if str(let.name) != "q"), L.Let(L.Name("q", (), HERE), q, HERE))
        tried = built(replace(claim, lets=lets, statement=replace(claim.statement, core=core.inner)))
        try:
            found = limit_statement(tried, core.inner)
        except Unsupported:
            continue
        if found.kind == PROVED:
            words = _words(base, scale, world.items, signs)
            said = f"q = {words} makes it true for all keys, since it is orthogonal to the noise"
            if own is None or own.kind == PROVED:
                return Proof(REFUTED, said, found.steps, notes={"q": words})
            mine = step(f"for the query of the claim: {own.because}")
            text = (
                f"true of the query given ({own.because}), false of single-head attention: {said}. "
                "qkv's `harden` designs such queries"
            )
            return Proof(CONDITIONAL, text, (*own.steps, mine, *found.steps, step(said)), notes={"q": words})
    return Proof(UNKNOWN, "no query was found, and none was excluded")


def _candidates(items: int) -> list[tuple[int, ...]]:
    every = [s for s in product((0, 1, -1), repeat=items + 1) if any(s)]
    return sorted(every, key=lambda s: sum(map(abs, s)))


def _query(base: str, scale: str, items: tuple[str, ...], signs: tuple[int, ...]) -> L.Expr:
    total: L.Expr = L.Num(Fraction(0), HERE)
    for item, factor in zip(items, signs, strict=False):
        if factor:
            total = L.Op("+", total, L.Op("*", L.Num(Fraction(factor), HERE), L.Name(base, (item,), HERE), HERE), HERE)
    if signs[-1]:
        rest = L.Sum("i", items, L.Name(base, ("i",), HERE), HERE)
        total = L.Op("+", total, L.Op("*", L.Num(Fraction(signs[-1]), HERE), rest, HERE), HERE)
    return L.Op("*", L.Name(scale, (), HERE), total, HERE)


def _words(base: str, scale: str, items: tuple[str, ...], signs: tuple[int, ...]) -> str:
    parts = [f"{'-' if f < 0 else '+'} {base}_{i}" for i, f in zip(items, signs, strict=False) if f]
    if signs[-1]:
        parts.append(f"{'-' if signs[-1] < 0 else '+'} sum_{{i not in {', '.join(items)}}} {base}_i")
    return f"{scale}*({' '.join(parts).removeprefix('+ ')})"


def _promising(world: Context, q: L.Expr, still: frozenset[str]) -> bool:
    """Whether no score that the query makes is random once the small noise is gone."""
    lets = {**world.lets, "q": L.Let(L.Name("q", (), HERE), q, HERE)}
    algebra = Algebra(replace(world, lets=lets), still)
    from qkv.claims.symbolic import attention_terms

    return not any(
        s in algebra.random for item in world.items for s in attention_terms.score(algebra, "", item).free_symbols
    )
