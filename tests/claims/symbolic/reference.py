"""Independent references: expressions evaluated by mpmath at allowed points, to as many digits as it takes."""

from __future__ import annotations

import contextlib
import random
from fractions import Fraction
from itertools import pairwise

import mpmath
import sympy as sp
from build import Number

DIGITS = (60, 300, 1500)
MODERATE = Fraction(3)
FAR = (Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 7), Fraction(1), Fraction(5, 2), Fraction(9), Fraction(60))
"""Distances from an end of a range: boundary points, and points far out."""


class Undefined(Exception):
    """A point where an expression has no real value."""


class Unresolved(Exception):
    """A value that cancels beyond the digits that were tried."""


def real_log(value):
    """The logarithm of a positive number; a claim says nothing where one of its logarithms has no real value."""
    if not isinstance(value, mpmath.mpc) and value <= 0:
        raise ValueError("the logarithm of a number that is not positive")
    return mpmath.log(value)


def function(expr, symbols, resolved_within: Fraction | None = None):
    """A function of one Fraction per symbol: the value of an expression there, to at least 15 digits and a true sign.

    Precision grows until two values agree. What shrinks with every rise of the precision is 0; but if a number exceeds
    `resolved_within`, where terms may cancel that differ by more orders of magnitude than there are digits, it is
    Unresolved.
    """
    raw = sp.lambdify(symbols, expr, [{"log": real_log}, "mpmath"])

    def at(values, digits):
        with mpmath.workdps(digits):
            try:
                value = raw(*(mpmath.mpf(v.numerator) / v.denominator for v in values))
            except (ZeroDivisionError, ValueError, OverflowError) as why:
                raise Undefined(str(why)) from None
            value = mpmath.mpmathify(value)
            if isinstance(value, mpmath.mpc):
                if abs(value.imag) > abs(value.real) * mpmath.mpf(10) ** (-digits // 2):
                    raise Undefined("a complex value")
                value = value.real
            if not mpmath.isfinite(value):
                raise Undefined("no finite value")
            return value

    def value(*values):
        last = at(values, DIGITS[0])
        for digits in DIGITS[1:]:
            here = at(values, digits)
            with mpmath.workdps(DIGITS[0]):
                if here != 0 and abs(here - last) <= abs(here) * mpmath.mpf(10) ** -15:
                    return here
            last = here
        if resolved_within is not None and any(abs(v) > resolved_within for v in values):
            raise Unresolved
        return mpmath.mpf(0)

    return value


def places(one: Number, rng: random.Random, moderate: bool = False) -> list[Fraction]:
    """Allowed values of a number: its closed ends, points close to both ends and far out, small whole numbers, others.

    Moderate ones keep a twentieth of the range, or 1/20, away from its ends, and are not far out.
    """
    low, high = one.lo, one.hi
    found = [Fraction(v) for v in (-2, -1, 0, 1, 2, 3)] + [Fraction(1, 2), Fraction(-1, 2), Fraction(1, 3)]
    if low is not None and high is not None:
        width = high - low
        shares = [Fraction(k, 997) for k in (1, 3, 498, 499, 994, 996)] + [Fraction(1, 10**6), 1 - Fraction(1, 10**6)]
        shares += [Fraction(rng.randrange(1, 10**6), 10**6) for _ in range(8)]
        found += [low, high, *(low + width * share for share in shares)]
    else:
        width = Fraction(1)
        start = low if low is not None else high if high is not None else Fraction(0)
        ways = (1,) if low is not None else (-1,) if high is not None else (1, -1)
        found += [start, *(start + way * step for way in ways for step in (FAR[:5] if moderate else FAR))]
        found += [
            start + rng.choice(ways) * Fraction(rng.randrange(1, 30_000 if moderate else 100_000), 10**4)
            for _ in range(8)
        ]
    if one.whole:
        base = low or Fraction(0)
        found = [Fraction(round(v)) for v in found] + [base + k for k in (0, 1, 2, 3, 7, 40)]
    if moderate:
        ends = [end for end in (low, high) if end is not None]
        found = [v for v in found if v in ends or all(abs(v - end) >= width / 20 for end in ends)]
    return sorted({v for v in found if one.allows(v)})


def points(numbers: list[Number], rng: random.Random, count: int, moderate: bool = False) -> list[tuple[Fraction, ...]]:
    """Random combinations of the places of all numbers."""
    options = [places(one, rng, moderate) for one in numbers]
    if not numbers:
        return [()]
    return [tuple(rng.choice(o) for o in options) for _ in range(count)]


SIGNS = {
    "+": lambda v: v > 0,
    "-": lambda v: v < 0,
    ">=": lambda v: v >= 0,
    "<=": lambda v: v <= 0,
    "0": lambda v: v == 0,
}


def against(said: str, expr, numbers: list[Number], rng: random.Random, count: int = 60):
    """The first allowed point at which an expression does not have the sign that is said, or None."""
    numbers = [one for one in numbers if expr.has(one.symbol)]
    value = function(expr, [one.symbol for one in numbers], resolved_within=MODERATE)
    for point in points(numbers, rng, count):
        try:
            here = value(*point)
        except (Undefined, Unresolved):
            continue
        if not SIGNS[said](here):
            where = ", ".join(f"{one.symbol} = {v}" for one, v in zip(numbers, point, strict=True))
            return f"{expr} is said to be {said}, but is {mpmath.nstr(here, 8)} at {where}"
    return None


STATIONS = tuple(Fraction(v) for v in (5, 10, 100, 1000, 10**9, 10**18))
"""Where an expression is looked at as a number goes to infinity."""


def off_limit(said, expr, x, to, numbers: list[Number], rng: random.Random, count: int = 12):
    """A point of the other numbers at which an expression does not go to what is said as x goes to `to`, or None.

    The expression is evaluated at places ever closer to `to`. A finite limit is missed when the error is neither small
    at last nor still falls, an infinite one when the last value has another sign or the values no longer grow.
    """
    if said.has(sp.zoo, sp.nan):  # the expression is undefined for these numbers, and nothing is said
        return None
    infinite = said in (sp.oo, -sp.oo)
    others = [one for one in numbers if one.symbol != x and (expr.has(one.symbol) or said.has(one.symbol))]
    symbols = [one.symbol for one in others]
    value = function(expr, [x, *symbols], resolved_within=STATIONS[1])
    target = None if infinite else function(said, symbols)
    for point in points(others, rng, count, moderate=True):
        try:
            seen = _on_the_way(value, _stations(x, to, numbers), point)
            wanted = said if target is None else target(*point)
        except Undefined:
            continue
        if len(seen) > 1 and not (_grows(seen, said) if infinite else _comes_close(seen, wanted)):
            shown = ", ".join(mpmath.nstr(v, 6) for v in seen)
            where = ", ".join(f"{one.symbol} = {v}" for one, v in zip(others, point, strict=True))
            return f"{expr} is said to go to {said} ({wanted}) as {x} -> {to}, but is {shown} on the way; {where}"
    return None


def _stations(x, to, numbers):
    if to in (sp.oo, -sp.oo):
        return [v if to == sp.oo else -v for v in STATIONS]
    at = Fraction(int(to.p), int(to.q))
    own = next(one for one in numbers if one.symbol == x)
    way = 1 if own.allows(at + Fraction(1, 10**9)) else -1
    return [at + way / v for v in STATIONS if own.allows(at + way / v)]


def _on_the_way(value, stations, point):
    seen = []
    for place in stations:
        with contextlib.suppress(Unresolved):
            seen.append(value(place, *point))
    return seen


def _grows(seen, said) -> bool:
    way = 1 if said == sp.oo else -1
    steps = [way * (later - earlier) for earlier, later in pairwise(seen)]
    if len(steps) > 2 and all(step > 0 for step in steps) and steps[-1] >= steps[-2]:
        return True  # a logarithm grows steadily, and may still have the sign of a constant beside it
    return way * seen[-1] > 0 and (abs(seen[-1]) > 10**6 or way * (seen[-1] - seen[-2]) > 1e-6 * abs(seen[-1]))


def _comes_close(seen, wanted) -> bool:
    errors = [abs(v - wanted) for v in seen]
    return errors[-1] <= (1 + abs(wanted)) * 1e-9 or errors[-1] <= 0.9 * errors[-2]
