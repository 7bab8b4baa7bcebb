"""Sums of products of matrices, in a normal form that holds for every size.

A word is a product of factors; a scalar coefficient stands before it. Inner products and other 1 x 1 products become
scalar symbols (`Atom`), so that two expressions of the same normal form are equal for all values and sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from qkv.claims.arrays.errors import Unsupported

Scalar = Any
MAX_TERMS = 200


@dataclass(frozen=True)
class Factor:
    """One matrix or vector of a product.

    Attributes:
        name: What tells factors apart.
        rows: The size before transposing, as it is written.
        cols: The same for columns.
        kind: "", permutation, orthogonal, symmetric, invertible, simplex, ones, unit, inverse, select, diag or the name
            of a function.
        flipped: Whether it is transposed.
        payload: The item of a unit vector, the argument of a function, the inverted factor.
    """

    name: str
    rows: str
    cols: str
    kind: str = ""
    flipped: bool = False
    payload: Any = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[str, str]:
        return (self.cols, self.rows) if self.flipped else (self.rows, self.cols)

    def turned(self) -> Factor:
        if self.kind in ("symmetric", "diag") or (self.rows == self.cols == "1"):
            return self
        return replace(self, flipped=not self.flipped)

    def __str__(self) -> str:
        return self.name + "'" * self.flipped


Word = tuple[Factor, ...]


def size_symbol(size: str) -> Scalar:
    """A size as a number."""
    if "+" in size:
        return sum((size_symbol(part) for part in size.strip("()").split("+")), sp.Integer(0))
    return sp.Integer(size) if size.isdigit() else sp.Symbol(size, integer=True, positive=True)


def ones(size: str) -> Factor:
    return Factor(f"ones[{size}]", size, "1", "ones")


def unit(item: str, size: str) -> Factor:
    return Factor(f"unit_{item}[{size}]", size, "1", "unit", payload=item)


@dataclass(frozen=True)
class Terms:
    """A sum of words with scalar coefficients, all of one shape; the empty word is the identity, or 1."""

    parts: dict[Word, Scalar]
    rows: str
    cols: str

    @property
    def is_number(self) -> bool:
        return self.rows == "1" and self.cols == "1"

    def number(self) -> Scalar:
        return self.parts.get((), sp.Integer(0))

    def scaled(self, by: Scalar) -> Terms:
        if by == 0:
            return Terms({}, self.rows, self.cols)
        return Terms({w: sp.expand(c * by) for w, c in self.parts.items()}, self.rows, self.cols)

    def plus(self, other: Terms) -> Terms:
        if (self.rows, self.cols) != (other.rows, other.cols):
            raise Unsupported(f"a {self.rows} x {self.cols} beside a {other.rows} x {other.cols} array")
        parts = dict(self.parts)
        for word, c in other.parts.items():
            parts[word] = sp.expand(parts.get(word, sp.Integer(0)) + c)
        if len(parts) > MAX_TERMS:
            raise Unsupported("too many terms")
        return Terms({w: c for w, c in parts.items() if c != 0}, self.rows, self.cols)

    def transposed(self) -> Terms:
        parts = {tuple(f.turned() for f in reversed(w)): c for w, c in self.parts.items()}
        return Terms(parts, self.cols, self.rows)

    @property
    def key(self) -> str:
        """Text that is the same for equal normal forms."""
        return " + ".join(sorted(f"({sp.sstr(c, order='lex')})*{word_text(w)}" for w, c in self.parts.items())) or "0"


def word_text(word: Word) -> str:
    return "*".join(str(f) for f in word) or "1"


class Atom(sp.Symbol):  # type: ignore[misc]
    """A scalar that is not expanded further: `sort` and `payload` say what it is.

    SymPy caches results by equality, and a name such as norm(x) means another thing in another claim, so atoms of
    different claims differ: `owner` is the number of the claim's algebra.
    """

    sort: str
    payload: Any
    owner: int

    def __new__(cls, sort: str, name: str, payload: Any, owner: int, **assumptions: bool) -> Atom:
        given = assumptions or {"real": True}
        found: Atom = sp.Symbol.__xnew__(cls, name, **given)
        found.sort, found.payload, found.owner = sort, payload, owner
        return found

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.owner)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.sort, self.name, self.payload, self.owner), dict(self._assumptions_orig)


class Products:
    """Multiplication of terms; scalars that it makes are kept by name, so that equal ones are one symbol."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.owner = next(self._numbers)
        self.atoms: dict[str, Atom] = {}
        self.entry: Callable[[Word], Scalar | None] = lambda word: None  # entries of functions, set by the evaluator
        self.diagonal: Callable[[Factor, Factor], Terms | None] = lambda left, right: None  # products with diag(v)

    def atom(self, kind: str, name: str, payload: Any, **assumptions: bool) -> Atom:
        if name not in self.atoms:
            self.atoms[name] = Atom(kind, name, payload, self.owner, **assumptions)
        return self.atoms[name]

    def number(self, value: Scalar) -> Terms:
        value = sp.sympify(value)
        return Terms({(): value} if value != 0 else {}, "1", "1")

    def single(self, factor: Factor) -> Terms:
        rows, cols = factor.shape
        return self.word((factor,), sp.Integer(1), rows, cols)

    def word(self, word: Word, coefficient: Scalar, rows: str, cols: str) -> Terms:
        """A product of factors in normal form."""
        found = self._reduced(word, coefficient)
        if found is None:
            return Terms({}, rows, cols)
        out, coefficient = found
        return Terms({out: coefficient} if coefficient != 0 else {}, rows, cols)

    def times(self, left: Terms, right: Terms) -> Terms:
        if left.is_number:
            return right.scaled(left.number())
        if right.is_number:
            return left.scaled(right.number())
        if left.cols != right.rows:
            raise Unsupported(f"a {left.rows} x {left.cols} times a {right.rows} x {right.cols} array")
        if len(left.parts) * len(right.parts) > MAX_TERMS:
            raise Unsupported("too many terms")
        out = Terms({}, left.rows, right.cols)
        for one, c in left.parts.items():
            for two, e in right.parts.items():
                out = out.plus(self.word(one + two, c * e, left.rows, right.cols))
        return out

    def inner(self, left: Terms, right: Terms) -> Scalar:
        return self.times(left.transposed(), right).number()

    # Reduction of one word.
    def _reduced(self, word: Word, coefficient: Scalar) -> tuple[Word, Scalar] | None:
        done: list[Factor] = []
        for place, factor in enumerate(word):
            if done and "diag" in (done[-1].kind, factor.kind):
                found = self.diagonal(done[-1], factor)
                if found is not None and len(found.parts) <= 1:
                    for own, c in found.parts.items():
                        return self._reduced((*done[:-1], *own, *word[place + 1 :]), coefficient * c)
                    return None
            now: Factor | None = factor
            while now is not None and done:
                how = _joined(done[-1], now)
                if how is None:
                    break
                if how == 0:
                    return None
                last = done.pop()
                if isinstance(how, Factor):
                    now = how
                else:
                    coefficient = coefficient * how
                    now = None
                del last
            if now is not None:
                done.append(now)
        return self._split(tuple(done), coefficient)

    def _split(self, word: Word, coefficient: Scalar) -> tuple[Word, Scalar] | None:
        """Take the 1 x 1 products within a word out of it."""
        pieces: list[list[Factor]] = [[]]
        for factor in word:
            if pieces[-1] and factor.shape[0] == "1":
                pieces.append([])
            pieces[-1].append(factor)
        kept: list[Factor] = []
        for piece in pieces:
            if piece and piece[0].shape[0] == "1" and piece[-1].shape[1] == "1":
                coefficient = coefficient * self.scalar_word(tuple(piece))
            else:
                kept += piece
        return tuple(kept), sp.expand(coefficient)

    def scalar_word(self, word: Word) -> Scalar:
        """A 1 x 1 product as a scalar; a product and its transpose are one number."""
        found = self.entry(word)
        if found is not None:
            return found
        mirrored = tuple(f.turned() for f in reversed(word))
        chosen = min(word, mirrored, key=word_text)
        square = word == mirrored and len(word) % 2 == 0  # u'u
        return self.atom("word", word_text(chosen), chosen, **({"nonnegative": True} if square else {}))


def _joined(left: Factor, right: Factor) -> Factor | Scalar | None:
    """What a product of two neighbours is: a factor, a number (with the identity, or 1 x 1), or None for no rule."""
    same = left.name == right.name
    if same and left.flipped != right.flipped and left.kind in ("permutation", "orthogonal"):
        return sp.Integer(1)
    undone = (left.kind == "inverse" and left.payload == right.name) or (
        right.kind == "inverse" and right.payload == left.name
    )
    if undone and left.flipped == right.flipped:
        return sp.Integer(1)
    if left.kind == right.kind == "select":
        return _selected(left, right)
    stochastic = left.kind in ("softmax", "causal_softmax") and not left.flipped and left.shape[1] != "1"
    if right.kind == "ones" and not right.flipped and (left.kind == "permutation" or stochastic):
        return ones(left.shape[0])
    if left.kind == "ones" and left.flipped:
        if right.kind == "permutation":
            return replace(left, name=f"ones[{right.shape[1]}]")
        if right.kind in ("softmax", "causal_softmax") and right.flipped and right.shape[0] != "1":
            return ones(right.shape[1]).turned()
    if left.flipped and not right.flipped and left.shape[0] == "1" and right.shape[1] == "1":
        return _inner(left, right)
    return None


def select(sizes: tuple[str, ...], start: int, stop: int) -> Factor:
    """[0 I 0]: A*select + B*select stand side by side; it takes the sizes from `start` to `stop` of a width."""
    own = sizes[start] if stop - start == 1 else f"({'+'.join(sizes[start:stop])})"
    every = f"({'+'.join(sizes)})"
    return Factor(f"select_{start}:{stop}{every}", own, every, "select", payload=(sizes, start, stop))


def _selected(left: Factor, right: Factor) -> Factor | Scalar | None:
    """The product of two selections: of a part of a part, of a part with itself, or of parts that do not meet."""
    (sizes, a, b), (others, c, d) = left.payload, right.payload
    if left.flipped and right.flipped:
        found = _selected(right.turned(), left.turned())
        return found.turned() if isinstance(found, Factor) else found
    if not left.flipped and not right.flipped:  # a part of a part
        return select(others, c + a, c + b) if sizes == others[c:d] else None
    if left.flipped or sizes != others:
        return None
    if b <= c or d <= a:
        return sp.Integer(0)
    if (a, b) == (c, d):
        return sp.Integer(1)
    if a <= c and d <= b:
        return select(sizes[a:b], c - a, d - a).turned()
    return select(sizes[c:d], a - c, b - c) if c <= a and b <= d else None


def _inner(left: Factor, right: Factor) -> Scalar | None:
    kinds = {left.kind, right.kind}
    if kinds == {"ones"}:
        return size_symbol(left.rows)
    if kinds == {"unit"}:
        return sp.Integer(1) if left.name == right.name else 0
    if kinds == {"unit", "ones"} or kinds == {"ones", "simplex"} or kinds == {"ones", "softmax"}:
        return sp.Integer(1)
    return None


def common_ends(value: Terms, kinds: tuple[str, ...], right: bool = False) -> tuple[Factor | None, Terms]:
    """The factor of one of some kinds with which every word begins (or ends), and the terms without it."""
    words = list(value.parts)
    if not words or any(not w for w in words):
        return None, value
    ends = {w[-1 if right else 0] for w in words}
    if len(ends) != 1:
        return None, value
    (end,) = ends
    if end.kind not in kinds:
        return None, value
    parts = {(w[:-1] if right else w[1:]): c for w, c in value.parts.items()}
    rows, cols = value.rows, value.cols
    return end, Terms(parts, rows if right else end.shape[1], end.shape[0] if right else cols)
