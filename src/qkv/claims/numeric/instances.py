"""Instances of a claim: the smallest first, then random and adversarial ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist

import numpy as np

from qkv.claims.numeric.evaluator import Array, CannotEvaluate, Frame, Instance, evaluate, item_names
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP

N_DRAWS = 2000  # of the random keys of one instance
N_DRAWS_PROBABILITY = 10 * N_DRAWS  # a probability is compared more closely than a variance
SIMPLE_NUMBERS = (1.0, 2.0, 0.5, -1.0, 3.0, 0.0, 1.5, 5.0)  # tried first
MAX_NUMBER = 1e6  # the scores of larger numbers have rounding errors that change a softmax
MAX_ITEMS = 1000
MAX_RANDOM_ITEMS = 200
MAX_DRAWN_ENTRIES = 3_000_000  # of all draws of one instance together
PARALLEL_ATTEMPT, ZERO_ATTEMPT = 9, 11  # attempts in which free vectors are all parallel, or all zero


def instances(context: Context, count: int, seed: int = 0, edges: bool = False) -> Iterator[Instance]:
    """Up to `count` instances that meet what is given; fewer when the conditions are hard to meet.

    With `edges`, numbers are ends of their ranges and conditions, where those belong to them; else they differ.
    """
    rng = np.random.default_rng(seed)
    made = 0
    for attempt in range(3 * count):
        if made == count:
            return
        try:
            inst = _instance(context, attempt, rng, edges)
            if _is_valid(inst):
                made += 1
                yield inst
        except (CannotEvaluate, ValueError, FloatingPointError, np.linalg.LinAlgError):
            continue


def _instance(context: Context, attempt: int, rng: np.random.Generator, edges: bool = False) -> Instance:
    """One instance; the first attempts take simple numbers and unit vectors, later ones random ones."""
    n = _item_count(context, attempt, rng)
    plain = attempt < (3 if context.noise or context.random else len(SIMPLE_NUMBERS)) or n > 100
    # Numbers close to the end of a range make convergence slow: where a limit is checked, they keep a distance.
    least = 0.3 if any(isinstance(node, L.Limit | L.Within) for node in L.nodes(context.claim.statement)) else 0.02
    shift = 1 if context.noise or context.random else 0  # few attempts: the numbers must differ from the first on
    numbers = {
        name: _pick(r, attempt + shift * j, rng, least)
        for j, (name, r) in enumerate(context.numbers.items())
        if name != "n"
    }
    if edges:
        numbers |= {name: _end(context.numbers[name], numbers[name], rng) for name in numbers}
    random = bool(context.noise or context.random)
    samples = 1
    if random:
        samples = N_DRAWS_PROBABILITY if isinstance(context.claim.statement.core, L.Within) else N_DRAWS
    low = max(n, 2, *(len(f.items) for f in context.families.values() if f.items is not None))
    groups = (sum(len(family_members(context, base, n)) for base in group) for group in orthogonal_groups(context))
    low = max([low, *groups])
    d = low + (low % 2) if plain else low + 2 + (low % 2)
    named = [len(basis_columns(context, name)) for name in ("A", "B")]
    columns = (max(2, named[0]), max(2 if plain else 3, named[1]))
    d = max(d, sum(columns) + (sum(columns) % 2)) if context.bases else d
    inst = Instance(context, n, d, {k: np.full((1, 1, 1), v) for k, v in numbers.items()}, {}, {}, {}, samples=samples)
    inst.numbers["n"] = np.full((1, 1, 1), float(n))
    inst.side = -1.0 if attempt % 2 else 1.0
    for name, given in context.random.items():
        mean, spread = (float(evaluate(inst, e)[0, 0, 0]) for e in (given.mean, given.spread))
        inst.numbers[name] = mean + math.sqrt(max(spread, 0)) * rng.permutation(_quantiles(samples))[:, None, None]
        inst.numbers[name] = _clipped(inst.numbers[name], context.numbers[name], rng)
    tight = edges and attempt % 2 == 0
    _meet_number_conditions(inst, rng, least, tight)
    if context.noise:
        inst.even = len(context.items) * d < samples // 4
        inst.normal = _draws(inst.items if n * d < samples // 4 else list(context.items), samples, d, rng)
        for item in inst.items:  # where all would be too many, the unnamed have one draw, enough for vanishing noise
            rows = samples if n * d * samples <= MAX_DRAWN_ENTRIES else 1
            inst.normal.setdefault(item, rng.standard_normal((rows, d)))
    seed = int(rng.integers(2**31))

    def vectors() -> None:
        own = np.random.default_rng(seed)
        inst.cache.clear()
        _meet_number_conditions(inst, own, least, tight)
        _vectors(inst, plain, own, columns)
        if not context.score_conditions and attempt in (PARALLEL_ATTEMPT, ZERO_ATTEMPT):
            _degenerate(inst, attempt)
        for fact in context.score_conditions:
            _shift_scores(inst, fact, own)
        for fact in context.score_conditions:
            _meet_score_condition(inst, fact, own, tight=attempt % 3 == 0)
        inst.cache.clear()

    vectors()
    moved = any(f.norm is not None for f in context.families.values())
    if moved or context.score_conditions or context.number_conditions:
        inst.rebuild = vectors
    return inst


def _item_count(context: Context, attempt: int, rng: np.random.Generator) -> int:
    if context.all_items_named:
        return len(context.items)
    where = context.numbers.get("n", Range())
    low = max(int(where.lo or 1), len(context.items), 1)
    high = low + 40 if where.hi is None else int(where.hi)
    if low > high or low > (MAX_RANDOM_ITEMS if context.noise else MAX_ITEMS):
        raise CannotEvaluate("no number of items, or too many to try")
    if attempt < 4 or attempt in (PARALLEL_ATTEMPT, ZERO_ATTEMPT):
        return low
    more = [0, 1, 2, 3] if context.noise or context.random else [0, 1, 2, 3, 5, 8, 20]
    return int(min(high, low + rng.choice(more)))


def _pick(where: Range, attempt: int, rng: np.random.Generator, least: float) -> float:
    """A number in a range: simple ones first, then random ones of several sizes, near an end now and then."""
    lo = -math.inf if where.lo is None else float(where.lo)
    hi = math.inf if where.hi is None else float(where.hi)
    if lo == hi:
        return lo

    def inside(x: float) -> bool:
        return (x > lo or (x == lo and not where.lo_open)) and (x < hi or (x == hi and not where.hi_open))

    if attempt < len(SIMPLE_NUMBERS):
        for x in (*SIMPLE_NUMBERS[attempt:], *SIMPLE_NUMBERS):
            for shift in (0.0, lo if math.isfinite(lo) else 0.0):
                if inside(x + shift):
                    return x + shift
    for _ in range(60):
        if math.isfinite(lo) and math.isfinite(hi):
            margin = least * (hi - lo) / 3
            x = float(rng.uniform(lo + margin, hi - margin))
        elif math.isfinite(lo):
            x = lo + least + float(rng.exponential(rng.choice([0.05, 1.0, 4.0])))
        elif math.isfinite(hi):
            x = hi - least - float(rng.exponential(rng.choice([0.05, 1.0, 4.0])))
        else:
            x = float(rng.normal(0, rng.choice([0.1, 1.0, 3.0])))
            x += math.copysign(least, x)
        x = round(x) if where.whole else float(f"{x:.4g}")  # few digits, so that a counterexample is short
        if inside(x):
            return x
    raise CannotEvaluate("no number in the range")


def _end(where: Range, otherwise: float, rng: np.random.Generator) -> float:
    """An end of a range that belongs to it, a simple number, or else another number."""
    ends = [
        float(e)
        for e, is_open in ((where.lo, where.lo_open), (where.hi, where.hi_open))
        if e is not None and not is_open
    ]
    simple = [x for x in SIMPLE_NUMBERS if where.holds(x)]
    choices = [*ends, *ends, *([float(rng.choice(simple))] if simple else []), otherwise]
    return float(rng.choice(choices))


@cache
def _quantiles(count: int) -> Array:
    """Normal numbers that are spread evenly: the quantiles at (j + 1/2)/count."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((j + 0.5) / count) for j in range(count)])


def _draws(items: list[str], samples: int, d: int, rng: np.random.Generator) -> dict[str, Array]:
    """Normal draws for every item, whose first column is spread evenly over the quantiles."""
    count = len(items)
    out = rng.standard_normal((samples, count * d))
    for j in range(count):
        out[:, j] = rng.permutation(_quantiles(samples))
    if 0 < count * d < samples // 4:
        # Centred and made orthonormal, the draws have mean 0 and covariance I exactly, between items too.
        q, r = np.linalg.qr(out - out.mean(axis=0))
        out = q * np.where(np.diag(r) < 0, -1.0, 1.0) * math.sqrt(samples)
    columns = [[j, *range(count + j * (d - 1), count + (j + 1) * (d - 1))] for j in range(count)]
    return {item: out[:, own] for item, own in zip(items, columns, strict=True)}


def _clipped(values: Array, where: Range, rng: np.random.Generator) -> Array:
    """Random numbers under a condition such as gamma > 1: those that meet it, repeated."""
    keep = np.ones(len(values), dtype=bool)
    if where.lo is not None:
        keep &= values[:, 0, 0] > float(where.lo)
    if where.hi is not None:
        keep &= values[:, 0, 0] < float(where.hi)
    if keep.all():
        return values
    if not keep.any():
        raise CannotEvaluate("a condition that no draw meets")
    return rng.choice(values[keep], size=len(values))


def _meet_number_conditions(inst: Instance, rng: np.random.Generator, least: float, tight: bool) -> None:
    """Meet conditions such as x > y between numbers by moving x; `tight` ones with >= or <= by making both equal."""
    for order in inst.context.number_conditions:
        (left, right), (op,) = order.sides, order.ops
        if not isinstance(left, L.Name):
            left, right, op = right, left, MIRRORED_OP[op]
        if not isinstance(left, L.Name) or str(left) == "n" or str(left) in inst.context.limit_variables:
            continue
        bound = evaluate(inst, right)
        slack = 0.0 if op == "=" else float(rng.exponential(1.0)) + least
        slack = slack + rng.choice([0.0, 0.0, 3.0]) * np.abs(bound)  # a gap may grow with its bound
        if tight and op in (">=", "<="):
            inst.numbers[str(left)] = bound
            inst.cache.clear()
            continue
        old = inst.numbers[str(left)]
        fine = {">": old > bound, ">=": old >= bound, "<": old < bound, "<=": old <= bound}.get(op, old == bound)
        if not np.all(fine) or np.abs(old - bound).min() < least:
            inst.numbers[str(left)] = bound + slack if op in (">", ">=", "=") else bound - slack
            _pull_into_range(inst, str(left), bound, op, rng)
        inst.cache.clear()


def _pull_into_range(inst: Instance, name: str, bound: Array, op: str, rng: np.random.Generator) -> None:
    """A number that was moved out of its range is placed between the range's end and its bound, if they differ."""
    where = inst.context.numbers.get(name, Range())
    end = where.hi if op in (">", ">=") else where.lo if op in ("<", "<=") else None
    if end is not None and not where.holds(float(inst.numbers[name].reshape(-1)[0])):
        inst.numbers[name] = bound + float(rng.uniform(0.1, 0.9)) * (float(end) - bound)


def orthogonal_groups(context: Context) -> list[list[str]]:
    """Orthogonal families; those of one declaration stand in one group, and are orthogonal to each other."""
    out: list[list[str]] = []
    for given in context.claim.given:
        if not isinstance(given, L.Family) or given.kind not in ("orthonormal", "orthogonal"):
            continue
        bases = list(dict.fromkeys(name.base for name in given.names))
        known = next((group for group in out if set(group) & set(bases)), None)
        if known is None:
            out.append(bases)
        else:
            known += [base for base in bases if base not in known]
    return out


def family_members(context: Context, base: str, n: int) -> list[str]:
    """The members of a family: its own items, or all n of them."""
    family = context.families[base]
    return item_names(context, n) if family.items is None else list(family.items)


def _random_frame(d: int, rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
    """Two reflections at random whole vectors."""
    rows = rng.integers(-2, 3, size=(2, d))
    rows[:, 0] += (~rows.any(axis=1)).astype(int)
    return tuple(tuple(int(x) for x in row) for row in rows)


def _vectors(inst: Instance, plain: bool, rng: np.random.Generator, columns: tuple[int, int]) -> None:
    """Draw all families, bases and single vectors; `plain` ones are unit vectors where they may be."""
    context, n, d = inst.context, inst.n, inst.d
    for group in orthogonal_groups(context):
        reflections = () if plain else _random_frame(d, rng)
        offset = 0
        for base in group:
            names = family_members(context, base, inst.n)
            if offset + len(names) > d:
                raise CannotEvaluate("too many vectors for the space")
            frame = Frame(reflections, {item: offset + j for j, item in enumerate(names)})
            norm = context.families[base].norm
            length = 1.0 if norm is None else float(evaluate(inst, norm)[0, 0, 0])
            matrix = length * frame.matrix(d)
            inst.frames[base] = frame
            inst.families[base] = {i: matrix[:, j][None, :, None] for i, j in frame.columns.items()}
            offset += len(names)
    for base, family in context.families.items():
        if family.kind == "free":
            names = family_members(context, base, inst.n)
            table = _rounded(rng.standard_normal((len(names), d)) * rng.choice([0.3, 1.0, 3.0]), context)
            inst.families[base] = {i: table[j][None, :, None] for j, i in enumerate(names)}
    if "v" not in inst.families:
        table = 2.0 * np.eye(max(n, d))[:n, :d] if plain else _rounded(rng.standard_normal((n, d)), context)
        inst.families["v"] = {i: table[j][None, :, None] for j, i in enumerate(inst.items)}
    widths = {"m": columns[0], "p": columns[1]}
    offset, reflections = 0, () if plain else _random_frame(d, rng)
    for name, space in context.bases.items():
        if offset and not context.right_angles:
            offset, reflections = 0, _random_frame(d, rng)
        frame = Frame(reflections, {s: j for j, s in enumerate(basis_columns(context, name))}, offset)
        own = frame.matrix(d)[:, offset : offset + widths[space]]
        offset += widths[space]
        inst.frames[name], inst.bases[name] = frame, own[None]
        inst.families[name.lower()] = {s: own[:, j][None, :, None] for s, j in frame.columns.items()}
    for name, space in context.vectors.items():
        width = d if space == "d" else widths[space]
        entries = np.ones(width) if plain and space != "d" else _rounded(rng.standard_normal(width), context)
        if space == "d" and context.score_conditions and rng.random() < 0.7:
            entries = _dyadic_direction(d, rng)
        inst.vectors[name] = entries[None, :, None]


def _rounded(entries: Array, context: Context) -> Array:
    """Few digits, so that a counterexample is short; binary ones where conditions on scores must be met exactly."""
    return np.round(entries * 64) / 64 if context.score_conditions else np.round(entries, 3)


def _dyadic_direction(d: int, rng: np.random.Generator) -> Array:
    """A vector whose squared length is a power of 2, so that a score can be set by an exact step along it."""
    count = int(rng.choice([c for c in (1, 4, 16) if c <= d]))
    out = np.zeros(d)
    out[rng.permutation(d)[:count]] = rng.choice([-1.0, 1.0], size=count) * rng.choice([0.5, 1.0, 2.0])
    return out


def basis_columns(context: Context, name: str) -> list[str]:
    """The columns of a basis that a claim names; different names are different columns."""
    if name not in context.bases:
        return []
    return sorted(_free_columns(context.claim, name.lower(), frozenset()))


def _free_columns(part: object, base: str, bound: frozenset[str]) -> set[str]:
    """The indices of a family of columns that no sum binds: a bound one must not be captured by another sum."""
    if isinstance(part, L.Name):
        return {s for s in part.subs if s not in bound} if part.base == base else set()
    if isinstance(part, L.Sum):
        bound = bound | {part.index}
    inner = part if isinstance(part, tuple) else ()
    if isinstance(part, L.Node | L.Claim):
        inner = tuple(getattr(part, name) for name in L.parts(type(part).__name__))
    found: set[str] = set()
    return found.union(*(_free_columns(one, base, bound) for one in inner))


def _meet_score_condition(inst: Instance, fact: L.Fact, rng: np.random.Generator, tight: bool) -> None:
    """Meet a condition on scores by moving a key along the query."""
    (left, right), (op,) = fact.relation.sides, fact.relation.ops
    items = [""] if fact.quantifier is None else [i for i in inst.items if i not in fact.quantifier.but]
    for item in items:
        pair = (left, right) if not item else L.renamed((left, right), fact.quantifier.index, item)  # type: ignore[union-attr]
        names = [n for n in L.nodes(pair) if isinstance(n, L.Name)]
        keys = [n for n in names if n.base == "k"]
        query = next((n for n in names if str(n) in inst.vectors), None)
        if not keys or query is None or "k" not in inst.families:
            continue
        # Either key may be moved, so that keys with the higher scores are moved up as well.
        own = [k for k in keys if item and k.subs == (item,)] or keys
        key = own[int(rng.integers(len(own)))].subs[0]
        gap = float((evaluate(inst, pair[0]) - evaluate(inst, pair[1]))[0, 0, 0])
        towards = inst.vectors[str(query)]
        exact = float(np.ceil(64 * rng.exponential(1.0))) / 64
        slack = 0.0 if op == "=" or (tight and op in (">=", "<=")) else exact
        wanted = slack if op in (">", ">=", "=") else -slack
        if op != "=" and not tight and ((op in (">", ">=") and gap > 0) or (op in ("<", "<=") and gap < 0)):
            continue
        step = (gap - wanted) / float((towards**2).sum()) * towards
        before = inst.families["k"][key]
        for direction in (1.0, -1.0):
            inst.families["k"][key] = before + direction * step
            inst.cache.clear()
            now = float((evaluate(inst, pair[0]) - evaluate(inst, pair[1]))[0, 0, 0])
            if abs(now - wanted) < 1e-6 * (1 + abs(gap)):
                break
        else:
            inst.families["k"][key] = before


def _degenerate(inst: Instance, attempt: int) -> None:
    """Make free vectors all parallel, or all zero, and values that are not declared too."""
    free = [base for base, family in inst.context.families.items() if family.kind == "free"]
    for table in [inst.families[base] for base in [*free, *({"v"} - set(inst.context.families))]]:
        first = next(iter(table.values()))
        for item in table:
            table[item] = first if attempt == PARALLEL_ATTEMPT else 0.0 * first
    single = [name for name, space in inst.context.vectors.items() if space == "d"]
    for name in single:
        inst.vectors[name] = (2.0 if attempt == PARALLEL_ATTEMPT else 0.0) * inst.vectors[single[0]]


def _shift_scores(inst: Instance, fact: L.Fact, rng: np.random.Generator) -> None:
    """Move scores before the conditions are met: all keys together, by up to twice the numbers in the condition, and
    each key that the others are compared with at random."""
    names = [n for n in L.nodes(fact.relation) if isinstance(n, L.Name)]
    query = next((n for n in names if str(n) in inst.vectors), None)
    if query is None or "k" not in inst.families:
        return
    step = inst.vectors[str(query)] / float((inst.vectors[str(query)] ** 2).sum())
    keys = inst.families["k"]
    bounds = [float(np.abs(inst.numbers[str(n)]).max()) for n in names if str(n) in inst.numbers]
    if bounds and rng.random() < 0.5:
        together = float(rng.integers(-8, 9)) / 4 * max(bounds)
        for item in keys:
            keys[item] = keys[item] + together * step
    for name in names:
        fixed = fact.quantifier is not None and name.subs != (fact.quantifier.index,)
        if name.base == "k" and fixed and rng.random() < 0.5:
            keys[name.subs[0]] = keys[name.subs[0]] + float(np.round(64 * rng.normal(0.0, 4.0))) / 64 * step
    inst.cache.clear()


def _is_valid(inst: Instance) -> bool:
    """Whether an instance meets all conditions up to rounding, with numbers that are not too large."""
    if not conditions_hold(inst):
        return False
    inst.cache.clear()
    if not in_range(inst):
        return False
    return all(bool((np.abs(v) <= MAX_NUMBER).all()) for v in inst.numbers.values())


def conditions_hold(inst: Instance) -> bool:
    """Whether every condition between scores and between numbers holds, up to rounding."""
    for fact in inst.context.score_conditions:
        (left, right), (op,) = fact.relation.sides, fact.relation.ops
        items = [""] if fact.quantifier is None else [i for i in inst.items if i not in fact.quantifier.but]
        for item in items:
            pair = (left, right) if not item else L.renamed((left, right), fact.quantifier.index, item)  # type: ignore[union-attr]
            one, two = evaluate(inst, pair[0]), evaluate(inst, pair[1])
            if not holds(one - two, op, 1e-9 * (1 + float(np.abs(one).max()))):
                return False
    for order in inst.context.number_conditions:
        gap = evaluate(inst, order.sides[0]) - evaluate(inst, order.sides[1])
        if not holds(gap, order.ops[0], 1e-9):
            return False
    return True


def in_range(inst: Instance, but: frozenset[str] = frozenset()) -> bool:
    """Whether every number lies in its range, except those of which a limit is taken."""
    for name, where in inst.context.numbers.items():
        if name in inst.numbers and name not in but:
            values = inst.numbers[name]
            if not (where.holds(float(values.min())) and where.holds(float(values.max()))):
                return False
    return True


def holds(gap: Array, op: str, slack: float) -> bool:
    """Whether left minus right has the sign that a comparison asks for, up to a slack."""
    return {
        "=": bool(np.all(np.abs(gap) <= slack)),
        "!=": bool(np.all(np.abs(gap) > 0)),
        "<": bool(np.all(gap < slack)),
        "<=": bool(np.all(gap <= slack)),
        ">": bool(np.all(gap > -slack)),
        ">=": bool(np.all(gap >= -slack)),
    }[op]
