"""Numerical evaluator: from the syntax tree to arrays, on a concrete instance, independent of the symbolic part."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from qkv.claims.semantics.context import Context, bases_indexed_by, names_used
from qkv.claims.semantics.expression_properties import bare_identity, noise_degree
from qkv.claims.syntax import nodes as L

Array = np.ndarray[Any, np.dtype[np.float64]]
"""Every value has shape (samples, rows, columns); a number is (samples, 1, 1)."""


class CannotEvaluate(Exception):
    """A formula that has no value on this instance."""


class NotLoaded(Exception):
    """qkv.noise is needed and has not been imported yet; importing it inside the time limit would use that up."""


MAX_COVARIANCE = 1e3  # largest entry of a covariance that is drawn from
ROUNDING = 1e-12  # a difference this small, relative to its terms, is rounding
EVENT_EDGE = 1e-13  # draws this close to the edge of an event may lie on either side
MAX_DRAW_SHARE = 0.15  # of one draw in a variance, for the draws to tell the error of a mean
NEGLIGIBLE_NOISE = 1e-12  # a variance below the rounding of the scores


class ExactMoments(Protocol):
    """Statistics of weights at fixed numbers, by integration instead of draws (numeric.noise_moments)."""

    def moment(self, inst: Instance, expr: L.Stat) -> tuple[Array, float] | None:
        """E, Var, Cov or Corr and its error; None if it cannot be integrated."""

    def event(self, inst: Instance, expr: L.Chance) -> tuple[float, float] | None:
        """The ends between which a probability lies; None if it cannot be integrated."""


@dataclass(frozen=True)
class Frame:
    """Orthonormal vectors that are exact fractions: columns of a product of reflections.

    Attributes:
        reflections: Whole vectors v, each for the reflection I - 2vv'/(v'v); none of them for the unit vectors.
        columns: The column of each member of a family, or of each named column of a basis.
        offset: The first column of a basis.
    """

    reflections: tuple[tuple[int, ...], ...] = ()
    columns: dict[str, int] = field(default_factory=dict)
    offset: int = 0

    def matrix(self, d: int) -> Array:
        """The whole frame, (d, d)."""
        out = np.eye(d)
        for row in self.reflections:
            v = np.array(row, dtype=float)
            out = out - np.outer(out @ v, v) * (2.0 / float(v @ v))
        return out


@dataclass
class Instance:
    """Concrete numbers and arrays for one claim."""

    context: Context
    n: int
    d: int
    numbers: dict[str, Array]
    families: dict[str, dict[str, Array]]
    vectors: dict[str, Array]
    bases: dict[str, Array]
    samples: int = 1
    normal: dict[str, Array] = field(default_factory=dict)  # standard normal draws, by what they are for
    cache: dict[str, Array] = field(default_factory=dict)
    cancelled: set[L.Expr] = field(default_factory=set)  # differences that vanish up to rounding
    side: float = 1.0  # whether a number comes to a limit inside its range from above (1) or from below (-1)
    exact: ExactMoments | None = None  # used for statistics of weights, where no limit is taken
    even: bool = False  # the draws have mean 0 and covariance I exactly, so linear functions have exact moments
    error: float = 0.0  # bound on the error of the statistics evaluated so far, where it is known
    sampled: bool = False  # whether one of them is an average over the draws
    uneven: bool = False  # whether few draws dominate one of these averages
    fractions: dict[str, Fraction] = field(default_factory=dict)  # numbers that stand for a fraction, not for a float
    frames: dict[str, Frame] = field(default_factory=dict)  # of orthogonal families and of bases
    rebuild: Callable[[], None] | None = None  # makes the vectors again after a number that they depend on has moved

    @property
    def items(self) -> list[str]:
        """All items: the named ones, and numbers from 1 up for the rest."""
        return item_names(self.context, self.n)

    def put(self, name: str, value: float) -> None:
        """Set a number, and forget the values that were computed with the old one."""
        self.numbers[name] = np.full((1, 1, 1), float(value))
        self.cache.clear()


def item_names(context: Context, n: int) -> list[str]:
    """All of n items: the named ones, and numbers from 1 up for the rest."""
    named = list(context.items)
    return named if context.all_items_named else named + [f"#{i}" for i in range(1, n - len(named) + 1)]


def evaluate(inst: Instance, expr: L.Expr) -> Array:
    """The value of an expression; overflow gives infinity or NaN, without a warning."""
    with np.errstate(all="ignore"):
        return _value(inst, expr)


def _value(inst: Instance, expr: L.Expr) -> Array:
    if isinstance(expr, L.Num):
        return _number(float(expr.value))
    if isinstance(expr, L.Name):
        return _named(inst, expr)
    if isinstance(expr, L.Neg):
        return -_value(inst, expr.inner)
    if isinstance(expr, L.Transpose):
        return np.swapaxes(_value(inst, expr.inner), 1, 2)
    if isinstance(expr, L.Op):
        return _operation(inst, expr)
    if isinstance(expr, L.Call):
        return _call(inst, expr)
    if isinstance(expr, L.Sum):
        total = None
        items = _summands(inst, expr)
        for item in items:
            if item not in expr.but:
                part = _value(inst, L.renamed(expr.inner, expr.index, item))
                total = part if total is None else total + part
        if total is None:  # an empty sum has the shape of a summand
            return np.zeros_like(_value(inst, L.renamed(expr.inner, expr.index, items[0])))
        return total
    if isinstance(expr, L.Chance):
        return _chance(inst, expr)
    if isinstance(expr, L.Stat):
        return _statistic(inst, expr)
    raise CannotEvaluate("a function of arrays")


def _summands(inst: Instance, expr: L.Sum) -> list[str]:
    """The items, or the columns of a basis: the named ones under their names, all others under numbers."""
    bases = bases_indexed_by(inst.context, expr.index, expr.inner) if inst.context.bases else set()
    if not bases:
        return inst.items
    if len(bases) > 1:
        raise CannotEvaluate("a sum over the columns of two bases")
    (name,) = bases
    known, whole = inst.families[name.lower()], inst.bases[name]
    for j in range(len(known), whole.shape[2]):
        known[f"#{j}"] = whole[:, :, j][:, :, None]
    return list(known)


def sides(inst: Instance, one: L.Expr, two: L.Expr) -> tuple[Array, Array]:
    """Two values; an identity without a size takes that of the other one."""
    left, right = _value(inst, one), _value(inst, two)
    if left.shape[1:] == (inst.d, inst.d) != right.shape[1:] != (1, 1) and bare_identity(one):
        left = left[:, :1, :1] * np.eye(right.shape[1])
    if right.shape[1:] == (inst.d, inst.d) != left.shape[1:] != (1, 1) and bare_identity(two):
        right = right[:, :1, :1] * np.eye(left.shape[2])
    return left, right


def _number(value: float) -> Array:
    return np.full((1, 1, 1), value)


def _operation(inst: Instance, expr: L.Op) -> Array:
    left, right = sides(inst, expr.left, expr.right)
    if expr.sign in "+-":
        if left.shape[1:] != right.shape[1:] and not (_bare_zero(expr.left) or _bare_zero(expr.right)):
            raise CannotEvaluate("shapes that do not fit")
        found = left + right if expr.sign == "+" else left - right
        size = np.maximum(np.abs(left), np.abs(right))
        if np.mean((np.abs(found) <= ROUNDING * size) & (size > 0)) > 0.02:
            inst.cancelled.add(expr)
        return found
    if expr.sign == "*":
        if left.shape[1:] == (1, 1) or right.shape[1:] == (1, 1):
            return left * right
        if left.shape[2] != right.shape[1]:
            raise CannotEvaluate("shapes that do not fit")
        return left @ right
    return left / right if expr.sign == "/" else left**right


def _bare_zero(expr: L.Expr) -> bool:
    return isinstance(expr, L.Num) and expr.value == 0


def _call(inst: Instance, expr: L.Call) -> Array:
    inner = _value(inst, expr.inner)
    if expr.function == "norm":
        return np.sqrt(np.sum(inner**2, axis=(1, 2), keepdims=True))
    if expr.function == "R":
        return _rotation(inst.d, inner)
    if expr.function == "Phi":
        return np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), otypes=[float])(inner)
    return {"exp": np.exp, "log": np.log, "sqrt": np.sqrt}[expr.function](inner)


def _rotation(d: int, angle: Array) -> Array:
    """Rotate each pair of coordinates, later ones by smaller angles, as rotary embeddings do."""
    out = np.zeros((angle.shape[0], d, d))
    for pair in range(d // 2):
        phi = angle[:, 0, 0] / 10 ** (2 * pair / d)
        i, j = 2 * pair, 2 * pair + 1
        out[:, i, i], out[:, i, j], out[:, j, i], out[:, j, j] = np.cos(phi), -np.sin(phi), np.sin(phi), np.cos(phi)
    return out


def _chance(inst: Instance, expr: L.Chance) -> Array:
    """A probability: integrated where exact moments are asked for, else the share of the draws."""
    (left, right), (op,) = expr.event.sides, expr.event.ops
    if inst.exact is not None and _weighted(inst, left, right):
        ends = inst.exact.event(inst, expr)
        if ends is not None:
            inst.error = max(inst.error, (ends[1] - ends[0]) / 2)
            return _number((ends[0] + ends[1]) / 2)
    inst.sampled = True
    difference = _value(inst, left) - _value(inst, right)
    # Where rounding may have made two things equal, a count says nothing; what cancels in every draw is equal.
    edge = float(np.mean(np.abs(difference) <= EVENT_EDGE))
    if 0 < edge < 1 or (edge and bool(np.any(difference))) or (edge and _weighted(inst, left, right)):
        raise CannotEvaluate("an event on the edge")
    hit = {
        "=": difference == 0,
        "!=": difference != 0,
        "<": difference < 0,
        "<=": difference <= 0,
        ">": difference > 0,
        ">=": difference >= 0,
    }[op]
    return _number(float(np.mean(hit)))


def _weighted(inst: Instance, *parts: L.Node) -> bool:
    """Whether weights or outputs occur in some parts."""
    return any(n.base in ("alpha", "c") for n in names_used(inst.context, *parts))


def _statistic(inst: Instance, expr: L.Stat) -> Array:
    if inst.exact is not None and _weighted(inst, *expr.inner):
        known = inst.exact.moment(inst, expr)
        if known is not None:
            inst.error = max(inst.error, known[1])
            return known[0]
    values = [_value(inst, e) for e in expr.inner]
    x, y = values[0], values[-1]
    if inst.samples > 1 and not (inst.even and _even_moment(inst, expr)):
        inst.sampled = True
        inst.uneven |= _dominated(x) if expr.function == "E" else any(_dominated(v**2) for v in map(_centred, values))
    if expr.function == "E":
        return x.mean(axis=0, keepdims=True)
    both = _covariance(inst, x, y)
    if expr.function != "Corr":
        return both
    return both / np.sqrt(_covariance(inst, x, x) * _covariance(inst, y, y))


def _even_moment(inst: Instance, expr: L.Stat) -> bool:
    """Whether draws with mean 0 and covariance I give the statistic exactly: moments up to the second of the noise."""
    if any(isinstance(n, L.Sum) for n in L.nodes(expr)) and any(len(z) < inst.samples for z in inst.normal.values()):
        return False
    degrees = [noise_degree(inst.context, e) for e in expr.inner]
    most = 2 if expr.function == "E" else 1
    return all(degree is not None and degree <= most for degree in degrees)


def _centred(values: Array) -> Array:
    return values - values.mean(axis=0, keepdims=True)


def _dominated(values: Array) -> bool:
    """Whether few draws make up most of the variance, so that the error of a mean cannot be told from the draws."""
    squares = np.square(_centred(values))
    total = squares.sum(axis=0)
    return not bool(np.all(squares.max(axis=0) <= MAX_DRAW_SHARE * total))


def _covariance(inst: Instance, x: Array, y: Array) -> Array:
    x, y = (np.broadcast_to(v, (inst.samples, *v.shape[1:])) for v in (x, y))
    a, b = x - x.mean(axis=0, keepdims=True), y - y.mean(axis=0, keepdims=True)
    return np.mean(a @ np.swapaxes(b, 1, 2), axis=0, keepdims=True)


# Names.
def _named(inst: Instance, name: L.Name) -> Array:
    plain = str(name)
    if plain in inst.cache:
        return inst.cache[plain]
    out = _lookup(inst, name, plain)
    inst.cache[plain] = out
    return out


def _lookup(inst: Instance, name: L.Name, plain: str) -> Array:
    context, base = inst.context, name.base
    if base == "I" and not name.subs:
        return np.eye(inst.d)[None]
    if base == "oo":
        return _number(math.inf)
    defined = context.definition(name)
    if defined is not None:
        return _value(inst, defined)
    if plain in inst.numbers:
        return inst.numbers[plain]
    if plain in inst.vectors:
        return inst.vectors[plain]
    if plain in inst.bases:
        return inst.bases[plain]
    if base == "alpha" and name.subs:
        head = name.subs[0] if len(name.subs) == 2 else ""
        weights = _weights(inst, head)
        return weights[:, inst.items.index(name.subs[-1])][:, None, None]
    if base == "c":
        return _output(inst, name.subs[0] if name.subs else "")
    item = name.subs[0] if name.subs else ""
    if context.tokens:
        if base in ("Q", "K", "V") and not item:
            return np.eye(inst.d)[None]
        if base in ("q", "k", "v"):
            matrix = _named(inst, L.Name(base.upper(), (), name.at))
            token = _named(inst, L.Name("x", (item,), name.at))
            return matrix * token if matrix.shape[1:] == (1, 1) else matrix @ token
    if base == "k" and context.noise:
        return _noisy(inst, item)
    if base in inst.families and item in inst.families[base]:
        return inst.families[base][item]
    if base == "v":
        return inst.families["v"][item]
    raise CannotEvaluate(f"{plain} on this instance")


def weights_name(head: str) -> str:
    """The cache key of the weights of a head."""
    return f"weights {head}"


def _weights(inst: Instance, head: str) -> Array:
    """The softmax of the scores; the largest is subtracted first."""
    key = weights_name(head)
    if key not in inst.cache:
        query = _named(inst, L.Name("q", (head,) if head else (), (0, 0)))
        scores = [np.swapaxes(_named(inst, L.Name("k", (i,), (0, 0))), 1, 2) @ query for i in inst.items]
        if any(s.shape[1:] != (1, 1) for s in scores):
            raise CannotEvaluate("scores that are no numbers")
        table = np.concatenate([np.broadcast_to(s[:, 0], (max(t.shape[0] for t in scores), 1)) for s in scores], axis=1)
        hidden = [inst.context.hidden(head, item) for item in inst.items]
        if any(hidden):
            table = np.where(np.array(hidden), -np.inf, table)
        table = np.exp(table - table.max(axis=1, keepdims=True))
        inst.cache[key] = table / table.sum(axis=1, keepdims=True)
    return inst.cache[key]


def _output(inst: Instance, head: str) -> Array:
    heads = inst.context.heads()
    if head == "" and heads != ("",):
        return sum((_output(inst, h) for h in heads), np.zeros((1, 1, 1))) / len(heads)
    weights = _weights(inst, head)
    values = [_named(inst, L.Name("v", (i,), (0, 0))) for i in inst.items]
    return sum((weights[:, j, None, None] * v for j, v in enumerate(values)), np.zeros((1, 1, 1)))


def key_law(inst: Instance, item: str) -> tuple[Array, Array]:
    """The mean (1, d, 1) and the covariance (d, d) of a key."""
    given = inst.context.noise.get(item) or inst.context.noise["i"]
    mean, spread = given.mean, given.spread
    if given.name.subs == ("i",):
        mean, spread = L.renamed((mean, spread), "i", item)
    covariance = _value(inst, spread)[0]
    if not bool((np.abs(covariance) <= MAX_COVARIANCE).all()):
        raise CannotEvaluate("a spread too wide to draw from")
    return _value(inst, mean), covariance


def _noisy(inst: Instance, item: str) -> Array:
    """A key drawn from its distribution: the mean plus a square root of the covariance times a normal vector."""
    middle, covariance = key_law(inst, item)
    if (
        covariance.max() < NEGLIGIBLE_NOISE and inst.d > 1
    ):  # noise below rounding of the scores: one draw stands for all
        return middle + math.sqrt(max(covariance[0, 0], 0.0)) * inst.normal[item][:1, :, None]
    values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    if values.min() < -1e-9:
        raise CannotEvaluate("a covariance that is not positive")
    if len(inst.normal[item]) < inst.samples:
        raise CannotEvaluate("too many items to draw")
    # The widest direction takes evenly spread quantiles, so that one random length is integrated, not sampled.
    root = axes * np.sqrt(np.clip(values, 0, None))
    return middle + (inst.normal[item][:, ::-1] @ root.T)[:, :, None]
