"""E, Var, Cov, Corr and P: in closed form for polynomials and exponentials of normal scores, or in the limit."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

from qkv.claims.semantics.expression_properties import bounded
from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.algebra import Algebra, require_same_shape
from qkv.claims.symbolic.case_split import Case, by_cases
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.errors import Unsupported, WrongShape
from qkv.claims.symbolic.factors import Scalar, UnnamedMean, UnnamedSum
from qkv.claims.symbolic.gaussian_moments import NormalNumbers
from qkv.claims.symbolic.matrix_polynomials import MatrixPolynomial, scalar
from qkv.claims.symbolic.sign_analysis import Assumptions, is_zero, ratio, sign
from qkv.claims.symbolic.unknowns import Gap, NoiseScore, RestSum, RestWeight, Score, Statistic, Theta, factors_in
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP, constant

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
    for v in values:
        _require_fixed_vectors(algebra, v)
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
    """The random symbols in an expression: normal numbers, and sums and weights of unnamed random keys."""
    return {s for s in expr.free_symbols if _is_normal(algebra, s) or _is_hidden(algebra, s)}


def _is_normal(algebra: Algebra, symbol: Scalar) -> bool:
    return symbol in algebra.random or isinstance(symbol, NoiseScore)


def _is_hidden(algebra: Algebra, symbol: Scalar) -> bool:
    """Whether a symbol stands for a function of random keys whose law is not known."""
    if not (algebra.context.noise or algebra.context.random):
        return False
    if isinstance(symbol, Theta | RestSum | RestWeight):
        return True
    return isinstance(symbol, Gap | Score) and any(isinstance(f, UnnamedMean) for f in factors_in(symbol))


def _normal_numbers(algebra: Algebra, *exprs: Scalar) -> NormalNumbers | None:
    """The normal numbers in some expressions; None if another random symbol occurs there."""
    found = sorted(set().union(*(random_symbols(algebra, e) for e in exprs)), key=str)
    if not all(_is_normal(algebra, s) for s in found):
        return None
    means = {s: algebra.random[s][0] if s in algebra.random else sp.Integer(0) for s in found}
    return NormalNumbers(means, lambda s, r: _between(algebra, s, r))


def _expectation(algebra: Algebra, value: MatrixPolynomial) -> MatrixPolynomial:
    terms = {}
    _require_fixed_vectors(algebra, value)
    for word, coefficient in value.terms.items():
        if any(part.is_noise for part in word):
            if random_symbols(algebra, coefficient):
                raise Unsupported("the mean of a product of noises")
            continue  # the noise has mean zero
        numbers = _normal_numbers(algebra, coefficient)
        mean = None if numbers is None else numbers.mean(coefficient)
        terms[word] = _opaque(algebra, "E", (coefficient,)) if mean is None else mean
    return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, value.shape)


def _require_fixed_vectors(algebra: Algebra, value: MatrixPolynomial) -> None:
    """Refuse means over unnamed items by random weights: they are random vectors of unknown law."""
    random = algebra.context.noise or algebra.context.random
    if random and any(isinstance(part, UnnamedMean) for word in value.terms for part in word):
        raise Unsupported("a statistic of a mean over the unnamed items")


def linear(algebra: Algebra, expr: Scalar) -> tuple[Scalar, dict[Scalar, Scalar]] | None:
    """Constant and coefficients of a function that is linear in the normal numbers."""
    numbers = _normal_numbers(algebra, expr)
    return None if numbers is None else numbers.linear(expr)


def covariance(algebra: Algebra, x: Scalar, y: Scalar) -> Scalar:
    """The covariance of two functions of independent normals; z_i'u and z_i'w have covariance u'w."""
    if not random_symbols(algebra, x) or not random_symbols(algebra, y):
        return sp.Integer(0)
    one, two = linear(algebra, x), linear(algebra, y)
    if one is not None and two is not None:
        total: Scalar = sp.Integer(0)
        for s, c in one[1].items():
            for r, e in two[1].items():
                total += c * e * _between(algebra, s, r)
        return sp.expand(total)
    numbers = _normal_numbers(algebra, x, y)
    both, first, second = (None if numbers is None else numbers.mean(e) for e in (x * y, x, y))
    if both is None or first is None or second is None:
        return _opaque(algebra, "Cov", (x, y))
    return sp.expand(both - first * second, power_exp=False)


def _between(algebra: Algebra, s: Scalar, r: Scalar) -> Scalar:
    """The covariance of two normal numbers; a sum of the noises of unnamed items counts each of them."""
    if s in algebra.random or r in algebra.random:
        return algebra.random[s][1] if s == r else sp.Integer(0)
    if s.noise != r.noise:
        return sp.Integer(0)
    count = algebra.size - len(algebra.context.items) if isinstance(s.noise, UnnamedSum) else sp.Integer(1)
    return count * algebra.inner(s.direction, r.direction)


def _correlation(algebra: Algebra, x: Scalar, y: Scalar) -> Scalar:
    if not random_symbols(algebra, x) or not random_symbols(algebra, y):
        raise Unsupported("a correlation with something that is not random")
    both, one, two = covariance(algebra, x, y), covariance(algebra, x, x), covariance(algebra, y, y)
    for variance in (one, two):
        if sign(variance, _far_along(algebra)) != "+" and not variance.free_symbols & algebra.statistics:
            raise Unsupported("a correlation with something whose variance may be 0")
    if is_zero(x - y):
        return sp.Integer(1)
    return both / sp.sqrt(one * two)


def _far_along(algebra: Algebra) -> Assumptions:
    """What is known of the numbers; those that go to infinity are beyond 0, where the limit is decided."""
    context = algebra.context
    claim = context.claim
    ends = {
        one.name: constant(one.to)
        for one in (*context.limits, *(n for n in L.nodes(claim.statement) if isinstance(n, L.Approach)))
    }
    out = assumptions_of(algebra, tuple((name, sp.oo) for name in ends))
    for name, end in ends.items():
        symbol, where = algebra.symbol(name), context.numbers.get(name, Range())
        if symbol.is_Symbol and end is None and where.lo is None:
            out = out.narrow(symbol, where.meet(">", Fraction(0)) if where.hi is None else where)
    return out


def _probability(algebra: Algebra, difference: Scalar, op: str) -> Scalar:
    """The probability that left minus right satisfies a comparison with 0."""
    if not random_symbols(algebra, difference):
        known = _certain(sp.expand(difference), op)
        if algebra.vanished and is_zero(sp.expand(difference)):
            # Noise that has gone to zero leaves a tie: before, either side of it may have had any probability.
            raise Unsupported("an event on the edge as the noise vanishes")
        if known is not None:
            return known
    if op in ("<", "<="):
        difference, op = -difference, MIRRORED_OP[op]
    line = linear(algebra, difference) if random_symbols(algebra, difference) else None
    if line is None:  # also an event that is not random, of unknown sign
        if op in ("=", "!="):
            raise Unsupported("the probability of an equality")
        # x >= 0 is the contrary of -x > 0.
        return _opaque(algebra, "P", (difference,)) if op == ">" else 1 - _opaque(algebra, "P", (-difference,))
    spread = covariance(algebra, difference, difference)
    if sign(spread, _far_along(algebra)) != "+":
        raise Unsupported("the probability of an event whose spread may vanish")
    if op in ("=", "!="):
        return sp.Integer(1 if op == "!=" else 0)  # a normal number equals a given one with probability 0
    mean = line[0] + sum((c * algebra.random[s][0] for s, c in line[1].items() if s in algebra.random), sp.Integer(0))
    return normal_cdf(sp.simplify(mean / sp.sqrt(spread)))


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
    if any(s not in algebra.random for s in found):
        raise Unsupported("noise that has not gone to zero: let eps -> 0 first")
    symbols = frozenset(found)
    cases = by_cases(assumptions, lambda f: tuple(follow(v, f) for v in values), symbols, symbols)
    return [(region_probability(algebra, case.assumptions, symbols), case.found, case) for case in cases]


def region_probability(algebra: Algebra, assumptions: Assumptions, symbols: frozenset[Scalar]) -> Scalar:
    """The probability that independent normal numbers lie in their ranges."""
    out: Scalar = sp.Integer(1)
    for s in symbols:
        if s not in algebra.random:
            raise Unsupported("noise that has not gone to zero: let eps -> 0 first")
        out *= interval_probability(assumptions.ranges.get(s, Range()), *algebra.random[s])
    out = sp.expand(out)
    if not out.is_number:
        raise Unsupported("a probability that depends on a number")
    return out


def interval_probability(where: Range, mean: Scalar, variance: Scalar) -> Scalar:
    """The probability that a normal number lies in an interval."""
    low, high = (
        None if end is None else normal_cdf((sp.Rational(end.numerator, end.denominator) - mean) / sp.sqrt(variance))
        for end in (where.lo, where.hi)
    )
    return (sp.Integer(1) if high is None else high) - (sp.Integer(0) if low is None else low)


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
