"""Signs by combination: an expression is a sum of known facts with multipliers that are never negative.

The multipliers are found by linear programming and checked in exact arithmetic; a proof is the list of the facts that
it uses.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import sympy as sp

from qkv.claims.arrays.facts import Fact
from qkv.claims.arrays.terms import Scalar

MAX_MONOMIALS = 300
DENOMINATORS = (1, 2, 4, 12, 60, 1000)


def combined(goal: Scalar, facts: list[Fact], strict: bool) -> list[tuple[Fraction, Fact]] | None:
    """Facts and multipliers whose sum is the goal, which shows goal >= 0, or > 0 if `strict`; None for none."""
    goal = sp.expand(goal)
    facts = [*facts, Fact(sp.Integer(1), "1 > 0", True)]
    wanted = goal.as_coefficients_dict()
    rows = [sp.expand(f.value).as_coefficients_dict() for f in facts]
    keep = [j for j, row in enumerate(rows) if all(c.is_Rational for c in row.values())]
    facts, rows = [facts[j] for j in keep], [rows[j] for j in keep]
    if not all(c.is_Rational for c in wanted.values()):
        return None
    monomials = list({m for row in (*rows, wanted) for m in row})
    if len(monomials) > MAX_MONOMIALS:
        return None
    place = {m: j for j, m in enumerate(monomials)}
    table = np.zeros((len(monomials), len(facts)))
    for j, row in enumerate(rows):
        for m, c in row.items():
            table[place[m], j] = float(c)
    target = np.zeros(len(monomials))
    for m, c in wanted.items():
        target[place[m]] = float(c)
    from scipy.optimize import linprog  # imported here: the older part of the language does not need it

    # Strict facts are preferred where the goal is strict, then asked for; otherwise the fewest.
    cost = np.array([-0.001 if strict and f.strict else 1.0 for f in facts])
    asked = np.array([[-1.0 if f.strict else 0.0 for f in facts]])
    for least in (None, 1.0, 0.01) if strict else (None,):
        limit = {} if least is None else {"A_ub": asked, "b_ub": [-least]}
        found = linprog(cost, A_eq=table, b_eq=target, bounds=[(0, 1000)] * len(facts), method="highs", **limit)
        used = _exact(goal, found.x, facts, strict) if found.success else None
        if used is not None:
            return used
    return None


def _exact(
    goal: Scalar, multipliers: np.ndarray, facts: list[Fact], strict: bool
) -> list[tuple[Fraction, Fact]] | None:
    """Multipliers as fractions whose sum is the goal; None if there are none."""
    for most in DENOMINATORS:
        used = [
            (Fraction(float(x)).limit_denominator(most), f) for x, f in zip(multipliers, facts, strict=True) if x > 1e-9
        ]
        used = [(x, f) for x, f in used if x > 0 and f.value != 1]
        total = sum((sp.Rational(x.numerator, x.denominator) * f.value for x, f in used), sp.Integer(0))
        rest = sp.expand(goal - total)  # a constant, if the multipliers are right
        if not rest.is_Rational or rest < 0:
            continue
        if rest > 0:
            used.append((Fraction(int(rest.p), int(rest.q)), facts[-1]))
        if not strict or any(f.strict for _, f in used):
            return used
    return None
