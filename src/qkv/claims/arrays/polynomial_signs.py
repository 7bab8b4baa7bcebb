"""Signs of polynomials in one number, one sine or cosine, or one exponential, over the interval in which it lies."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from qkv.claims.arrays.facts import Fact
from qkv.claims.arrays.terms import Atom, Scalar

MAX_DEGREE = 16
MAX_OPERATIONS = 120


@dataclass
class Interval:
    """From low to high (None: without an end); an open end does not belong to it."""

    low: Scalar | None = None
    high: Scalar | None = None
    low_open: bool = False
    high_open: bool = False

    def cut(self, end: Scalar, upward: bool, is_open: bool) -> None:
        """Narrow it to the numbers above (or below) an end."""
        if upward and (self.low is None or end > self.low or (end == self.low and is_open)):
            self.low, self.low_open = end, is_open
        if not upward and (self.high is None or end < self.high or (end == self.high and is_open)):
            self.high, self.high_open = end, is_open

    @property
    def empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return bool(self.low > self.high or (self.low == self.high and (self.low_open or self.high_open)))

    def inner_point(self) -> Scalar:
        """A number inside, or the only one."""
        if self.low is None:
            return sp.Integer(0) if self.high is None else self.high - 1
        return self.low + 1 if self.high is None else (self.low + self.high) / 2

    def has_root(self, poly: sp.Poly, inside: bool) -> bool:
        """Whether a polynomial has a root in it; `inside` leaves out its ends."""
        count = poly.count_roots(self.low, self.high)
        ends = {(self.low, self.low_open or inside), (self.high, self.high_open or inside)}
        return bool(count > len({e for e, out in ends if out and e is not None and poly.eval(e) == 0}))


def polynomial_sign(value: Scalar, facts: list[Fact], strict: bool) -> str | None:
    """Why a polynomial in one variable is >= 0 (> 0 if `strict`) where the facts hold; None if it is not shown."""
    if value.count_ops() > MAX_OPERATIONS:
        return None
    found = _generator(value)
    if found is None:
        return None
    generator, interval = found
    variable = generator if generator.is_Symbol else sp.Dummy("generator", real=True)
    value = _in_powers(value, generator, variable)
    poly = sp.Poly(value, variable) if value.free_symbols == {variable} and value.is_polynomial(variable) else None
    if poly is None or poly.degree() < 1 or poly.degree() > MAX_DEGREE or not all(c.is_Rational for c in poly.coeffs()):
        return None
    for fact in facts:
        line = sp.expand(fact.value)
        if line.free_symbols == {variable} and line.is_polynomial(variable):
            own = sp.Poly(line, variable)
            if own.degree() == 1 and all(c.is_Rational for c in own.coeffs()):
                slope, start = own.all_coeffs()
                interval.cut(-start / slope, slope > 0, fact.strict)
    if interval.empty:
        return None
    if interval.low is not None and interval.low == interval.high:
        at = poly.eval(interval.low)
        return _text(generator) if at > 0 or (at == 0 and not strict) else None
    if strict and interval.has_root(poly, inside=False):
        return None
    if any(power % 2 and interval.has_root(factor, inside=True) for factor, power in poly.sqf_list()[1]):
        return None
    point, step = interval.inner_point(), sp.Rational(1, 7)
    for _ in range(MAX_DEGREE + 1):  # a place that is no root
        if poly.eval(point) != 0:
            return _text(generator) if poly.eval(point) > 0 else None
        point = (point + interval.high) / 2 if interval.high is not None else point + step
    return None


def _text(generator: Scalar) -> str:
    return f"a polynomial in {generator} that changes its sign nowhere in range, by its roots"


def _generator(value: Scalar) -> tuple[Scalar, Interval] | None:
    """The one expression that a polynomial is made of, and where it lies."""
    if len(value.free_symbols) != 1:
        return None
    (symbol,) = value.free_symbols
    functions = [f for f in sp.preorder_traversal(value) if isinstance(f, sp.Function | sp.exp)]
    if not functions:
        interval = Interval()
        if symbol.is_nonnegative:
            interval.cut(sp.Integer(0), True, bool(symbol.is_positive))
        return symbol, interval
    if all(isinstance(f, sp.exp) for f in functions):
        least = min(functions, key=lambda f: f.args[0].count_ops())
        return least, Interval(sp.Integer(0), None, True)
    if isinstance(symbol, Atom) or len(set(functions)) != 1 or value.subs(functions[0], 0).free_symbols:
        return None
    waves = isinstance(functions[0], sp.sin | sp.cos)
    return (functions[0], Interval(sp.Integer(-1), sp.Integer(1))) if waves else None


def _in_powers(value: Scalar, generator: Scalar, variable: Scalar) -> Scalar:
    """A polynomial in a variable that stands for the generator; exponentials of whole multiples are its powers."""
    if not isinstance(generator, sp.exp):
        return value.subs(generator, variable)

    def multiple(e: Scalar) -> Scalar:
        return sp.simplify(e.args[0] / generator.args[0])

    return sp.expand(sp.powsimp(value)).replace(
        lambda e: isinstance(e, sp.exp) and multiple(e).is_Integer and multiple(e) > 0,
        lambda e: variable ** multiple(e),
    )
