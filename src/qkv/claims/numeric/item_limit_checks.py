"""Numerical check of limits in the number of items: the formulas of both sides, evaluated at large n.

No array holds that many items, so the formulas come from the symbolic part; they are evaluated with 30 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import sympy as sp

from qkv.claims.semantics.ranges import Range

ITEM_COUNTS = (10**3, 10**6, 10**12)
FAR_COUNTS = (10**3, 10**6, 10**12, 10**24, 10**48)  # where a difference falls with log n only
SLOW_FALL = 0.75  # factor by which it falls at least from one of these to the next, whose log n doubles
MAX_DIGITS = 400  # that are computed with, so that DIGITS of a difference are right
OTHER_NUMBERS = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(-1), Fraction(7, 2))
DIGITS = 30
NOT_TRIED = "not tried numerically: no array holds that many items"


class ItemLimit(Protocol):
    """Left minus right of a limit in n (symbolic.limit_statements.ItemLimitFormula)."""

    @property
    def difference(self) -> Any:
        """Left minus right, a SymPy expression."""

    @property
    def size(self) -> Any:
        """The symbol n."""

    @property
    def others(self) -> tuple[tuple[Any, Range], ...]:
        """The other numbers in it, with their ranges."""

    @property
    def tends(self) -> bool:
        """Whether the difference is claimed to go to 0."""


def formulas_agree(formulas: Sequence[ItemLimit | None]) -> tuple[bool, str]:
    """Whether left minus right shrinks as n grows, in every case of a claim, and how that was tried."""
    tried = farthest = 0
    for formula in formulas:
        for here in _instances(formula) if formula is not None else ():
            tried += 1
            counts: Sequence[int] = ITEM_COUNTS
            shrinks = _shrinks(here, formula.size, counts)  # type: ignore[union-attr]
            if shrinks is False:
                counts = FAR_COUNTS
                shrinks = _shrinks(here, formula.size, counts)  # type: ignore[union-attr]
            farthest = max(farthest, len(str(counts[-1])) - 1)
            if shrinks is not None and formula.tends != shrinks:  # type: ignore[union-attr]
                return False, "a bug: the formulas do not go there as n grows from 1000 to 10^48"
    if not tried:
        return True, NOT_TRIED
    return (
        True,
        f"the formulas go there as n grows from 10^3 to 10^{farthest}, with {tried} choices of the other numbers",
    )


def _shrinks(difference: Any, size: Any, counts: Sequence[int]) -> bool | None:
    """Whether a difference goes to 0 as n grows; None where it is not a finite number."""
    gaps = _gaps(difference, size, counts)
    if gaps is None:
        return None
    slowly = counts is FAR_COUNTS and all(two < SLOW_FALL * one for one, two in pairwise(gaps))
    return slowly or gaps[-1] < max(1e-6, gaps[0] / 50)


def _gaps(difference: Any, size: Any, counts: Sequence[int]) -> list[float] | None:
    """|left - right| at each n; None where it is not a finite number."""
    found = [sp.N(abs(difference.subs(size, count)), DIGITS, maxn=MAX_DIGITS) for count in counts]
    return [float(x) for x in found] if all(x.is_real and x.is_finite for x in found) else None


def _instances(formula: ItemLimit) -> Iterator[Any]:
    """Left minus right for several choices of the other numbers."""
    for turn in range(len(OTHER_NUMBERS)):
        values = {}
        for j, (symbol, where) in enumerate(formula.others):
            candidates = OTHER_NUMBERS[turn:] + OTHER_NUMBERS[:turn]
            allowed = [x for x in candidates if where.meet("=", x).point == x]
            if not allowed:
                return
            values[symbol] = sp.Rational(str(allowed[j % len(allowed)]))
        yield formula.difference.subs(values)
