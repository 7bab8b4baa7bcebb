"""Limits of exponential-rational expressions by growth: the fastest term of top and bottom decides."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from qkv.claims.symbolic.errors import NeedSign, Unsupported
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, Ratio, is_zero, ratio, sign
from qkv.claims.symbolic.unknowns import Gap

MAX_ROOT = 12  # of x, in x^(p/root)
MAX_EXPONENT_DEGREE = 8  # of a polynomial in an exponent


@dataclass(frozen=True)
class Growth:
    """e^(polynomial in x) x^power (log x)^logs: polynomial coefficients from the highest degree down."""

    exponent: tuple[tuple[int, Scalar], ...]
    power: Scalar
    logs: Scalar


def limit(
    expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions, loose: frozenset[Scalar] = frozenset()
) -> Scalar:
    """The limit of an expression, possibly oo or -oo. `loose` are bounded unknowns that may move with x."""
    expr = assumptions.put(sp.sympify(expr))
    if not expr.has(x):
        return expr
    if to == -sp.oo:
        y = sp.Symbol(x.name, real=True, positive=True)
        return limit(expr.subs(x, -y), y, sp.oo, assumptions, loose)
    if to != sp.oo:
        return _continuous(expr, x, to, assumptions)
    if not x.is_positive:  # a limit at infinity depends on positive values only
        y = sp.Symbol(x.name, positive=True)
        expr, x = expr.xreplace({x: y}), y
    root = _root(expr, x)
    if root > 1:  # x = y^root, so that powers are whole
        y = sp.Symbol(f"{x.name}~", positive=True)
        expr, x = sp.expand_log(expr.subs(x, y**root)), y
    return _far(expr, x, assumptions, loose)


def _continuous(expr: Scalar, x: Scalar, to: Scalar, assumptions: Assumptions) -> Scalar:
    got = ratio(expr)
    if any(not p.is_polynomial(x) for p in got.powers.values()):
        raise Unsupported(f"the limit of an exponent as {x} -> {to}")
    back = {g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs)
    top, bottom = (sp.expand(part.xreplace(back).subs(x, to)) for part in (got.top, got.bottom))
    if top.has(sp.zoo, sp.nan, sp.oo) or bottom.has(sp.zoo, sp.nan, sp.oo):
        raise Unsupported(f"the limit as {x} -> {to}")
    if sign(bottom, assumptions) not in ("+", "-"):
        if is_zero(bottom):
            raise Unsupported(f"a division by zero as {x} -> {to}")
        raise NeedSign(bottom)
    return sp.simplify(top / bottom) if (top / bottom).is_number else sp.cancel(top / bottom)


def _root(expr: Scalar, x: Scalar) -> int:
    root = 1
    for power in expr.atoms(sp.Pow):
        if power.base == x and power.exp.is_Rational:
            root = int(sp.ilcm(root, power.exp.q))
    for e in expr.atoms(sp.exp):
        for term in sp.Add.make_args(sp.expand(e.args[0])):
            coefficient, mono = term.as_coeff_Mul()
            if mono == sp.log(x) and coefficient.is_Rational:
                root = int(sp.ilcm(root, coefficient.q))
    return root if root <= MAX_ROOT else 1


def _far(expr: Scalar, x: Scalar, assumptions: Assumptions, loose: frozenset[Scalar]) -> Scalar:
    got = _reduced(ratio(expr), x)
    top = _terms(got.top, got, x)
    bottom = _terms(got.bottom, got, x)
    for part in (top, bottom):
        for coefficient in part.values():
            _tame(coefficient, got, loose)
    if not top:
        return sp.Integer(0)
    low = _largest(bottom, assumptions)
    if _unsure(bottom[low], got, loose):
        raise Unsupported("a leading term that may move")
    how = sign(_back(bottom[low], got), assumptions)
    if how not in ("+", "-"):
        raise NeedSign(_back(bottom[low], got))
    # Terms of the top that grow more slowly than the bottom go to 0, with any coefficient; the others decide.
    ahead: dict[Growth, Scalar] = {}
    for growth, coefficient in top.items():
        if _compare(growth, low, assumptions) != "-":
            ahead[growth] = coefficient
    if not ahead:
        return sp.Integer(0)
    high = _largest(ahead, assumptions)
    if _unsure(ahead[high], got, loose):
        raise Unsupported("a leading term that may move")
    if _compare(high, low, assumptions) == "0":
        return sp.cancel(_back(ahead[high], got) / _back(bottom[low], got))
    rising = sign(_back(ahead[high], got), assumptions)
    if rising not in ("+", "-"):
        raise NeedSign(_back(ahead[high], got))
    return sp.oo if rising == how else -sp.oo


def _reduced(got: Ratio, x: Scalar) -> Ratio:
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


def _terms(poly: Scalar, got: Ratio, x: Scalar) -> dict[Growth, Scalar]:
    """The coefficients of a polynomial by growth in x."""
    out: dict[Growth, Scalar] = {}
    log_x = next((s for s, f in got.logs.items() if f.args[0] == x), None)
    for term in sp.Add.make_args(poly):
        if term == 0:
            continue
        exponent: Scalar = sp.Integer(0)
        power: Scalar = sp.Integer(0)
        logs: Scalar = sp.Integer(0)
        coefficient: Scalar = sp.Integer(1)
        for factor in sp.Mul.make_args(term):
            base, raised = factor.as_base_exp()
            if base in got.powers and got.powers[base].has(x):
                exponent += raised * got.powers[base]
            elif base == x:
                power += raised
            elif base == log_x and raised.is_Rational:
                logs += raised
            elif any(_moves(s, got, x) for s in factor.free_symbols):
                raise Unsupported(f"the growth of {factor}")
            else:
                coefficient *= factor
        growth = _growth(sp.expand(exponent), power, logs, x)
        out[growth] = sp.expand(out.get(growth, sp.Integer(0)) + coefficient)
    return {g: c for g, c in out.items() if c != 0}


def _moves(symbol: Scalar, got: Ratio, x: Scalar) -> bool:
    """Whether a symbol is x, or stands for a logarithm or an exponential of it."""
    return bool(symbol == x or (symbol in got.logs and got.logs[symbol].has(x)) or got.powers.get(symbol, x * 0).has(x))


def _growth(exponent: Scalar, power: Scalar, logs: Scalar, x: Scalar) -> Growth:
    log = sp.log(x)
    if exponent.has(log):
        power += exponent.coeff(log)
        exponent = sp.expand(exponent - log * exponent.coeff(log))
    if exponent == 0:
        return Growth((), power, logs)
    if exponent.has(log) or not exponent.is_polynomial(x):
        raise Unsupported(f"the growth of e^({exponent})")
    poly = sp.Poly(exponent, x)
    if poly.degree() > MAX_EXPONENT_DEGREE:
        raise Unsupported("a polynomial of high degree")
    parts = tuple((monom[0], coefficient) for monom, coefficient in poly.terms())
    if any(degree == 0 for degree, _ in parts):
        raise Unsupported("a generator that mixes constants")
    return Growth(parts, power, logs)


def _compare(one: Growth, other: Growth, assumptions: Assumptions) -> str:
    """ "+", "-" or "0": whether one grows faster; raises when a sign is missing."""
    a, b = dict(one.exponent), dict(other.exponent)
    for degree in sorted({*a, *b}, reverse=True):
        how = _known(sp.expand(a.get(degree, sp.Integer(0)) - b.get(degree, sp.Integer(0))), assumptions)
        if how != "0":
            return how
    how = _known(sp.expand(one.power - other.power), assumptions)
    if how != "0":
        return how
    return "+" if one.logs > other.logs else "-" if one.logs < other.logs else "0"


def _known(difference: Scalar, assumptions: Assumptions) -> str:
    if difference == 0:
        return "0"
    how = sign(difference, assumptions)
    if how is None or how in (">=", "<="):
        raise NeedSign(difference)
    return how


def _largest(terms: dict[Growth, Scalar], assumptions: Assumptions) -> Growth:
    """The term that provably outgrows all others; only one needs to be found."""
    missing: NeedSign | None = None
    for candidate in terms:
        try:
            if all(other is candidate or _compare(candidate, other, assumptions) in ("+", "0") for other in terms):
                return candidate
        except NeedSign as why:
            missing = missing or why
    raise missing or Unsupported("no largest term")


def _back(coefficient: Scalar, got: Ratio) -> Scalar:
    return coefficient.xreplace({g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs))


def _unsure(coefficient: Scalar, got: Ratio, loose: frozenset[Scalar]) -> bool:
    return bool(_back(coefficient, got).free_symbols & loose)


def _tame(coefficient: Scalar, got: Ratio, loose: frozenset[Scalar]) -> None:
    """Unknowns that may move with x must stay bounded: only e^(-gap) and factors in (0, 1] may stand in a term."""
    for symbol in coefficient.free_symbols:
        exponent = got.powers.get(symbol)
        if exponent is None or not (exponent.free_symbols & loose):
            continue
        if not all(isinstance(s, Gap) for s in exponent.free_symbols & loose):
            raise Unsupported("a score that may move")
        for term in sp.Add.make_args(coefficient):
            power = term.as_powers_dict().get(symbol, 0)
            for slack in exponent.free_symbols & loose:
                if sp.sign(sp.expand(exponent).coeff(slack)) * power > 0:
                    raise Unsupported("a gap that may grow")
