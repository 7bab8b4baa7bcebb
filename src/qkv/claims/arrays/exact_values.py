"""The values of expressions at an instance with exact entries, as balls that contain them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz_mat

from qkv.claims.arrays.derivatives import derivative
from qkv.claims.arrays.errors import NoValue, Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.instances import ArrayInstance
from qkv.claims.syntax import nodes as L

BITS = 192
Matrix = Any


# Values.
def value(inst: ArrayInstance, expr: L.Expr) -> Matrix:
    """The value of an expression as a matrix of balls; numbers are 1 x 1.

    Raises:
        NoValue: If it has none, or none that is known.
    """
    if isinstance(expr, L.Num):
        return arb_mat([[_ball(expr.value)]])
    if isinstance(expr, L.Name):
        return _named(inst, expr)
    if isinstance(expr, L.Neg):
        return value(inst, expr.inner) * -1
    if isinstance(expr, L.Transpose):
        return value(inst, expr.inner).transpose()
    if isinstance(expr, L.Op):
        return _operation(inst, expr)
    if isinstance(expr, L.Call):
        return _call(inst, expr.function, expr.inner)
    if isinstance(expr, L.Apply):
        return _apply(inst, expr)
    if isinstance(expr, L.Sum):
        return _sum(inst, expr)
    if isinstance(expr, L.Cases):
        return _cases(inst, expr)
    if isinstance(expr, L.Stat) and inst.estimate is not None:
        return inst.estimate(expr)
    raise NoValue("a statistic")


def pair(inst: ArrayInstance, one: L.Expr, two: L.Expr) -> tuple[Matrix, Matrix]:
    """Two values that are added or compared, with the sizes of I, ones and 0 taken from each other."""
    left, right = _maybe(inst, one), _maybe(inst, two)
    if left is None and right is None:
        raise NoValue("I without a size")
    if left is None:
        left = _like(inst, one, right)
    if right is None:
        right = _like(inst, two, left)
    return _zero_fit(left, right), _zero_fit(right, left)


class _NoSize(NoValue):
    """I or ones without a neighbour that says its size."""


def _maybe(inst: ArrayInstance, expr: L.Expr) -> Matrix | None:
    try:
        return value(inst, expr)
    except _NoSize:
        return None


def _like(inst: ArrayInstance, expr: L.Expr, other: Matrix) -> Matrix:
    """An expression of I or ones, of the shape of another value."""
    if isinstance(expr, L.Neg):
        return _like(inst, expr.inner, other) * -1
    if isinstance(expr, L.Transpose):
        return _like(inst, expr.inner, other.transpose()).transpose()
    if isinstance(expr, L.Op) and expr.sign == "*":
        left, right = _maybe(inst, expr.left), _maybe(inst, expr.right)
        if left is not None and _shape(left) == (1, 1):
            return _like(inst, expr.right, other) * left[0, 0]
        if right is not None and _shape(right) == (1, 1):
            return _like(inst, expr.left, other) * right[0, 0]
        rows, cols = _shape(other)
        column, row = arb_mat(rows, 1, [0] * rows), arb_mat(1, cols, [0] * cols)
        if left is None and right is None and isinstance(expr.right, L.Transpose):  # ones*ones'
            return _like(inst, expr.left, column) * _like(inst, expr.right, row)
        if left is not None and _shape(left) == (rows, 1) and isinstance(expr.right, L.Transpose):  # z*ones'
            return left * _like(inst, expr.right, row)
        if right is not None and _shape(right) == (1, cols):  # ones*z'
            return _like(inst, expr.left, column) * right
    if isinstance(expr, L.Op) and expr.sign == "/":
        return _like(inst, expr.left, other) * (1 / value(inst, expr.right)[0, 0])
    if isinstance(expr, L.Op) and expr.sign in "+-":
        left, right = _maybe(inst, expr.left), _maybe(inst, expr.right)
        left = _like(inst, expr.left, other) if left is None else left
        right = _like(inst, expr.right, other) if right is None else right
        return left + right if expr.sign == "+" else left - right
    if isinstance(expr, L.Name) and str(expr) in ("I", "ones"):
        return _sized(str(expr), *_shape(other))
    raise NoValue("I without a size")


def _sized(name: str, rows: int, cols: int) -> Matrix:
    if name == "I":
        if rows != cols:
            raise NoValue("an identity that is not square")
        return arb_mat(rows, rows, [int(i == j) for i in range(rows) for j in range(rows)])
    if cols != 1:
        raise NoValue("ones as a matrix")
    return arb_mat(rows, 1, [1] * rows)


def _zero_fit(one: Matrix, other: Matrix) -> Matrix:
    if _shape(one) == (1, 1) != _shape(other) and one[0, 0].is_zero():
        return arb_mat(*_shape(other), [0] * (_shape(other)[0] * _shape(other)[1]))
    return one


def _ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def _shape(m: Matrix) -> tuple[int, int]:
    return m.nrows(), m.ncols()


def _entries(m: Matrix) -> list[arb]:
    return list(m.entries())


def _finite(m: Matrix) -> Matrix:
    if not all(x.is_finite() for x in m.entries()):
        raise NoValue("a value that is not finite, or not known well enough")
    return m


def _scalar(x: Any) -> Matrix:
    return _finite(arb_mat([[x]]))


def number(inst: ArrayInstance, expr: L.Expr) -> arb:
    """The value of an expression that is a number."""
    found = value(inst, expr)
    if _shape(found) != (1, 1):
        raise NoValue("an array where a number is needed")
    return found[0, 0]


def _operation(inst: ArrayInstance, expr: L.Op) -> Matrix:
    if expr.sign in "+-":
        left_, right_ = _maybe(inst, expr.left), _maybe(inst, expr.right)
        if left_ is None and right_ is None:
            raise _NoSize("I without a size")
        left, right = pair(inst, expr.left, expr.right)
        if _shape(left) != _shape(right):
            raise NoValue("shapes that do not fit")
        return left + right if expr.sign == "+" else left - right
    if expr.sign == "*":
        return _product(inst, expr.left, expr.right)
    second = number(inst, expr.right)
    if expr.sign == "/":
        inverse = 1 / second
        if not inverse.is_finite():
            raise NoValue("a division by zero")
        return value(inst, expr.left) * inverse
    if isinstance(expr.left, L.Call) and expr.left.function == "norm" and second == 2:  # exact where the entries are
        return _scalar(sum((x * x for x in _entries(value(inst, expr.left.inner))), arb(0)))
    base = number(inst, expr.left)
    whole = second.unique_fmpz()
    if second.is_exact() and whole is not None and abs(int(whole)) <= 64:
        out = arb(1)
        for _ in range(abs(int(whole))):
            out = out * base
        return _scalar(out if int(whole) >= 0 else 1 / out)
    return _scalar(base**second)


def _product(inst: ArrayInstance, one: L.Expr, two: L.Expr) -> Matrix:
    left, right = _maybe(inst, one), _maybe(inst, two)
    if left is None and right is None:
        raise _NoSize("I without a size")
    if left is None:
        if _shape(right) == (1, 1) and _is_number(inst, two):
            raise _NoSize("I without a size")
        rows = _shape(right)[0]
        if rows == 1 and not isinstance(one, L.Transpose) and not _has_identity(one):  # ones*z' of any height
            raise _NoSize("ones without a size")
        flipped = isinstance(one, L.Transpose) and not _has_identity(one)
        left = _like(inst, one, arb_mat(1, rows, [0] * rows) if flipped else arb_mat(rows, rows, [0] * rows**2))
    if right is None:
        if _shape(left) == (1, 1) and _is_number(inst, one):
            raise _NoSize("I without a size")
        cols = _shape(left)[1]
        square = _has_identity(two)
        if cols == 1 and isinstance(two, L.Transpose) and not square:  # z*ones' of any width
            raise _NoSize("ones without a size")
        right = _like(inst, two, arb_mat(cols, cols, [0] * cols**2) if square else arb_mat(cols, 1, [0] * cols))
    if _shape(left) == (1, 1):
        return right * left[0, 0]
    if _shape(right) == (1, 1):
        return left * right[0, 0]
    if _shape(left)[1] != _shape(right)[0]:
        raise NoValue("shapes that do not fit")
    return left * right


def _has_identity(expr: L.Expr) -> bool:
    return any(isinstance(n, L.Name) and str(n) == "I" for n in L.nodes(expr))


def entry_function(name: str, x: arb) -> arb:
    """A function of one number."""
    if name == "relu":
        return (x + abs(x)) / 2
    if name == "abs":
        return abs(x)
    if name == "sigmoid":
        return 1 / (1 + (-x).exp())
    if name == "sign":
        if x.is_zero():
            return arb(0)
        if x > 0 or x < 0:
            return arb(1) if x > 0 else arb(-1)
        raise NoValue("a sign that is not known")
    if name == "log" and not x > 0:
        raise NoValue("the logarithm of a number that is not positive")
    return getattr(x, name)()


def _call(inst: ArrayInstance, function: str, inner: L.Expr) -> Matrix:
    argument = value(inst, inner)
    if function == "norm":
        return _scalar(sum((x * x for x in _entries(argument)), arb(0)).nonnegative_part().sqrt())
    if function == "Phi":
        return _scalar((-number(inst, inner) / arb(2).sqrt()).erfc() / 2)
    if function == "R":
        raise NoValue("a rotation by a position beside arrays")
    return _finite(arb_mat(*_shape(argument), [entry_function(function, x) for x in _entries(argument)]))


def softmax_rows(m: Matrix, causal: bool = False) -> Matrix:
    """The softmax of every row; a matrix of one column has rows of one entry."""
    rows, cols = _shape(m)
    out = []
    for i in range(rows):
        most = max((m[i, j].mid() for j in range(cols)), key=float)
        powers = [(m[i, j] - most).exp() if not causal or j <= i else arb(0) for j in range(cols)]
        total = sum(powers, arb(0))
        out += [p / total for p in powers]
    return _finite(arb_mat(rows, cols, out))


def _apply(inst: ArrayInstance, expr: L.Apply) -> Matrix:
    name, args = expr.function, expr.args
    if name in ("grad", "jac", "diff"):
        try:
            return value(inst, derivative(inst.context, expr))
        except Unsupported as why:
            raise NoValue(str(why)) from None
    if name in ("relu", "tanh", "sigmoid", "abs", "sign", "sin", "cos"):
        return _call(inst, name, args[0])
    if name in ("odot", "inner"):
        left, right = pair(inst, *args)
        if _shape(left) != _shape(right):
            raise NoValue("shapes that do not fit")
        entries = [x * y for x, y in zip(_entries(left), _entries(right), strict=True)]
        return arb_mat(*_shape(left), entries) if name == "odot" else _scalar(sum(entries, arb(0)))
    values = [value(inst, a) for a in args]
    first = values[0]
    if name in ("softmax", "causal_softmax"):
        if name == "causal_softmax" and _shape(first)[0] != _shape(first)[1]:
            raise NoValue("a causal mask of scores that are not n x n")
        vector = name == "softmax" and _is_column(inst, args[0])
        return softmax_rows(first.transpose()).transpose() if vector else softmax_rows(first, name != "softmax")
    if name == "otimes":
        return values[0] * values[1].transpose()
    if name in ("concat", "stack"):
        return _joined(name, values[0], values[1])
    if name == "diag":
        size = _shape(first)[0]
        return arb_mat(size, size, [first[i, 0] if i == j else 0 for i in range(size) for j in range(size)])
    if name == "inv":
        try:
            return _finite(first.inv())
        except ZeroDivisionError:
            raise NoValue("a matrix without an inverse") from None
    if name in ("col", "row"):
        column = arb_mat(len(values), 1, [v[0, 0] for v in values])
        return column if name == "col" else column.transpose()
    return _scalar(_number_of(name, values))


def _is_column(inst: ArrayInstance, expr: L.Expr) -> bool:
    """Whether an expression is a vector by its declared sizes, which also tells 1 x 1 values apart.

    Raises:
        NoValue: The declared sizes are not known, and a size of 1 may have made a matrix look like a vector.
    """
    shape = _declared_shape(inst, expr)
    if shape is not None:
        return shape[1] == "1"
    rows, cols = _shape(value(inst, expr))
    if cols == 1 and rows > 1 and any(inst.sizes.get(s) == 1 for s in inst.context.sizes()):
        raise NoValue("a vector, or a matrix of one column")
    return cols == 1


def _is_number(inst: ArrayInstance, expr: L.Expr) -> bool:
    shape = _declared_shape(inst, expr)
    return shape is None or shape == ("1", "1")


def _declared_shape(inst: ArrayInstance, expr: L.Expr) -> tuple[str, str] | None:
    """The sizes of an expression as they are written; None if they are not known."""
    known = inst.context.shapes
    if expr not in known:
        try:
            found = ArrayEvaluator(inst.context).value(expr)
            known[expr] = (found.rows, found.cols)
        except Unsupported:
            known[expr] = None
    return known[expr]


def _joined(name: str, left: Matrix, right: Matrix) -> Matrix:
    if name == "stack":
        return _joined("concat", left.transpose(), right.transpose()).transpose()
    rows = _shape(left)[0]
    if rows != _shape(right)[0]:
        raise NoValue("matrices of different heights side by side")
    entries = [m[i, j] for i in range(rows) for m in (left, right) for j in range(_shape(m)[1])]
    return arb_mat(rows, _shape(left)[1] + _shape(right)[1], entries)


def _number_of(name: str, values: list[Matrix]) -> Any:
    first = _entries(values[0])
    if name in ("max", "min"):
        every = first if len(values) == 1 else [v[0, 0] for v in values]
        out = every[0]
        for x in every[1:]:
            out = out.max(x) if name == "max" else out.min(x)
        return out
    if name in ("argmax", "argmin"):
        sign = 1 if name == "argmax" else -1
        order = sorted(range(len(first)), key=lambda i: -sign * float(first[i].mid()))
        if any(not sign * (first[i] - first[j]) > 0 for i, j in pairwise(order[:2])):
            raise NoValue("a maximum that is not unique")
        return arb(order[0] + 1)
    if name == "lse":
        most = max((x.mid() for x in first), key=float)
        return sum(((x - most).exp() for x in first), arb(0)).log() + most
    if name == "trace":
        rows, cols = _shape(values[0])
        if rows != cols:
            raise NoValue("the trace of a matrix that is not square")
        return sum((values[0][i, i] for i in range(rows)), arb(0))
    if name == "rank":
        return _rank(values[0])
    if name not in ("entropy", "cross_entropy", "KL"):
        raise NoValue(f"{name} as a value")
    used = [(p, x) for p, x in zip(first, _entries(values[-1]), strict=True) if not p.is_zero()]  # 0*log(0) is 0
    crossed = -sum((p * entry_function("log", x) for p, x in used), arb(0))
    return crossed + sum((p * entry_function("log", p) for p, _ in used), arb(0)) if name == "KL" else crossed


def _rank(m: Matrix) -> arb:
    whole = [x.unique_fmpz() if x.is_exact() else None for x in m.entries()]
    if any(x is None for x in whole):
        raise NoValue("the rank of a matrix that is not known exactly")
    return arb(int(fmpz_mat(*_shape(m), [int(x) for x in whole if x is not None]).rank()))


def _sum(inst: ArrayInstance, expr: L.Sum) -> Matrix:
    sizes = _index_sizes(inst, expr)
    if len(sizes) > 1:
        raise NoValue("a sum over indices of different sizes")
    size = next(iter(sizes), inst.sizes.get(expr.upto or "n", 1))
    if expr.upto and inst.sizes.get(expr.upto, size) != size:
        raise NoValue("a sum up to another size than that of its index")
    left_out = {_place(inst, item) for item in expr.but}
    total = None
    for place in range(size):
        if place not in left_out:
            part = value(inst, L.renamed(expr.inner, expr.index, f"#{place}"))
            total = part if total is None else total + part
    return value(inst, L.renamed(expr.inner, expr.index, "#0")) * 0 if total is None else total


def _index_sizes(inst: ArrayInstance, expr: L.Sum) -> set[int]:
    found = set()
    for node in L.nodes(expr.inner):
        if isinstance(node, L.Name) and expr.index in node.subs and str(node) not in inst.arrays:
            base = _named(inst, L.Name(node.base, (), node.at))
            found |= {_shape(base)[j] for j, s in enumerate(node.subs) if s == expr.index}
    return found


def _place(inst: ArrayInstance, item: str) -> int:
    if item.startswith("#"):
        return int(item[1:])
    if item not in inst.items:
        raise NoValue(f"item {item}")
    return inst.items[item]


def _cases(inst: ArrayInstance, expr: L.Cases) -> Matrix:
    for inner, relation in expr.pieces:
        if relation is None:
            return value(inst, inner)
        known = holds(inst, relation)
        if known is None:
            raise NoValue("a case that is not known")
        if known:
            return value(inst, inner)
    raise NoValue("no case applies")


def _named(inst: ArrayInstance, name: L.Name) -> Matrix:
    plain = str(name)
    if plain not in inst.cache:
        inst.cache[plain] = _lookup(inst, name, plain)
    return inst.cache[plain]


def _lookup(inst: ArrayInstance, name: L.Name, plain: str) -> Matrix:
    if plain in inst.context.lets:
        return value(inst, inst.context.lets[plain])
    if plain in inst.arrays:
        table = inst.arrays[plain]
        return arb_mat(len(table), len(table[0]), [_ball(x) for row in table for x in row])
    if plain == "pi":
        return arb_mat([[arb.pi()]])
    if plain in ("I", "ones"):
        raise _NoSize("I without a size")
    if plain in inst.numbers:
        return arb_mat([[_ball(inst.numbers[plain])]])
    base = _named(inst, L.Name(name.base, (), name.at))
    rows, cols = _shape(base)
    places = [_place(inst, s) for s in name.subs]
    if places[0] >= rows or (len(places) > 1 and places[1] >= cols):
        raise NoValue("an index beyond the size")
    if len(places) == 2:
        return arb_mat([[base[places[0], places[1]]]])
    if len(places) == 1 and _is_column(inst, L.Name(name.base, (), name.at)):
        return arb_mat([[base[places[0], 0]]])
    return arb_mat(cols, 1, [base[places[0], j] for j in range(cols)])


# Comparisons.
def holds(inst: ArrayInstance, relation: L.Relation) -> bool | None:
    """Whether a chain of comparisons holds for certain (False: fails for certain, None: not known)."""
    sure = True
    for left, op, right in relation.pairs():
        one, two = pair(inst, left, right)
        if _shape(one) != _shape(two):
            return False if op == "=" else None
        known = _compared(_entries(one - two), op)
        if known is False:
            return False
        sure &= known is True
    return True if sure else None


def _compared(gap: list[arb], op: str) -> bool | None:
    if op in ("=", "!="):
        if any(not x.contains(0) for x in gap):
            return op == "!="
        return (op == "=") if all(x.is_zero() for x in gap) else None
    if len(gap) != 1:
        return None
    x = gap[0] if op in (">", ">=") else -gap[0]
    if x > 0 or (op in (">=", "<=") and x >= 0):
        return True
    return False if x < 0 or (op in (">", "<") and x.is_zero()) else None


def nearly_equal(inst: ArrayInstance, relation: L.Relation) -> bool:
    """Whether every link that is not known to hold is a tie as far as the precision shows."""
    for left, op, right in relation.pairs():
        one, two = pair(inst, left, right)
        if _shape(one) != _shape(two):
            return False
        gap = _entries(one - two)
        if _compared(gap, op) is None and not (
            op in ("=", "<=", ">=") and all(x.contains(0) and x.rad() < 1e-30 for x in gap)
        ):
            return False
    return True


def meets(inst: ArrayInstance) -> bool:
    """Whether an instance meets every condition for certain."""
    for condition in inst.context.conditions:
        try:
            if holds(inst, condition) is not True:
                return False
        except NoValue:
            return False
    return True


def precision() -> Any:
    """The precision of all values, as a context manager."""
    return ctx.workprec(BITS)
