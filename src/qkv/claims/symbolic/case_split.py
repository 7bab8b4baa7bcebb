"""Case distinction: where a proof needs a sign, split the range of a number at the roots and prove each piece."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.printing import scalar_text
from qkv.claims.symbolic.proof import Region
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.syntax.nodes import MIRRORED_OP

Found = TypeVar("Found")
MAX_CASES = 24  # pieces of the ranges


@dataclass(frozen=True)
class Case(Generic[Found]):
    """One piece of the numbers' ranges, what was found there, and how the piece was reached.

    `said` are the splits in words, `symbols` the numbers whose ranges were split, `null` the random numbers, single
    points of which have no probability and were left out.
    """

    assumptions: Assumptions
    found: Found
    said: tuple[str, ...]
    symbols: frozenset[Scalar] = frozenset()
    null: frozenset[Scalar] = frozenset()


def by_cases(
    assumptions: Assumptions,
    decide: Callable[[Assumptions], Found],
    splittable: frozenset[Scalar],
    null: frozenset[Scalar] = frozenset(),
) -> list[Case[Found]]:
    """Decide on every piece. Single points of the numbers in `null`, which are random, have no probability."""
    done: list[Case[Found]] = []
    todo: list[tuple[Assumptions, tuple[str, ...], frozenset[Scalar]]] = [(assumptions, (), frozenset())]
    while todo:
        here, said, cut = todo.pop()
        try:
            done.append(Case(here, decide(here), said, cut, null))
        except NeedSign as missing:
            pieces = _cut(missing.expr, here, splittable, null)
            symbols = cut | {s for s in here.put(missing.expr).free_symbols if s in splittable}
            todo += [(piece, (*said, words), symbols) for piece, words in pieces]
        if len(done) + len(todo) > MAX_CASES:
            raise Unsupported("too many cases")
    return done


def _cut(
    expr: Scalar, assumptions: Assumptions, splittable: frozenset[Scalar], null: frozenset[Scalar]
) -> list[tuple[Assumptions, str]]:
    expr = assumptions.put(expr)
    open_to = [s for s in expr.free_symbols if s in splittable]
    if len(open_to) != 1:
        raise Unsupported(f"the sign of {scalar_text(expr)}")
    (symbol,) = open_to
    # Other symbols may only scale: expr = f(symbol) g(others) with g of one sign is left to sign_analysis.
    roots = set()
    for factor, _ in sp.factor_list(sp.fraction(sp.together(expr))[0])[1]:
        if factor.has(symbol):
            if factor.free_symbols != {symbol}:
                raise Unsupported(f"the sign of {scalar_text(expr)}")
            for root in sp.Poly(factor, symbol).real_roots():
                if not root.is_Rational:
                    raise Unsupported(f"the sign of {scalar_text(expr)}")
                roots.add(Fraction(int(root.p), int(root.q)))
    where = assumptions.ranges.get(symbol, Range())
    inner = [r for r in sorted(roots) if _inside(where, r)]
    if not inner:
        raise Unsupported(f"the sign of {scalar_text(expr)}")
    out: list[tuple[Assumptions, str]] = []
    ends = [where.lo, *inner, where.hi]
    for left, right in itertools.pairwise(ends):
        lo_open = where.lo_open if left == where.lo and left not in inner else True
        hi_open = where.hi_open if right == where.hi and right not in inner else True
        piece = Range(left, right, lo_open, hi_open, where.whole)
        if not piece.empty:
            out.append((assumptions.narrow(symbol, piece), _words(symbol, piece)))
    if symbol not in null:
        out += [
            (assumptions.fix(symbol, sp.Rational(r.numerator, r.denominator)), f"{scalar_text(symbol)} = {r}")
            for r in inner
        ]
    return out


def _inside(where: Range, root: Fraction) -> bool:
    over = where.lo is None or root > where.lo or (root == where.lo and not where.lo_open)
    under = where.hi is None or root < where.hi or (root == where.hi and not where.hi_open)
    return over and under


def _words(symbol: Scalar, where: Range) -> str:
    """An interval as text, with the ends that belong to it."""
    name, least, most = scalar_text(symbol), "<" + "=" * (not where.lo_open), "<" + "=" * (not where.hi_open)
    if where.point is not None:
        return f"{name} = {where.point}"
    if where.lo is None:
        return f"{name} {most} {where.hi}" if where.hi is not None else f"any {name}"
    return (
        f"{name} {MIRRORED_OP[least]} {where.lo}"
        if where.hi is None
        else f"{where.lo} {least} {name} {most} {where.hi}"
    )


def described(cases: list[Case[Found]]) -> str:
    """Where some cases lie, with touching intervals joined: `gamma > 0`."""
    joined = region(cases)
    if joined is None:
        return " or ".join(" and ".join(c.said) for c in cases)
    return described_region(joined)


def described_region(where: Region) -> str:
    """The intervals of a number as text."""
    symbol, intervals = where
    ordered = sorted(intervals, key=lambda where: where.point is not None)  # single points come last
    return " or ".join(_words(symbol, where) for where in ordered)


def half_line(cases: list[Case[Found]]) -> tuple[Scalar, str, Fraction] | None:
    """The symbol, the comparison and the bound, if the cases together are all numbers on one side of a bound."""
    joined = region(cases)
    if joined is None or len(joined[1]) != 1:
        return None
    symbol, (where,) = joined
    if (where.lo is None) == (where.hi is None):
        return None
    if where.hi is not None:
        return symbol, "<" if where.hi_open else "<=", where.hi
    return symbol, ">" if where.lo_open else ">=", where.lo  # type: ignore[return-value]


def region(cases: list[Case[Found]]) -> Region | None:
    """The one symbol whose range was split, and the intervals where the cases lie, joined where they touch."""
    cut = {s for c in cases for s in c.symbols}
    if len(cut) != 1:
        return None
    (symbol,) = cut
    spans: list[Range] = []
    for case in cases:
        fixed = case.assumptions.fixed
        at = next((Fraction(int(v.p), int(v.q)) for s, v in fixed if s == symbol and v.is_Rational), None)
        spans.append(case.assumptions.ranges.get(symbol, Range()) if at is None else Range(at, at))
    without_points = all(symbol in c.null for c in cases)  # single points of a random number were left out
    spans.sort(key=lambda where: (where.lo is not None, where.lo or 0, where.point is None))
    intervals: list[Range] = []
    for where in spans:
        last = intervals[-1] if intervals else None
        touches = last is not None and last.hi is not None and last.hi == where.lo
        if touches and last is not None and (without_points or not (last.hi_open and where.lo_open)):
            intervals[-1] = Range(last.lo, where.hi, last.lo_open, where.hi_open, where.whole)
        else:
            intervals.append(where)
    return symbol, intervals


def common_region(regions: list[Region]) -> Region | None:
    """Where all of some regions of one number overlap, but for single points; None if they are of several numbers."""
    symbols = {symbol for symbol, _ in regions}
    if len(symbols) != 1:
        return None
    left = [Range()]
    for _, intervals in regions:
        left = [part for one in left for other in intervals if not (part := _overlap(one, other)).empty]
    return symbols.pop(), left


def _overlap(one: Range, other: Range) -> Range:
    out = one
    if other.lo is not None:
        out = out.meet(">" if other.lo_open else ">=", other.lo)
    return out.meet("<" if other.hi_open else "<=", other.hi) if other.hi is not None else out
