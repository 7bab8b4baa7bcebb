"""Sums over the entries of vectors and the rows of matrices, as inner products and other products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.terms import Atom, Scalar, Terms, Word, ones, size_symbol
from qkv.claims.syntax import nodes as L

if TYPE_CHECKING:
    from qkv.claims.arrays.evaluator import ArrayEvaluator


def summed(evaluator: ArrayEvaluator, expr: L.Sum, index: str) -> Terms:
    """The sum of a term over every index, less the terms of those that are left out."""
    total = _Sum(evaluator, index).of(evaluator.value(L.renamed(expr.inner, expr.index, index)), expr.upto)
    for item in expr.but:
        one = evaluator.value(L.renamed(expr.inner, expr.index, item))
        total = total.plus(one.scaled(sp.Integer(-1)))
    return total


class _Sum:
    def __init__(self, evaluator: ArrayEvaluator, index: str) -> None:
        self.evaluator, self.products, self.index = evaluator, evaluator.products, index
        self.sizes: set[str] = set()

    def of(self, value: Terms, upto: str) -> Terms:
        for word, c in value.parts.items():
            self._find_sizes(word, c)
        if upto:
            self.sizes.add(upto)
        if len(self.sizes) > 1:
            raise Unsupported(f"a sum over indices of sizes {' and '.join(sorted(self.sizes))}")
        size = next(iter(self.sizes), "n")
        out = Terms({}, value.rows, value.cols)
        for word, c in value.parts.items():
            for term in sp.Add.make_args(sp.expand(c)):
                out = out.plus(self._term(word, term, size, value))
        return out

    def _find_sizes(self, word: Word, c: Scalar) -> None:
        todo: list[Word] = [word]
        todo += [a.payload for a in c.free_symbols if isinstance(a, Atom) and a.sort in ("word", "trace")]
        for one in todo:
            self.sizes |= {f.rows for f in one if f.kind == "unit" and f.payload == self.index}
        for atom in c.free_symbols:
            if isinstance(atom, Atom) and atom.sort not in ("word", "trace") and self._is_in(atom.name):
                raise Unsupported("a sum over a function of the index")

    def _depends(self, c: Scalar) -> bool:
        return any(isinstance(a, Atom) and self._is_in(a.name) for a in c.free_symbols)

    def _is_in(self, name: str) -> bool:
        """Whether the name of a factor or an atom holds the index, also within a function."""
        return f"unit_{self.index}[" in name

    def _is_inside(self, word: Word) -> bool:
        """Whether a factor that is not the unit vector itself depends on the index."""
        return any(self._is_in(f.name) and f.kind != "unit" for f in word)

    def _term(self, word: Word, term: Scalar, size: str, value: Terms) -> Terms:
        units = [j for j, f in enumerate(word) if f.kind == "unit" and f.payload == self.index]
        if self._is_inside(word):
            raise Unsupported("a sum over a function of the index")
        if len(units) > 1:
            raise Unsupported("a sum of products of one index")
        constant, pieces = self._pieces(term, size)
        vector = self._vector(pieces, size)
        if not units:
            single = Terms({word: constant}, value.rows, value.cols)
            if vector is None:
                return single.scaled(size_symbol(size))
            if isinstance(vector, Terms):
                return single.scaled(self.products.inner(self.products.single(ones(size)), vector))
            return single.scaled(vector)
        place = units[0]
        if vector is None:
            vector = self.products.single(ones(size))
        if not isinstance(vector, Terms):
            raise Unsupported("a sum of products of one index")
        flipped = word[place].flipped
        left = self._product(word[:place], value.rows, word[place].shape[0])
        right = self._product(word[place + 1 :], word[place].shape[1], value.cols)
        middle = vector.transposed() if flipped else vector
        found = middle if left is None else self.products.times(left, middle)
        found = found if right is None else self.products.times(found, right)
        return found.scaled(constant)

    def _product(self, word: Word, rows: str, cols: str) -> Terms | None:
        return self.products.word(word, sp.Integer(1), rows, cols) if word else None

    def _pieces(self, term: Scalar, size: str) -> tuple[Scalar, list[Terms | Scalar]]:
        """A product as a factor without the index, and vectors whose entries are the factors with it."""
        constant, pieces = sp.Integer(1), list[Terms | Scalar]()
        exponent: Scalar = sp.Integer(0)
        for factor in sp.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if not self._depends(factor):
                constant *= factor
            elif isinstance(factor, sp.exp):
                exponent += factor.args[0]
            elif base == sp.E:
                exponent += power
            elif isinstance(base, sp.exp):
                exponent += base.args[0] * power
            elif power.is_Integer and 0 < power <= 4:
                pieces += [self._entry_vector(base, size)] * int(power)
            else:
                raise Unsupported("a sum of a quotient or a power of what depends on the index")
        if exponent != 0:
            z = self._linear(exponent, size)
            functions = self.evaluator.functions
            constant *= functions.sum_exp(z)
            pieces.append(functions.softmax(z))
        return constant, pieces

    def _entry_vector(self, base: Scalar, size: str) -> Terms | Scalar:
        if isinstance(base, Atom):
            return self._atom_vector(base)
        functions = {sp.log: "log", sp.Abs: "abs", sp.sin: "sin", sp.cos: "cos", sp.sign: "sign"}
        if type(base) in functions:
            return self.evaluator.functions.entrywise(functions[type(base)], self._linear(base.args[0], size))
        if isinstance(base, sp.Max) and len(base.args) == 2 and sp.Integer(0) in base.args:
            inner = next(a for a in base.args if a != 0)
            return self.evaluator.functions.entrywise("relu", self._linear(inner, size))
        raise Unsupported("a sum of a function of the index")

    def _atom_vector(self, atom: Atom) -> Terms | Scalar:
        """The vector of which an atom is the entry; for a diagonal entry, the trace."""
        word: Word = atom.payload
        if atom.sort != "word" or self._is_inside(word):
            raise Unsupported("a sum over a function of the index")
        if (
            word[-1].kind == "unit"
            and word[-1].payload == self.index
            and not (word[0].kind == "unit" and word[0].payload == self.index)
        ):
            word = tuple(f.turned() for f in reversed(word))
        if not (word[0].kind == "unit" and word[0].payload == self.index):
            raise Unsupported("an index inside a product")
        rest = word[1:]
        if rest and rest[-1].kind == "unit" and rest[-1].payload == self.index:
            inner = rest[:-1]
            if any(f.kind == "unit" and f.payload == self.index for f in inner):
                raise Unsupported("an index that occurs three times")
            size = word[0].rows
            return self.evaluator.functions.trace(self.products.word(inner, sp.Integer(1), size, size))
        if any(f.kind == "unit" and f.payload == self.index for f in rest):
            raise Unsupported("an index inside a product")
        return self.products.word(rest, sp.Integer(1), word[0].rows, "1")

    def _linear(self, expr: Scalar, size: str) -> Terms:
        """A linear expression in entries, as a vector."""
        out = Terms({}, size, "1")
        for term in sp.Add.make_args(sp.expand(expr)):
            constant = sp.Integer(1)
            vector: Terms | None = None
            for factor in sp.Mul.make_args(term):
                if not self._depends(factor):
                    constant *= factor
                elif isinstance(factor, Atom) and vector is None:
                    found = self._atom_vector(factor)
                    if not isinstance(found, Terms):
                        raise Unsupported("a function of a diagonal entry")
                    vector = found
                else:
                    raise Unsupported("a function of products of entries")
            vector = self.products.single(ones(size)) if vector is None else vector
            out = out.plus(vector.scaled(constant))
        return out

    def _vector(self, pieces: list[Terms | Scalar], size: str) -> Terms | Scalar | None:
        """The product entry by entry of some vectors; None for none, and a number for a diagonal entry alone."""
        if not pieces:
            return None
        if len(pieces) == 1:
            return pieces[0]
        if any(not isinstance(p, Terms) for p in pieces):
            raise Unsupported("a product with a diagonal entry")
        vectors = [p for p in pieces if isinstance(p, Terms)]
        out = vectors[0]
        for vector in vectors[1:]:
            out = self.evaluator.functions.odot(out, vector)
        return out
