"""Functions of arrays in normal form: softmax, functions entry by entry, norms, maxima, traces, ranks.

Rules that hold for every size are applied at once: a permutation leaves a function that acts row by row, softmax
ignores what is the same for all entries of a row, lse(z + s*ones) = lse(z) + s, trace(A*B) = trace(B*A).
"""

from __future__ import annotations

import sympy as sp

from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.terms import (
    Factor,
    Products,
    Scalar,
    Terms,
    Word,
    common_ends,
    ones,
    size_symbol,
    unit,
    word_text,
)

ENTRYWISE = ("exp", "log", "sqrt", "relu", "tanh", "sigmoid", "abs", "sign", "sin", "cos")
TURNS = ("permutation",)
MAX_OPERATIONS = 60


def scalar_function(name: str, x: Scalar) -> Scalar:
    """A function of a number."""
    if name == "exp":
        return sp.exp(sp.expand(x))
    if name == "sigmoid":
        return 1 / (1 + sp.exp(-sp.expand(x)))
    if name == "tanh":
        return (sp.exp(2 * sp.expand(x)) - 1) / (sp.exp(2 * sp.expand(x)) + 1)
    if name == "relu":
        return sp.Max(sp.expand(x), 0)
    if name == "abs":
        return sp.Mul(*[sp.Abs(f) for f in sp.Mul.make_args(sp.expand(x))])
    if name == "log":
        if x.is_number and not x.is_positive:
            raise Unsupported("the logarithm of a number that is not positive")
        return sp.expand_log(sp.log(x))
    if name == "sqrt":
        return sp.sqrt(x)
    if name == "sign":
        return sp.Mul(*[sp.sign(f) for f in sp.Mul.make_args(sp.expand(x))])
    return {"sin": sp.sin, "cos": sp.cos}[name](sp.expand(x))


class Functions:
    """Functions over one algebra of products."""

    def __init__(self, products: Products) -> None:
        self.products = products
        products.entry = self.entry
        products.diagonal = self.diagonal

    def made(self, name: str, argument: Terms, rows: str, cols: str) -> Terms:
        """A function of an array that stays as it is."""
        if argument.cols != cols or argument.rows != rows:
            raise Unsupported("a function that changes the shape")
        factor = Factor(f"{name}({argument.key})", rows, cols, name, payload=argument)
        return self.products.single(factor)

    def entrywise(self, name: str, argument: Terms) -> Terms:
        """A function of every entry; permutations of rows and columns leave it."""
        if argument.is_number:
            return self.products.number(scalar_function(name, argument.number()))
        if argument.rows == "1":
            return self.entrywise(name, argument.transposed()).transposed()
        for right in (False, True):
            end, rest = common_ends(argument, TURNS, right)
            if end is not None:
                inner = self.entrywise(name, rest)
                turn = self.products.single(end)
                return self.products.times(inner, turn) if right else self.products.times(turn, inner)
        if name == "exp" and argument.cols == "1":  # the normal form: a multiple of the softmax
            return self.softmax(argument).scaled(self.sum_exp(argument))
        if name == "log" and len(argument.parts) == 1:
            ((word, c),) = argument.parts.items()
            if len(word) == 1 and word[0].kind == "softmax" and word[0].shape[1] == "1" and c == 1:
                z = word[0].payload
                return z.plus(self.products.single(ones(z.rows)).scaled(-self.lse(z)))
            if len(word) == 1 and word[0].kind == "softmax" and word[0].shape[1] == "1" and c.is_positive:
                flat = self.products.single(ones(argument.rows)).scaled(sp.expand_log(sp.log(c)))
                return self.entrywise("log", argument.scaled(1 / c)).plus(flat)
            if len(word) == 1 and word[0].kind == "ones" and c.is_positive:
                return argument.scaled(sp.expand_log(sp.log(c)) / c)
        if name in ("relu", "tanh", "sin", "abs", "sign") and not argument.parts:
            return argument
        return self.made(name, argument, argument.rows, argument.cols)

    def softmax(self, argument: Terms, name: str = "softmax") -> Terms:
        """The softmax of a vector, or of every row of a matrix; "causal_softmax" leaves out the later columns."""
        if argument.is_number:
            return self.products.number(1)
        if argument.rows == "1":
            return self.softmax(argument.transposed(), name).transposed()
        vector = argument.cols == "1"
        if name == "causal_softmax":
            if vector or argument.rows != argument.cols:
                raise Unsupported("a causal mask of scores that are not n x n")
            return self.made(name, _without_row_constants(argument), argument.rows, argument.cols)
        argument = _without_constants(argument) if vector else _without_row_constants(argument)
        for right in (False,) if vector else (False, True):
            end, rest = common_ends(argument, TURNS, right)
            if end is not None:
                inner, turn = self.softmax(rest), self.products.single(end)
                return self.products.times(inner, turn) if right else self.products.times(turn, inner)
        if not argument.parts:  # equal scores
            count = size_symbol(argument.rows if vector else argument.cols)
            flat = self.products.single(ones(argument.rows))
            if not vector:
                flat = self.products.times(flat, self.products.single(ones(argument.cols)).transposed())
            return flat.scaled(1 / count)
        return self.made("softmax", argument, argument.rows, argument.cols)

    def sum_exp(self, z: Terms) -> Scalar:
        """The sum of the exponentials of a vector."""
        self._require_vector(z)
        shift = z.parts.get((ones(z.rows),), sp.Integer(0))
        rest = _without_constants(z)
        end, without = common_ends(rest, TURNS)
        while end is not None:
            rest = without
            end, without = common_ends(rest, TURNS)
        if not rest.parts:
            return size_symbol(z.rows) * sp.exp(shift)
        return self.products.atom("sumexp", f"sumexp({rest.key})", rest, positive=True) * sp.exp(shift)

    def lse(self, z: Terms) -> Scalar:
        """log of the sum of the exponentials."""
        return sp.expand(sp.expand_log(sp.log(self.sum_exp(z))))

    def largest(self, z: Terms) -> Scalar:
        """The largest entry of a vector."""
        self._require_vector(z)
        shift = z.parts.get((ones(z.rows),), sp.Integer(0))
        rest = _without_constants(z)
        end, without = common_ends(rest, TURNS)
        if end is not None:
            return self.largest(without) + shift
        if not rest.parts:
            return shift
        scale, rest = positive_content(rest)
        return scale * self.products.atom("max", f"max({rest.key})", rest) + shift

    def argmax(self, z: Terms) -> Scalar:
        """Where the largest entry is; rising functions of the entries do not move it."""
        self._require_vector(z)
        rest = _without_constants(z)
        if len(rest.parts) == 1:
            ((word, c),) = rest.parts.items()
            if len(word) == 1 and word[0].kind in ("softmax", "exp", "tanh", "sigmoid") and c.is_positive:
                return self.argmax(word[0].payload)
        _, rest = positive_content(rest)
        return self.products.atom("argmax", f"argmax({rest.key})", rest, integer=True, positive=True)

    def norm(self, value: Terms) -> Scalar:
        """The root of the sum of the squares of the entries; rotations do not change it."""
        if value.is_number:
            return sp.Abs(value.number())
        for right in (False, True):
            end, rest = common_ends(value, ("permutation", "orthogonal"), right)
            if end is not None:
                return self.norm(rest)
        if not value.parts:
            return sp.Integer(0)
        units = all(len(word) == 1 and word[0].kind == "unit" for word in value.parts)
        if units and sum(c.count_ops() for c in value.parts.values()) < MAX_OPERATIONS:  # a vector of numbers
            square = sp.trigsimp(sum(c**2 for c in value.parts.values()))
            if square.is_number:
                return sp.sqrt(square)
        scale, value = common_content(value)
        if len(value.parts) == 1:
            ((word, c),) = value.parts.items()
            scale, value = scale * sp.Abs(c), Terms({word: sp.Integer(1)}, value.rows, value.cols)
            if not word or (word[0].kind == "ones" and len(word) == 1):  # I, or a vector of ones
                return scale * sp.sqrt(size_symbol(word[0].rows if word else value.rows))
            for cut in range(1, len(word)):
                if word[cut].shape[0] == "1":  # |u v'| = |u| |v|
                    pieces = (word[:cut], word[cut:])
                    one, two = (Terms({w: sp.Integer(1)}, w[0].shape[0], w[-1].shape[1]) for w in pieces)
                    return scale * self.norm(one) * self.norm(two)
        negative = value.scaled(sp.Integer(-1))
        chosen = min(value, negative, value.transposed(), negative.transposed(), key=_sign_order)
        return scale * self.products.atom("norm", f"norm({chosen.key})", chosen, nonnegative=True)

    def squared_norm(self, value: Terms) -> Scalar:
        """The sum of the squares of the entries."""
        return self.trace(self.products.times(value.transposed(), value))

    def trace(self, value: Terms) -> Scalar:
        """The trace; cyclic, and the same for the transpose."""
        if value.rows != value.cols:
            raise Unsupported("the trace of a matrix that is not square")
        if value.is_number:
            return value.number()
        return sum((c * self._trace_of(w, value.rows) for w, c in value.parts.items()), sp.Integer(0))

    def _trace_of(self, word: Word, size: str) -> Scalar:
        if not word:
            return size_symbol(size)
        if len(word) == 1 and word[0].kind == "diag":
            return self.products.inner(self.products.single(ones(size)), word[0].payload)
        for cut in range(len(word)):
            turned = word[cut:] + word[:cut]
            if turned[0].shape[0] == "1":  # trace(u v') = v'u
                return self.products.word(turned, sp.Integer(1), "1", "1").number()
        for cut in range(1, len(word)):
            turned = word[cut:] + word[:cut]
            reduced = self.products.word(turned, sp.Integer(1), turned[0].shape[0], turned[0].shape[0])
            if not reduced.parts:
                return sp.Integer(0)
            ((shorter, c),) = reduced.parts.items()
            if len(shorter) < len(word):
                return c * self._trace_of(shorter, turned[0].shape[0])
        rotated = [word[cut:] + word[:cut] for cut in range(len(word))]
        every = [*rotated, *(tuple(f.turned() for f in reversed(w)) for w in rotated)]
        chosen = min(every, key=word_text)
        half = len(chosen) == 2 and chosen[0].name == chosen[1].name and chosen[0].flipped != chosen[1].flipped
        return self.products.atom(
            "trace", f"trace({word_text(chosen)})", chosen, **({"nonnegative": True} if half else {})
        )

    def rank(self, value: Terms) -> Scalar:
        """The rank; factors that are invertible do not change it."""
        for right in (False, True):
            end, rest = common_ends(value, ("permutation", "orthogonal", "invertible", "inverse"), right)
            if end is not None:
                return self.rank(rest)
        if not value.parts:
            return sp.Integer(0)
        if list(value.parts) == [()] and value.parts[()].is_nonzero:
            return size_symbol(value.rows)
        _, value = positive_content(value)
        negative = value.scaled(sp.Integer(-1))
        chosen = min(value, negative, value.transposed(), negative.transposed(), key=_sign_order)
        return self.products.atom("rank", f"rank({chosen.key})", chosen, integer=True, nonnegative=True)

    def odot(self, left: Terms, right: Terms) -> Terms:
        """The product entry by entry."""
        if left.is_number and right.is_number:
            return left.scaled(right.number())
        if (left.rows, left.cols) != (right.rows, right.cols):
            raise Unsupported("a product entry by entry of arrays of different shapes")
        if left.cols == "1":
            for one, two in ((left, right), (right, left)):
                if list(one.parts) == [(ones(one.rows),)]:
                    return two.scaled(one.parts[(ones(one.rows),)])
        for side in (False, True):
            (end, rest), (other_end, other) = (common_ends(v, TURNS, side) for v in (left, right))
            if end is not None and end == other_end:
                inner, turn = self.odot(rest, other), self.products.single(end)
                return self.products.times(inner, turn) if side else self.products.times(turn, inner)
        out = Terms({}, left.rows, left.cols)
        for w, c in left.parts.items():
            for u, e in right.parts.items():
                a, b = sorted((w, u), key=word_text)
                pair = (
                    Terms({a: sp.Integer(1)}, left.rows, left.cols),
                    Terms({b: sp.Integer(1)}, left.rows, left.cols),
                )
                factor = Factor(f"({pair[0].key} .* {pair[1].key})", left.rows, left.cols, "odot", payload=pair)
                out = out.plus(self.products.single(factor).scaled(c * e))
        return out

    def diag(self, vector: Terms) -> Terms:
        """The diagonal matrix of a vector, linear in it; diag(ones) is the identity."""
        self._require_vector(vector)
        out = Terms({}, vector.rows, vector.rows)
        for word, c in vector.parts.items():
            if len(word) == 1 and word[0].kind == "ones":
                out = out.plus(Terms({(): c}, vector.rows, vector.rows))
                continue
            one = Terms({word: sp.Integer(1)}, vector.rows, "1")
            factor = Factor(f"diag({one.key})", vector.rows, vector.rows, "diag", payload=one)
            out = out.plus(self.products.single(factor).scaled(c))
        return out

    def diagonal(self, left: Factor, right: Factor) -> Terms | None:
        """A product of diag(v) with a vector or another diagonal matrix; None for any other."""
        if left.kind == right.kind == "diag":
            return self.diag(self.odot(left.payload, right.payload))
        if left.kind == "diag" and right.shape[1] == "1" and not right.flipped:
            return self._scaled_entries(left.payload, right)
        if right.kind == "diag" and left.shape[0] == "1" and left.flipped:
            return self._scaled_entries(right.payload, left.turned()).transposed()
        return None

    def _scaled_entries(self, vector: Terms, other: Factor) -> Terms:
        if other.kind == "unit":
            return _one(other).scaled(self.at(vector, other.payload))
        return self.odot(vector, _one(other))

    # Entries.
    def entry(self, word: Word) -> Scalar | None:
        """A scalar word that is an entry of a function, as that function of an entry; None for any other."""
        if len(word) == 1 or len(word) > 3:
            return None
        first, last = word[0], word[-1]
        if len(word) == 2 and "odot" in (first.kind, last.kind) and "unit" not in (first.kind, last.kind):
            return self._sum_of_products(first.turned(), last)
        if len(word) == 2 and first.kind != "unit" and last.kind == "unit":
            return self.entry(tuple(f.turned() for f in reversed(word)))
        if len(word) == 2 and first.kind == "unit" and not last.flipped:
            return self._vector_entry(first, last)
        middle = word[1]
        if len(word) == 3 and first.kind == "unit" and last.kind == "unit" and middle.kind in ENTRYWISE:
            argument = middle.payload.transposed() if middle.flipped else middle.payload
            inner = self.products.times(self.products.times(_one(first), argument), _one(last))
            return scalar_function(middle.kind, inner.number())
        return None

    def _sum_of_products(self, left: Factor, right: Factor) -> Scalar | None:
        """The sum over the entries of a product of vectors, whose order and brackets do not matter."""
        if left.cols != "1" or right.cols != "1" or left.flipped or right.flipped:
            return None
        every = sorted((*entry_factors(_one(left)), *entry_factors(_one(right))), key=lambda t: t.key)
        vectors = [t for t in every if t.key != _one(ones(t.rows)).key]
        if len(vectors) <= 2:
            return self.products.inner(*(vectors + [_one(ones(left.rows))] * 2)[:2])
        tail = vectors[1]
        for vector in vectors[2:]:
            name = f"({tail.key} .* {vector.key})"
            tail = _one(Factor(name, tail.rows, "1", "odot", payload=(tail, vector)))
        ((head,), (last,)) = vectors[0].transposed().parts, tail.parts
        word = (*head, *last)
        return self.products.atom("word", word_text(word), word)

    def _vector_entry(self, at: Factor, vector: Factor) -> Scalar | None:
        if vector.kind in ENTRYWISE:
            inner = self.products.times(_one(at), vector.payload).number()
            return scalar_function(vector.kind, inner)
        if vector.kind == "softmax":
            inner = self.products.times(_one(at), vector.payload).number()
            return sp.exp(inner) / self.sum_exp(vector.payload)
        if vector.kind == "odot":
            left, right = (self.products.times(_one(at), one).number() for one in vector.payload)
            return left * right
        return None

    def at(self, vector: Terms, item: str) -> Scalar:
        """One entry of a vector."""
        self._require_vector(vector)
        return self.products.times(self.products.single(unit(item, vector.rows)).transposed(), vector).number()

    def _require_vector(self, value: Terms) -> None:
        if value.cols != "1":
            raise Unsupported("a vector is needed here")


def entry_factors(vector: Terms) -> list[Terms]:
    """The vectors of which one is the product entry by entry."""
    ((word, _),) = vector.parts.items()
    if len(word) == 1 and word[0].kind == "odot" and not word[0].flipped:
        return [t for one in word[0].payload for t in entry_factors(one)]
    return [vector]


def _one(factor: Factor) -> Terms:
    rows, cols = factor.shape
    return Terms({(factor,): sp.Integer(1)}, rows, cols)


def _sign_order(value: Terms) -> tuple[int, int, str]:
    """Of a value, its negative and their transposes, the one with the fewest signs and transposes comes first."""
    key = value.key
    return key.count("(-"), key.count("'"), key


def _without_constants(z: Terms) -> Terms:
    return Terms({w: c for w, c in z.parts.items() if w != (ones(z.rows),)}, z.rows, z.cols)


def _without_row_constants(matrix: Terms) -> Terms:
    """Without the terms u*ones', which add the same number to every entry of a row."""
    parts = {w: c for w, c in matrix.parts.items() if not (w and w[-1].kind == "ones" and w[-1].flipped)}
    return Terms(parts, matrix.rows, matrix.cols)


def common_content(value: Terms) -> tuple[Scalar, Terms]:
    """The size of a factor common to all coefficients, and the terms without it; a norm is the product of both."""
    scale, value = positive_content(value)
    first = next(iter(value.parts.values()))
    ratios = {w: sp.cancel(c / first) for w, c in value.parts.items()}
    if first.is_number or not all(r.is_Rational for r in ratios.values()):
        return scale, value
    return scale * sp.Abs(first), Terms(ratios, value.rows, value.cols)


def positive_content(value: Terms) -> tuple[Scalar, Terms]:
    """A positive number common to all coefficients, and the terms divided by it."""
    common: Scalar | None = None
    for c in value.parts.values():
        number = sp.Mul(*[f for f in sp.Mul.make_args(c) if f.is_positive and f.is_commutative])
        common = number if common is None or common == number else sp.Integer(1)
        if common == 1:
            break
    if common is None or common == 1:
        common = sp.Integer(1)
        rational = [abs(c) for c in value.parts.values() if c.is_Rational]
        if rational and len(rational) == len(value.parts) and len(set(rational)) == 1:
            common = rational[0]
    if common == 1:
        return sp.Integer(1), value
    return common, Terms({w: sp.expand(c / common) for w, c in value.parts.items()}, value.rows, value.cols)
