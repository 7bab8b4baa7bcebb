"""Means over independent Gaussian vectors w ~ N(0, s*I), in closed form.

Products of w'u follow Wick's rule, E[|w|^(2j) w'u_1 ... w'u_2m] = s^(j+m) (D + 2m)(D + 2m + 2) ... (j factors) times
the sum over pairings of u_a'u_b, with D the dimension of w; E[w'A w] = s trace(A); E[exp(w'u)] = exp(s u'u/2) and
E[cos(w'u + c)] = exp(-s u'u/2) cos(c). One vector is integrated after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp
from sympy.simplify.fu import TR8

from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.terms import Atom, Scalar, Terms, Word, size_symbol

if TYPE_CHECKING:
    from qkv.claims.arrays.evaluator import ArrayEvaluator

MAX_DEGREE = 8


def expectation(evaluator: ArrayEvaluator, value: Scalar) -> Scalar:
    """The mean of a number over all random vectors of the claim."""
    value = sp.expand(value)
    if value.has(sp.sin) or value.has(sp.cos):
        value = sp.expand(TR8(value))
    for name in evaluator.context.random:
        total: Scalar = sp.Integer(0)
        for term in sp.Add.make_args(evaluator.tidied(value)):
            total += _mean(evaluator, name, term)
        value = sp.expand(total)
    return value


def _holds(atom: Atom, name: str) -> bool:
    words = [atom.payload] if atom.sort in ("word", "trace") else list(atom.payload.parts)
    return any(f.name == name or (f.payload is not None and name in f.name) for w in words for f in w)


def _depends(expr: Scalar, name: str) -> bool:
    return any(isinstance(a, Atom) and _holds(a, name) for a in expr.free_symbols)


def _mean(evaluator: ArrayEvaluator, name: str, term: Scalar) -> Scalar:
    """The mean of one product over one random vector."""
    constant: Scalar = sp.Integer(1)
    vectors: list[Terms] = []
    squares = 0
    exponent: Scalar = sp.Integer(0)
    wave: Scalar | None = None
    alone = [f for f in sp.Mul.make_args(term) if _depends(f, name)]
    form = _quadratic_form(evaluator, alone[0], name) if len(alone) == 1 else None
    if form is not None:
        return sp.Mul(*(f for f in sp.Mul.make_args(term) if f not in alone)) * form * _variance(evaluator, name)
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if not _depends(factor, name):
            constant *= factor
        elif isinstance(factor, sp.exp) or base == sp.E:
            exponent += factor.args[0] if isinstance(factor, sp.exp) else power
        elif isinstance(factor, sp.cos | sp.sin) and wave is None:
            wave = factor
        elif isinstance(base, Atom) and power.is_Integer and 0 < power <= MAX_DEGREE:
            found = _linear_part(evaluator, base, name)
            if found is None:
                squares += int(power)
            else:
                vectors += [found] * int(power)
        else:
            raise Unsupported("the mean of this function of a random vector")
    variance = _variance(evaluator, name)
    if exponent == 0 and wave is None:
        return constant * _wick(evaluator, name, vectors, squares, variance)
    if vectors or squares or (wave is not None and exponent != 0):
        raise Unsupported("the mean of an exponential times other functions of a random vector")
    direction, shift = _affine(evaluator, exponent if wave is None else wave.args[0], name)
    size = evaluator.products.inner(direction, direction) if direction.parts else sp.Integer(0)
    if wave is None:
        return constant * sp.exp(sp.expand(shift + variance * size / 2))
    return constant * sp.exp(-variance * size / 2) * wave.func(shift)


def _variance(evaluator: ArrayEvaluator, name: str) -> Scalar:
    """s of w ~ N(0, s*I)."""
    variance = evaluator.number(evaluator.context.random[name])
    if _depends(variance, name):
        raise Unsupported("a variance that depends on the vector")
    return variance


def _quadratic_form(evaluator: ArrayEvaluator, atom: Scalar, name: str) -> Scalar | None:
    """trace(A) of a number w'A w, whose mean is s*trace(A); None for other numbers."""
    if not isinstance(atom, Atom) or atom.sort != "word" or len(atom.payload) < 3:
        return None
    first, *inner, last = atom.payload
    if first.name != name or last.name != name or any(name in f.name for f in inner):
        return None
    size = evaluator.context.arrays[name].rows
    return evaluator.functions.trace(evaluator.products.word(tuple(inner), sp.Integer(1), size, size))


def _linear_part(evaluator: ArrayEvaluator, atom: Atom, name: str) -> Terms | None:
    """u of an atom w'u; None for w'w."""
    if atom.sort != "word":
        raise Unsupported("the mean of this function of a random vector")
    word: Word = atom.payload
    places = [j for j, f in enumerate(word) if f.name == name]
    if any(f.name != name and name in f.name and f.payload is not None for f in word):
        raise Unsupported("the mean of a function of a random vector")
    if len(word) == 2 and len(places) == 2:
        return None
    if len(places) != 1 or places[0] not in (0, len(word) - 1):
        raise Unsupported("the mean of a quadratic form")
    if places[0] != 0:
        word = tuple(f.turned() for f in reversed(word))
    rows = evaluator.context.arrays[name].rows
    return evaluator.products.word(word[1:], sp.Integer(1), rows, "1")


def _affine(evaluator: ArrayEvaluator, expr: Scalar, name: str) -> tuple[Terms, Scalar]:
    """u and s of an expression w'u + s."""
    direction, shift = Terms({}, evaluator.context.arrays[name].rows, "1"), sp.Integer(0)
    for term in sp.Add.make_args(sp.expand(expr)):
        if not _depends(term, name):
            shift += term
            continue
        own = [f for f in sp.Mul.make_args(term) if _depends(f, name)]
        if len(own) != 1 or not isinstance(own[0], Atom):
            raise Unsupported("the mean of an exponential of a square")
        found = _linear_part(evaluator, own[0], name)
        if found is None:
            raise Unsupported("the mean of an exponential of a square")
        direction = direction.plus(found.scaled(term / own[0]))
    return direction, shift


def _wick(evaluator: ArrayEvaluator, name: str, vectors: list[Terms], squares: int, variance: Scalar) -> Scalar:
    if len(vectors) % 2:
        return sp.Integer(0)
    if len(vectors) > MAX_DEGREE or squares > MAX_DEGREE:
        raise Unsupported("the mean of a high power")
    half = len(vectors) // 2
    dimension = size_symbol(evaluator.context.arrays[name].rows)
    out = variance ** (half + squares) * _pairings(evaluator, vectors)
    for j in range(squares):
        out *= dimension + 2 * half + 2 * j
    return sp.expand(out)


def _pairings(evaluator: ArrayEvaluator, vectors: list[Terms]) -> Scalar:
    if not vectors:
        return sp.Integer(1)
    first, *rest = vectors
    total: Scalar = sp.Integer(0)
    for j, other in enumerate(rest):
        total += evaluator.products.inner(first, other) * _pairings(evaluator, rest[:j] + rest[j + 1 :])
    return sp.expand(total)
