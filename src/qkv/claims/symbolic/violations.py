"""Allowed places at which an order between numbers fails: ends of ranges, simple numbers, equal numbers.

Places are proposed in floating point, and kept only if an enclosure, or an identity, shows the violation.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra
from qkv.claims.symbolic.enclosures import nonzero_sign
from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero
from qkv.claims.symbolic.unknowns import Unknown

Place = tuple[tuple[str, Fraction], ...]
"""Names of numbers with their values."""

STEPS = tuple(Fraction(x) for x in ("1/1000000", "1/1000", "1/10", "1/2", "1", "2", "5", "20", "300"))
SIMPLE = tuple(Fraction(x) for x in ("0", "1", "-1", "1/2", "-1/2", "2", "-2", "5", "-5", "20", "-20"))
WHOLE_STEPS = (0, 1, 2, 3, 7, 30, 100)
MAX_ITEMS = 1000  # of an instance that can be shown
MAX_PLACES = 60_000  # that are proposed
MAX_SYMBOLS = 4
N_CHECKED = 8  # places that are enclosed
CLEAR = 1e-9  # a violation this large is one in spite of rounding
NEAR = 1e-12  # a difference this small, relative to 1, may be 0


def violating_place(algebra: Algebra, value: Scalar, op: str, assumptions: Assumptions) -> Place | None:
    """Allowed values of the declared numbers at which `value op 0` is false for certain; None if none is found."""
    symbols = sorted(value.free_symbols, key=str)
    names = [algebra.declared_name(s) for s in symbols]
    if assumptions.fixed or algebra.statistics or not symbols or len(symbols) > MAX_SYMBOLS:
        return None
    if any(
        n is None or n in algebra.context.random or isinstance(s, Unknown) for n, s in zip(names, symbols, strict=True)
    ):
        return None
    grids = [
        _candidates(assumptions.ranges.get(s, Range()), name == "n") for s, name in zip(symbols, names, strict=True)
    ]
    while any(grids) and int(np.prod([float(len(g)) for g in grids])) > MAX_PLACES:
        longest = max(grids, key=len)
        longest[:] = longest[:2] + longest[2::2]
    places = list(itertools.product(*grids))
    amounts = _amounts(value if op in ("<", "<=") else -value, symbols, places)
    order = np.argsort(-amounts, kind="stable")
    if "n" in names:  # few items make an instance that can be read
        counts = np.array([float(place[names.index("n")]) for place in places])
        order = np.lexsort((-amounts, counts, amounts <= CLEAR))
    near = np.flatnonzero(np.abs(amounts) <= NEAR) if op in ("<", ">") else np.array([], dtype=int)
    wrong = "+" if op in ("<", "<=") else "-"
    for j in [*(k for k in order[:N_CHECKED] if amounts[k] > 0), *near[:N_CHECKED]]:
        at = {s: sp.Rational(x.numerator, x.denominator) for s, x in zip(symbols, places[int(j)], strict=True)}
        try:
            bad = nonzero_sign(value, at) == wrong or (op in ("<", ">") and is_zero(value.subs(at)))
        except TooLarge:
            continue
        if bad:
            return tuple((str(name), x) for name, x in zip(names, places[int(j)], strict=True))
    return None


def _amounts(
    value: Scalar, symbols: list[Scalar], places: list[tuple[Fraction, ...]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """By how much each place violates value < 0, in floating point; -inf where that is no finite number."""
    if not places:
        return np.array([])
    columns = np.array([[float(x) for x in place] for place in places]).T
    try:
        with np.errstate(all="ignore"):
            function = sp.lambdify(symbols, value, modules=["scipy" if value.has(sp.erf) else "numpy", "numpy"])
            found = np.asarray(np.broadcast_to(function(*columns), len(places)))
            found = np.where(np.abs(np.imag(found)) > 0, np.nan, np.real(found)).astype(float)
    except (TypeError, NameError, AttributeError, ValueError):
        return np.full(len(places), -np.inf)
    return np.where(np.isfinite(found), found, -np.inf)


def _candidates(where: Range, counts_items: bool) -> list[Fraction]:
    """Numbers of a range to try: its ends, places near and far from them, and simple numbers."""
    if where.point is not None:
        return [where.point]
    steps = [Fraction(x) for x in WHOLE_STEPS] if where.whole else [Fraction(0), *STEPS]
    out: list[Fraction] = []
    for end, side in ((where.lo, 1), (where.hi, -1)):
        out += [] if end is None else [end + side * step for step in steps]
    if where.lo is not None and where.hi is not None:
        out += [where.lo + (where.hi - where.lo) * Fraction(k, 8) for k in range(1, 8)]
    out += [x for x in SIMPLE if not where.whole or x.denominator == 1]
    if where.whole:
        out += [Fraction(MAX_ITEMS)]
    inside = [
        x for x in dict.fromkeys(out) if where.meet("=", x).point == x and not (where.whole and x.denominator > 1)
    ]
    return [x for x in inside if not counts_items or x <= MAX_ITEMS]
