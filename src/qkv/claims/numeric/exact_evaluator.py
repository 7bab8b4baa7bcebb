"""Exact evaluator: the values of expressions on an exact instance, as balls that contain them or as symbols.

An instance in floating point stands for an exact one: its floats are binary fractions, ends of ranges are the fractions
that the claim gives, and orthonormal vectors are columns of products of reflections at whole vectors. What is shown of
these values is therefore certain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from flint import fmpq, fmpq_mat

from qkv.claims.numeric.arithmetic import Arithmetic, Matrix, Number
from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Frame, Instance
from qkv.claims.semantics.context import Context, bases_indexed_by
from qkv.claims.semantics.expression_properties import bare_identity
from qkv.claims.syntax import nodes as L

MAX_ENTRIES = 40_000  # of the keys of one instance: larger ones take too long


@dataclass
class ExactInstance:
    """An instance whose numbers and vectors are exact, and its values so far.

    Attributes:
        source: The instance in floating point.
        context: What the claim declares; other than that of `source` where tokens are permuted.
        arithmetic: The kind of its numbers.
        draw: Which draw of the random numbers and keys is taken.
        numbers: Numbers that differ from those of `source`, such as one on its way to a limit.
        vectors: Further named vectors, such as the tokens before a permutation.
        cache: Values of names. Balls that were computed with less precision are still right.
    """

    source: Instance
    context: Context
    arithmetic: Arithmetic
    draw: int = 0
    numbers: dict[str, Number] = field(default_factory=dict)
    vectors: dict[str, Matrix] = field(default_factory=dict)
    cache: dict[str, Matrix] = field(default_factory=dict)

    @classmethod
    def of(cls, inst: Instance, arithmetic: Arithmetic, draw: int = 0) -> ExactInstance:
        """The exact instance that an instance in floating point stands for.

        Raises:
            CannotEvaluate: If it is too large.
        """
        if inst.n * inst.d > MAX_ENTRIES:
            raise CannotEvaluate("too many items for exact arithmetic")
        return cls(inst, inst.context, arithmetic, draw)

    def permuted(self, context: Context, vectors: dict[str, Matrix]) -> ExactInstance:
        """The same numbers and vectors under other definitions."""
        return replace(self, context=context, vectors={**self.vectors, **vectors}, cache={})

    def put(self, name: str, value: Number) -> None:
        """Set a number, and forget the values that were computed with the old one."""
        self.numbers[name] = value
        self.cache.clear()


def value(inst: ExactInstance, expr: L.Expr) -> Matrix:
    """The value of an expression as a matrix; numbers are 1 x 1.

    Raises:
        CannotEvaluate: For statistics, and where shapes do not fit or a value is not finite.
    """
    if isinstance(expr, L.Num):
        return _scalar(inst, inst.arithmetic.number(expr.value))
    if isinstance(expr, L.Name):
        return _named(inst, expr)
    if isinstance(expr, L.Neg):
        return inst.arithmetic.times(inst.arithmetic.number(Fraction(-1)), value(inst, expr.inner))
    if isinstance(expr, L.Transpose):
        return value(inst, expr.inner).transpose()
    if isinstance(expr, L.Op):
        return _operation(inst, expr)
    if isinstance(expr, L.Call):
        return _call(inst, expr)
    if isinstance(expr, L.Sum):
        return _sum(inst, expr)
    raise CannotEvaluate("a statistic in exact arithmetic")


def sides(inst: ExactInstance, one: L.Expr, two: L.Expr) -> tuple[Matrix, Matrix]:
    """Two values; an identity without a size takes that of the other one, and a 0 without a shape its shape."""
    left, right = value(inst, one), value(inst, two)
    shape, d = inst.arithmetic.shape, inst.source.d
    if shape(left) == (d, d) != shape(right) != (1, 1) and bare_identity(one):
        left = inst.arithmetic.times(left[0, 0], _identity(inst, shape(right)[0]))
    if shape(right) == (d, d) != shape(left) != (1, 1) and bare_identity(two):
        right = inst.arithmetic.times(right[0, 0], _identity(inst, shape(left)[1]))
    if shape(left) != shape(right):
        if _bare_zero(two):
            right = _zeros(inst, *shape(left))
        elif _bare_zero(one):
            left = _zeros(inst, *shape(right))
    return left, right


def number(inst: ExactInstance, expr: L.Expr) -> Number:
    """The value of an expression that is a number."""
    found = value(inst, expr)
    if inst.arithmetic.shape(found) != (1, 1):
        raise CannotEvaluate("a matrix where a number is needed")
    return found[0, 0]


def _zeros(inst: ExactInstance, rows: int, columns: int) -> Matrix:
    return inst.arithmetic.matrix(rows, columns, [0] * (rows * columns))


def _identity(inst: ExactInstance, size: int) -> Matrix:
    return inst.arithmetic.matrix(size, size, [int(i == j) for i in range(size) for j in range(size)])


def _bare_zero(expr: L.Expr) -> bool:
    return isinstance(expr, L.Num) and expr.value == 0


def _scalar(inst: ExactInstance, x: Number) -> Matrix:
    return inst.arithmetic.matrix(1, 1, [x])


def _operation(inst: ExactInstance, expr: L.Op) -> Matrix:
    kind = inst.arithmetic
    if expr.sign in "+-":
        left, right = sides(inst, expr.left, expr.right)
        if kind.shape(left) != kind.shape(right):
            raise CannotEvaluate("shapes that do not fit")
        return left + right if expr.sign == "+" else left - right
    left, right = sides(inst, expr.left, expr.right)
    if expr.sign == "*":
        if kind.shape(left) == (1, 1):
            return kind.times(left[0, 0], right)
        if kind.shape(right) == (1, 1):
            return kind.times(right[0, 0], left)
        if kind.shape(left)[1] != kind.shape(right)[0]:
            raise CannotEvaluate("shapes that do not fit")
        return left * right
    left, right = value(inst, expr.left), value(inst, expr.right)
    if kind.shape(right) != (1, 1):
        raise CannotEvaluate("a matrix where a number is needed")
    if expr.sign == "/":
        inverse = 1 / right[0, 0]
        kind.require_finite(inverse)
        return kind.times(inverse, left)
    if kind.shape(left) != (1, 1):
        raise CannotEvaluate("a power of a matrix")
    found = kind.power(left[0, 0], right[0, 0])
    kind.require_finite(found)
    return _scalar(inst, found)


def _call(inst: ExactInstance, expr: L.Call) -> Matrix:
    kind = inst.arithmetic
    inner = value(inst, expr.inner)
    rows, columns = kind.shape(inner)
    if expr.function == "norm":
        return _scalar(inst, kind.norm([inner[i, j] for i in range(rows) for j in range(columns)]))
    if (rows, columns) != (1, 1):
        raise CannotEvaluate("a function of a matrix")
    if expr.function == "R":
        return _rotation(inst, inner[0, 0])
    found = kind.function(expr.function, inner[0, 0])
    kind.require_finite(found)
    return _scalar(inst, found)


def _rotation(inst: ExactInstance, angle: Number) -> Matrix:
    """Rotate each pair of coordinates, later ones by smaller angles (evaluator._rotation)."""
    kind, d = inst.arithmetic, inst.source.d
    table = [[kind.number(Fraction(0))] * d for _ in range(d)]
    for pair in range(d // 2):
        phi = angle / kind.power(kind.number(Fraction(10)), kind.number(Fraction(2 * pair, d)))
        sin, cos = kind.function("sin", phi), kind.function("cos", phi)
        i, j = 2 * pair, 2 * pair + 1
        table[i][i], table[i][j], table[j][i], table[j][j] = cos, -sin, sin, cos
    return kind.matrix(d, d, [x for row in table for x in row])


def _sum(inst: ExactInstance, expr: L.Sum) -> Matrix:
    bases = bases_indexed_by(inst.context, expr.index, expr.inner) if inst.context.bases else set()
    if len(bases) > 1:
        raise CannotEvaluate("a sum over the columns of two bases")
    items = inst.source.items
    if bases:
        (name,) = bases
        known, width = inst.source.frames[name].columns, inst.source.bases[name].shape[2]
        items = [*known, *(f"#{j}" for j in range(len(known), width))]
    total = None
    for item in items:
        if item not in expr.but:
            part = value(inst, L.renamed(expr.inner, expr.index, item))
            if total is not None and inst.arithmetic.shape(part) != inst.arithmetic.shape(total):
                raise CannotEvaluate("shapes that do not fit")
            total = part if total is None else total + part
    if total is None:  # an empty sum has the shape of a summand
        return _zeros(inst, *inst.arithmetic.shape(value(inst, L.renamed(expr.inner, expr.index, items[0]))))
    return total


# Names.
def _named(inst: ExactInstance, name: L.Name) -> Matrix:
    plain = str(name)
    if plain not in inst.cache:
        inst.cache[plain] = _lookup(inst, name, plain)
    return inst.cache[plain]


def _lookup(inst: ExactInstance, name: L.Name, plain: str) -> Matrix:
    context, source, base = inst.context, inst.source, name.base
    if base == "I" and not name.subs:
        return _identity(inst, source.d)
    if base == "oo":
        raise CannotEvaluate("infinity in exact arithmetic")
    if plain in inst.vectors:
        return inst.vectors[plain]
    defined = context.definition(name)
    if defined is not None:
        return value(inst, defined)
    if plain in inst.numbers:
        return _scalar(inst, inst.numbers[plain])
    if plain in source.numbers:
        return _scalar(inst, exact_number(inst, plain))
    if plain in source.vectors:
        return _floats(inst, source.vectors[plain][0, :, 0])
    if plain in source.bases:
        return _basis(inst, plain)
    if base == "alpha" and name.subs:
        weights = _weights(inst, name.subs[0] if len(name.subs) == 2 else "")
        return _scalar(inst, weights[source.items.index(name.subs[-1])])
    if base == "c":
        return _output(inst, name.subs[0] if name.subs else "")
    item = name.subs[0] if name.subs else ""
    if context.tokens and base in ("Q", "K", "V") and not item:
        return _identity(inst, source.d)
    if context.tokens and base in ("q", "k", "v"):
        matrix, token = _named(inst, L.Name(base.upper(), (), name.at)), _named(inst, L.Name("x", (item,), name.at))
        if inst.arithmetic.shape(matrix) == (1, 1):
            return inst.arithmetic.times(matrix[0, 0], token)
        return matrix * token
    if base == "k" and context.noise:
        return _noisy(inst, item)
    if base.upper() in context.bases:
        return _column(inst, base.upper(), item)
    return _member(inst, base, item)


def exact_number(inst: ExactInstance, name: str) -> Number:
    """A number of the instance: what a condition sets it to, the end of its range where the float is that end, a given
    fraction, or what the float is exactly."""
    values = inst.source.numbers[name]
    x = float(values[inst.draw if len(values) > 1 else 0, 0, 0])
    for condition in inst.context.number_conditions:
        (left, right), (op,) = condition.sides, condition.ops
        used = {str(n) for n in L.nodes(right) if isinstance(n, L.Name)}
        if op == "=" and isinstance(left, L.Name) and str(left) == name and name not in used:
            return number(inst, right)
    where = inst.context.numbers.get(name)
    ends = [] if where is None else [end for end in (where.lo, where.hi) if end is not None]
    if name in inst.source.fractions:
        ends.append(inst.source.fractions[name])
    return inst.arithmetic.number(next((end for end in ends if float(end) == x), x))


def _floats(inst: ExactInstance, values: Array) -> Matrix:
    return inst.arithmetic.matrix(len(values), 1, [inst.arithmetic.number(float(x)) for x in values])


@lru_cache(maxsize=64)
def frame_matrix(reflections: tuple[tuple[int, ...], ...], d: int) -> fmpq_mat:
    """The product of the reflections at some whole vectors: an orthogonal matrix of fractions."""
    out = fmpq_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    for row in reflections:
        vector = fmpq_mat(d, 1, list(row))
        out = out - (out * vector) * (vector.transpose() * fmpq(2, sum(x * x for x in row)))
    return out


def _frame_column(inst: ExactInstance, frame: Frame, column: int, norm: Number) -> Matrix:
    kind, d = inst.arithmetic, inst.source.d
    if not frame.reflections:
        return kind.matrix(d, 1, [norm if i == column else 0 for i in range(d)])
    exact = frame_matrix(frame.reflections, d)
    entries = [Fraction(int(exact[i, column].p), int(exact[i, column].q)) for i in range(d)]
    return kind.matrix(d, 1, [norm * kind.number(x) for x in entries])


def _member(inst: ExactInstance, base: str, item: str) -> Matrix:
    """A vector of a family: a column of its frame times its norm, or free."""
    source = inst.source
    frame = source.frames.get(base)
    if frame is not None and item in frame.columns:
        family = inst.context.families[base]
        norm = inst.arithmetic.number(Fraction(1)) if family.norm is None else number(inst, family.norm)
        return _frame_column(inst, frame, frame.columns[item], norm)
    if item in source.families.get(base, {}):
        return _floats(inst, source.families[base][item][0, :, 0])
    raise CannotEvaluate(f"{base}_{item} on this instance")


def _basis(inst: ExactInstance, name: str) -> Matrix:
    frame, width, d = inst.source.frames[name], inst.source.bases[name].shape[2], inst.source.d
    one = inst.arithmetic.number(Fraction(1))
    columns = [_frame_column(inst, frame, frame.offset + j, one) for j in range(width)]
    return inst.arithmetic.matrix(d, width, [columns[j][i, 0] for i in range(d) for j in range(width)])


def _column(inst: ExactInstance, name: str, item: str) -> Matrix:
    frame = inst.source.frames[name]
    if item not in frame.columns and not item.startswith("#"):
        raise CannotEvaluate(f"{name.lower()}_{item} on this instance")
    column = int(item[1:]) if item.startswith("#") else frame.columns[item]
    return _frame_column(inst, frame, frame.offset + column, inst.arithmetic.number(Fraction(1)))


def _weights(inst: ExactInstance, head: str) -> list[Number]:
    """The softmax of the scores; a number near the largest is subtracted first."""
    kind = inst.arithmetic
    query = _named(inst, L.Name("q", (head,) if head else (), (0, 0))).transpose()
    scores = [query * _named(inst, L.Name("k", (i,), (0, 0))) for i in inst.source.items]
    if any(kind.shape(s) != (1, 1) for s in scores):
        raise CannotEvaluate("scores that are no numbers")
    most = kind.largest([s[0, 0] for s in scores])
    powers = [
        kind.number(Fraction(0)) if inst.context.hidden(head, i) else kind.function("exp", s[0, 0] - most)
        for i, s in zip(inst.source.items, scores, strict=True)
    ]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    weights = [power / total for power in powers]
    for weight in weights:
        kind.require_finite(weight)
    return weights


def _output(inst: ExactInstance, head: str) -> Matrix:
    kind, heads = inst.arithmetic, inst.context.heads()
    if head == "" and heads != ("",):
        parts = [_output(inst, h) for h in heads]
        share = kind.number(Fraction(1, len(heads)))
    else:
        values = [_named(inst, L.Name("v", (i,), (0, 0))) for i in inst.source.items]
        parts = [kind.times(w, v) for w, v in zip(_weights(inst, head), values, strict=True)]
        share = kind.number(Fraction(1))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return kind.times(share, total)


def _noisy(inst: ExactInstance, item: str) -> Matrix:
    """A key of the support of its distribution: the mean plus a Cholesky factor of the covariance times the draw."""
    given = inst.context.noise.get(item) or inst.context.noise["i"]
    mean, spread = given.mean, given.spread
    if given.name.subs == ("i",):
        mean, spread = L.renamed((mean, spread), "i", item)
    covariance, d = value(inst, spread), inst.source.d
    if inst.arithmetic.shape(covariance) != (d, d):
        raise CannotEvaluate("a covariance of another shape")
    draws = inst.source.normal[item]
    drawn = _floats(inst, draws[inst.draw if len(draws) > inst.draw else 0])
    return value(inst, mean) + _cholesky(inst, covariance) * drawn


def _cholesky(inst: ExactInstance, matrix: Matrix) -> Matrix:
    kind, d = inst.arithmetic, inst.source.d
    out = [[kind.number(Fraction(0))] * d for _ in range(d)]
    for i in range(d):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest = rest - out[i][k] * out[j][k]
            if i == j and not kind.surely_positive(rest):
                raise CannotEvaluate("a covariance that is not surely positive")
            out[i][j] = kind.function("sqrt", rest) if i == j else rest / out[j][j]
    return kind.matrix(d, d, [x for row in out for x in row])
