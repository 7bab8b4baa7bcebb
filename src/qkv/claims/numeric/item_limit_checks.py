"""Numerical check of limits in the number of items: the formulas of both sides, evaluated at large n.

No array holds that many items, so the formulas come from the symbolic part; they are evaluated with 30 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import sympy as sp

from qkv.claims.semantics.ranges import Range

ITEM_COUNTS = (10**3, 10**6, 10**12)
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
    tried = 0
    for formula in formulas:
        for gaps in _gaps(formula) if formula is not None else ():
            tried += 1
            if gaps is not None and formula.tends != (gaps[-1] < max(1e-6, gaps[0] / 50)):  # type: ignore[union-attr]
                return False, "a bug: the formulas do not go there as n grows from 1000 to 10^12"
    if not tried:
        return True, NOT_TRIED
    return True, f"the formulas go there at n = 10^3, 10^6 and 10^12, with {tried} choices of the other numbers"


def _gaps(formula: ItemLimit) -> Iterator[list[float] | None]:
    """|left - right| at each n, for several choices of the other numbers; None where it is not a finite number."""
    for turn in range(len(OTHER_NUMBERS)):
        values = {}
        for j, (symbol, where) in enumerate(formula.others):
            candidates = OTHER_NUMBERS[turn:] + OTHER_NUMBERS[:turn]
            allowed = [x for x in candidates if where.meet("=", x).point == x]
            if not allowed:
                return
            values[symbol] = sp.Rational(str(allowed[j % len(allowed)]))
        here = formula.difference.subs(values)
        found = [sp.N(abs(here.subs(formula.size, count)), DIGITS) for count in ITEM_COUNTS]
        yield [float(x) for x in found] if all(x.is_real and x.is_finite for x in found) else None
