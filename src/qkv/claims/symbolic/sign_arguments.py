"""Signs by longer arguments, where the coefficients of `sign_analysis` do not show them.

Each argument reduces the sign of an expression to signs of simpler ones, for all values in the assumptions:

- factors: a product has the product of the signs;
- logarithms: c1 log A + c2 log B + u has the sign of A^c1 B^c2 e^u - 1;
- norms: x'y lies between -|x||y| and |x||y|, and erf between -1 and 1;
- roots: a + b sqrt(B) has the sign of a^2 - b^2 B times that of a where a and b have opposite signs;
- exponents: a e^u - b e^v has the sign of u + log a - v - log b for positive a and b;
- squares: A x^2 + B x + C with A > 0 and 4AC >= B^2 is never negative;
- ends: a function that rises or falls with a number throughout its range is compared with its value at an end;
- cases: the range of a number is split at 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError as PolynomialError

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.factors import Factor, Scalar
from qkv.claims.symbolic.sign_analysis import FLIP, Assumptions, Ratio, product_of_signs, ratio, sign
from qkv.claims.symbolic.unknowns import InnerProduct, Statistic

MAX_OPERATIONS = 120  # of an expression that is argued about
MAX_DEPTH = 6  # arguments one inside the other
MAX_SIGNS = 90  # signs that one search may ask for
NOT_NEGATIVE = ("+", ">=", "0")
NOT_POSITIVE = ("-", "<=", "0")


def argued_sign(expr: Scalar, assumptions: Assumptions) -> str | None:
    """ "+", "-", "0", ">=" or "<=" for all values in the assumptions; None when no argument shows it."""
    try:
        found = sign(expr, assumptions)
        if found is not None:
            return found
        expr = assumptions.put(sp.sympify(expr))
        if expr.has(sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I) or any(isinstance(s, Statistic) for s in expr.free_symbols):
            return None
        return _Search().sign(expr, replace(assumptions, fixed=()), MAX_DEPTH)
    except (TooLarge, PolynomialError, NotImplementedError):  # SymPy gives up
        return None


class _Search:
    """One search, with a bound on the number of signs that it asks for."""

    def __init__(self) -> None:
        self.left = MAX_SIGNS
        self.known: dict[tuple[Scalar, str], str | None] = {}

    def sign(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """The sign of an expression by at most `depth` arguments one inside the other."""
        key = (expr, str(sorted((str(s), str(r)) for s, r in assumptions.ranges.items() if s in expr.free_symbols)))
        if key not in self.known:
            self.known[key] = None  # an argument that comes back to its own question shows nothing
            self.known[key] = self._sign(expr, assumptions, depth)
        return self.known[key]

    def _sign(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        self.left -= 1
        if self.left < 0:
            return None
        found = sign(expr, assumptions)
        if found is not None or depth == 0 or expr.is_number or expr.count_ops() > MAX_OPERATIONS:
            return found
        relaxed, wider = _within_bounds(expr, assumptions)
        if relaxed != expr:
            found = self.sign(relaxed, wider, depth - 1)
            if found is not None:
                return found
        if expr.has(sp.Abs):
            return None
        got = ratio(expr)
        top = self._product(got, got.top, assumptions, depth)
        if top is None:
            top = self._by_cases(sp.expand(got.restored(got.top), power_exp=False), assumptions, depth - 1)
        if top is None:
            return None
        bottom = self._product(got, got.bottom, assumptions, depth)
        return None if bottom not in ("+", "-") else top if bottom == "+" else FLIP[top]

    def _product(self, got: Ratio, poly: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """The sign of a polynomial in the generators of a quotient, factor by factor."""
        if poly.is_number:
            return sign(poly, Assumptions())
        constant, factors = sp.factor_list(poly)
        out = sign(constant, Assumptions())
        for factor, power in factors:
            one = self._irreducible(got, factor, assumptions, depth)
            if one is None and power % 2 == 0:
                one = ">="
            if one is None or out is None:
                return None
            if power % 2 == 0:
                one = {"-": "+", "<=": ">="}.get(one, one)
            out = product_of_signs(out, one)
        return out

    def _irreducible(self, got: Ratio, poly: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        whole = sp.expand(got.restored(poly), power_exp=False)
        found = sign(whole, assumptions)
        if found is not None:
            return found
        arguments: tuple[Callable[[], str | None], ...] = (
            lambda: self._by_logarithms(whole, assumptions, depth - 1),
            lambda: self._by_roots(whole, assumptions, depth - 1),
            lambda: self._by_squares(got, poly, assumptions, depth - 1),
            lambda: self._by_ends(whole, assumptions, depth - 1),
            lambda: self._by_exponents(whole, assumptions, depth - 1),
        )
        return next((found for argue in arguments if (found := argue()) is not None), None)

    def _by_logarithms(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """c1 log A + ... + u with whole c has the sign of A^c1 ... e^u - 1."""
        logs = sorted(expr.atoms(sp.log), key=sp.default_sort_key)
        if not logs or not expr.is_polynomial(*logs):
            return None
        poly = sp.Poly(expr, *logs)
        if poly.total_degree() > 1:
            return None
        weights = [poly.coeff_monomial(one) for one in logs]
        rest = poly.coeff_monomial(1)
        if any(not c.is_Integer or abs(c) > 6 for c in weights) or rest.has(sp.log):
            return None
        if any(self.sign(one.args[0], assumptions, depth) != "+" for one in logs):
            return None
        product = sp.exp(sp.expand(rest))
        for one, weight in zip(logs, weights, strict=True):
            product *= one.args[0] ** weight
        return sign(product - 1, assumptions) or (self.sign(product - 1, assumptions, depth) if rest == 0 else None)

    def _by_roots(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """a + b S with S = sqrt(B): by the signs of a and b, and that of a^2 - b^2 B where they differ."""
        bases = {p.base for p in expr.atoms(sp.Pow) if p.exp.is_Rational and p.exp.q == 2}
        for base in sorted(bases, key=sp.default_sort_key):
            root = sp.Dummy("root", nonnegative=True)
            swap = {p: root ** int(2 * p.exp) for p in expr.atoms(sp.Pow) if p.base == base and p.exp.is_Rational}
            if any(not (2 * p.exp).is_Integer for p in swap):
                continue
            flat = expr.xreplace(swap)
            if not flat.is_polynomial(root) or (base.is_Symbol and flat.has(base) and not base.is_nonnegative):
                continue
            a = b = sp.Integer(0)
            for (power,), coefficient in sp.Poly(flat, root).terms():
                a += coefficient * base ** (power // 2) if power % 2 == 0 else 0
                b += coefficient * base ** (power // 2) if power % 2 else 0
            found = self._of_sum(a, b, base, assumptions, depth)
            if found is not None:
                return found
        return None

    def _of_sum(self, a: Scalar, b: Scalar, base: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """The sign of a + b sqrt(base)."""
        one, two = self.sign(a, assumptions, depth), self.sign(b, assumptions, depth)
        if two is None:
            return None
        if two in NOT_POSITIVE:
            found = self._of_sum(-a, -b, base, assumptions, depth) if two != "0" else FLIP.get(one or "")
            return None if found is None else FLIP[found]
        if self.sign(base, assumptions, depth) not in NOT_NEGATIVE:
            return None
        if one in NOT_NEGATIVE:
            return "+" if one == "+" else ">="
        difference = self.sign(sp.expand(b**2 * base - a**2), assumptions, depth)
        if one is None:  # |a| <= b sqrt(base)
            return difference if difference == "+" else ">=" if difference in (">=", "0") else None
        return difference

    def _by_squares(self, got: Ratio, poly: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """A x^2 + B x + C has the sign of A where 4AC > B^2."""
        for symbol in sorted(poly.free_symbols, key=str):
            if not poly.is_polynomial(symbol) or sp.degree(poly, symbol) != 2:
                continue
            a, b, c = (got.restored(part) for part in sp.Poly(poly, symbol).all_coeffs())
            lead = self.sign(a, assumptions, depth)
            if lead not in ("+", "-"):
                continue
            below = self.sign(sp.expand(4 * a * c - b**2, power_exp=False), assumptions, depth)
            if below in NOT_NEGATIVE:
                return lead if below == "+" else ">=" if lead == "+" else "<="
        return None

    def _by_exponents(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """a e^u - b e^v with positive a and b has the sign of u + log a - v - log b."""
        terms = sp.Add.make_args(expr)
        if len(terms) != 2 or not expr.has(sp.exp):
            return None
        exponents = []
        for term in terms:
            power, factor = sp.Integer(0), sp.Integer(1)
            for part in sp.Mul.make_args(term):
                power, factor = (power + part.args[0], factor) if isinstance(part, sp.exp) else (power, factor * part)
            if not factor.is_number or sign(factor, Assumptions()) not in ("+", "-"):
                return None
            exponents.append((factor, power))
        (a, u), (b, v) = exponents
        ahead = sign(a, Assumptions())
        if ahead is None or ahead == sign(b, Assumptions()):
            return ahead
        found = self.sign(sp.expand(u - v + sp.log(-a / b)), assumptions, depth)
        return None if found is None else found if ahead == "+" else FLIP[found]

    def _by_ends(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """A function that rises in a number lies above its value at the lower end, and below that at the upper end."""
        if depth == 0 or not self._smooth(expr, assumptions, depth):
            return None
        for symbol in sorted(expr.free_symbols, key=str):
            where = _range(symbol, assumptions)
            if where.lo is None and where.hi is None:
                continue
            slope = sp.diff(expr, symbol)
            turn = self.sign(slope, assumptions, depth)
            if turn is None:
                continue
            rising = turn in NOT_NEGATIVE
            ends = [(where.lo, where.lo_open, rising), (where.hi, where.hi_open, not rising)]
            for end, is_open, least in ends:
                at = None if end is None else self._at(expr, symbol, end, assumptions, depth)
                if at is None:
                    continue
                value = self.sign(*at, depth)
                strict = turn in ("+", "-") and is_open
                if least and value in NOT_NEGATIVE:
                    return "+" if value == "+" or strict else ">="
                if not least and value in NOT_POSITIVE:
                    return "-" if value == "-" or strict else "<="
        return None

    def _smooth(self, expr: Scalar, assumptions: Assumptions, depth: int) -> bool:
        """Whether an expression is differentiable for all values in the assumptions."""
        if any(not isinstance(f, sp.exp | sp.log | sp.erf) for f in expr.atoms(sp.Function)):
            return False
        for one in expr.atoms(sp.log):
            if self.sign(one.args[0], assumptions, depth) != "+":
                return False
        for power in expr.atoms(sp.Pow):
            if power.exp.is_Integer:
                if power.exp < 0 and self.sign(power.base, assumptions, depth) not in ("+", "-"):
                    return False
            elif self.sign(power.base, assumptions, depth) != "+":
                return False
        return True

    def _at(
        self, expr: Scalar, symbol: Scalar, end: Fraction, assumptions: Assumptions, depth: int
    ) -> tuple[Scalar, Assumptions] | None:
        """The value at an end of a range, if the expression is continuous there."""
        place = sp.Rational(end.numerator, end.denominator)
        inner = [one.args[0].subs(symbol, place) for one in expr.atoms(sp.log)]
        if any(self.sign(one, assumptions, depth) != "+" for one in inner):
            return None
        for power in expr.atoms(sp.Pow):
            base = self.sign(power.base.subs(symbol, place), assumptions, depth)
            if power.exp.is_Integer:
                if power.exp < 0 and base not in ("+", "-"):
                    return None
            elif base != "+" and not (base in NOT_NEGATIVE and power.exp.is_positive):
                return None
        value = expr.subs(symbol, place)
        if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I):
            return None
        ranges = {s: r for s, r in assumptions.ranges.items() if s != symbol}
        return value, replace(assumptions, ranges=ranges)

    def _by_cases(self, expr: Scalar, assumptions: Assumptions, depth: int) -> str | None:
        """Split the range of a number at 0 or 1."""
        if depth == 0 or len(expr.free_symbols) > 3:
            return None
        for symbol in sorted(expr.free_symbols, key=str):
            where = _range(symbol, assumptions)
            for cut in (Fraction(0), Fraction(1)):
                if not (where.lo is None or where.lo < cut) or not (where.hi is None or cut < where.hi):
                    continue
                if cut == 1 and not expr.has(sp.exp, sp.log, sp.erf):
                    continue
                found: list[str | None] = []
                for part in _pieces(symbol, where, cut, expr, assumptions):
                    found.append(self.sign(*part, depth - 1))
                    if found[-1] is None:
                        break
                joined = _joined(found)
                if joined is not None:
                    return joined
        return None


def _pieces(
    symbol: Scalar, where: Range, cut: Fraction, expr: Scalar, assumptions: Assumptions
) -> Iterator[tuple[Scalar, Assumptions]]:
    """The place itself, what lies above it, and what lies below."""
    place = sp.Rational(cut.numerator, cut.denominator)
    others = {s: r for s, r in assumptions.ranges.items() if s != symbol}
    value = expr.subs(symbol, place)
    if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I):
        value = sp.Dummy("undefined")  # its sign is not known
    yield value, replace(assumptions, ranges=others)
    over = Range(cut, where.hi, True, where.hi_open, where.whole)
    positive = symbol if symbol.is_positive else sp.Symbol(symbol.name, positive=True)
    yield expr.xreplace({symbol: positive}), replace(assumptions, ranges={**others, positive: over})
    yield expr, replace(assumptions, ranges={**others, symbol: Range(where.lo, cut, where.lo_open, True, where.whole)})


def _joined(found: list[str | None]) -> str | None:
    """The sign that holds in all of some cases."""
    kinds = set(found)
    if None in kinds:
        return None
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= set(NOT_NEGATIVE):
        return ">="
    return "<=" if kinds <= set(NOT_POSITIVE) else None


def _range(symbol: Scalar, assumptions: Assumptions) -> Range:
    """The range of a number or an unknown."""
    if symbol in assumptions.ranges:
        return assumptions.ranges[symbol]
    if symbol in assumptions.unit:
        return Range(Fraction(0), Fraction(1), True, False)
    if symbol.is_positive:
        return Range(Fraction(0), None, True)
    return Range(Fraction(0), None) if symbol.is_nonnegative else Range()


def _within_bounds(expr: Scalar, assumptions: Assumptions) -> tuple[Scalar, Assumptions]:
    """Put a bounded unknown in for every error function, and |x||y| times one for every product of two vectors."""
    swap: dict[Scalar, Scalar] = {}
    ranges = dict(assumptions.ranges)
    for j, one in enumerate(sorted(expr.atoms(sp.erf), key=sp.default_sort_key)):
        inside = sign(one.args[0], assumptions)
        low = Fraction(0) if inside in ("+", ">=") else Fraction(-1)
        high = Fraction(0) if inside in ("-", "<=") else Fraction(1)
        swap[one] = sp.Symbol(f"erf~{j}", real=True)
        ranges[swap[one]] = Range(low, high, low == -1 or inside == "+", high == 1 or inside == "-")
    products = sorted((s for s in expr.free_symbols if isinstance(s, InnerProduct)), key=str)
    lengths: dict[Factor, Scalar] = {}
    if any(s.left != s.right for s in products):
        for j, s in enumerate(products):
            for vector in (s.left, s.right):
                lengths.setdefault(vector, sp.Symbol(f"|{vector.name}|", nonnegative=True))
            cosine = sp.Symbol(f"cos~{j}", real=True)
            swap[s] = lengths[s.left] * lengths[s.right] * (1 if s.left == s.right else cosine)
            if s.left != s.right:
                ranges[cosine] = Range(Fraction(-1), Fraction(1))
    return (expr.xreplace(swap), replace(assumptions, ranges=ranges)) if swap else (expr, assumptions)
