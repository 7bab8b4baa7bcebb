"""left = O(right) as a number grows: the quotient of both sides stays bounded.

Both sides are sums of products of powers of the number, of its logarithm, and of numbers that do not move. Such a term
grows by its power of the number first and by that of the logarithm second; the fastest terms decide.
"""

from __future__ import annotations

import sympy as sp

from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.terms import Scalar
from qkv.claims.symbolic.printing import step
from qkv.claims.syntax import nodes as L
from qkv.claims.verdict import Step

Order = tuple[sp.Rational, sp.Rational]


def growth(evaluator: ArrayEvaluator, core: L.Growth) -> tuple[str, str, tuple[Step, ...]]:
    """The verdict on a statement with O(), its reason, and the steps."""
    try:
        if len(core.approach) != 1 or not _is_infinite(core.approach[0].to):
            raise Unsupported("O() is decided for one number that goes to infinity")
        name = core.approach[0].name
        x = evaluator.symbol(name)
        left, right = (_order(evaluator.number(side), x) for side in (core.left, core.right))
    except Unsupported as why:
        return "undecided", str(why), ()
    steps = (step(f"left side grows like {_text(left, name)}, right side like {_text(right, name)}"),)
    if left <= right:
        return (
            "proved",
            f"the left side grows like {_text(left, name)}, the right side like {_text(right, name)}",
            steps,
        )
    because = f"the quotient of both sides grows without bound: {_text(left, name)} against {_text(right, name)}"
    return "refuted", because, steps


def _is_infinite(expr: L.Expr) -> bool:
    return isinstance(expr, L.Name) and expr.base == "oo"


def _text(order: Order, name: str) -> str:
    power, logarithm = order
    parts = [f"{name}^{power}"] if power != 0 else []
    parts += [f"log({name})^{logarithm}"] if logarithm != 0 else []
    return "*".join(parts) or "a constant"


def _order(value: Scalar, x: Scalar) -> Order:
    """The powers of x and log(x) of the fastest term; its coefficient must be known not to vanish."""
    value = sp.expand(value, force=False)
    found: dict[Order, Scalar] = {}
    for term in sp.Add.make_args(value):
        power = logarithm = sp.Integer(0)
        constant: Scalar = sp.Integer(1)
        for factor in sp.Mul.make_args(term):
            base, exponent = factor.as_base_exp()
            if base == x and exponent.is_Rational:
                power += exponent
            elif base == sp.log(x) and exponent.is_Rational:
                logarithm += exponent
            elif not factor.has(x):
                constant *= factor
            else:
                raise Unsupported(f"the growth of {factor}")
        found[(power, logarithm)] = found.get((power, logarithm), sp.Integer(0)) + constant
    if value == 0:
        raise Unsupported("the growth of 0")
    fastest = max(found)
    if found[fastest].is_nonzero is not True and not found[fastest].is_positive:
        raise Unsupported(f"the growth of {value}, whose leading coefficient may be 0")
    return fastest
