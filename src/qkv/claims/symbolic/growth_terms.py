"""Terms of an expression by their growth as a number goes to infinity, and which of them is the largest."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, Ratio, is_zero, ratio, sign
from qkv.claims.symbolic.unknowns import Gap, Remainder, Theta

MAX_EXPONENT_DEGREE = 8  # of a polynomial in an exponent


class RemainderLeads(Unsupported):
    """The remainder of a series decides: a longer series may help."""


@dataclass(frozen=True)
class Growth:
    """e^(polynomial in x) x^power (log x)^logs: polynomial coefficients from the highest degree down."""

    exponent: tuple[tuple[int, Scalar], ...]
    power: Scalar
    logs: Scalar

    def expression(self, x: Scalar) -> Scalar:
        """The growth as an expression in x."""
        exponent = sum((c * x**degree for degree, c in self.exponent), sp.Integer(0))
        return sp.exp(exponent) * x**self.power * sp.log(x) ** self.logs

    def over(self, other: Growth) -> Growth:
        """The growth of the quotient."""
        a, b = dict(self.exponent), dict(other.exponent)
        degrees = sorted({*a, *b}, reverse=True)
        parts = [(d, sp.expand(a.get(d, sp.Integer(0)) - b.get(d, sp.Integer(0)))) for d in degrees]
        power = sp.expand(self.power - other.power)
        return Growth(tuple((d, c) for d, c in parts if c != 0), power, self.logs - other.logs)


CONSTANT = Growth((), sp.Integer(0), sp.Integer(0))


@dataclass(frozen=True)
class Terms:
    """Top and bottom of a quotient, as coefficients by growth in `x`. `loose` are unknowns that may move with x."""

    top: dict[Growth, Scalar]
    bottom: dict[Growth, Scalar]
    x: Scalar
    assumptions: Assumptions
    loose: frozenset[Scalar]

    def certain(self, coefficient: Scalar) -> Scalar:
        """The coefficient of a term that decides; refused if it may move with x."""
        moving = coefficient.free_symbols
        if any(isinstance(s, Remainder) for s in moving):
            raise RemainderLeads("a leading term that is not known exactly")
        if moving & self.loose:
            raise Unsupported("a leading term that may move")
        return coefficient

    def leading(self, part: dict[Growth, Scalar]) -> tuple[Growth, Scalar]:
        """The growth that outgrows all others, and its coefficient, of one sign; terms of equal growth are joined."""
        found = self.largest(part)
        if found is None:
            raise Unsupported("a sum of which no term is left")
        growth, coefficient = found
        if sign(self.certain(coefficient), self.assumptions) not in ("+", "-"):
            raise NeedSign(coefficient)
        return growth, coefficient

    def largest(self, part: dict[Growth, Scalar]) -> tuple[Growth, Scalar] | None:
        """The largest growth and its coefficient, which may vanish for some parameters; None if all terms cancel."""
        left = dict(part)
        while left:
            first = largest(left, self.assumptions)
            equal = [g for g in left if g is first or compare(g, first, self.assumptions) == "0"]
            coefficient = sp.expand(sum((left.pop(g) for g in equal), sp.Integer(0)))
            if not is_zero(coefficient, self.assumptions):
                return first, coefficient
        return None


def terms_of(expr: Scalar, x: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]) -> Terms:
    """Top and bottom of an expression, whose unknowns that may move with x must be bounded factors."""
    got = _reduced(ratio(expr))
    parts = [_by_growth(part, got, x, loose) for part in (got.top, got.bottom)]
    for part in parts:
        for coefficient in part.values():
            _require_bounded(coefficient, got, assumptions, loose)
    top, bottom = ({g: got.restored(c) for g, c in part.items()} for part in parts)
    return Terms(top, bottom, x, assumptions, loose)


def _reduced(got: Ratio) -> Ratio:
    """Divide top and bottom by the generators that all their terms share."""
    top, bottom = got.top, got.bottom
    for symbol in got.powers:
        lowest = min(
            (_degree(term, symbol) for part in (top, bottom) for term in sp.Add.make_args(part) if term != 0), default=0
        )
        if lowest > 0:
            top, bottom = sp.expand(top / symbol**lowest), sp.expand(bottom / symbol**lowest)
    return Ratio(top, bottom, got.powers, got.logs)


def _degree(term: Scalar, symbol: Scalar) -> int:
    power = term.as_powers_dict().get(symbol, 0)
    return int(power) if sp.Integer(power) == power else 0


def _by_growth(poly: Scalar, got: Ratio, x: Scalar, loose: frozenset[Scalar]) -> dict[Growth, Scalar]:
    """The coefficients of a polynomial by growth in x."""
    out: dict[Growth, Scalar] = {}
    for term in sp.Add.make_args(poly):
        if term == 0:
            continue
        exponent: Scalar = sp.Integer(0)
        power: Scalar = sp.Integer(0)
        logs: Scalar = sp.Integer(0)
        coefficient: Scalar = sp.Integer(1)
        for factor in sp.Mul.make_args(term):
            base, raised = factor.as_base_exp()
            if not got.restored(factor).has(x):
                coefficient *= factor
            elif got.restored(raised).has(x):
                raise Unsupported(f"the growth of {factor}")
            elif base in got.powers:
                exponent += raised * got.powers[base]
            elif base == x:
                power += raised
            elif base in got.logs and got.logs[base] == sp.log(x) and raised.is_Rational:
                logs += raised
            else:
                raise Unsupported(f"the growth of {factor}")
        growth = _growth(sp.expand(exponent), power, logs, x, loose)
        out[growth] = sp.expand(out.get(growth, sp.Integer(0)) + coefficient)
    return {g: c for g, c in out.items() if c != 0}


def _growth(exponent: Scalar, power: Scalar, logs: Scalar, x: Scalar, loose: frozenset[Scalar]) -> Growth:
    log = sp.log(x)
    if exponent.has(log):
        power += exponent.coeff(log)
        exponent = sp.expand(exponent - log * exponent.coeff(log))
    if power.has(x) or exponent.has(log) or not exponent.is_polynomial(x):
        raise Unsupported(f"the growth of e^({exponent + power * log})")
    if (exponent.free_symbols | power.free_symbols) & loose:
        raise Unsupported("a rate that may move")
    if exponent == 0:
        return Growth((), power, logs)
    poly = sp.Poly(exponent, x)
    if poly.degree() > MAX_EXPONENT_DEGREE:
        raise Unsupported("a polynomial of high degree")
    parts = tuple((monom[0], coefficient) for monom, coefficient in poly.terms())
    if any(degree == 0 for degree, _ in parts):
        raise Unsupported("a generator that mixes constants")
    return Growth(parts, power, logs)


def compare(one: Growth, other: Growth, assumptions: Assumptions) -> str:
    """ "+", "-" or "0": whether one grows faster; raises when a sign is missing."""
    quotient = one.over(other)
    for coefficient in (*(c for _, c in quotient.exponent), quotient.power):
        how = _known(coefficient, assumptions)
        if how != "0":
            return how
    return "+" if quotient.logs > 0 else "-" if quotient.logs < 0 else "0"


def _known(difference: Scalar, assumptions: Assumptions) -> str:
    if difference == 0:
        return "0"
    how = sign(difference, assumptions)
    if how is None or how in (">=", "<="):
        raise NeedSign(difference)
    return how


def largest(terms: dict[Growth, Scalar], assumptions: Assumptions) -> Growth:
    """A growth that is provably not outgrown by any other."""
    missing: NeedSign | None = None
    for candidate in terms:
        try:
            if all(other is candidate or compare(candidate, other, assumptions) in ("+", "0") for other in terms):
                return candidate
        except NeedSign as why:
            missing = missing or why
    raise missing or Unsupported("no largest term")


def _require_bounded(coefficient: Scalar, got: Ratio, assumptions: Assumptions, loose: frozenset[Scalar]) -> None:
    """Unknowns that may move with x must stay bounded: only e^(-gap), factors in (0, 1] and remainders may occur."""
    for term in sp.Add.make_args(coefficient):
        for factor in sp.Mul.make_args(term):
            moving = got.restored(factor).free_symbols
            moving = (moving & loose) | {s for s in moving if isinstance(s, Remainder)}
            if not moving:
                continue
            base, raised = factor.as_base_exp()
            if base.is_Symbol and base in moving:
                bounded = isinstance(base, Theta | Remainder) or base in assumptions.unit
                if not (bounded and raised.is_Rational and raised > 0):
                    raise Unsupported("a factor that may move without bound")
            elif base in got.powers and raised.is_Rational:
                _require_falling(sp.expand(raised * got.powers[base]), moving, assumptions)
            else:
                raise Unsupported("a factor that may move without bound")


def _require_falling(exponent: Scalar, moving: set[Scalar], assumptions: Assumptions) -> None:
    """An exponent must not grow with its gaps, which are the only unknowns in it that may move."""
    for slack in moving:
        if not isinstance(slack, Gap):
            raise Unsupported("a score that may move")
        rate = exponent.coeff(slack)
        if sp.expand(exponent - rate * slack).has(slack) or rate.free_symbols & moving:
            raise Unsupported("a score that may move")
        if sign(rate, assumptions) not in ("-", "<=", "0"):
            raise Unsupported("a gap that may grow")
