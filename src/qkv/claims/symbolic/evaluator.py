"""Symbolic reading of a claim: families have known inner products, so that every score is a small expression."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from qkv.claims.semantics.context import REST, Context, bases_of
from qkv.claims.symbolic.basis_sums import Unsupported, WrongShape, columns_summed, sized
from qkv.claims.symbolic.matrix_polynomials import (
    ZERO,
    Factor,
    MatrixPolynomial,
    Scalar,
    TooLarge,
    identity,
    scalar,
    turn,
    vector,
)
from qkv.claims.syntax import nodes as L

__all__ = ["Algebra", "Reading", "Unsupported", "WrongShape", "fit"]

MOST_OPS = 3000  # nodes of one scalar expression


@dataclass
class Reading:
    """The softmax of one query: the exponentials of named items, and what the unnamed ones add.

    With known inner products every unnamed item has the same score, so they add (n - m) e^s. With free keys their
    scores differ; `uneven` says so, and `rest` is then the sum of their exponentials as one positive number.
    """

    name: str
    powers: dict[str, Scalar]
    rest: Scalar
    each: Scalar  # of one unnamed item
    uneven: bool
    scores: dict[str, Scalar] = field(default_factory=dict)

    @property
    def total(self) -> Scalar:
        return sum(self.powers.values(), sp.Integer(0)) + self.rest


class Algebra:
    """The symbolic value of every expression of a claim."""

    def __init__(self, world: Context, still: frozenset[str] = frozenset()) -> None:
        self.world = world
        self.still = still  # noise sizes that have gone to zero
        self.symbols: dict[str, Scalar] = {}
        self.random: dict[Scalar, tuple[Scalar, Scalar]] = {}  # mean and variance, independent of each other
        self.noise_of: dict[Scalar, tuple[str, Factor]] = {}  # z_x'u: the key x and the vector u
        self.bounded: dict[Scalar, str] = {}  # unknowns in (0, 1], or positive ones
        self.readings: dict[str, Reading] = {}
        self.queries: dict[str, MatrixPolynomial] = {}
        self.substituted: list[tuple[Scalar, Scalar]] = []
        self.weights_of_rest: dict[Scalar, Scalar] = {}
        self.facts_used: list[str] = []
        self.statistics: dict[Scalar, tuple[str, tuple[Scalar, ...]]] = {}
        self.tame = True  # whether the statistic being read is of bounded things
        self._scored = False
        for name, given in world.random.items():
            self.random[self.symbol(name)] = (self.value(given.mean).number(), self.value(given.spread).number())

    # Numbers.
    def symbol(self, name: str) -> Scalar:
        if name not in self.symbols:
            if name in self.still:
                self.symbols[name] = sp.Integer(0)
            else:
                where = self.world.numbers.get(name)
                if where is not None and where.point is not None:
                    self.symbols[name] = sp.Rational(where.point.numerator, where.point.denominator)
                else:
                    positive = (
                        where is not None
                        and where.lo is not None
                        and (where.lo > 0 or (where.lo == 0 and where.lo_open))
                    )
                    options = {"positive": True} if positive else {"real": True}
                    if where is not None and where.whole:
                        options["integer"] = True
                    self.symbols[name] = sp.Symbol(name, **options)
        return self.symbols[name]

    @property
    def size(self) -> Scalar:
        """How many items there are."""
        return sp.Integer(len(self.world.items)) if self.world.closed else self.symbol("n")

    # Inner products.
    def inner(self, left: Factor, right: Factor) -> Scalar:
        a, b = sorted((left.name, right.name))
        (base, item), (other, item2) = _split(a), _split(b)
        if "~" in (base, other):
            return self._noise(a, b)
        family = self.world.families.get(base)
        if base == other and family is not None and family.kind in ("orthonormal", "orthogonal"):
            norm = self.value(family.norm).number() if family.norm is not None else None
            if norm is None and family.kind == "orthogonal":
                norm = sp.Symbol(f"|{base}|", positive=True)
            square = sp.Integer(1) if norm is None else norm**2
            return square * self._overlap(item, item2)
        if (
            {base, other} in ({"a", "b"}, {"A", "B"}, {"A", "b"}, {"a", "B"})
            and self.world.right_angles
            and set(self.world.bases) == {"A", "B"}
        ):
            return sp.Integer(0)
        return sp.Symbol(f"<{a},{b}>", real=True) if a != b else sp.Symbol(f"<{a},{a}>", nonnegative=True)

    def _overlap(self, item: str, other: str) -> Scalar:
        """Of two members of an orthonormal family, where `+` is the sum of all unnamed items and `*` one of them."""
        if item == other == "+":
            return self.size - len(self.world.items)
        if {item, other} == {"+", REST}:
            return sp.Integer(1)
        return sp.Integer(1 if item == other else 0)

    def _noise(self, a: str, b: str) -> Scalar:
        """z_x'u is normal with variance u'u; products of two noises stay out of reach."""
        if a.startswith("~") and b.startswith("~"):
            raise Unsupported("a product of two noises")
        z, u = (a, b) if a.startswith("~") else (b, a)
        found = sp.Symbol(f"<{z},{u}>", real=True)
        self.noise_of[found] = (z, Factor(u, "vector"))
        return found

    # Expressions.
    def value(self, expr: L.Expr) -> MatrixPolynomial:
        got = self._value(expr)
        if got.scalar and not got.anything:
            number = got.number()
            if _ops(number) > MOST_OPS:
                raise TooLarge("an expression that grew too large")
        return got

    def number(self, expr: L.Expr) -> Scalar:
        got = self.value(expr)
        if got.anything:
            return sp.Integer(0)
        if not got.scalar:
            raise WrongShape(expr.at, f"{_shape(got)} where a number is needed", True)
        return got.number()

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
        from qkv.claims.symbolic.statistics import statistic

        return statistic(self, expr)

    def _operation(self, expr: L.Op) -> MatrixPolynomial:
        left, right = sized(expr.left, expr.right, self.value(expr.left), self.value(expr.right))
        if expr.sign in "+-":
            fit(left, right, expr.at)
            return left.plus(right) if expr.sign == "+" else left.minus(right)
        if expr.sign == "*":
            if not (left.scalar or right.scalar or left.anything or right.anything) and left.shape[1] != right.shape[0]:
                hard = "1" in (left.shape[1], right.shape[0])
                if hard and left.shape[1] == "1" and right.shape[1] == "1":
                    raise WrongShape(expr.at, "a product of two vectors", True, "x'*y or x*y'")
                raise WrongShape(expr.at, f"{_said(left)} times {_said(right)}", hard)
            return left.times(right, self.inner)
        divisor = self._number_of(right, expr)
        if expr.sign == "/":
            if divisor == 0:
                raise Unsupported("a division by zero")
            return left.scaled(1 / divisor)
        base = self._number_of(left, expr)
        if divisor.is_number and (abs(divisor) > 12 or not divisor.is_rational):
            raise Unsupported("a power beyond 12")
        if base == 0 and not divisor.is_positive:
            raise Unsupported("a power of zero")
        return scalar(base**divisor)

    def _number_of(self, got: MatrixPolynomial, expr: L.Op) -> Scalar:
        if got.anything:
            return sp.Integer(0)
        if not got.scalar:
            raise WrongShape(expr.at, f"{_shape(got)} where a number is needed", True)
        return got.number()

    def _call(self, expr: L.Call) -> MatrixPolynomial:
        inner = self.value(expr.inner)
        if expr.function == "norm":
            if inner.scalar or inner.anything or inner.shape[1] != "1":
                raise WrongShape(expr.at, f"the norm of {_shape(inner)}", True)
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

    def _sum(self, expr: L.Sum) -> MatrixPolynomial:
        columns = bases_of(self.world, expr.index, expr.inner)
        if columns:
            return columns_summed(self, expr, columns)
        total = ZERO
        for item in self.world.items:
            if item not in expr.but:
                part = self.value(L.renamed(expr.inner, expr.index, item))
                fit(total, part, expr.at)
                total = total.plus(part)
        if self.world.closed:
            return total
        if any(isinstance(node, L.Name) and REST in node.subs for node in L.nodes(expr.inner)):
            raise Unsupported("a sum within a sum over the unnamed items")
        part = self._summed(self.value(L.renamed(expr.inner, expr.index, REST)))
        fit(total, part, expr.at)
        return total.plus(part)

    def _summed(self, one: MatrixPolynomial) -> MatrixPolynomial:
        """The sum over the unnamed items of what stands for one of them."""
        count = self.size - len(self.world.items)
        terms: dict[tuple[Factor, ...], Scalar] = {}
        for word, coefficient in one.terms.items():
            starred = [a for a in word if a.name.endswith(f"_{REST}")]
            weight = [w for w in self.weights_of_rest if coefficient.has(w)]
            if len(starred) > 1 or len(weight) > 1 or (weight and sp.degree(sp.expand(coefficient), weight[0]) != 1):
                raise Unsupported("a sum of products over the unnamed items")
            loose = [s for s in coefficient.free_symbols if REST in s.name and s not in self.weights_of_rest]
            if loose and not starred and not weight:
                terms[word] = terms.get(word, sp.Integer(0)) + self._exponentials(coefficient)
                continue
            if loose:
                raise Unsupported("a sum over unnamed items whose scores differ")
            new: tuple[Factor, ...] = word
            if weight:  # Σ α_i v_i over the unnamed = (Σ α_i) v̄, with v̄ a weighted mean of their values
                coefficient = coefficient.subs(weight[0], self.weights_of_rest[weight[0]])
                if coefficient.has(weight[0]):
                    raise Unsupported("a sum of powers of weights")
                tag = weight[0].name
                new = tuple(
                    Factor(f"mean({a.name},{tag})", a.kind, a.rows, a.cols, a.flipped) if a in starred else a
                    for a in word
                )
            elif starred:
                new = tuple(
                    Factor(a.name[:-1] + "+", a.kind, a.rows, a.cols, a.flipped) if a in starred else a for a in word
                )
            else:
                coefficient = coefficient * count
            terms[new] = terms.get(new, sp.Integer(0)) + coefficient
        return MatrixPolynomial({w: c for w, c in terms.items() if c != 0}, one.shape, one.anything)

    def _exponentials(self, coefficient: Scalar) -> Scalar:
        """A multiple of e^(k_i'q), summed over unnamed items of free scores, is that multiple of the reading's rest."""
        from qkv.claims.symbolic import attention_terms

        for head in self.world.heads():
            reading = attention_terms.reading(self, head)
            share = sp.simplify(coefficient / reading.each)
            if reading.uneven and not any(REST in s.name for s in share.free_symbols):
                return share * reading.rest
        raise Unsupported("a sum over unnamed items whose scores differ")

    # Names.
    def named(self, name: L.Name) -> MatrixPolynomial:
        from qkv.claims.symbolic import attention_terms

        world, plain, base = self.world, str(name), name.base
        if base == "I" and not name.subs:
            return identity("d")
        if base == "oo":
            return scalar(sp.oo)
        defined = world.let(name)
        if defined is not None:
            return self.value(defined)
        if plain in world.numbers:
            return scalar(self.symbol(plain)) if self.symbol(plain) != 0 else ZERO
        if plain in world.vectors:
            return vector(Factor(plain, "vector", world.vectors[plain]))
        if plain in world.bases:
            return MatrixPolynomial(
                {(Factor(plain, "basis", "d", world.bases[plain]),): sp.Integer(1)}, ("d", world.bases[plain])
            )
        if base == "alpha":
            head = name.subs[0] if len(name.subs) == 2 else ""
            if not name.subs or (len(name.subs) == 1 and world.heads() != ("",)):
                raise WrongShape(name.at, f"{name}, a list of weights,", True, "one weight such as alpha_a")
            return scalar(attention_terms.weight(self, head, name.subs[-1]))
        if base == "c":
            return attention_terms.output(self, name.subs[0] if name.subs else "")
        return self._member(name)

    def _member(self, name: L.Name) -> MatrixPolynomial:
        world, base, item = self.world, name.base, name.subs[0] if name.subs else ""
        if world.tokens:
            if base in ("Q", "K", "V") and not item:
                return identity("d")
            if base in ("q", "k", "v"):
                matrix = self.named(L.Name(base.upper(), (), name.at))
                token = self.named(L.Name("x", (item,), name.at))
                if matrix.shape[1] != token.shape[0] and not matrix.scalar:
                    raise WrongShape(name.at, f"{_shape(matrix)} times {_shape(token)}", "1" in matrix.shape)
                return matrix.times(token, self.inner)
        if base == "k" and world.noise:
            return self._noisy(item, name.at)
        return vector(Factor(f"{base}_{item}", "vector"))

    def _noisy(self, item: str, at: L.At) -> MatrixPolynomial:
        """k = mean + √ε z + ..., where a covariance w·μμᵀ makes the length of μ a normal number γ of variance w."""
        given = self.world.noise.get(item) or self.world.noise.get("i")
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
                key = key.plus(vector(Factor(f"~_{item}", "vector"), sp.sqrt(weight)))
            elif len(word) == 2 and word[0].kind == "vector" and word[1] == word[0].turned():
                direction = vector(word[0])
                if dict(middle.terms) == dict(direction.terms):
                    taken = f"gamma_{item}" in self.world.numbers
                    length = sp.Symbol(f"{'length' if taken else 'gamma'}_{item}", real=True)
                    self.random[length] = (sp.Integer(1), weight)
                    key = key.plus(direction.scaled(length - 1))
                else:
                    shift = sp.Symbol(f"g_{item},{word[0].name}", real=True)
                    self.random[shift] = (sp.Integer(0), weight)
                    key = key.plus(direction.scaled(shift))
            else:
                raise Unsupported("a covariance that is no sum of eps*I and w*u*u'")
        return key


def fit(left: MatrixPolynomial, right: MatrixPolynomial, at: L.At) -> None:
    """Refuse to add or compare what has different shapes."""
    if left.anything or right.anything or left.shape == right.shape:
        return
    hard = left.scalar != right.scalar or (left.shape[1] == "1") != (right.shape[1] == "1")
    raise WrongShape(at, f"{_said(left)} beside {_said(right)}", hard)


def _said(element: MatrixPolynomial) -> str:
    from qkv.claims.symbolic.proof import element as written

    text = written(element)
    return f"{_shape(element)} ({text})" if len(text) < 60 else _shape(element)


def _shape(element: MatrixPolynomial) -> str:
    if element.scalar:
        return "a number"
    rows, cols = element.shape
    if cols == "1":
        return f"a vector of {rows} entries"
    return f"a row of {cols} entries" if rows == "1" else f"a {rows} x {cols} matrix"


def _split(name: str) -> tuple[str, str]:
    base, _, item = name.partition("_")
    return base, item


def _ops(expr: Scalar) -> int:
    count = 0
    for _ in sp.preorder_traversal(expr):
        count += 1
        if count > MOST_OPS:
            break
    return count
