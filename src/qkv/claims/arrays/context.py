"""What a claim about arrays declares: numbers, arrays with their sizes, random vectors, definitions, conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.nodes import MIRRORED_OP, Malformed, constant

SCALAR_FUNCTIONS = frozenset({"sigmoid", "tanh"})  # those that the older part of the language can say by exp
MAX_ITEMS = 6


@dataclass(frozen=True)
class Declared:
    """An array: its sizes as they are written, and its kind (terms.Factor)."""

    rows: str
    cols: str
    kind: str = ""


@dataclass
class ArrayContext:
    """Everything that a claim about arrays declares; built once."""

    claim: L.Claim
    numbers: dict[str, Range] = field(default_factory=dict)
    arrays: dict[str, Declared] = field(default_factory=dict)
    random: dict[str, L.Expr] = field(default_factory=dict)  # Gaussian vectors of mean 0, and their variance
    conditions: list[L.Relation] = field(default_factory=list)
    lets: dict[str, L.Expr] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    shapes: dict[L.Expr, tuple[str, str] | None] = field(default_factory=dict)  # of expressions, where they were asked

    @cached_property
    def used(self) -> set[str]:
        """Names that the statement, its conditions or a definition uses; entries count as their array."""
        nodes = L.nodes((self.claim.statement, tuple(self.conditions), tuple(self.lets.values())))
        names = [n for n in nodes if isinstance(n, L.Name)]
        return {str(n) for n in names} | {n.base for n in names}

    def sizes(self) -> set[str]:
        found = {size for a in self.arrays.values() for size in (a.rows, a.cols)}
        return {s for s in found if not s.isdigit()}


def is_about_arrays(claim: L.Claim) -> bool:
    """Whether a claim needs the part of the language for arrays and for functions that are no exponentials."""
    scalar = SCALAR_FUNCTIONS | {"inner"} | ({"abs"} if _has_keys(claim) else set())
    for node in L.nodes(claim):
        if isinstance(node, L.Space | L.Exists | L.Growth | L.Cases):
            return True
        if isinstance(node, L.Apply) and node.function not in scalar:
            return True
        if isinstance(node, L.Gaussian) and node.name.subs == () and _is_vector_law(node):
            return True
        if isinstance(node, L.Name) and node.base == "pi" and not node.subs and not _is_declared(claim, "pi"):
            return True
    return False


def _has_keys(claim: L.Claim) -> bool:
    """Whether a claim declares a family of vectors, beside which an absolute value is a root of a square."""
    return any(isinstance(g, L.Family) and g.kind in ("orthonormal", "orthogonal", "free") for g in claim.given)


def _is_vector_law(node: L.Gaussian) -> bool:
    return any(isinstance(n, L.Name) and str(n) == "I" for n in L.nodes(node.spread))


def _is_declared(claim: L.Claim, name: str) -> bool:
    return any(str(let.name) == name for let in claim.lets) or any(
        str(n) == name for g in claim.given if isinstance(g, L.Family | L.Space) for n in g.names
    )


def build_array_context(claim: L.Claim) -> ArrayContext:
    """Collect what a claim declares; clashing and unknown names raise Malformed."""
    context = ArrayContext(claim)
    for given in claim.given:
        _declare(context, given)
    for size in context.sizes() | {"n", "d"}:
        context.numbers.setdefault(size, Range(Fraction(1), None, whole=True))
        if not context.numbers[size].whole:
            where = context.numbers[size]
            context.numbers[size] = Range(whole=True).meet(">=", max(Fraction(1), where.lo or Fraction(1)))
            if where.hi is not None:
                context.numbers[size] = context.numbers[size].meet("<=", where.hi)
    for let in claim.lets:
        name = str(let.name)
        if name in context.lets or name in context.arrays or name in ("I", "oo", "ones", "pi"):
            raise Malformed(let.name.at, f"a definition of {name}, which is given or built in", "another name")
        context.lets[name] = let.value
    facts = [g for g in claim.given if isinstance(g, L.Fact)]
    for fact in facts:
        if fact.quantifier is not None:
            raise Malformed(fact.at, "a condition for several items beside arrays", "conditions on numbers or entries")
    for relation in [*(f.relation for f in facts), *claim.statement.when]:
        for left, op, right in relation.pairs():
            _condition(context, left, op, right, relation.at)
    core = claim.statement.core
    if isinstance(core, L.Limit | L.Growth):
        for approach in core.approach:
            context.numbers.setdefault(approach.name, Range())
    _check_names(context)
    for name, where in context.numbers.items():
        if where.empty:
            raise Malformed(claim.at, f"a range for {name} that holds no number", "conditions that can be met")
    return context


def _declare(context: ArrayContext, given: L.Given) -> None:
    if isinstance(given, L.Space):
        for name in given.names:
            _add(context, name, Declared(given.rows, given.cols, given.kind))
    elif isinstance(given, L.Gaussian):
        _random(context, given)
    elif isinstance(given, L.Family):
        for name, upto in zip(given.names, given.upto, strict=True):
            if upto is not None or given.kind not in ("free", "real", "R^m", "R^p"):
                raise Malformed(given.at, f"{given.kind} families beside arrays", "vectors such as: x in R^d")
            if given.kind == "real":
                context.numbers.setdefault(str(name), Range())
            else:
                _add(context, name, Declared(given.kind[-1] if given.kind != "free" else "d", "1"))
    elif isinstance(given, L.Mask):
        raise Malformed(given.at, "a mask beside arrays", "causal_softmax(S) for a causal mask")


def _add(context: ArrayContext, name: L.Name, declared: Declared) -> None:
    plain = str(name)
    if plain in context.arrays or plain in context.numbers or plain in ("I", "oo", "ones", "pi"):
        raise Malformed(name.at, f"a second declaration of {plain}", "one declaration for each name")
    context.arrays[plain] = declared


def _random(context: ArrayContext, given: L.Gaussian) -> None:
    if given.name.subs or constant(given.mean) != 0:
        raise Malformed(given.at, f"the distribution of {given.name}", "a vector such as w ~ N(0, I)")
    spread = given.spread
    if isinstance(spread, L.Name) and str(spread) == "I":
        variance: L.Expr = L.Num(Fraction(1), given.at)
    elif (
        isinstance(spread, L.Op)
        and spread.sign == "*"
        and isinstance(spread.right, L.Name)
        and str(spread.right) == "I"
    ):
        variance = spread.left
    elif (
        isinstance(spread, L.Op) and spread.sign == "/" and isinstance(spread.left, L.Name) and str(spread.left) == "I"
    ):
        variance = L.Op("/", L.Num(Fraction(1), given.at), spread.right, given.at)
    else:
        raise Malformed(given.at, f"the covariance of {given.name}", "I, or a number times I")
    if str(given.name) not in context.arrays:
        _add(context, given.name, Declared("d", "1"))
    if context.arrays[str(given.name)].cols != "1":
        raise Malformed(given.at, f"a distribution for the matrix {given.name}", "a vector")
    context.random[str(given.name)] = variance


def _condition(context: ArrayContext, left: L.Expr, op: str, right: L.Expr, at: L.At) -> None:
    if op == "!=":
        raise Malformed(at, "a condition with !=", "one of = < <= > >=")
    for node in L.nodes((left, right)):
        known = isinstance(node, L.Name) and (
            str(node) in context.arrays or str(node) in context.lets or (node.base in context.arrays and node.subs)
        )
        if isinstance(node, L.Name) and not known and not node.subs and node.base not in ("pi", "ones", "I"):
            context.numbers.setdefault(str(node), Range())
    bound, swapped = constant(right), constant(left)
    if isinstance(left, L.Name) and str(left) in context.numbers and bound is not None:
        context.numbers[str(left)] = context.numbers[str(left)].meet(op, bound)
    elif isinstance(right, L.Name) and str(right) in context.numbers and swapped is not None:
        context.numbers[str(right)] = context.numbers[str(right)].meet(MIRRORED_OP[op], swapped)
    else:
        context.conditions.append(L.Relation((left, right), (op,), at))


def _check_names(context: ArrayContext) -> None:
    claim = context.claim
    bound = {n.index for n in L.nodes(claim) if isinstance(n, L.Sum | L.Quantifier)}
    items: dict[str, None] = {}
    for node in L.nodes((claim.lets, claim.statement, tuple(context.conditions))):
        if isinstance(node, L.Sum | L.Quantifier):
            items |= dict.fromkeys(s for s in node.but if s not in bound)
        if not isinstance(node, L.Name):
            continue
        plain = str(node)
        if plain in context.numbers or plain in context.arrays or plain in context.lets:
            continue
        if node.base in ("I", "ones", "pi", "oo") and not node.subs:
            continue
        if node.subs and (node.base in context.arrays or node.base in context.lets):
            items |= dict.fromkeys(s for s in node.subs if s not in bound)
            continue
        if node.base in ("k", "alpha", "c"):
            raise Malformed(node.at, f"{plain} beside arrays", "softmax(z) for weights, and vectors such as: q in R^d")
        raise Malformed(
            node.at, f"{plain}, which is neither declared nor built in", f"a line such as: given {plain} in R^n"
        )
    if len(items) > MAX_ITEMS:
        raise Malformed(claim.at, f"{len(items)} named items", f"at most {MAX_ITEMS}")
    if any(s.isdigit() for s in items) and any(not s.isdigit() for s in items):
        raise Malformed(claim.at, f"items {', '.join(items)}", "letters or numbers as items, not both")
    context.items = tuple(items)
