"""Instances of a claim about arrays: sizes, numbers and arrays with exact entries, simple ones first."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from qkv.claims.arrays.context import ArrayContext
from qkv.claims.arrays.errors import NoValue
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

SIMPLE = (*(Fraction(x) for x in (1, 2, 0, -1, 3, 5, -3)), Fraction(1, 2), Fraction(-1, 2))
MAX_SIZE = 4
Matrix = Any


@dataclass
class ArrayInstance:
    """Exact numbers and arrays; `sizes` are the numbers that are sizes."""

    context: ArrayContext
    sizes: dict[str, int]
    numbers: dict[str, Fraction]
    arrays: dict[str, list[list[Fraction]]]
    items: dict[str, int] = field(default_factory=dict)  # the place of each named item, from 0
    cache: dict[str, Matrix] = field(default_factory=dict)
    estimate: Callable[[L.Stat], Matrix] | None = None  # of statistics, which have no exact value

    def assignment(self) -> str:
        """The instance as assignments that Python accepts."""
        lines = [f"{name} = {value}" for name, value in sorted(self.sizes.items())]
        lines += [f"{name} = {_shown(value)}" for name, value in self.numbers.items() if name not in self.sizes]
        for name, rows in self.arrays.items():
            column = all(len(row) == 1 for row in rows)
            shown = [_shown(row[0]) for row in rows] if column else [f"[{', '.join(map(_shown, row))}]" for row in rows]
            lines.append(f"{name} = [{', '.join(shown)}]")
        lines += [f"{name} = {place}" for name, place in self.items.items() if not name.isdigit()]
        return "\n".join(lines)


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


# Instances.
def drawn(context: ArrayContext, seed: int) -> ArrayInstance:
    """An instance that meets the declared kinds and ranges; conditions are checked by `meets`.

    Raises:
        NoValue: If no number of a range was found.
    """
    rng = random.Random(seed)
    arrays = {name: declared for name, declared in context.arrays.items() if name in context.used}
    sizes = {}
    for size in sorted(context.sizes() | {"n", "d"}):
        where = context.numbers[size]
        low = int(where.lo or 1)
        if size == "n" or size in {a.rows for a in context.arrays.values()}:
            low = max(low, _items_of(context, size))
        high = int(where.hi) if where.hi is not None else low + MAX_SIZE
        if low > high or low > 60:
            raise NoValue("no size in range")
        if seed % 12 == 11 and where.hi is None and all(a.cols == "1" for a in arrays.values()):
            sizes[size] = low + rng.choice([20, 60, 100])  # vectors only: many entries are cheap
            continue
        sizes[size] = low if seed % 6 == 0 else rng.randint(min(high, max(low, 2)), min(high, max(low, 2) + 2))
    numbers = {n: _number(r, rng, seed) for n, r in context.numbers.items() if n not in sizes}
    if seed % 5 == 2 and len(numbers) > 1:  # equal or opposite numbers, where the ranges allow it
        first = next(iter(numbers.values()))
        for name, where in context.numbers.items():
            if name in numbers and inside(where, (-1) ** (seed % 2) * first):
                numbers[name] = (-1) ** (seed % 2) * first if name != next(iter(numbers)) else first
    numbers |= {name: Fraction(value) for name, value in sizes.items()}
    inst = ArrayInstance(context, sizes, numbers, {})
    for name, declared in arrays.items():
        rows, cols = (sizes[s] if s in sizes else int(s) for s in (declared.rows, declared.cols))
        inst.arrays[name] = _array(declared.kind, rows, cols, rng, seed)
    names = list(inst.arrays)
    if seed % 7 == 5 and len(names) > 1:  # two arrays of one shape that are equal, or opposite
        one, two = rng.sample(names, 2)
        if context.arrays[one] == context.arrays[two]:
            sign = -1 if context.arrays[one].kind == "" and rng.random() < 0.5 else 1
            inst.arrays[two] = [[sign * x for x in row] for row in inst.arrays[one]]
    free = list(range(max(min(sizes.values()), len(context.items))))
    rng.shuffle(free)
    for item in context.items:
        inst.items[item] = int(item) - 1 if item.isdigit() else free.pop(0)
    return inst


def _items_of(context: ArrayContext, size: str) -> int:
    """How many entries a size must have for the items that are named."""
    if not context.items:
        return 1
    digits = [int(i) for i in context.items if i.isdigit()]
    return max(digits) if digits else len(context.items)


def _number(where: Range, rng: random.Random, seed: int) -> Fraction:
    if where.point is not None:
        return where.point
    for _ in range(60):
        x = rng.choice(SIMPLE) if rng.random() < 0.5 else Fraction(round(rng.gauss(0, rng.choice([1, 3, 10])) * 8), 8)
        if where.lo is not None and where.hi is not None:
            x = where.lo + (where.hi - where.lo) * Fraction(rng.randint(0, 8), 8)
        elif where.lo is not None:
            x = where.lo + abs(x)
        elif where.hi is not None:
            x = where.hi - abs(x)
        x = Fraction(round(x)) if where.whole else x
        if inside(where, x):
            return x
    raise NoValue("no number in range")


def inside(where: Range, x: Fraction) -> bool:
    """Whether a number lies in a range."""
    if where.whole and x.denominator > 1:
        return False
    low = where.lo is None or x > where.lo or (x == where.lo and not where.lo_open)
    high = where.hi is None or x < where.hi or (x == where.hi and not where.hi_open)
    return low and high


def _array(kind: str, rows: int, cols: int, rng: random.Random, seed: int) -> list[list[Fraction]]:
    if kind == "permutation":
        order = list(range(rows))
        rng.shuffle(order)
        return [[Fraction(int(order[i] == j)) for j in range(rows)] for i in range(rows)]
    if kind == "simplex":
        return _weights(rows, rng, seed)
    if kind == "orthogonal":
        return _orthogonal(rows, rng, seed)
    scale = rng.choice([1, 1, 2, 5]) if seed % 5 else 1
    spread = [-2, -1, -1, 0, 1, 1, 2, 3]

    def entry() -> Fraction:
        return Fraction(rng.choice(spread) * scale) if seed % 4 else Fraction(rng.randint(-3, 3), rng.choice([1, 2]))

    out = [[entry() for _ in range(cols)] for _ in range(rows)]
    if kind == "symmetric":
        out = [[out[min(i, j)][max(i, j)] for j in range(cols)] for i in range(rows)]
    if kind == "invertible":  # triangular with a diagonal that is not 0
        out = [
            [out[i][j] if j < i else Fraction(1 + (i + seed) % 3) * int(i == j) for j in range(cols)]
            for i in range(rows)
        ]
    if seed % 12 == 11 and kind == "":  # one entry apart from all the others
        out = [[Fraction(rng.choice([1, 2, 3, 4]) if i == 0 else 0)] * cols for i in range(rows)]
    if seed % 10 == 7 and kind in ("", "symmetric"):  # no entry below 0, for logarithms and roots
        out = [[abs(x) + (seed % 20 == 7) for x in row] for row in out]
    if seed % 9 == 4 and kind == "" and rows == cols > 1:  # one entry: products with it are often 0
        place = [rng.randrange(rows), rng.randrange(cols)]
        out = [[Fraction(int([i, j] == place)) for j in range(cols)] for i in range(rows)]
    if seed % 11 == 3 and kind == "":
        out = [[Fraction(0)] * cols for _ in range(rows)]
    return out


def _weights(size: int, rng: random.Random, seed: int) -> list[list[Fraction]]:
    """Weights with sum 1: positive, with some that are 0, or all on one entry."""
    if seed % 4 == 3:
        top = rng.randrange(size)
        return [[Fraction(int(i == top))] for i in range(size)]
    weights = [Fraction(rng.randint(0 if seed % 4 == 1 else 1, 9)) for _ in range(size)]
    weights[0] += 0 if any(weights) else 1
    return [[w / sum(weights)] for w in weights]


def _orthogonal(size: int, rng: random.Random, seed: int) -> list[list[Fraction]]:
    """A reflection, a product of two, the identity, its opposite, or a permutation."""
    identity = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    if seed % 8 in (2, 4):
        return [[(1 if seed % 8 == 2 else -1) * x for x in row] for row in identity]
    if seed % 8 == 6:
        rng.shuffle(identity)
        return identity
    out = identity
    for _ in range(1 + seed % 2):
        v = [Fraction(rng.randint(-2, 2)) for _ in range(size)]
        v[0] += 0 if any(v) else 1
        norm = sum(x * x for x in v)
        dots = [sum(v[i] * out[i][j] for i in range(size)) for j in range(size)]
        out = [[out[i][j] - 2 * v[i] * dots[j] / norm for j in range(size)] for i in range(size)]
    return out
