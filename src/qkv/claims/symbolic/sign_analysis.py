"""Signs and identities of exponential-rational expressions, decided exactly or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from functools import reduce as fold
from math import gcd, lcm

import sympy as sp

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.enclosures import constant_sign
from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.factors import Scalar

MAX_MONOMIALS = 600  # of a polynomial whose sign is read off its coefficients
MAX_POWER = 64  # of a generator e^(...), and of a sum
MAX_FACTORED_TERMS = 60  # of a polynomial that is factored
MAX_ROOT_DEGREE = 16  # of a polynomial whose roots are counted


@dataclass(frozen=True)
class Assumptions:
    """What is known of each symbol: a range, and whether it is one of the bounded unknowns in (0, 1]."""

    ranges: Mapping[Scalar, Range] = field(default_factory=dict)
    unit: frozenset[Scalar] = frozenset()
    fixed: tuple[tuple[Scalar, Scalar], ...] = ()

    def narrow(self, symbol: Scalar, where: Range) -> Assumptions:
        return replace(self, ranges={**self.ranges, symbol: where})

    def fix(self, symbol: Scalar, value: Scalar) -> Assumptions:
        return replace(self, fixed=(*self.fixed, (symbol, value)))

    def put(self, expr: Scalar) -> Scalar:
        return expr.subs(self.fixed) if self.fixed else expr


@dataclass(frozen=True)
class Ratio:
    """Numerator and denominator as polynomials; `powers` says which exponent each generator e^(...) stands for."""

    top: Scalar
    bottom: Scalar
    powers: Mapping[Scalar, Scalar]
    logs: Mapping[Scalar, Scalar]

    def restored(self, expr: Scalar) -> Scalar:
        """Put exponentials and logarithms back in for their generators; a logarithm may hold generators itself."""
        return expr.xreplace(dict(self.logs)).xreplace({g: sp.exp(p) for g, p in self.powers.items()})


@lru_cache(maxsize=4096)
def ratio(expr: Scalar) -> Ratio:
    """Every e^(sum of monomials) becomes a product of powers of a few generators, so that the rest is rational."""
    exps = sorted(expr.atoms(sp.exp), key=sp.default_sort_key)
    parts: dict[Scalar, list[tuple[Scalar, Scalar]]] = {}
    shares: dict[Scalar, list[Scalar]] = {}
    for one in exps:
        parts[one] = []
        for term in sp.Add.make_args(sp.expand(one.args[0])):
            coefficient, mono = term.as_coeff_Mul()
            if not coefficient.is_rational:
                coefficient, mono = sp.Integer(1), term
            parts[one].append((coefficient, mono))
            if not _pure_log(mono):
                shares.setdefault(mono, []).append(coefficient)
    if expr.has(sp.E):
        shares.setdefault(sp.Integer(1), []).append(sp.Integer(1))
    units = {mono: _unit(values) for mono, values in shares.items()}
    if any(abs(v / units[mono]) > MAX_POWER for mono, values in shares.items() for v in values):
        raise TooLarge("an exponential to a very high power")
    names = {mono: sp.Symbol(f"e^({units[mono] * mono})", positive=True) for mono in units}
    swap: dict[Scalar, Scalar] = {}
    for one, terms in parts.items():
        product: Scalar = sp.Integer(1)
        for coefficient, mono in terms:
            product *= mono.args[0] ** coefficient if _pure_log(mono) else names[mono] ** (coefficient / units[mono])
        swap[one] = product
    if sp.Integer(1) in units:
        swap[sp.E] = names[sp.Integer(1)] ** (1 / units[sp.Integer(1)])
    plain = expr.xreplace(swap)
    logs = {sp.Symbol(f"log[{f.args[0]}]", real=True): f for f in plain.atoms(sp.log)}
    plain = plain.xreplace({f: s for s, f in logs.items()})
    top, bottom = sp.fraction(sp.together(plain))
    return Ratio(_expanded(top), _expanded(bottom), {names[m]: units[m] * m for m in units}, logs)


def _pure_log(mono: Scalar) -> bool:
    return isinstance(mono, sp.log) and bool(mono.args[0].is_positive)


def _unit(values: list[Scalar]) -> Scalar:
    """The largest rational of which all values are whole multiples, with their sign when they share one."""
    top = fold(gcd, [abs(int(v.p)) for v in values])
    unit = sp.Rational(top, fold(lcm, [int(v.q) for v in values]))
    return -unit if all(v < 0 for v in values) else unit


def _expanded(expr: Scalar) -> Scalar:
    size = 1
    for factor in sp.Mul.make_args(expr):
        base, power = factor.as_base_exp()
        width = len(base.args) if base.is_Add else 1
        if width > 1 and power.is_Integer and power > MAX_POWER:
            raise TooLarge("a very high power")
        size *= width ** (int(power) if power.is_Integer and power > 0 else 1)
        if size > 40 * MAX_MONOMIALS:
            raise TooLarge("an expression that grew too large")
    out = sp.expand(expr)
    if out.is_Add and len(out.args) > MAX_MONOMIALS * 4:
        raise TooLarge("an expression that grew too large")
    return out


def is_zero(expr: Scalar, assumptions: Assumptions | None = None) -> bool:
    """Whether an expression is identically zero; False means not shown."""
    expr = sp.expand(assumptions.put(expr) if assumptions is not None else expr)
    if expr == 0:
        return True
    if expr.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        return False
    if assumptions is not None:
        expr = _without_bars(expr, assumptions)
    if _is_zero_ratio(expr):
        return True
    other = _with_exponentials(expr)
    if expr.has(sp.log):
        other = expanded_logarithms(other, assumptions or Assumptions())
    return other != expr and _is_zero_ratio(sp.expand(other))


def _is_zero_ratio(expr: Scalar) -> bool:
    got = ratio(expr)
    if got.top == 0:
        return True
    return not got.top.free_symbols and constant_sign(got.top) == "0"


def _with_exponentials(expr: Scalar) -> Scalar:
    """Write b^e as e^(e log b) where the exponent is no number and b is positive."""
    moving = [p for p in expr.atoms(sp.Pow) if not p.exp.is_number and p.base != sp.E and p.base.is_positive]
    return expr.xreplace({p: sp.exp(sp.expand(p.exp * sp.log(p.base))) for p in moving}) if moving else expr


def expanded_logarithms(expr: Scalar, assumptions: Assumptions) -> Scalar:
    """Write every logarithm of a product or quotient of positive factors as a sum of logarithms."""
    swap: dict[Scalar, Scalar] = {}
    for one in sorted(expr.atoms(sp.log), key=lambda log: (log.count_ops(), str(log))):
        got = ratio(one.args[0])
        total, open_part = sp.Integer(0), sp.Integer(1)
        for part, side in ((got.top, 1), (got.bottom, -1)):
            constant, factors = sp.factor_list(part)
            for factor, power in ((constant, 1), *factors):
                whole = got.restored(factor)
                if factor in got.powers:
                    total += side * power * got.powers[factor]
                elif sign(whole, assumptions) == "+":
                    total += side * power * sp.expand_log(sp.log(whole), factor=True)
                else:
                    open_part *= whole ** (side * power)
        # What is left is positive as well where the logarithm is defined.
        swap[one] = total + (sp.log(open_part) if open_part != 1 else 0)
    return expr.xreplace(swap)


def sign(expr: Scalar, assumptions: Assumptions) -> str | None:
    """ "+", "-", "0", ">=" or "<=" for all values in the assumptions; None when that is not shown."""
    expr = assumptions.put(sp.sympify(expr))
    if expr.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
        return None
    if expr.is_number:
        return constant_sign(expr) or ("0" if is_zero(expr) else None)
    expr = _without_bars(expr, assumptions)
    expr, assumptions = _from_zero(expr, assumptions)
    got = ratio(expr)
    if got.top == 0:
        return "0"
    top, bottom = _product_sign(got.top, got, assumptions), _product_sign(got.bottom, got, assumptions)
    if top is None or bottom not in ("+", "-"):
        return None
    return top if bottom == "+" else FLIP[top]


def _without_bars(expr: Scalar, assumptions: Assumptions) -> Scalar:
    """Replace |x| by x or -x where the sign of x is known."""
    for bars in sorted(expr.atoms(sp.Abs), key=lambda one: (one.count_ops(), str(one))):
        inside = sign(bars.args[0], assumptions)
        if inside in ("+", "-", ">=", "<="):
            expr = expr.xreplace({bars: bars.args[0] if inside in ("+", ">=") else -bars.args[0]})
    return expr


def _from_zero(expr: Scalar, assumptions: Assumptions) -> tuple[Scalar, Assumptions]:
    """Put x = lo + y in exponents, so that e^(xt) and e^(lo t) show how they compare: e^(xt) = e^(lo t) e^(yt)."""
    inside = set().union(*(e.free_symbols for e in expr.atoms(sp.exp))) if expr.has(sp.exp) else set()
    for symbol in sorted(inside, key=str):
        where = assumptions.ranges.get(symbol)
        if where is not None and where.lo is None and where.hi is not None:
            options = {"positive": True} if where.hi_open else {"nonnegative": True}
            y = sp.Symbol(f"{where.hi}-{symbol.name}", **options)
            expr = expr.subs(symbol, sp.Rational(where.hi.numerator, where.hi.denominator) - y)
            assumptions = assumptions.narrow(y, Range(Fraction(0), None, where.hi_open))
            continue
        if where is None or where.lo is None or where.lo == 0 or where.hi is not None:
            continue
        options = {"positive": True} if where.lo_open else {"nonnegative": True}
        y = sp.Symbol(f"{symbol.name}-{where.lo}", **options)
        low = sp.Rational(where.lo.numerator, where.lo.denominator)
        expr = expr.subs(symbol, low + y)
        assumptions = assumptions.narrow(y, Range(Fraction(0), None, where.lo_open))
    return expr, assumptions


# The sign of the negative of an expression.
FLIP = {"+": "-", "-": "+", "0": "0", ">=": "<=", "<=": ">="}


def _product_sign(poly: Scalar, got: Ratio, assumptions: Assumptions) -> str | None:
    direct = _sum_sign(poly, got, assumptions)
    if direct is not None or poly.is_number:
        return direct
    if poly.is_Add and len(poly.args) > MAX_FACTORED_TERMS:
        return None
    return _factored_sign(poly, got, assumptions) or _sum_sign(poly, got, assumptions, to_closed_ends=True)


def _factored_sign(poly: Scalar, got: Ratio, assumptions: Assumptions) -> str | None:
    constant, factors = sp.factor_list(poly)
    if len(factors) == 1 and factors[0][1] == 1:
        return _root_sign(poly, got, assumptions)
    out = constant_sign(constant)
    for factor, power in factors:
        one = _sum_sign(factor, got, assumptions) or _root_sign(factor, got, assumptions)
        one = one or _sum_sign(factor, got, assumptions, to_closed_ends=True)
        if one is None:
            if power % 2:
                return None
            one = ">="
        if power % 2 == 0:
            one = {"-": "+", "<=": ">="}.get(one, one)
        out = None if out is None else product_of_signs(out, one)
    return out


def product_of_signs(a: str, b: str) -> str:
    if "0" in (a, b):
        return "0"
    if a in "-<=" and a != ">=":
        b = FLIP[b]
        a = FLIP[a]
    if a == "+":
        return b
    return ">=" if b in ("+", ">=") else "<="


def _sum_sign(poly: Scalar, got: Ratio, assumptions: Assumptions, to_closed_ends: bool = False) -> str | None:
    """Shift every variable to start at 0 and every generator e^x with x >= 0 to 1 + y; then look at coefficients.

    With `to_closed_ends`, ranges such as [0, 1] are mapped like [0, 1): by continuity, a weak sign holds at 1, too.
    """
    if poly.is_number:
        return sign(poly, Assumptions())
    weak = False
    swap: dict[Scalar, Scalar] = {}
    known: dict[Scalar, str] = {}  # "+" strictly positive, ">=" nonnegative, None unknown
    for symbol in poly.free_symbols:
        fresh = sp.Symbol(f"{symbol.name}^", real=True)
        if symbol in got.powers:
            how = sign(got.powers[symbol], assumptions)
            if how in ("+", ">="):
                swap[symbol], known[fresh] = 1 + fresh, how
            elif how in ("-", "<="):
                swap[symbol], known[fresh] = 1 / (1 + fresh), FLIP[how]
            else:
                known[symbol] = "+"
        elif symbol in got.logs:
            how = sign(got.restored(got.logs[symbol]).args[0] - 1, assumptions)
            if how in ("+", ">="):
                swap[symbol], known[fresh] = fresh, how
        elif symbol in assumptions.unit:
            swap[symbol], known[fresh] = 1 / (1 + fresh), ">="
        elif symbol in assumptions.ranges:
            where = assumptions.ranges[symbol]
            if to_closed_ends and where.lo is not None and where.hi is not None and not where.hi_open:
                where, weak = replace(where, hi_open=True), True
            shifted = _shifted(where, fresh)
            if shifted is not None:
                swap[symbol], known[fresh] = shifted
            elif symbol.is_positive:
                known[symbol] = "+"
        elif symbol.is_positive:
            known[symbol] = "+"
        elif symbol.is_nonnegative:
            known[symbol] = ">="
    if to_closed_ends and not weak:
        return None
    moved = poly.xreplace(swap)
    top, bottom = (
        sp.fraction(sp.together(moved)) if any(not s.is_polynomial() for s in swap.values()) else (moved, sp.Integer(1))
    )
    top = _expanded(top)
    if top == 0:
        return "0"
    terms = sp.Add.make_args(top)
    below = _term_sign(_expanded(bottom), {}) if bottom.is_number else _positive_product(bottom, known)
    if len(terms) > MAX_MONOMIALS or below not in ("+", "-"):
        return None
    signs = {_term_sign(term, known) for term in terms}
    out = None
    if signs <= {"+", ">=", "0"}:
        out = "+" if "+" in signs else ">="
    elif signs <= {"-", "<=", "0"}:
        out = "-" if "-" in signs else "<="
    out = {"+": ">=", "-": "<="}.get(out or "", out) if weak else out
    return FLIP[out] if out and below == "-" else out


def _positive_product(bottom: Scalar, known: Mapping[Scalar, str]) -> str | None:
    """The sign of a number times powers of 1 + y with y >= 0, which is what shifts put into a denominator."""
    constant, factors = bottom.as_coeff_Mul()
    ones = {1 + y for y, how in known.items() if how in ("+", ">=")}
    for factor in sp.Mul.make_args(factors):
        base, power = factor.as_base_exp()
        if base not in ones or not power.is_Integer:
            return None
    return "+" if constant > 0 else "-"


def _shifted(where: Range, fresh: Scalar) -> tuple[Scalar, str] | None:
    lo = None if where.lo is None else sp.Rational(where.lo.numerator, where.lo.denominator)
    hi = None if where.hi is None else sp.Rational(where.hi.numerator, where.hi.denominator)
    if lo is not None and hi is not None:
        if not where.hi_open:  # x = lo + (hi - lo) y/(1 + y) never reaches hi: only an open end is covered
            return lo + fresh, "+" if where.lo_open else ">="
        return (lo + hi * fresh) / (1 + fresh), "+" if where.lo_open else ">="
    if lo is not None:
        return lo + fresh, "+" if where.lo_open else ">="
    if hi is not None:
        return hi - fresh, "+" if where.hi_open else ">="
    return None


def _term_sign(term: Scalar, known: Mapping[Scalar, str]) -> str | None:
    coefficient, rest = term.as_coeff_Mul()
    out = "+"
    for factor in sp.Mul.make_args(rest):
        base, power = factor.as_base_exp()
        if base.is_number and power.is_number:
            value = constant_sign(factor)
            if value is None:
                return None
            out = product_of_signs(out, value)
            continue
        if not power.is_Integer:
            how = known.get(base) if base.is_Symbol else None
            if how is None:
                return None
        elif power % 2 == 0:
            how = "+" if known.get(base) == "+" else ">="
        else:
            how = known.get(base)
        if how is None or (how == ">=" and power.is_negative):
            return None
        out = product_of_signs(out, how)
    return out if coefficient > 0 else FLIP[out]


def _root_sign(poly: Scalar, got: Ratio, assumptions: Assumptions) -> str | None:
    """A polynomial of one variable with rational coefficients has one sign where it has no root: count them exactly."""
    symbols = poly.free_symbols
    if len(symbols) != 1:
        return None
    (symbol,) = symbols
    where = assumptions.ranges.get(symbol, Range())
    if symbol in got.powers or symbol in got.logs:
        how = sign(got.powers[symbol], assumptions) if symbol in got.powers else None
        where = Range() if symbol in got.logs else Range(Fraction(1 if how in ("+", ">=") else 0), None, how != ">=")
    try:
        p = sp.Poly(poly, symbol, domain="QQ")
    except (sp.CoercionFailed, sp.PolynomialError):
        return None
    if p.degree() > MAX_ROOT_DEGREE:
        return None
    lo = None if where.lo is None else sp.Rational(where.lo.numerator, where.lo.denominator)
    hi = None if where.hi is None else sp.Rational(where.hi.numerator, where.hi.denominator)
    at_ends = {
        is_open for end, is_open in ((lo, where.lo_open), (hi, where.hi_open)) if end is not None and p.eval(end) == 0
    }
    ends = sum(1 for end in {lo, hi} if end is not None and p.eval(end) == 0)
    if p.count_roots(lo, hi) > ends:
        return None
    middle = (
        (lo + hi) / 2
        if lo is not None and hi is not None
        else lo + 1
        if lo is not None
        else hi - 1
        if hi is not None
        else sp.Integer(0)
    )
    value = p.eval(middle)
    if False in at_ends:  # a root at an end that belongs to the range
        return ">=" if value > 0 else "<=" if value < 0 else None
    return "+" if value > 0 else "-" if value < 0 else None
