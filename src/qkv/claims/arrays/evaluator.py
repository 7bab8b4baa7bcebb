"""Evaluator: from the syntax tree of a claim about arrays to terms in normal form."""

from __future__ import annotations

from functools import cached_property

import sympy as sp

from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.derivatives import derivative
from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.expectations import expectation
from qkv.claims.arrays.functions import ENTRYWISE, Functions
from qkv.claims.arrays.sums import summed
from qkv.claims.arrays.terms import Factor, Products, Scalar, Terms, ones, select, size_symbol, unit
from qkv.claims.syntax import nodes as L

MAX_EXPONENT = 12
DEFAULT = "?"  # the size of ones and I before their neighbour is known


class ArrayEvaluator:
    """The normal form of every expression of one claim."""

    def __init__(self, context: ArrayContext) -> None:
        self.context = context
        self.products = Products()
        self.functions = Functions(self.products)
        self._names: dict[str, Terms] = {}
        self._bound = 0

    def fix(self, name: str, value: Terms) -> None:
        """Set the value of an array, before anything else is evaluated."""
        self._names[name] = value

    # Values.
    def value(self, expr: L.Expr) -> Terms:
        """The normal form of an expression.

        Raises:
            Unsupported: If there is no rule for it, or if shapes do not fit.
        """
        if isinstance(expr, L.Num):
            return self.products.number(sp.Rational(expr.value.numerator, expr.value.denominator))
        if isinstance(expr, L.Name):
            return self.named(expr)
        if isinstance(expr, L.Neg):
            return self.value(expr.inner).scaled(sp.Integer(-1))
        if isinstance(expr, L.Transpose):
            return self.value(expr.inner).transposed()
        if isinstance(expr, L.Op):
            return self._operation(expr)
        if isinstance(expr, L.Call):
            return self._call(expr.function, expr.inner)
        if isinstance(expr, L.Apply):
            return self._apply(expr)
        if isinstance(expr, L.Sum):
            self._bound += 1
            return summed(self, expr, f"@{self._bound}")
        if isinstance(expr, L.Stat):
            return self.products.number(self._statistic(expr))
        if isinstance(expr, L.Cases):
            return self.products.number(self._cases(expr))
        raise Unsupported("a probability of an event")

    def number(self, expr: L.Expr) -> Scalar:
        """The value of an expression that is a number."""
        found = self.value(expr)
        if not found.is_number:
            raise Unsupported("an array where a number is needed")
        return found.number()

    def pair(self, one: L.Expr, two: L.Expr) -> tuple[Terms, Terms]:
        """Two values that are added or compared: I, ones and 0 without a size take that of the other one."""
        left, right = self.value(one), self.value(two)
        return self._fitted(left, right), self._fitted(right, left)

    def _fitted(self, value: Terms, other: Terms) -> Terms:
        if value.is_number and not value.parts and not other.is_number:
            return Terms({}, other.rows, other.cols)
        if DEFAULT not in (value.rows, value.cols):
            return value
        rows = other.rows if value.rows == DEFAULT else value.rows
        cols = other.cols if value.cols == DEFAULT else value.cols
        return _sized(value, rows, cols)

    def _operation(self, expr: L.Op) -> Terms:
        if expr.sign in "+-":
            left, right = self.pair(expr.left, expr.right)
            return left.plus(right if expr.sign == "+" else right.scaled(sp.Integer(-1)))
        if expr.sign == "*":
            left, right = self.value(expr.left), self.value(expr.right)
            if DEFAULT in (left.rows, left.cols) and not right.is_number:
                left = _sized(left, *_left_size(left, right))
            if DEFAULT in (right.rows, right.cols) and not left.is_number:
                right = _sized(right, *_right_size(right, left))
            return self.products.times(left, right)
        second = self.number(expr.right)
        if expr.sign == "/":
            if second == 0:
                raise Unsupported("a division by zero")
            return self.value(expr.left).scaled(1 / second)
        base = self.number(expr.left)
        if second.is_number and (not second.is_rational or abs(second) > MAX_EXPONENT):
            raise Unsupported(f"a power beyond {MAX_EXPONENT}")
        if base == 0 and not second.is_positive:
            raise Unsupported("a power of zero")
        return self.products.number(self.tidied(base**second))

    @cached_property
    def given_sizes(self) -> dict[Scalar, int]:
        """The sizes that are given as numbers."""
        ranges = {s: self.context.numbers[s] for s in self.context.sizes() if s in self.context.numbers}
        return {size_symbol(s): int(r.point) for s, r in ranges.items() if r.point is not None}

    def at_given_sizes(self, expr: Scalar) -> Scalar:
        """A scalar with the sizes put in that are given as numbers."""
        return expr.subs(self.given_sizes) if self.given_sizes else expr

    def tidied(self, expr: Scalar) -> Scalar:
        """A scalar with the squares of norms written out, and sizes that are given."""
        expr = sp.expand(self.at_given_sizes(expr))
        norms = [s for s in expr.free_symbols if getattr(s, "sort", "") == "norm"]
        for norm in norms:
            square = self.functions.squared_norm(norm.payload)
            expr = expr.replace(
                lambda e, n=norm: e.is_Pow and e.base == n and e.exp.is_Integer and (e.exp >= 2 or e.exp <= -2),
                lambda e, n=norm, s=square: (
                    s ** (abs(e.exp) // 2 * sp.sign(e.exp)) * n ** (e.exp % 2 if e.exp > 0 else -(-e.exp % 2))
                ),
            )
            expr = sp.expand(expr)
        return expr

    def _call(self, function: str, inner: L.Expr) -> Terms:
        if function == "R":
            raise Unsupported("rotations by a position beside arrays")
        argument = self.value(inner)
        if function == "norm":
            if DEFAULT in (argument.rows, argument.cols):
                raise Unsupported("ones or I without a neighbour that says its size")
            return self.products.number(self.functions.norm(argument))
        if function == "Phi":
            x = self.number(inner)
            return self.products.number((1 + sp.erf(x / sp.sqrt(2))) / 2)
        return self.functions.entrywise(function, argument)

    def _apply(self, expr: L.Apply) -> Terms:
        name, args, made = expr.function, expr.args, self.functions
        if name in ("grad", "jac", "diff"):
            return self.value(derivative(self.context, expr))
        if name in ENTRYWISE:
            return made.entrywise(name, self.value(args[0]))
        if name in ("softmax", "causal_softmax"):
            return made.softmax(self.value(args[0]), name)
        if name in ("concat", "stack"):
            return self._joined(name, *(self.value(a) for a in args))
        if name == "odot":
            return made.odot(*self.pair(*args))
        if name == "otimes":
            left, right = (self.value(a) for a in args)
            if left.cols != "1" or right.cols != "1":
                raise Unsupported("an outer product of matrices")
            return self.products.times(left, right.transposed())
        if name == "diag":
            return made.diag(self.value(args[0]))
        if name == "inv":
            return self._inverse(self.value(args[0]))
        if name in ("col", "row"):
            return self._column([self.number(a) for a in args], name == "row")
        return self.products.number(self._scalar_apply(name, args))

    def _scalar_apply(self, name: str, args: tuple[L.Expr, ...]) -> Scalar:
        made = self.functions
        values = [self.value(a) for a in args]
        if name in ("max", "min") and len(values) == 2:
            x, y = (self._as_number(v) for v in values)
            return sp.Max(x, y) if name == "max" else -sp.Max(-x, -y)
        if name == "max":
            return made.largest(values[0])
        if name == "min":
            return -made.largest(values[0].scaled(sp.Integer(-1)))
        if name == "argmax":
            return made.argmax(values[0])
        if name == "argmin":
            return made.argmax(values[0].scaled(sp.Integer(-1)))
        if name == "lse":
            return made.lse(values[0])
        if name == "inner":
            return self.products.inner(*self.pair(*args))
        if name == "trace":
            return made.trace(values[0])
        if name == "rank":
            return made.rank(values[0])
        if name == "entropy":
            return -self.products.inner(values[0], made.entrywise("log", values[0]))
        if name in ("cross_entropy", "KL"):
            p, r = values
            crossed = -self.products.inner(p, made.entrywise("log", r))
            return crossed if name == "cross_entropy" else crossed + self.products.inner(p, made.entrywise("log", p))
        raise Unsupported(f"{name} as a value")

    def _as_number(self, value: Terms) -> Scalar:
        if not value.is_number:
            raise Unsupported("an array where a number is needed")
        return sp.expand(value.number())

    def _joined(self, name: str, left: Terms, right: Terms) -> Terms:
        """[A B] is A*[I 0] + B*[0 I]; one above the other is the transpose of that."""
        if name == "stack":
            return self._joined("concat", left.transposed(), right.transposed()).transposed()
        if left.rows != right.rows:
            raise Unsupported("matrices of different heights side by side")
        widths = [tuple(part.cols.strip("()").split("+")) for part in (left, right)]
        sizes, cut = (*widths[0], *widths[1]), len(widths[0])
        ends = ((left, 0, cut), (right, cut, len(sizes)))
        parts = [self.products.times(part, self.products.single(select(sizes, *end))) for part, *end in ends]
        return parts[0].plus(parts[1])

    def _inverse(self, value: Terms) -> Terms:
        if len(value.parts) == 1:
            ((word, c),) = value.parts.items()
            if not word and not value.is_number:
                return Terms({(): 1 / c}, value.rows, value.cols)
            if len(word) == 1 and word[0].kind in ("permutation", "orthogonal"):
                return value.transposed().scaled(1 / c**2)
            if len(word) == 1 and word[0].kind == "invertible" and c.is_nonzero:
                old = word[0]
                factor = Factor(f"inv({old.name})", old.rows, old.cols, "inverse", old.flipped, payload=old.name)
                return self.products.single(factor).scaled(1 / c)
        raise Unsupported("the inverse of a matrix that is not given as invertible")

    def _column(self, entries: list[Scalar], row: bool) -> Terms:
        size = str(len(entries))
        if size == "1":
            return self.products.number(entries[0])
        out = Terms({}, size, "1")
        for j, entry in enumerate(entries, 1):
            out = out.plus(self.products.single(unit(str(j), size)).scaled(entry))
        return out.transposed() if row else out

    def _cases(self, expr: L.Cases) -> Scalar:
        pieces = []
        for inner, relation in expr.pieces:
            if relation is None:
                pieces.append((self.number(inner), True))
                break
            ((left, op, right),) = tuple(relation.pairs()) if len(relation.ops) == 1 else ((None, "", None),)
            if left is None or right is None:
                raise Unsupported("a chain of comparisons as a case")
            gap = sp.expand(self.number(left) - self.number(right))
            how = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge, "=": sp.Eq, "!=": sp.Ne}[op](gap, 0)
            pieces.append((self.number(inner), how))
        return sp.Piecewise(*pieces)

    def _statistic(self, expr: L.Stat) -> Scalar:
        given = [n.base for r in self.context.conditions for n in L.nodes(r) if isinstance(n, L.Name)]
        if any(name in self.context.random for name in given):
            raise Unsupported("a mean over a random vector under a condition")
        values = [self.number(e) for e in expr.inner]
        x, y = values[0], values[-1]

        def mean(value: Scalar) -> Scalar:
            return expectation(self, value)

        if expr.function == "E":
            return mean(x)
        both = sp.expand(mean(sp.expand(x * y)) - mean(x) * mean(y))
        if expr.function != "Corr":
            return both
        spread = [sp.expand(mean(sp.expand(v * v)) - mean(v) ** 2) for v in (x, y)]
        return both / sp.sqrt(spread[0] * spread[1])

    # Names.
    def named(self, name: L.Name) -> Terms:
        """The value of a name."""
        plain = str(name)
        if plain not in self._names:
            self._names[plain] = self._lookup(name, plain)
        return self._names[plain]

    def _lookup(self, name: L.Name, plain: str) -> Terms:
        context = self.context
        if plain in context.lets:
            return self.value(context.lets[plain])
        if plain in context.arrays:
            own = context.arrays[plain]
            return self.products.single(Factor(plain, own.rows, own.cols, own.kind))
        if plain == "pi":
            return self.products.number(sp.pi)
        if plain == "I":
            return Terms({(): sp.Integer(1)}, DEFAULT, DEFAULT)
        if plain == "ones":
            return self.products.single(ones(DEFAULT))
        if plain in context.numbers:
            return self.products.number(self.symbol(plain))
        base = self.named(L.Name(name.base, (), name.at))
        if len(name.subs) == 1 and base.cols == "1":
            return self.products.number(self.functions.at(base, name.subs[0]))
        if len(name.subs) == 1:  # a row of a matrix, as a column
            return self.products.times(base.transposed(), self.products.single(unit(name.subs[0], base.rows)))
        if len(name.subs) == 2:
            row = self.products.single(unit(name.subs[0], base.rows)).transposed()
            found = self.products.times(row, base)
            return self.products.times(found, self.products.single(unit(name.subs[1], base.cols)))
        raise Unsupported(f"{plain} with {len(name.subs)} indices")

    def symbol(self, name: str) -> Scalar:
        """The symbol of a number."""
        where = self.context.numbers[name]
        if name in self.context.sizes() | {"n", "d"}:
            return size_symbol(name)
        if where.point is not None:
            return sp.Rational(where.point.numerator, where.point.denominator)
        low = where.lo is not None and (where.lo > 0 or (where.lo == 0 and where.lo_open))
        options = {"positive": True} if low else {"nonnegative": True} if where.lo == 0 else {"real": True}
        return sp.Symbol(name, **options, **({"integer": True} if where.whole else {}))


def _sized(value: Terms, rows: str, cols: str) -> Terms:
    """A value whose size was not known, with its size."""

    def size(one: str, wanted: str) -> str:
        return wanted if one == DEFAULT else one

    def factor(f: Factor) -> Factor:
        if f.kind == "ones" and f.rows == DEFAULT:
            own = cols if f.flipped else rows
            return Factor(f"ones[{own}]", own, "1", "ones", f.flipped)
        return f

    parts = {tuple(factor(f) for f in w): c for w, c in value.parts.items()}
    return Terms(parts, size(value.rows, rows), size(value.cols, cols))


def _left_size(left: Terms, right: Terms) -> tuple[str, str]:
    """The sizes of a left factor: a square one (I) takes those of its neighbour."""
    cols = right.rows if left.cols == DEFAULT else left.cols
    return (right.rows if left.rows == DEFAULT and left.cols == DEFAULT else left.rows), cols


def _right_size(right: Terms, left: Terms) -> tuple[str, str]:
    rows = left.cols if right.rows == DEFAULT else right.rows
    return rows, (left.cols if right.rows == DEFAULT and right.cols == DEFAULT else right.cols)
