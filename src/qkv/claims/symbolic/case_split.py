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
from qkv.claims.symbolic.sign_analysis import Assumptions

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
            out.append((assumptions.narrow(symbol, piece), _words(symbol, left, right)))
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


def _words(symbol: Scalar, left: Fraction | None, right: Fraction | None) -> str:
    name = scalar_text(symbol)
    if left is None:
        return f"{name} < {right}"
    return f"{name} > {left}" if right is None else f"{left} < {name} < {right}"


Interval = tuple[Fraction | None, Fraction | None]


def described(cases: list[Case[Found]]) -> str:
    """Where some cases lie, with touching intervals joined: `gamma > 0`."""
    joined = _joined(cases)
    if joined is None:
        return " or ".join(" and ".join(c.said) for c in cases)
    symbol, intervals, points = joined
    words = [_words(symbol, lo, hi) for lo, hi in intervals]
    return " or ".join([*words, *(f"{scalar_text(symbol)} = {p}" for p in points)])


def half_line(cases: list[Case[Found]]) -> tuple[Scalar, str, Fraction] | None:
    """The symbol, the comparison and the bound, if the cases together are all numbers on one side of a bound."""
    joined = _joined(cases)
    if joined is None or len(joined[1]) != 1 or joined[2]:
        return None
    symbol, ((lo, hi),), _ = joined
    if (lo is None) == (hi is None):
        return None
    return (symbol, "<", hi) if hi is not None else (symbol, ">", lo)  # type: ignore[return-value]


def _joined(cases: list[Case[Found]]) -> tuple[Scalar, list[Interval], list[Fraction]] | None:
    """The one symbol whose range was split, the open intervals where the cases lie, and the single points."""
    cut = {s for c in cases for s in c.symbols}
    if len(cut) != 1:
        return None
    (symbol,) = cut
    spans: list[Interval] = []
    for case in cases:
        fixed = case.assumptions.fixed
        at = next((Fraction(int(v.p), int(v.q)) for s, v in fixed if s == symbol and v.is_Rational), None)
        where = case.assumptions.ranges.get(symbol, Range())
        spans.append((at, at) if at is not None else (where.lo, where.hi))
    points = {lo for lo, hi in spans if lo is not None and lo == hi}
    ranges = sorted(
        (s for s in spans if s[0] is None or s[0] != s[1]), key=lambda s: float("-inf") if s[0] is None else s[0]
    )
    without_points = all(symbol in c.null for c in cases)  # single points of a random number were left out
    intervals: list[Interval] = []
    for lo, hi in ranges:
        if intervals and lo is not None and intervals[-1][1] == lo and (lo in points or without_points):
            intervals[-1] = (intervals[-1][0], hi)
            points.discard(lo)
        else:
            intervals.append((lo, hi))
    return symbol, intervals, sorted(points)
