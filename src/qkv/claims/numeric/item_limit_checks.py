"""Limits in the number of items: the formulas themselves, evaluated for ever more items."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.context import Context, built
from qkv.claims.symbolic.evaluator import Algebra
from qkv.claims.symbolic.limit_statements import path_of
from qkv.claims.symbolic.prover import instances
from qkv.claims.syntax import nodes as L

COUNTS = (10**3, 10**6, 10**12)
OTHERS = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(-1), Fraction(7, 2))


def seen(claim: L.Claim) -> tuple[bool, str]:
    """Whether left minus right shrinks as n grows, by numbers of 30 digits; and how that was tried."""
    tried = 0
    for _, one in instances(claim):
        world = built(one)
        core = one.statement.core
        if not isinstance(core, L.Limit):
            return True, "not tried numerically: no array holds that many items"
        for gaps in _gaps(world, core):
            tried += 1
            if gaps is not None and core.tends != (gaps[-1] < max(1e-6, gaps[0] / 50)):
                return False, "a bug: the formulas do not go there as n grows from 1000 to 10^12"
    if not tried:
        return True, "not tried numerically: no array holds that many items"
    return True, f"the formulas go there at n = 10^3, 10^6 and 10^12, with {tried} choices of the other numbers"


def _gaps(world: Context, core: L.Limit) -> Iterator[list[float] | None]:
    path = path_of(world, core.approach, core.at)
    algebra = Algebra(world, path.still)
    left, right = algebra.number(core.left), algebra.number(core.right)
    if right in (sp.oo, -sp.oo) or len(path.moving) != 1 or algebra.statistics or algebra.random:
        return
    difference = left - right
    free = sorted((s for s in difference.free_symbols if s.name != "n"), key=str)
    if any(s.name not in world.numbers for s in free):
        return
    for turn in range(len(OTHERS)):
        values = {}
        for j, symbol in enumerate(free):
            allowed = [x for x in OTHERS[turn:] + OTHERS[:turn] if world.numbers[symbol.name].meet("=", x).point == x]
            if not allowed:
                return
            values[symbol] = sp.Rational(str(allowed[j % len(allowed)]))
        here = difference.subs(values)
        found = [sp.N(abs(here.subs(algebra.symbol("n"), count)), 30) for count in COUNTS]
        yield [float(x) for x in found] if all(x.is_real and x.is_finite for x in found) else None
