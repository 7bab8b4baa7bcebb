"""Inequalities that hold for all values: each is an expression that is never negative, or positive.

Every fact is a theorem of one line:

- softmax and lse: max z <= lse z <= max z + log n; lse z >= p'z + H(p) for every distribution p (Gibbs); lse and max
  are 1-Lipschitz; lse z >= z_a; the sum of exponentials is at least any of its terms together.
- softmax is 1/2-Lipschitz in the Euclidean norm: its Jacobian is the covariance of a distribution, and a variance is at
  most (max - min)^2/4 <= |u|^2/2 (Popoviciu). relu, tanh and sin are 1-Lipschitz entry by entry, sigmoid 1/4.
- entropy: 0 <= H(p) <= log n, 1 - |p|^2 <= H(p), -log max p <= H(p), KL(p, r) >= |p - r|^2 (Pinsker, as the 1-norm of
  numbers with sum 0 is at least sqrt 2 times their norm).
- norms: Cauchy-Schwarz, the triangle inequality, |A B| <= |A| |B| (Frobenius), |trace A| <= sqrt(n) |A|; a row of
  weights has a norm of 1 at most, and two distributions are at most sqrt(2) apart.
- ranks: at most every size on the way, and at most the sum of the ranks of the terms.
- variances by weights are never negative, and at most |y|^2/2.
- numbers: squares, exp(x) >= 1 + x, log(x) <= x - 1, |sin|, |cos| <= 1, cos(x) >= 1 - x^2/2,
  given ranges and conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import sympy as sp

from qkv.claims.arrays.errors import Unsupported
from qkv.claims.arrays.evaluator import ArrayEvaluator
from qkv.claims.arrays.functions import entry_factors
from qkv.claims.arrays.terms import Atom, Factor, Scalar, Terms, Word, common_ends, ones, size_symbol
from qkv.claims.syntax import nodes as L

MAX_FACTS = 260
ROWS_OF_WEIGHTS = ("softmax", "causal_softmax")
LIPSCHITZ = {"softmax": sp.Rational(1, 2), "relu": sp.Integer(1), "tanh": sp.Integer(1), "sin": sp.Integer(1),
             "cos": sp.Integer(1), "sigmoid": sp.Rational(1, 4), "abs": sp.Integer(1)}  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """An expression that is >= 0, or > 0 if `strict`, and why."""

    value: Scalar
    why: str
    strict: bool = False


def given_facts(evaluator: ArrayEvaluator) -> list[Fact]:
    """The ranges of the numbers and the conditions of a claim."""
    context, out = evaluator.context, list[Fact]()
    for name, where in context.numbers.items():
        x = evaluator.symbol(name)
        if not x.is_Symbol:
            continue
        for end, sign, is_open in ((where.lo, 1, where.lo_open), (where.hi, -1, where.hi_open)):
            if end is not None:
                out.append(
                    Fact(sign * (x - sp.Rational(end.numerator, end.denominator)), f"the range of {name}", is_open)
                )
    for size, items in indexed_items(evaluator).items():
        out.append(Fact(size_symbol(size) - len(items), "the named entries are different ones"))
    for relation in context.conditions:
        (left, right), (op,) = relation.sides, relation.ops
        gap = evaluator.tidied(evaluator.number(left) - evaluator.number(right))
        gap = gap if op in (">", ">=", "=") else -gap
        out.append(Fact(gap, "a condition that is given", op in ("<", ">")))
        one, two = evaluator.number(left), evaluator.number(right)
        if isinstance(one, Atom) and isinstance(two, Atom) and one.is_nonnegative and two.is_nonnegative:
            squares = evaluator.tidied(one**2 - two**2) * (1 if op in (">", ">=", "=") else -1)
            out += [Fact(squares, "the squares of a condition that is given", op in ("<", ">"))]
            out += [Fact(-squares, "the squares of a condition that is given")] if op == "=" else []
        if op == "=":
            out.append(Fact(-gap, "a condition that is given"))
    return out


def indexed_items(evaluator: ArrayEvaluator) -> dict[str, list[str]]:
    """The items that are named as indices, by the size that they are an index of."""
    context, out = evaluator.context, dict[str, list[str]]()
    claim = context.claim
    for node in L.nodes((claim.lets, claim.statement, tuple(context.conditions))):
        if not isinstance(node, L.Name) or not node.subs or str(node) in context.arrays or str(node) in context.lets:
            continue
        if str(node) in context.numbers:
            continue
        base = evaluator.named(L.Name(node.base, (), node.at))
        for item, size in zip(node.subs, (base.rows, base.cols), strict=False):
            if item in context.items and item not in out.setdefault(size, []):
                out[size].append(item)
    return out


class Library:
    """The facts about the atoms of an expression."""

    def __init__(self, evaluator: ArrayEvaluator) -> None:
        self.evaluator = evaluator
        self.functions, self.products = evaluator.functions, evaluator.products
        self.given = given_facts(evaluator)
        self.items = indexed_items(evaluator)

    def about(self, expr: Scalar) -> list[Fact]:
        """Facts about everything in an expression, and about what those facts bring in."""
        found: dict[Scalar, Fact] = {f.value: f for f in (*self.given, *_amplitudes(expr))}
        seen: set[Scalar] = set()
        todo = [expr, *(f.value for f in self.given)]
        for _ in range(2):
            parts = {p for e in todo for p in self._parts(e)} - seen
            seen |= parts
            new = [f for f in self._facts(parts, seen) if f.value not in found]
            for fact in new[:MAX_FACTS]:
                found[fact.value] = fact
            todo = [f.value for f in new]
        return list(found.values())[:MAX_FACTS]

    def _parts(self, expr: Scalar) -> set[Scalar]:
        return {p for p in sp.preorder_traversal(expr) if isinstance(p, Atom | sp.exp | sp.log | sp.sin | sp.cos)} | {
            s for s in expr.free_symbols if not isinstance(s, Atom)
        }

    def _facts(self, new: set[Scalar], every: set[Scalar]) -> Iterator[Fact]:
        ordered = sorted(new, key=sp.default_sort_key)
        for part in ordered:
            try:
                yield from self._of(part, every)
            except Unsupported:
                continue
        scalars = [p for p in ordered if isinstance(p, sp.Symbol)][:8]
        for x in scalars:
            yield Fact(x**2, "a square")
        for x, y in combinations(scalars, 2):
            yield Fact(sp.expand((x - y) ** 2), "a square")
            yield Fact(sp.expand((x + y) ** 2), "a square")

    def _of(self, part: Scalar, every: set[Scalar]) -> Iterator[Fact]:
        if isinstance(part, sp.exp):
            yield Fact(part, "an exponential is positive", True)
            yield Fact(part - 1 - part.args[0], "exp(x) >= 1 + x")
        elif isinstance(part, sp.log):
            x = part.args[0]
            if x.is_positive:
                yield Fact(x - 1 - part, "log(x) <= x - 1")
                if x.is_Symbol and self._at_least_one(x):
                    yield Fact(part, "log(x) >= 0 for x >= 1", self._at_least_one(x) == "more")
                yield from self._logarithm(part, x)
        elif isinstance(part, sp.sin | sp.cos):
            yield from self._wave(part, every)
        elif isinstance(part, Atom):
            yield from getattr(self, f"_{part.sort}", self._nothing)(part, every)
            if part.is_positive or part.is_nonnegative:
                yield Fact(part, "never negative by its definition", bool(part.is_positive))
        elif part.is_Symbol and part.is_positive and part.is_integer:
            yield Fact(part - 1, "a size is at least 1")

    def _logarithm(self, part: Scalar, x: Scalar) -> Iterator[Fact]:
        """The logarithm rises: that of a number between its bounds, and that of a sum above that of each term."""
        if x.is_Symbol:
            for fact in self.given:
                for end, sign in ((x - fact.value, 1), (x + fact.value, -1)):
                    if end.is_Rational and end > 0:
                        yield Fact(sign * (part - sp.log(end)), "the logarithm rises", fact.strict)
        terms = sp.Add.make_args(x)
        if len(terms) > 1 and all(t.is_positive for t in terms):
            for term in terms[:4]:
                rest = part - sp.expand_log(sp.log(term))
                yield Fact(sp.expand(rest), "the logarithm of a sum is above that of each term", True)

    def _wave(self, part: Scalar, every: set[Scalar]) -> Iterator[Fact]:
        angle = part.args[0]
        yield Fact(1 - part, "sine and cosine are at most 1")
        yield Fact(1 + part, "sine and cosine are at least -1")
        yield Fact(1 - part**2, "sine and cosine are at most 1")
        if isinstance(part, sp.cos):
            yield Fact(sp.expand(part - 1 + angle**2 / 2), "cos(x) >= 1 - x^2/2")
            for sign in (1, -1) if sp.sin(angle) in every else ():
                yield Fact(1 + 2 * sign * part * sp.sin(angle), "2*sin(x)*cos(x) is a sine")
        elif angle.is_nonnegative:
            yield Fact(angle - part, "sin(x) <= x for x >= 0")
        for other in [p for p in every if p.func == part.func and p != part][:4]:
            apart = sp.Abs(sp.expand(angle - other.args[0]))
            yield Fact(apart - part + other, "sine and cosine are 1-Lipschitz")
            yield Fact(apart + part - other, "sine and cosine are 1-Lipschitz")

    def _nothing(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        yield from ()

    def _at_least_one(self, x: Scalar) -> str:
        """Whether a number is >= 1 ("one") or > 1 ("more") by its range."""
        if x.is_integer and x.is_positive:
            more = any(f.value == x - k for f in self.given for k in range(2, 60))
            return "more" if more else "one"
        lows = [x - f.value for f in self.given if (x - f.value).is_Rational]
        return "more" if any(low > 1 for low in lows) else "one" if any(low == 1 for low in lows) else ""

    # Distributions.
    def _distributions(self, every: set[Scalar], size: str) -> list[tuple[Terms, Scalar]]:
        """Distributions of a size that occur, each with its entropy."""
        found: dict[str, Terms] = {}
        for atom in every:
            if isinstance(atom, Atom):
                words = [atom.payload] if atom.sort in ("word", "trace") else list(_terms_of(atom).parts)
                for word in words:
                    for f in word:
                        for one in (f, *_inner_factors(f)):
                            if one.kind in ("softmax", "simplex") and one.cols == "1" and one.rows == size:
                                single = self.products.single(one.turned() if one.flipped else one)
                                found[single.key] = single
        out = []
        for p in list(found.values())[:5]:
            out.append((p, -self.products.inner(p, self.functions.entrywise("log", p))))
        return out

    def _sumexp(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        z: Terms = part.payload
        lse, count = sp.log(part), size_symbol(z.rows)
        largest = self.functions.largest(z)
        several = any(f.value == count - k for f in self.given for k in range(2, 60))
        yield Fact(lse - largest, "lse(z) >= max(z), and more for two entries", several)
        yield Fact(largest + sp.log(count) - lse, "lse(z) <= max(z) + log(n)")
        yield from self._mean_facts(z, lse - sp.log(count), "lse(z) >= mean + log(n)")
        terms: Scalar = sp.Integer(0)
        for item in self._items(z.rows):
            entry = self.functions.at(z, item)
            terms += sp.exp(entry)
            yield Fact(lse - entry, "lse(z) is at least every entry")
            yield Fact(part - sp.exp(entry), "the sum of exponentials is at least each of them")
        if terms != 0 and self._is_all(z.rows):
            yield Fact(sp.expand(terms - part), "the sum of exponentials has no other terms")
        if terms != 0:
            more = any(f.value == count - k for f in self.given for k in range(len(self._items(z.rows)) + 1, 60))
            yield Fact(sp.expand(part - terms), "the sum of exponentials is at least some of them", more)
        for p, entropy in self._distributions(every, z.rows):
            yield Fact(sp.expand(lse - self.products.inner(p, z) - entropy), "lse(z) >= p'z + H(p)")
            yield Fact(sp.expand(entropy), "an entropy is never negative")
            yield Fact(sp.expand(sp.log(count) - entropy), "an entropy is at most log(n)")
        own = self.functions.softmax(z)
        entropy = sp.expand(lse - self.products.inner(own, z))
        yield Fact(entropy, "an entropy is never negative")
        yield Fact(sp.expand(sp.log(count) - entropy), "an entropy is at most log(n)")
        for other in self._same(every, "sumexp", part):
            distance = self.functions.norm(z.plus(other.payload.scaled(sp.Integer(-1))))
            yield Fact(distance - lse + sp.log(other), "lse is 1-Lipschitz")
            yield Fact(distance + lse - sp.log(other), "lse is 1-Lipschitz")
            shift = z.plus(other.payload.scaled(sp.Integer(-1)))
            yield Fact(self.functions.largest(shift) - lse + sp.log(other), "lse(y + s) <= lse(y) + max(s)")
            back = self.functions.largest(shift.scaled(sp.Integer(-1)))
            yield Fact(back + lse - sp.log(other), "lse(y + s) <= lse(y) + max(s)")

    def _max(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        z: Terms = part.payload
        for item in self._items(z.rows):
            yield Fact(part - self.functions.at(z, item), "the maximum is at least every entry")
        for p, _ in self._distributions(every, z.rows):
            yield Fact(sp.expand(part - self.products.inner(p, z)), "a mean is at most the maximum")
        yield from self._mean_facts(z, part, "a mean is at most the maximum")
        if len(z.parts) == 1:
            ((word, c),) = z.parts.items()
            if len(word) == 1 and word[0].kind in ("softmax", "simplex") and c == 1:
                several = any(f.value == size_symbol(z.rows) - k for f in self.given for k in range(2, 60))
                yield Fact(1 - part, "a weight is at most 1", several and word[0].kind == "softmax")
                yield Fact(part, "a weight is never negative", True)
            if len(word) > 1 and c == 1 and word[0].kind in ROWS_OF_WEIGHTS and not word[0].flipped and z.cols == "1":
                rest = self.products.word(word[1:], sp.Integer(1), word[1].shape[0], "1")
                yield Fact(self.functions.largest(rest) - part, "means are at most the maximum")
        lse = self.functions.lse(z)
        yield Fact(lse - part, "lse(z) >= max(z)")
        yield Fact(self.functions.norm(z) - part, "an entry is at most the norm")
        yield Fact(sp.expand(self.products.inner(z, z) - part**2), "the square of an entry is at most that of the norm")
        if 1 < len(z.parts) <= 4:
            terms = [self.functions.largest(Terms({w: c}, z.rows, z.cols)) for w, c in z.parts.items()]
            yield Fact(sp.expand(sum(terms, -part)), "the maximum of a sum is at most the sum of the maxima")
        (word, c), *more = z.parts.items()
        if not more and c == 1 and len(word) == 1 and word[0].kind == "abs" and not word[0].flipped:
            inner = self.functions.norm(word[0].payload)
            yield Fact(inner - part, "an entry is at most the norm")
            yield Fact(sp.sqrt(size_symbol(z.rows)) * part - inner, "|z| <= sqrt(n)*max(|z_i|)")
            for sign in (1, -1):
                signed = self.functions.largest(word[0].payload.scaled(sp.Integer(sign)))
                yield Fact(part - signed, "an absolute value is at least its number")
        for other in self._same(every, "max", part):
            distance = self.functions.norm(z.plus(other.payload.scaled(sp.Integer(-1))))
            yield Fact(distance - part + other, "max is 1-Lipschitz")
            yield Fact(distance + part - other, "max is 1-Lipschitz")
            shift = self.functions.largest(z.plus(other.payload.scaled(sp.Integer(-1))))
            yield Fact(other + shift - part, "max(y + s) <= max(y) + max(s)")

    def _mean_facts(self, z: Terms, above: Scalar, why: str) -> Iterator[Fact]:
        total = self.products.inner(self.products.single(ones(z.rows)), z)
        yield Fact(sp.expand(above - total / size_symbol(z.rows)), why)

    def _items(self, size: str) -> list[str]:
        return self.items.get(size, [])

    def _same(self, every: set[Scalar], sort: str, part: Atom) -> list[Atom]:
        size = part.payload.rows
        return [a for a in every if isinstance(a, Atom) and a.sort == sort and a != part and a.payload.rows == size][:4]

    def _word(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        word = part.payload
        kinds = [f.kind for f in word]
        if len(word) == 2 and "unit" in kinds and "simplex" in kinds:
            yield Fact(part, "a weight is never negative")
            yield Fact(1 - part, "a weight is at most 1")
            own = self.products.single(next(f if not f.flipped else f.turned() for f in word if f.kind == "simplex"))
            named = sum((self.functions.at(own, item) for item in self._items(own.rows)), sp.Integer(0))
            yield Fact(1 - named, "weights sum to 1, and none is negative")
            yield Fact(sp.expand(part * (1 - named)), "a product of numbers that are not negative")
            if self._is_all(own.rows):
                yield Fact(named - 1, "weights sum to 1")
        yield from self._variance(part, word)
        if len(word) > 2 and word[0].kind == word[-1].kind == "unit":  # an entry of a matrix
            inner = self.products.word(word[1:-1], sp.Integer(1), word[1].shape[0], word[-2].shape[1])
            square = self.functions.squared_norm(inner)
            yield Fact(sp.expand(square - part**2), "the square of an entry is at most that of the norm")
        for f in word:  # a mean by weights, and the logarithms of weights
            if f.kind in ("softmax", "simplex") and f.cols == "1":
                for p, entropy in self._distributions(every, f.rows):
                    yield Fact(sp.expand(entropy), "an entropy is never negative")
                    yield Fact(sp.expand(sp.log(size_symbol(f.rows)) - entropy), "an entropy is at most log(n)")
                    yield from self._entropy(p, entropy, every)
                    for r, _ in self._distributions(every, f.rows):
                        crossed = -self.products.inner(p, self.functions.entrywise("log", r))
                        yield Fact(sp.expand(crossed - entropy), "Gibbs: cross-entropy is at least entropy")
                        apart = self.functions.squared_norm(p.plus(r.scaled(sp.Integer(-1))))
                        yield Fact(sp.expand(crossed - entropy - apart), "Pinsker: KL(p, r) >= |p - r|^2")
        if len(word) == 2 and all(f.kind in ("softmax", "simplex") and f.cols == "1" for f in word):
            yield Fact(1 - part, "a mean of weights is at most 1")
            yield Fact(part, "a mean of weights is never negative")
            if word[0].name == word[1].name:
                yield Fact(part - 1 / size_symbol(word[0].rows), "the squares of n weights sum to 1/n at least")
        if len(word) == 2:
            left, right = (self.products.single(f) for f in (word[0].turned(), word[1]))
            if left.cols == "1" and right.cols == "1" and left.key != right.key:
                bound = self.functions.norm(left) * self.functions.norm(right)
                yield Fact(bound - part, "Cauchy-Schwarz")
                yield Fact(bound + part, "Cauchy-Schwarz")
                both = self.products.inner(left, left) + self.products.inner(right, right)
                for sign in (1, -1):
                    yield Fact(sp.expand(both + 2 * sign * part), "the squared norm of a sum")
                squares = self.products.inner(left, left) * self.products.inner(right, right)
                yield Fact(sp.expand(squares - part**2), "Cauchy-Schwarz")

    def _entropy(self, p: Terms, entropy: Scalar, every: set[Scalar]) -> Iterator[Fact]:
        """-log(x) is at least 1 - x, and at least -log(max(p)) for every weight x."""
        yield Fact(sp.expand(entropy - 1 + self.products.inner(p, p)), "an entropy is at least 1 - |p|^2")
        largest = sp.log(self.functions.largest(p))
        if largest in every:
            yield Fact(sp.expand(entropy + largest), "an entropy is at least -log(max(p))")

    def _variance(self, part: Atom, word: Word) -> Iterator[Fact]:
        """The sum of p_i*y_i^2 less the square of p'y is a variance: at least 0, at most |y|^2/2 (Popoviciu)."""
        head = Terms({tuple(f.turned() for f in reversed(word[:-1])): sp.Integer(1)}, word[-1].rows, "1")
        if len(word) < 2 or word[-1].kind != "odot" or word[-1].flipped or word[0].shape[0] != "1":
            return
        vectors = [head, *entry_factors(self.products.single(word[-1]))]
        for place, p in enumerate(vectors if len(vectors) == 3 else ()):
            one, two = (v for j, v in enumerate(vectors) if j != place)
            if one.key == two.key and _is_distribution(p):
                variance = part - self.products.inner(p, one) ** 2
                yield Fact(sp.expand(variance), "a variance is never negative")
                yield Fact(sp.expand(self.products.inner(one, one) / 2 - variance), "a variance is at most |y|^2/2")

    def _is_all(self, size: str) -> bool:
        """Whether the named entries of a size are all that there are."""
        where = self.evaluator.context.numbers.get(size)
        return where is not None and where.point == len(self._items(size)) > 0

    def _norm(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        value: Terms = part.payload
        yield from self._lipschitz(part, value)
        parts = list(value.parts.items())
        if 1 < len(parts) <= 4:
            norms = [self.functions.norm(Terms({word: c}, value.rows, value.cols)) for word, c in parts]
            yield Fact(sp.Add(*norms) - part, "the triangle inequality")
            if len(parts) == 2:
                yield Fact(part - norms[0] + norms[1], "the triangle inequality")
                yield Fact(part + norms[0] - norms[1], "the triangle inequality")
        for word, c in parts if len(parts) == 1 else ():
            for cut in range(1, len(word)):
                left, right = word[:cut], word[cut:]
                one = self.products.word(left, sp.Integer(1), left[0].shape[0], left[-1].shape[1])
                two = self.products.word(right, sp.Integer(1), right[0].shape[0], right[-1].shape[1])
                bound = self.functions.norm(one) * self.functions.norm(two)
                yield Fact(sp.Abs(c) * bound - part, "the norm of a product is at most the product of the norms")
            if len(word) > 2:
                bound = sp.Mul(*(self.functions.norm(self.products.single(f)) for f in word))
                yield Fact(
                    sp.Abs(c) * self.evaluator.tidied(bound) - part,
                    "the norm of a product is at most the product of the norms",
                )
            if len(word) == 1 and word[0].kind in ("softmax", "simplex") and word[0].cols == "1" and c == 1:
                yield Fact(1 - part, "the norm of a distribution is at most 1")
            elif len(word) == 1 and word[0].kind in ROWS_OF_WEIGHTS and c == 1:
                yield Fact(sp.sqrt(size_symbol(word[0].rows)) - part, "the norm of a row of weights is at most 1")
            if len(word) == 1 and word[0].kind in ("relu", "tanh", "sin", "abs") and c == 1:
                bound = LIPSCHITZ[word[0].kind] * self.functions.norm(word[0].payload)
                yield Fact(bound - part, f"{word[0].kind} is 0 at 0, and 1-Lipschitz")
        if len(parts) > 1:
            yield from self._common_factor(part, value)
        others = [a for a in every if isinstance(a, Atom) and a.sort == "norm" and a != part]
        for one, two in combinations(others[:6], 2):
            if (
                one.payload.rows == two.payload.rows == value.rows
                and one.payload.cols == two.payload.cols == value.cols
            ):
                for sign in (1, -1):
                    both = one.payload.plus(two.payload.scaled(sp.Integer(sign)))
                    if both.key in (value.key, value.scaled(sp.Integer(-1)).key):
                        yield Fact(one + two - part, "the triangle inequality")

    def _common_factor(self, part: Atom, value: Terms) -> Iterator[Fact]:
        """The norm of A*x + A*y is at most that of A times that of x + y."""
        for right in (False, True):
            kinds = tuple({f.kind for word in value.parts for f in word})
            end, rest = common_ends(value, kinds, right)
            if end is not None:
                bound = self.functions.norm(self.products.single(end)) * self.functions.norm(rest)
                yield Fact(bound - part, "the norm of a product is at most the product of the norms")

    def _lipschitz(self, part: Atom, value: Terms) -> Iterator[Fact]:
        """The norm of f(x) - f(y) is at most the constant of f times that of x - y."""
        words = list(value.parts.items())
        if len(words) != 2 or {c for _, c in words} != {1, -1} or any(len(w) != 1 for w, _ in words):
            return
        (one,), (two,) = (w for w, _ in words)
        if all(f.kind in ("softmax", "simplex") and f.cols == "1" for f in (one, two)):
            yield Fact(sp.sqrt(2) - part, "two distributions are at most sqrt(2) apart")
        if one.kind == two.kind and one.kind in LIPSCHITZ and not one.flipped and not two.flipped:
            inner = one.payload.plus(two.payload.scaled(sp.Integer(-1)))
            distance = self.functions.norm(inner)
            yield Fact(
                LIPSCHITZ[one.kind] * distance - part, f"{one.kind} is Lipschitz with constant {LIPSCHITZ[one.kind]}"
            )

    def _trace(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        word: Word = part.payload
        if len(word) == 1:
            yield from self._diagonal_sum(part, word[0])
        if len(word) == 2 and word[0].name == word[1].name and word[0].kind in ROWS_OF_WEIGHTS:
            rows, cols = size_symbol(word[0].rows), size_symbol(word[0].cols)
            yield Fact(rows - part, "the squares of the weights of a row sum to 1 at most")
            yield Fact(part - rows / cols, "the squares of n weights sum to 1/n at least")
        for cut in range(1, len(word)):
            pieces = (word[:cut], word[cut:])
            one, two = (self.products.word(w, sp.Integer(1), w[0].shape[0], w[-1].shape[1]) for w in pieces)
            bound = self.functions.norm(one) * self.functions.norm(two)
            yield Fact(bound - part, "Cauchy-Schwarz")
            yield Fact(bound + part, "Cauchy-Schwarz")

    def _diagonal_sum(self, part: Atom, factor: Factor) -> Iterator[Fact]:
        """Bounds of the trace of a matrix by its norm, and of matrices of weights and permutations by their entries."""
        size = size_symbol(factor.rows)
        orthogonal = factor.kind in ("orthogonal", "permutation")
        bound = size if orthogonal else sp.sqrt(size) * self.functions.norm(self.products.single(factor))
        yield Fact(bound - part, "Cauchy-Schwarz")
        yield Fact(bound + part, "Cauchy-Schwarz")
        if factor.kind == "permutation":
            yield Fact(part, "the entries of a permutation matrix are never negative")
        if factor.kind in ROWS_OF_WEIGHTS:
            yield Fact(part, "weights are positive", True)
            yield Fact(size - part, "a weight is at most 1")
        if factor.kind == "causal_softmax":
            yield Fact(part - 1, "the first row of a causal softmax sees one item")

    def _rank(self, part: Atom, every: set[Scalar]) -> Iterator[Fact]:
        value: Terms = part.payload
        for size in {value.rows, value.cols}:
            yield Fact(size_symbol(size) - part, "a rank is at most either size")
        if len(value.parts) == 1:
            ((word, _),) = value.parts.items()
            for cut in range(1, len(word)):
                yield Fact(size_symbol(word[cut].shape[0]) - part, "a rank is at most every size in a product")
                for piece in (word[:cut], word[cut:]):
                    inner = self.products.word(piece, sp.Integer(1), piece[0].shape[0], piece[-1].shape[1])
                    yield Fact(self.functions.rank(inner) - part, "the rank of a product is at most that of a factor")
        elif len(value.parts) <= 4:
            total = sum(
                (self.functions.rank(Terms({w: c}, value.rows, value.cols)) for w, c in value.parts.items()),
                sp.Integer(0),
            )
            yield Fact(total - part, "the rank of a sum is at most the sum of the ranks")


def _amplitudes(expr: Scalar) -> Iterator[Fact]:
    """a*sin(x) + b*cos(x) is at least -sqrt(a^2 + b^2), for the coefficients of an expression."""
    terms = sp.expand(expr).as_coefficients_dict()
    for sine in [m for m in terms if isinstance(m, sp.sin)]:
        cosine = sp.cos(sine.args[0])
        if cosine in terms:
            a, b = terms[sine], terms[cosine]
            yield Fact(sp.sqrt(a**2 + b**2) + a * sine + b * cosine, "the amplitude of a*sin(x) + b*cos(x)")


def _is_distribution(vector: Terms) -> bool:
    """Whether a vector is a softmax or an element of the simplex."""
    ((word, c),) = vector.parts.items()
    return c == 1 and len(word) == 1 and word[0].kind in ("softmax", "simplex") and word[0].shape[1] == "1"


def _inner_factors(factor: Factor) -> list[Factor]:
    """The distributions whose logarithm a factor is."""
    if factor.kind != "log" or not isinstance(factor.payload, Terms):
        return []
    return [f for word in factor.payload.parts for f in word]


def _terms_of(atom: Atom) -> Terms:
    payload = atom.payload
    return payload if isinstance(payload, Terms) else Terms({}, "1", "1")
