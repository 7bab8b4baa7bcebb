"""Evaluator: from the syntax tree to symbolic values, by the known inner products of families."""

from __future__ import annotations

import sympy as sp

from qkv.claims.semantics.context import REST, bases_indexed_by
from qkv.claims.symbolic import attention_terms
from qkv.claims.symbolic.algebra import Algebra, described_value, require_same_shape, shape_text
from qkv.claims.symbolic.basis_sums import columns_summed, sized
from qkv.claims.symbolic.errors import TooLarge, Unsupported, WrongShape
from qkv.claims.symbolic.factors import Factor, Scalar, member, noise_vector, turn, unnamed_mean, unnamed_sum
from qkv.claims.symbolic.matrix_polynomials import ZERO, MatrixPolynomial, identity, scalar, vector
from qkv.claims.symbolic.statistics import statistic
from qkv.claims.symbolic.unknowns import KeyLength, KeyShift, varies_over_unnamed_items
from qkv.claims.syntax import nodes as L

MAX_EXPRESSION_NODES = 3000  # of one scalar
MAX_EXPONENT = 12


class Evaluator(Algebra):
    """The symbolic value of every expression of a claim."""

    def value(self, expr: L.Expr) -> MatrixPolynomial:
        """The symbolic value of an expression."""
        found = self._value(expr)
        if found.scalar and not found.anything and _more_nodes_than(found.number(), MAX_EXPRESSION_NODES):
            raise TooLarge("an expression that grew too large")
        return found

    def _value(self, expr: L.Expr) -> MatrixPolynomial:
        if isinstance(expr, L.Num):
            return scalar(sp.Rational(expr.value.numerator, expr.value.denominator)) if expr.value else ZERO
        if isinstance(expr, L.Name):
            return self.named(expr)
        if isinstance(expr, L.Neg):
            return self.value(expr.inner).scaled(sp.Integer(-1))
        if isinstance(expr, L.Transpose):
            return self.value(expr.inner).transposed()
        if isinstance(expr, L.Op):
            return self._operation(expr)
        if isinstance(expr, L.Call):
            return self._call(expr)
        if isinstance(expr, L.Sum):
            return self._sum(expr)
        if isinstance(expr, L.Stat | L.Chance):
            return statistic(self, expr)
        raise Unsupported("a function of arrays beside keys")

    def _operation(self, expr: L.Op) -> MatrixPolynomial:
        left, right = sized(expr.left, expr.right, self.value(expr.left), self.value(expr.right))
        if expr.sign in "+-":
            require_same_shape(left, right, expr.at)
            return left.plus(right) if expr.sign == "+" else left.minus(right)
        if expr.sign == "*":
            if not (left.scalar or right.scalar or left.anything or right.anything) and left.shape[1] != right.shape[0]:
                hard = "1" in (left.shape[1], right.shape[0])
                if hard and left.shape[1] == "1" and right.shape[1] == "1":
                    raise WrongShape(expr.at, "a product of two vectors", True, "x'*y or x*y'")
                raise WrongShape(expr.at, f"{described_value(left)} times {described_value(right)}", hard)
            return left.times(right, self.inner)
        second = self.as_number(right, expr.at)
        if expr.sign == "/":
            if second == 0:
                raise Unsupported("a division by zero")
            return left.scaled(1 / second)
        base = self.as_number(left, expr.at)
        if second.is_number and (abs(second) > MAX_EXPONENT or not second.is_rational):
            raise Unsupported(f"a power beyond {MAX_EXPONENT}")
        if base == 0 and not second.is_positive:
            raise Unsupported("a power of zero")
        return scalar(base**second)

    def _call(self, expr: L.Call) -> MatrixPolynomial:
        inner = self.value(expr.inner)
        if expr.function == "norm":
            if inner.scalar or inner.anything or inner.shape[1] != "1":
                raise WrongShape(expr.at, f"the norm of {shape_text(inner)}", True)
            square = inner.transposed().times(inner, self.inner).number()
            return scalar(sp.sqrt(sp.factor(square)) if square.is_polynomial() else sp.sqrt(square))
        argument = self.number(expr.inner)
        if expr.function == "R":
            return MatrixPolynomial(
                {(turn(argument),): sp.Integer(1)} if argument != 0 else {(): sp.Integer(1)}, ("d", "d")
            )
        if expr.function == "log":
            if argument.is_number and not argument.is_positive:
                raise Unsupported("the logarithm of a number that is not positive")
            return scalar(sp.log(argument))
        if expr.function == "sqrt":
            return scalar(sp.sqrt(argument))
        if expr.function == "Phi":
            return scalar((1 + sp.erf(argument / sp.sqrt(2))) / 2)
        return scalar(sp.exp(sp.expand(argument)))

    # Sums over items.
    def _sum(self, expr: L.Sum) -> MatrixPolynomial:
        columns = bases_indexed_by(self.context, expr.index, expr.inner)
        if columns:
            return columns_summed(self, expr, columns)
        total = ZERO
        for item in self.context.items:
            if item not in expr.but:
                part = self.value(L.renamed(expr.inner, expr.index, item))
                require_same_shape(total, part, expr.at)
                total = total.plus(part)
        if self.context.all_items_named:
            return total
        if any(isinstance(node, L.Name) and REST in node.subs for node in L.nodes(expr.inner)):
            raise Unsupported("a sum within a sum over the unnamed items")
        one = self.value(L.renamed(expr.inner, expr.index, REST))
        part = self._summed(one)
        if REST in expr.but:  # the unnamed item of a sum around this one is left out
            part = part.minus(one)
        require_same_shape(total, part, expr.at)
        return total.plus(part)

    def _summed(self, one: MatrixPolynomial) -> MatrixPolynomial:
        """The sum over the unnamed items of a value that stands for one of them."""
        if self.size == len(self.context.items):  # there is no unnamed item
            return MatrixPolynomial({}, one.shape, one.anything)
        terms: dict[tuple[Factor, ...], Scalar] = {}
        for word, coefficient in one.terms.items():
            for new, factor in self._summed_term(word, coefficient):
                terms[new] = terms.get(new, sp.Integer(0)) + factor
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, one.shape, one.anything)

    def _summed_term(self, word: tuple[Factor, ...], coefficient: Scalar) -> list[tuple[tuple[Factor, ...], Scalar]]:
        """One term of a value, summed over the unnamed items: the part with their weight, and the part without."""
        unnamed = [a for a in word if a.of_unnamed_item]
        weights = [w for w in self.rest_weights if coefficient.has(w)]
        if len(unnamed) > 1 or len(weights) > 1:
            raise Unsupported("a sum of products over the unnamed items")
        out = []
        if weights:  # Σ α_i v_i over the unnamed = (Σ α_i) v̄, with v̄ a weighted mean of their values
            (weight,) = weights
            coefficient = sp.expand(coefficient)
            factor = coefficient.coeff(weight, 1)
            coefficient = sp.expand(coefficient - factor * weight)
            if factor.has(weight) or coefficient.has(weight) or varies_over_unnamed_items(factor):
                raise Unsupported("a sum of products over the unnamed items")
            mean = tuple(unnamed_mean(a, weight) if a in unnamed else a for a in word)
            out.append((mean, factor * self.rest_weights[weight]))
        if coefficient == 0:
            return out
        if not unnamed:
            return [*out, (word, self._summed_number(coefficient))]
        if varies_over_unnamed_items(coefficient):
            raise Unsupported("a sum over unnamed items whose scores differ")
        return [*out, (tuple(unnamed_sum(a) if a in unnamed else a for a in word), coefficient)]

    def _summed_number(self, coefficient: Scalar) -> Scalar:
        """A number that stands for one unnamed item, summed over them; constants count once for each item."""
        count = self.size - len(self.context.items)
        if not varies_over_unnamed_items(coefficient):
            return coefficient * count
        total: Scalar = sp.Integer(0)
        for term in sp.Add.make_args(sp.expand_mul(coefficient)):
            total += self._exponentials(term) if varies_over_unnamed_items(term) else term * count
        return total

    def _exponentials(self, coefficient: Scalar) -> Scalar:
        """A multiple of e^(k_i'q), summed over unnamed items of free scores, is that multiple of the softmax's rest."""
        for head in self.context.heads():
            terms = attention_terms.softmax_terms(self, head)
            share = sp.simplify(coefficient / terms.each)
            if terms.uneven and not varies_over_unnamed_items(share):
                return share * terms.rest
        raise Unsupported("a sum over unnamed items whose scores differ")

    # Names.
    def named(self, name: L.Name) -> MatrixPolynomial:
        """The symbolic value of a name."""
        context, plain, base = self.context, str(name), name.base
        if base == "I" and not name.subs:
            return identity("d")
        if base == "oo":
            return scalar(sp.oo)
        defined = context.definition(name)
        if defined is not None:
            return self.value(defined)
        if plain in context.numbers:
            return scalar(self.symbol(plain)) if self.symbol(plain) != 0 else ZERO
        if plain in context.vectors:
            return vector(Factor(plain, "vector", context.vectors[plain]))
        if plain in context.bases:
            return vector(Factor(plain, "basis", "d", context.bases[plain]))
        if base == "alpha":
            head = name.subs[0] if len(name.subs) == 2 else ""
            if not name.subs or (len(name.subs) == 1 and context.heads() != ("",)):
                raise WrongShape(name.at, f"{name}, a list of weights,", True, "one weight such as alpha_a")
            return scalar(attention_terms.weight(self, head, name.subs[-1]))
        if base == "c":
            return attention_terms.output(self, name.subs[0] if name.subs else "")
        return self._member(name)

    def _member(self, name: L.Name) -> MatrixPolynomial:
        context, base, item = self.context, name.base, name.subs[0] if name.subs else ""
        if context.tokens:
            if base in ("Q", "K", "V") and not item:
                return identity("d")
            if base in ("q", "k", "v"):
                matrix = self.named(L.Name(base.upper(), (), name.at))
                token = self.named(L.Name("x", (item,), name.at))
                if matrix.shape[1] != token.shape[0] and not matrix.scalar:
                    raise WrongShape(name.at, f"{shape_text(matrix)} times {shape_text(token)}", "1" in matrix.shape)
                return matrix.times(token, self.inner)
        if base == "k" and context.noise:
            return self._noisy_key(item, name.at)
        return vector(member(base, item))

    def _noisy_key(self, item: str, at: L.At) -> MatrixPolynomial:
        """k = mean + √ε z + ..., where a covariance w·μμᵀ makes the length of μ a normal number γ of variance w."""
        given = self.context.noise.get(item) or self.context.noise.get("i")
        if given is None:
            raise Unsupported(f"the distribution of k_{item}")
        if given.name.subs == ("i",):
            mean, spread = L.renamed(given.mean, "i", item), L.renamed(given.spread, "i", item)
        else:
            mean, spread = given.mean, given.spread
        middle, matrix = self.value(mean), self.value(spread)
        if matrix.anything:
            return middle
        if matrix.shape != ("d", "d"):
            raise WrongShape(at, "a covariance that is no d x d matrix", True, "a sum such as eps*I + 1/2*mu_a*mu_a'")
        key = middle
        for word, weight in matrix.terms.items():
            if not weight.is_positive:
                raise Unsupported("a covariance whose size may be zero or negative")
            if not word:
                key = key.plus(vector(noise_vector(item), sp.sqrt(weight)))
            elif len(word) == 2 and word[0].kind == "vector" and word[1] == word[0].turned():
                direction = vector(word[0])
                if dict(middle.terms) == dict(direction.terms):
                    taken = f"gamma_{item}" in self.context.numbers
                    length = KeyLength(item, "length" if taken else "gamma")
                    self.random[length] = (sp.Integer(1), weight)
                    key = key.plus(direction.scaled(length - 1))
                else:
                    shift = KeyShift(item, word[0])
                    self.random[shift] = (sp.Integer(0), weight)
                    key = key.plus(direction.scaled(shift))
            else:
                raise Unsupported("a covariance that is no sum of eps*I and w*u*u'")
        return key


def _more_nodes_than(expr: Scalar, most: int) -> bool:
    return any(count > most for count, _ in enumerate(sp.preorder_traversal(expr), 1))
