"""Case distinction: where a proof needs a sign, cut a number's range at the roots and prove each piece."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import sympy as sp

from qkv.claims.semantics.context import Range
from qkv.claims.symbolic.evaluator import Unsupported
from qkv.claims.symbolic.matrix_polynomials import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, NeedSign

Found = TypeVar("Found")
MOST_CASES = 24


@dataclass(frozen=True)
class Case(Generic[Found]):
    """One piece of the numbers' ranges, and what was found there."""

    frame: Assumptions
    found: Found
    said: tuple[str, ...]
    symbols: frozenset[Scalar] = frozenset()
    null: frozenset[Scalar] = frozenset()


def by_cases(
    frame: Assumptions,
    decide: Callable[[Assumptions], Found],
    splittable: frozenset[Scalar],
    null: frozenset[Scalar] = frozenset(),
) -> list[Case[Found]]:
    """Decide on every piece. Single points of the numbers in `null`, which are random, have no probability."""
    done: list[Case[Found]] = []
    todo: list[tuple[Assumptions, tuple[str, ...], frozenset[Scalar]]] = [(frame, (), frozenset())]
    while todo:
        here, said, cut = todo.pop()
        try:
            done.append(Case(here, decide(here), said, cut, null))
        except NeedSign as missing:
            pieces = _cut(missing.expr, here, splittable, null)
            symbols = cut | {s for s in here.put(missing.expr).free_symbols if s in splittable}
            todo += [(piece, (*said, words), symbols) for piece, words in pieces]
        if len(done) + len(todo) > MOST_CASES:
            raise Unsupported("too many cases")
    return done


def _cut(
    expr: Scalar, frame: Assumptions, splittable: frozenset[Scalar], null: frozenset[Scalar]
) -> list[tuple[Assumptions, str]]:
    expr = frame.put(expr)
    open_to = [s for s in expr.free_symbols if s in splittable]
    if len(open_to) != 1:
        raise Unsupported(f"the sign of {expr}")
    (symbol,) = open_to
    # Other symbols may only scale: expr = f(symbol) g(others) with g of one sign is left to the sign oracle.
    roots = set()
    for factor, _ in sp.factor_list(sp.fraction(sp.together(expr))[0])[1]:
        if factor.has(symbol):
            if factor.free_symbols != {symbol}:
                raise Unsupported(f"the sign of {expr}")
            for root in sp.Poly(factor, symbol).real_roots():
                if not root.is_Rational:
                    raise Unsupported(f"the sign of {expr}")
                roots.add(Fraction(int(root.p), int(root.q)))
    where = frame.ranges.get(symbol, Range())
    inner = [r for r in sorted(roots) if _inside(where, r)]
    if not inner:
        raise Unsupported(f"the sign of {expr}")
    out: list[tuple[Assumptions, str]] = []
    ends = [where.lo, *inner, where.hi]
    for left, right in itertools.pairwise(ends):
        lo_open = where.lo_open if left == where.lo and left not in inner else True
        hi_open = where.hi_open if right == where.hi and right not in inner else True
        piece = Range(left, right, lo_open, hi_open, where.whole)
        if not piece.empty:
            out.append((frame.narrow(symbol, piece), _words(symbol, left, right)))
    if symbol not in null:
        out += [(frame.fix(symbol, sp.Rational(r.numerator, r.denominator)), f"{symbol} = {r}") for r in inner]
    return out


def _inside(where: Range, root: Fraction) -> bool:
    over = where.lo is None or root > where.lo or (root == where.lo and not where.lo_open)
    under = where.hi is None or root < where.hi or (root == where.hi and not where.hi_open)
    return over and under


def _words(symbol: Scalar, left: Fraction | None, right: Fraction | None) -> str:
    if left is None:
        return f"{symbol} < {right}"
    return f"{symbol} > {left}" if right is None else f"{left} < {symbol} < {right}"


def described(cases: list[Case[Found]]) -> str:
    """Where some cases lie, with touching intervals joined: `gamma > 0`."""
    cut = {s for c in cases for s in c.symbols}
    if len(cut) != 1:
        return " or ".join(" and ".join(c.said) for c in cases)
    (symbol,) = cut
    spans: list[tuple[Fraction | None, Fraction | None]] = []
    for case in cases:
        at = next((Fraction(int(v.p), int(v.q)) for s, v in case.frame.fixed if s == symbol and v.is_Rational), None)
        where = case.frame.ranges.get(symbol, Range())
        spans.append((at, at) if at is not None else (where.lo, where.hi))
    points = {lo for lo, hi in spans if lo is not None and lo == hi}
    ranges = sorted(
        (s for s in spans if s[0] is None or s[0] != s[1]), key=lambda s: float("-inf") if s[0] is None else s[0]
    )
    joined: list[tuple[Fraction | None, Fraction | None]] = []
    for lo, hi in ranges:
        if joined and lo is not None and joined[-1][1] == lo and (lo in points or case_null(cases, symbol)):
            joined[-1] = (joined[-1][0], hi)
            points.discard(lo)
        else:
            joined.append((lo, hi))
    words = [_words(symbol, lo, hi) for lo, hi in joined]
    return " or ".join([*words, *(f"{symbol} = {p}" for p in sorted(points))])


def case_null(cases: list[Case[Found]], symbol: Scalar) -> bool:
    """Whether single points of a symbol were left out because it is random."""
    return all(symbol in c.null for c in cases)
