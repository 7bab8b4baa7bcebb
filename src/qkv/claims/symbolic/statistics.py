"""E, Var, Cov, Corr and P: in closed form for linear functions of normal scores, and of weights in the limit."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from qkv.claims.semantics.expression_properties import bounded
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra, require_same_shape
from qkv.claims.symbolic.case_split import Case, by_cases
from qkv.claims.symbolic.errors import Unsupported, WrongShape
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, ratio, sign
from qkv.claims.symbolic.unknowns import NoiseScore, Statistic
from qkv.claims.syntax import nodes as L

Follow = Callable[[Scalar, Assumptions], Scalar]
"""Takes the limits of a statement of one scalar, under assumptions."""


def normal_cdf(x: Scalar) -> Scalar:
    """The distribution function of the standard normal law."""
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


def statistic(algebra: Algebra, expr: L.Stat | L.Chance) -> MatrixPolynomial:
    """The value of a statistic: in closed form for linear functions of normal keys, else a Statistic symbol."""
    if isinstance(expr, L.Chance):
        if len(expr.event.ops) != 1:
            raise Unsupported("a probability of a chain")
        (left, right), (op,) = expr.event.sides, expr.event.ops
        difference = algebra.number(left) - algebra.number(right)
        return scalar(_probability(algebra, difference, op))
    values = [algebra.value(e) for e in expr.inner]
    algebra.bounded_statistic = all(bounded(algebra.context, e) for e in expr.inner)
    values += values if len(values) == 1 else []
    if expr.function == "E":
        return _expectation(algebra, values[0])
    require_same_shape(values[0], values[1], expr.at)
    if values[0].scalar or values[0].anything:
        x, y = (v.number() for v in values)
        if expr.function == "Corr":
            return scalar(_correlation(algebra, x, y))
        return scalar(covariance(algebra, x, y))
    if expr.function == "Corr" or values[0].shape[1] != "1":
        raise WrongShape(expr.at, "a correlation or covariance of matrices", True, "vectors or numbers")
    if any(part.is_noise for v in values for word in v.terms for part in word):
        raise Unsupported("the covariance of noise that has not gone to zero")
    out: MatrixPolynomial | None = None
    for word, c in values[0].terms.items():
        for other, e in values[1].terms.items():
            flipped = tuple(a.turned() for a in reversed(other))
            one = MatrixPolynomial(
                {word + flipped: covariance(algebra, c, e)}, (values[0].shape[0], values[1].shape[0])
            )
            out = one if out is None else out.plus(one)
    return out if out is not None else scalar(sp.Integer(0))


def random_symbols(algebra: Algebra, expr: Scalar) -> set[Scalar]:
    """The random symbols in an expression."""
    return {s for s in expr.free_symbols if s in algebra.random or isinstance(s, NoiseScore)}


def _expectation(algebra: Algebra, value: MatrixPolynomial) -> MatrixPolynomial:
    terms = {}
    for word, coefficient in value.terms.items():
        if any(part.is_noise for part in word):
            if random_symbols(algebra, coefficient):
                raise Unsupported("the mean of a product of noises")
            continue  # the noise has mean zero
        line = linear(algebra, coefficient)
        if line is None:
            terms[word] = _opaque(algebra, "E", (coefficient,))
        else:
            terms[word] = line[0] + sum(
                (c * algebra.random[s][0] for s, c in line[1].items() if s in algebra.random), sp.Integer(0)
            )
    return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, value.shape)


def linear(algebra: Algebra, expr: Scalar) -> tuple[Scalar, dict[Scalar, Scalar]] | None:
    """Constant and coefficients of a function that is linear in the random symbols."""
    found = sorted(random_symbols(algebra, expr), key=str)
    if not found:
        return expr, {}
    if not expr.is_polynomial(*found):
        return None
    poly = sp.Poly(expr, *found)
    if poly.total_degree() > 1:
        return None
    coefficients = {s: poly.coeff_monomial(s) for s in found}
    return poly.coeff_monomial(1), coefficients


def covariance(algebra: Algebra, x: Scalar, y: Scalar) -> Scalar:
    """The covariance of two linear functions of independent normals; z_i'u and z_i'w have covariance u'w."""
    one, two = linear(algebra, x), linear(algebra, y)
    if one is None or two is None:
        if not random_symbols(algebra, x) or not random_symbols(algebra, y):
            return sp.Integer(0)
        return _opaque(algebra, "Cov", (x, y))
    total: Scalar = sp.Integer(0)
    for s, c in one[1].items():
        for r, e in two[1].items():
            total += c * e * _between(algebra, s, r)
    return sp.expand(total)


def _between(algebra: Algebra, s: Scalar, r: Scalar) -> Scalar:
    if s in algebra.random or r in algebra.random:
        return algebra.random[s][1] if s == r else sp.Integer(0)
    return algebra.inner(s.direction, r.direction) if s.noise == r.noise else sp.Integer(0)


def _correlation(algebra: Algebra, x: Scalar, y: Scalar) -> Scalar:
    if not random_symbols(algebra, x) or not random_symbols(algebra, y):
        raise Unsupported("a correlation with something that is not random")
    if is_zero(x - y):
        return sp.Integer(1)
    both, one, two = covariance(algebra, x, y), covariance(algebra, x, x), covariance(algebra, y, y)
    return both / sp.sqrt(one * two)


def _probability(algebra: Algebra, difference: Scalar, op: str) -> Scalar:
    """The probability that left minus right satisfies a comparison with 0."""
    if not random_symbols(algebra, difference):
        known = _certain(sp.expand(difference), op)
        if known is not None:
            return known
    line = linear(algebra, difference)
    spread = covariance(algebra, difference, difference) if line is not None else sp.Integer(0)
    if op in ("=", "!="):
        if line is None or not spread.is_positive:
            raise Unsupported("the probability of an equality")
        return sp.Integer(1 if op == "!=" else 0)  # a normal number equals a given one with probability 0
    if op in ("<", "<="):
        difference = -difference
        line = linear(algebra, difference)
    if line is not None and spread != 0:
        mean = line[0] + sum(
            (c * algebra.random[s][0] for s, c in line[1].items() if s in algebra.random), sp.Integer(0)
        )
        return normal_cdf(sp.simplify(mean / sp.sqrt(spread)))
    return _opaque(algebra, "P", (difference,))


def _certain(difference: Scalar, op: str) -> Scalar | None:
    """The probability, 0 or 1, of an event that is not random; None if its sign is not known."""
    how = 0 if is_zero(difference) else 1 if difference.is_positive else -1 if difference.is_negative else None
    if how is None:
        return None
    true = {"=": how == 0, "!=": how != 0, ">": how > 0, ">=": how >= 0, "<": how < 0, "<=": how <= 0}[op]
    return sp.Integer(int(true))


def _opaque(algebra: Algebra, function: str, inner: tuple[Scalar, ...]) -> Scalar:
    """A number that has no closed form here; equal inner expressions make equal numbers."""
    if function != "P" and not algebra.bounded_statistic:
        raise Unsupported(f"{function} of something that is neither linear in normal keys nor made of weights")
    plain = tuple(_canonical(e) for e in inner)
    if function == "Cov" and plain[0] == plain[1]:
        function, plain = "Var", plain[:1]
    if function == "Cov":
        plain = tuple(sorted(plain, key=sp.default_sort_key))
    found = Statistic(function, plain)
    algebra.statistics.add(found)
    return found


def _canonical(expr: Scalar) -> Scalar:
    if expr.has(sp.Pow) and any(not p.exp.is_Integer for p in expr.atoms(sp.Pow)):
        return sp.expand(expr)
    got = ratio(expr)
    back = {g: sp.exp(p) for g, p in got.powers.items()} | dict(got.logs)
    return sp.cancel(got.top / got.bottom).xreplace(back)


def regions(
    algebra: Algebra, assumptions: Assumptions, values: tuple[Scalar, ...], follow: Follow
) -> list[tuple[Scalar, tuple[Scalar, ...], Case[tuple[Scalar, ...]]]]:
    """The regions of the random numbers in which the limits are constant: probability, limits and case of each."""
    found = set().union(*(random_symbols(algebra, v) for v in values))
    if any(isinstance(s, NoiseScore) for s in found):
        raise Unsupported("noise that has not gone to zero: let eps -> 0 first")
    symbols = frozenset(found)
    cases = by_cases(assumptions, lambda f: tuple(follow(v, f) for v in values), symbols, symbols)
    return [(region_probability(algebra, case.assumptions, symbols), case.found, case) for case in cases]


def region_probability(algebra: Algebra, assumptions: Assumptions, symbols: frozenset[Scalar]) -> Scalar:
    """The probability that independent normal numbers lie in their ranges."""
    out: Scalar = sp.Integer(1)
    for s in symbols:
        where = assumptions.ranges.get(s, Range())
        mean, variance = algebra.random[s]

        def below(end: sp.Rational | None, high: bool, mean: Scalar = mean, variance: Scalar = variance) -> Scalar:
            if end is None:
                return sp.Integer(1 if high else 0)
            return normal_cdf((sp.Rational(end.numerator, end.denominator) - mean) / sp.sqrt(variance))

        out *= below(where.hi, True) - below(where.lo, False)
    out = sp.expand(out)
    if not out.is_number:
        raise Unsupported("a probability that depends on a number")
    return out


def statistic_limit(algebra: Algebra, assumptions: Assumptions, name: Statistic, follow: Follow) -> Scalar:
    """The limit of Var, Cov, E or P of weights. Weights lie in [0, 1], so the limit may be taken inside (dominated
    convergence); in each region the limit is constant, and what remains is a sum over regions."""
    function, inner = name.function, name.inner
    cells = regions(algebra, assumptions, inner, follow)
    if any(random_symbols(algebra, v) or v.has(sp.oo, -sp.oo) for _, values, _ in cells for v in values):
        raise Unsupported("a limit that is still random")
    if function == "P":
        total: Scalar = sp.Integer(0)
        for probability, (value,), case in cells:
            how = sign(value, case.assumptions)
            if how not in ("+", "-"):
                raise Unsupported("an event on the edge in the limit")
            total += probability if how == "+" else 0
        return sp.expand(total)
    means = [sum((p * values[k] for p, values, _ in cells), sp.Integer(0)) for k in range(len(inner))]
    if function == "E":
        return sp.expand(means[0])
    first, last = 0, len(inner) - 1
    both = sum((p * values[first] * values[last] for p, values, _ in cells), sp.Integer(0))
    return sp.expand(sp.expand(both) - sp.expand(means[first] * means[last]))
