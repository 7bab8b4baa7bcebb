"""Range: an interval of numbers, perhaps of whole numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Range:
    """An interval of numbers; an end that is None is infinite, and `whole` keeps whole numbers only."""

    lo: Fraction | None = None
    hi: Fraction | None = None
    lo_open: bool = False
    hi_open: bool = False
    whole: bool = False

    def meet(self, op: str, bound: Fraction) -> Range:
        """The part of the range whose numbers x satisfy `x op bound`."""
        lo, hi, lo_open, hi_open = self.lo, self.hi, self.lo_open, self.hi_open
        if op in (">", ">=", "=") and (lo is None or bound > lo or (bound == lo and op == ">")):
            lo, lo_open = bound, op == ">"
        if op in ("<", "<=", "=") and (hi is None or bound < hi or (bound == hi and op == "<")):
            hi, hi_open = bound, op == "<"
        if self.whole:
            if lo is not None and (lo_open or lo.denominator > 1):
                lo, lo_open = Fraction(lo.__floor__() + 1), False
            if hi is not None and (hi_open or hi.denominator > 1):
                hi, hi_open = Fraction(hi.__ceil__() - 1), False
        return Range(lo, hi, lo_open, hi_open, self.whole)

    def holds(self, value: float) -> bool:
        """Whether a number lies in the range, up to rounding at an end that belongs to it."""
        slack = 1e-12 * (1 + abs(value))
        over = self.lo is None or value > float(self.lo) or (not self.lo_open and value >= float(self.lo) - slack)
        under = self.hi is None or value < float(self.hi) or (not self.hi_open and value <= float(self.hi) + slack)
        return over and under

    @property
    def empty(self) -> bool:
        """Whether no number lies in the range."""
        if self.lo is None or self.hi is None:
            return False
        return self.lo > self.hi or (self.lo == self.hi and (self.lo_open or self.hi_open))

    @property
    def point(self) -> Fraction | None:
        """The only number of the range, if there is one."""
        return self.lo if self.lo is not None and self.lo == self.hi and not self.empty else None
