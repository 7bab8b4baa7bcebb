"""What a claim stands on: its numbers with ranges, its families, its noise, its definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from qkv.claims.semantics.name_resolution import check_names
from qkv.claims.semantics.scope_checks import check_scopes
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import Malformed

REST = "*"  # the items that a claim does not name
BUILT_IN = ("alpha", "c", "I", "oo")
COUNTS = {"<", "<=", ">", ">=", "=", "!="}
MOST_ITEMS = 6


@dataclass(frozen=True)
class Range:
    """Where a number lies; an end that is None is open to infinity."""

    lo: Fraction | None = None
    hi: Fraction | None = None
    lo_open: bool = False
    hi_open: bool = False
    whole: bool = False

    def meet(self, op: str, bound: Fraction) -> Range:
        lo, hi, lo_open, hi_open = self.lo, self.hi, self.lo_open, self.hi_open
        if op in (">", ">=", "=") and (lo is None or bound > lo or (bound == lo and op == ">")):
            lo, lo_open = bound, op == ">"
        if op in ("<", "<=", "=") and (hi is None or bound < hi or (bound == hi and op == "<")):
            hi, hi_open = bound, op == "<"
        if self.whole:
            if lo is not None and (lo_open or lo.denominator > 1):
                lo, lo_open = Fraction(lo.__floor__() + 1), False
            if hi is not None and (hi_open or hi.denominator > 1):
                hi, hi_open = Fraction(hi.__ceil__() - 1), False
        return Range(lo, hi, lo_open, hi_open, self.whole)

    def holds(self, value: float) -> bool:
        """Whether a number lies here, up to rounding at an end that belongs to it."""
        slack = 1e-12 * (1 + abs(value))
        over = self.lo is None or value > float(self.lo) or (not self.lo_open and value >= float(self.lo) - slack)
        under = self.hi is None or value < float(self.hi) or (not self.hi_open and value <= float(self.hi) + slack)
        return over and under

    @property
    def empty(self) -> bool:
        if self.lo is None or self.hi is None:
            return False
        return self.lo > self.hi or (self.lo == self.hi and (self.lo_open or self.hi_open))

    @property
    def point(self) -> Fraction | None:
        return self.lo if self.lo is not None and self.lo == self.hi and not self.empty else None


@dataclass(frozen=True)
class Vectors:
    """A family of vectors: its kind, its norm, and its items (None: 1..n)."""

    kind: str
    norm: L.Expr | None
    items: tuple[str, ...] | None


@dataclass
class Context:
    """The context of one statement, ready for the symbolic and for the numerical reader."""

    claim: L.Claim
    numbers: dict[str, Range] = field(default_factory=dict)
    families: dict[str, Vectors] = field(default_factory=dict)
    vectors: dict[str, str] = field(default_factory=dict)  # single vectors and their space: d, m or p
    bases: dict[str, str] = field(default_factory=dict)
    right_angles: bool = False  # whether A'B = 0
    noise: dict[str, L.Gaussian] = field(default_factory=dict)  # by item; "i" is the template
    random: dict[str, L.Gaussian] = field(default_factory=dict)  # random numbers
    orders: list[L.Relation] = field(default_factory=list)  # between numbers
    scores: list[L.Fact] = field(default_factory=list)  # between scores
    lets: dict[str, L.Let] = field(default_factory=dict)
    limits: tuple[L.Approach, ...] = ()
    items: tuple[str, ...] = ()  # the named ones
    tokens: tuple[str, ...] = ()
    size: str = "n"

    @property
    def closed(self) -> bool:
        """Whether all items are named, as with tokens."""
        return bool(self.tokens) or (
            "k" in self.families and self.families["k"].items is not None and "k" not in self.template_bases
        )

    @property
    def template_bases(self) -> set[str]:
        made = {let.name.base for let in self.lets.values() if let.name.subs == ("i",)}
        return made | ({"k"} if "i" in self.noise else set())

    @cached_property
    def gone(self) -> set[str]:
        """Numbers that the statement sends somewhere."""
        every = [*self.limits, *(n for n in L.nodes(self.claim.statement) if isinstance(n, L.Approach))]
        return {a.name for a in every}

    @cached_property
    def in_logs(self) -> set[str]:
        """Numbers that enter through their logarithm: they go far only when it does."""
        logs = [n for n in L.nodes(self.claim) if isinstance(n, L.Call) and n.function == "log"]
        return {str(n) for call in logs for n in L.nodes(call) if isinstance(n, L.Name)}

    @cached_property
    def noise_sizes(self) -> set[str]:
        """Numbers in the covariances of keys."""
        found = {str(n) for g in self.noise.values() for n in L.nodes(g.spread) if isinstance(n, L.Name) and not n.subs}
        return found - {"I"}

    def heads(self) -> tuple[str, ...]:
        """The queries there are: "" for q, "1" for q_1; with tokens one for each."""
        if self.tokens:
            return self.tokens
        if "q" in self.lets or "q" in self.vectors:
            return ("",)
        defined = [let.name.subs[0] for let in self.lets.values() if let.name.base == "q" and len(let.name.subs) == 1]
        return tuple(sorted(set(defined)))

    def let(self, name: L.Name) -> L.Expr | None:
        """The definition of a name: its own, or the template's with the item put in."""
        own = self.lets.get(str(name))
        if own is not None:
            return own.value
        template = self.lets.get(f"{name.base}_i")
        if template is not None and len(name.subs) == 1:
            return L.renamed(template.value, "i", name.subs[0])
        return None


def reached(world: Context, *parts: L.Node) -> list[L.Name]:
    """Every name in some parts, and in the definitions that they rest on."""
    todo: list[L.Node] = list(parts)
    seen: dict[str, L.Name] = {}
    while todo:
        for node in L.nodes(todo.pop()):
            if isinstance(node, L.Name) and str(node) not in seen:
                seen[str(node)] = node
                value = world.let(node)
                todo += [value] if value is not None else []
    return list(seen.values())


def on_columns(world: Context, index: str, *parts: L.Node) -> bool:
    """Whether an index counts columns of A or B somewhere in some parts."""
    return bool(bases_of(world, index, *parts))


def bases_of(world: Context, index: str, *parts: L.Node) -> set[str]:
    """The bases whose columns an index counts in some parts."""
    names = reached(world, *parts)
    return {b for b in world.bases if any(n.base == b.lower() and index in n.subs for n in names)}


def built(claim: L.Claim) -> Context:
    """The world of a claim; unknown or clashing names are malformed."""
    world = Context(claim)
    for let in claim.lets:
        if let.name.base in ("oo", "I", "alpha"):
            raise Malformed(let.name.at, f"a definition of {let.name}", "another name: this one is built in")
        if str(let.name) in world.lets:
            raise Malformed(let.name.at, f"a second definition of {let.name}", "one definition for each name")
        world.lets[str(let.name)] = let
    for given in claim.given:
        _declare(world, given)
    for name in claim.moving:  # a number that goes somewhere is declared by going there
        taken = {*world.vectors, *world.bases, *world.lets, "oo", "I"}
        if name in taken:
            raise Malformed(claim.at, f"a limit of {name}, which is no number", "a number such as t")
        world.numbers.setdefault(name, Range())
    if isinstance(claim.statement.core, L.Never) and claim.statement.core.kind == "real":
        world.numbers.setdefault(str(claim.statement.core.name), Range())
    for let in claim.lets:
        if str(let.name) in {*world.numbers, *world.vectors, *world.bases}:
            raise Malformed(let.name.at, f"a definition of {let.name}, which is given", "one of the two")
    _tokens(world)
    facts, relations = [f for f in claim.given if isinstance(f, L.Fact)], claim.statement.when
    for fact in [*facts, *(L.Fact(r, None, r.at) for r in relations)]:
        _fact(world, fact)
    for name, where in world.numbers.items():
        if where.empty:
            raise Malformed(claim.at, f"a range for {name} that holds no number", "conditions that can be met")
    if not world.closed:
        world.numbers.setdefault("n", Range(Fraction(1), None, whole=True))
    check_scopes(world)
    world.items = _items(world)
    check_names(world)
    most = world.numbers["n"].hi if "n" in world.numbers and not world.closed else None
    if most is not None and most < len(world.items):
        raise Malformed(claim.at, f"{len(world.items)} named items among n = {most}", "a larger n")
    if not world.closed and (world.noise or "k" in world.template_bases):
        means = [g.mean for g in world.noise.values()] + [x.value for x in claim.lets if x.name.base == "k"]
        for node in L.nodes(tuple(means)):
            family = world.families.get(node.base) if isinstance(node, L.Name) and node.subs else None
            if family is not None and family.items is not None:
                raise Malformed(claim.at, "n keys made of fewer vectors", "a family such as mu_1..mu_n")
    return world


def _declare(world: Context, given: L.Given) -> None:
    if isinstance(given, L.Approach):
        world.limits = (*world.limits, given)
        world.numbers.setdefault(given.name, Range())
    elif isinstance(given, L.Gaussian):
        _gaussian(world, given)
    elif isinstance(given, L.Family):
        if given.norm is not None and given.kind != "orthogonal":
            raise Malformed(given.at, f"a norm for {given.kind} vectors", "orthogonal of norm beta")
        if given.kind == "orthogonal" and not (isinstance(given.norm, L.Name) or (constant(given.norm) or 0) > 0):
            raise Malformed(given.at, "orthogonal vectors without a norm", "orthogonal of norm beta, or of norm 2")
        if given.kind == "basis at right angles":
            if len(given.names) < 2:
                raise Malformed(given.at, f"{given.names[0]} at right angles to nothing", "A, B ... at right angles")
            world.right_angles = True
        for name, upto in zip(given.names, given.upto, strict=True):
            _member(world, given, name, upto)
        for node in L.nodes(given.norm) if given.norm is not None else ():
            if isinstance(node, L.Name):
                world.numbers[str(node)] = world.numbers.get(str(node), Range()).meet(">", Fraction(0))


def _member(world: Context, given: L.Family, name: L.Name, upto: L.Name | None) -> None:
    taken = {*world.numbers, *world.vectors, *world.bases}
    if str(name) in taken:
        raise Malformed(name.at, f"a second declaration of {name}", "one declaration for each name")
    if given.kind.startswith("basis"):
        if str(name) not in ("A", "B"):
            raise Malformed(name.at, f"a basis called {name}", "A (d x m) or B (d x p)")
        if str(name).lower() in world.families:
            raise Malformed(
                name.at, f"a basis {name} beside vectors {str(name).lower()}", "another letter for the vectors"
            )
        world.bases[str(name)] = "m" if str(name) == "A" else "p"
        world.families[str(name).lower()] = Vectors("orthonormal", None, None)
    elif given.kind == "real":
        world.numbers[str(name)] = Range()
    elif given.kind.startswith("R^"):
        world.vectors[str(name)] = given.kind[-1]
    elif upto is not None:
        if upto.base != name.base or name.subs != ("1",) or len(upto.subs) != 1:
            raise Malformed(upto.at, f"a range up to {upto}", f"{name.base}_1..{name.base}_n")
        last = upto.subs[0]
        if last.isdigit():
            if not 1 <= int(last) <= MOST_ITEMS:
                raise Malformed(upto.at, f"{last} items", f"1 to {MOST_ITEMS}, or n")
            items = tuple(str(i) for i in range(1, int(last) + 1))
        elif last in ("n", "m", "p"):
            items = None
        else:
            raise Malformed(upto.at, f"a range up to {upto}", f"{name.base}_1..{name.base}_n")
        if name.base in world.families:
            raise Malformed(name.at, f"a second declaration of {name.base}", "one declaration for each family")
        world.families[name.base] = Vectors(given.kind, given.norm, items)
        if items is None:
            world.numbers.setdefault("n", Range(Fraction(1), None, whole=True))
    elif name.subs:
        old = world.families.get(name.base)
        if old is not None and (old.items is None or old.kind != given.kind or old.norm != given.norm):
            raise Malformed(name.at, f"a second declaration of {name.base}", "one declaration for each family")
        world.families[name.base] = Vectors(given.kind, given.norm, (*(old.items or () if old else ()), *name.subs))
    elif given.kind == "free":
        world.vectors[str(name)] = "d"
    else:
        raise Malformed(name.at, f"a single {given.kind} vector", "a family such as k_1..k_n")


def _gaussian(world: Context, given: L.Gaussian) -> None:
    if given.name.base != "k" and (constant(given.mean) is None or (constant(given.spread) or 0) <= 0):
        raise Malformed(given.at, f"the distribution of {given.name}", "a mean and a positive variance, as numbers")
    if not given.name.subs and given.name.base != "k":
        world.random[str(given.name)] = given
        world.numbers[str(given.name)] = Range()
        return
    if given.name.base != "k" or len(given.name.subs) != 1:
        if len(given.name.subs) == 1 and given.name.base in ("gamma", "eps"):
            world.random[str(given.name)] = given
            world.numbers[str(given.name)] = Range()
            return
        raise Malformed(given.name.at, f"a distribution for {given.name}", "one for keys k_i or for a number")
    world.noise[given.name.subs[0]] = given
    for node in L.nodes(given.spread):
        if isinstance(node, L.Name) and not node.subs and node.base != "I":
            world.numbers[str(node)] = world.numbers.get(str(node), Range()).meet(">", Fraction(0))


def _tokens(world: Context) -> None:
    found = sorted(let.name.subs[0] for let in world.lets.values() if let.name.base == "x" and len(let.name.subs) == 1)
    if found and all(item.isdigit() for item in found):
        if found != [str(i) for i in range(1, len(found) + 1)] or len(found) > MOST_ITEMS:
            raise Malformed(world.claim.at, f"tokens x_{', x_'.join(found)}", f"x_1, x_2, ... up to {MOST_ITEMS}")
        world.tokens = tuple(found)


def _fact(world: Context, fact: L.Fact) -> None:
    for left, op, right in fact.relation.pairs():
        names = [n for n in L.nodes((left, right)) if isinstance(n, L.Name)]
        weights = next((n for n in names if n.base in ("alpha", "c") and str(n) not in world.numbers), None)
        if weights is not None:
            raise Malformed(weights.at, f"a condition on {weights}", "a condition on numbers, or on scores k_i'q")
        if any(n.base == "k" or str(n) in world.vectors for n in names):
            for name in names:  # a bound such as m in k_j'q - k_i'q >= m
                known = (
                    name.subs
                    or str(name) in world.vectors
                    or str(name) in world.lets
                    or name.base in ("q", "k", "alpha", "c")
                )
                if not known:
                    world.numbers.setdefault(str(name), Range())
            world.scores.append(L.Fact(L.Relation((left, right), (op,), fact.at), fact.quantifier, fact.at))
            continue
        if fact.quantifier is not None:
            raise Malformed(fact.at, "a condition on numbers for several items", "a condition on scores k_i'q")
        for name in names:
            if name.base == "oo":
                raise Malformed(name.at, "a comparison with infinity", "a number")
            whole = str(name) == world.size
            world.numbers.setdefault(str(name), Range(Fraction(1) if whole else None, None, whole=whole))
        if op == "!=":
            raise Malformed(fact.at, "a condition with !=", "one of = < <= > >=")
        bound, swapped = constant(right), constant(left)
        if isinstance(left, L.Name) and bound is not None:
            world.numbers[str(left)] = world.numbers[str(left)].meet(op, bound)
        elif isinstance(right, L.Name) and swapped is not None:
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
            world.numbers[str(right)] = world.numbers[str(right)].meet(turned, swapped)
        else:
            world.orders.append(L.Relation((left, right), (op,), fact.at))


def constant(expr: L.Expr | None) -> Fraction | None:
    """The value of an expression without names."""
    if isinstance(expr, L.Num):
        return expr.value
    if isinstance(expr, L.Neg):
        inner = constant(expr.inner)
        return None if inner is None else -inner
    if isinstance(expr, L.Op) and expr.sign in "+-*/":
        left, right = constant(expr.left), constant(expr.right)
        if left is None or right is None or (expr.sign == "/" and right == 0):
            return None
        return {"+": left + right, "-": left - right, "*": left * right}.get(expr.sign) or (
            left / right if expr.sign == "/" else Fraction(0)
        )
    return None


def _items(world: Context) -> tuple[str, ...]:
    """The items that the claim names, in their order; those of closed families are all named."""
    if world.tokens:
        return world.tokens
    bound = {n.index for n in L.nodes(world.claim) if isinstance(n, L.Sum | L.Quantifier)} | {"i"}
    quantifier = world.claim.statement.quantifier
    many = {b for b in {"k", "v", "mu", "alpha", "c"} if b not in world.families or world.families[b].items is None}
    many |= {base for base, f in world.families.items() if f.items is None}
    many -= {base.lower() for base in world.bases}  # columns of A and B are counted apart
    found: list[str] = []
    for node in L.nodes((world.claim.lets, world.claim.statement, tuple(world.scores), tuple(world.noise.values()))):
        item: tuple[str, ...] = ()
        if isinstance(node, L.Name) and node.subs and node.base in many:
            if node.base == "alpha":
                item = node.subs[-1:] if (len(node.subs) == 2 or world.heads() == ("",)) else ()
            elif node.base != "c":
                item = node.subs[-1:]
        elif isinstance(node, L.Sum | L.Quantifier):
            item = node.but
        found += [s for s in item if s not in bound and s not in found]
    family = world.families.get("k")
    if family is not None and family.items is not None:
        found = list(family.items)
    elif any(s.isdigit() for s in found) and any(s.isalpha() for s in found):
        raise Malformed(world.claim.at, f"items {', '.join(found)}", "letters or numbers as items, not both")
    if len(found) > MOST_ITEMS:
        raise Malformed(world.claim.at, f"{len(found)} named items", f"at most {MOST_ITEMS}")
    if quantifier is not None and quantifier.index in found:
        raise Malformed(quantifier.at, f"'{quantifier.index}'", "an index that is not an item's name")
    return tuple(found)
