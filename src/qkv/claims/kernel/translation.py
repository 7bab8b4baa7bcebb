"""Translate the expressions of a claim to terms of Attention.v, without any step of the prover."""

from __future__ import annotations

from dataclasses import dataclass, field

from qkv.claims.kernel.identifiers import Identifiers
from qkv.claims.kernel.terms import (
    IDENTITY,
    Column,
    Matrix,
    NotExported,
    Number,
    Term,
    Zero,
    added,
    divided,
    multiplied,
    negated,
    rational,
    transposed,
)
from qkv.claims.semantics.context import Context
from qkv.claims.syntax import nodes as L

SIZES = {"m": "num_m", "p": "num_p"}
NOWHERE: L.At = (0, 0)


@dataclass
class Used:
    """What a statement speaks of, in the order of first use."""

    numbers: dict[str, None] = field(default_factory=dict)
    vectors: dict[str, None] = field(default_factory=dict)
    families: dict[str, None] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)  # identifier: text, in an order that Coq can read
    bases: set[str] = field(default_factory=set)
    count: bool = False  # the number n of items
    noise: bool = False
    indices: dict[str, set[str]] = field(default_factory=dict)  # free indices and named items: the sizes they are below


@dataclass(frozen=True)
class LimitTerms:
    """What weights and outputs have become after some limits: per head the items that share the weight."""

    tops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    noise_gone: bool = False


class Translator:
    """Expressions of one claim as Coq terms."""

    def __init__(self, context: Context, moving: tuple[str, ...], limits: LimitTerms | None = None) -> None:
        self.context = context
        self.moving = moving
        self.limits = limits or LimitTerms()
        self.names = Identifiers()
        self.used = Used()
        self.bound: dict[str, str] = {}  # indices bound by a sum, with their Coq names
        self.random_argument = ""  # inside a statistic, the outcome that the keys depend on
        self.inline = limits is not None  # proofs write definitions out, as Coq does when it unfolds them
        self.statistics = any(isinstance(n, L.Stat | L.Chance) for n in L.nodes(context.claim.statement))
        self.moving_vectors = _moving_vectors(context, moving)

    # Expressions.
    def term(self, expr: L.Expr) -> Term:
        """The term of an expression."""
        if isinstance(expr, L.Num):
            return Number(rational(expr.value)) if expr.value else Zero()
        if isinstance(expr, L.Name):
            return self.named(expr)
        if isinstance(expr, L.Neg):
            return negated(self.term(expr.inner))
        if isinstance(expr, L.Transpose):
            return transposed(self.term(expr.inner))
        if isinstance(expr, L.Op):
            return self._operation(expr)
        if isinstance(expr, L.Call):
            return self._call(expr)
        if isinstance(expr, L.Sum):
            return self._sum(expr)
        if isinstance(expr, L.Stat):
            return self._statistic(expr)
        raise NotExported("probabilities" if isinstance(expr, L.Chance) else "this form")

    def number(self, expr: L.Expr) -> str:
        """The text of an expression that must be a number."""
        found = self.term(expr)
        if not isinstance(found, Number | Zero):
            raise NotExported("a vector where a number is needed")
        return found.text

    def column(self, expr: L.Expr) -> str:
        """The text of an expression that must be a vector of the space."""
        found = self.term(expr)
        if isinstance(found, Zero):
            return "vzero"
        if not isinstance(found, Column) or found.space != "d":
            raise NotExported("a value that is no vector of the space")
        return found.text

    def _operation(self, expr: L.Op) -> Term:
        if expr.sign == "^":
            power = L.constant(expr.right)
            if power is None or power.denominator != 1 or not 0 <= power <= 12:
                raise NotExported("a power that is not a small whole number")
            return Number(f"({self.number(expr.left)} ^ {power})")
        left, right = self.term(expr.left), self.term(expr.right)
        if expr.sign == "*":
            return multiplied(left, right)
        if expr.sign == "/":
            return divided(left, right)
        return added(left, right, expr.sign)

    def _call(self, expr: L.Call) -> Term:
        if expr.function == "norm":
            return Number(f"(norm2 {self.column(expr.inner)})")
        word = {"exp": "exp", "log": "ln", "sqrt": "sqrt"}.get(expr.function)
        if word is None:
            raise NotExported(f"the function {expr.function}")
        return Number(f"({word} {self.number(expr.inner)})")

    def _sum(self, expr: L.Sum) -> Term:
        before, used = dict(self.bound), self.used.indices
        word = self.names.of("at", expr.index)
        self.bound[expr.index] = word
        self.used.indices = {}
        inner = self.term(expr.inner)
        sizes = self.used.indices.pop(expr.index, set()) or {"n"}
        for index, found in self.used.indices.items():
            used.setdefault(index, set()).update(found)
        self.used.indices, self.bound = used, before
        if len(sizes) != 1:
            raise NotExported("a sum over items and columns at once")
        size = self._size(sizes.pop())
        but = f"_but {size} [{'; '.join(self.item(i) for i in expr.but)}]" if expr.but else f" {size}"
        return self._total(but, word, inner)

    def _total(self, but: str, word: str, inner: Term) -> Term:
        if isinstance(inner, Number | Zero):
            return Number(f"(total{but} (fun {word} : nat => {inner.text}))")
        if isinstance(inner, Column) and inner.space == "d":
            return Column(f"(vtotal{but} (fun {word} : nat => {inner.text}))")
        if isinstance(inner, Matrix):
            body = inner

            def applied(x: Column) -> Column:
                return Column(f"(vtotal{but} (fun {word} : nat => {body.apply(x).text}))")

            def applied_transposed(x: Column) -> Column:
                return Column(f"(vtotal{but} (fun {word} : nat => {body.apply_transposed(x).text}))")

            if (inner.rows, inner.cols) != ("d", "d"):
                raise NotExported("a sum of matrices of coordinates")
            return Matrix("d", "d", applied, applied_transposed)
        raise NotExported("a sum of rows or of coordinates")

    def _statistic(self, expr: L.Stat) -> Term:
        if self.random_argument:
            raise NotExported("a statistic within a statistic")
        if any(isinstance(n, L.Name) and n.base in ("alpha", "c") for n in L.nodes(expr)):
            raise NotExported("statistics of weights and outputs")
        if self.context.random or not self.context.noise:  # no law of a random number is stated in a theorem
            raise NotExported("statistics of random numbers")
        self.random_argument = "outcome"
        inner = [self.number(one) for one in expr.inner]
        self.random_argument = ""
        functions = [f"(fun outcome => {one})" for one in inner]
        if expr.function == "E" and len(functions) == 1:
            return Number(f"(mean _ law {functions[0]})")
        if expr.function == "Var" and len(functions) == 1:
            return Number(f"(variance law {functions[0]})")
        if expr.function == "Cov" and len(functions) == 2:
            return Number(f"(covariance law {functions[0]} {functions[1]})")
        raise NotExported(f"the statistic {expr.function}")

    # Names.
    def named(self, name: L.Name) -> Term:
        """The term of a name."""
        base, subs = name.base, name.subs
        context = self.context
        if base == "I" and not subs:
            return IDENTITY
        if base == "alpha":
            return self._weight(name)
        if base == "c" and str(name) not in context.lets:
            return Column(self.output(subs[0] if subs else ""))
        if base == "n" and not subs:
            self.used.count = True
            return Number(f"(INR {self.items_text()})" if context.all_items_named else "(INR n)")
        if str(name) in context.numbers:
            self.used.numbers[str(name)] = None
            return Number(self.names.of("num", str(name)))
        if str(name) in context.vectors:
            self.used.vectors[str(name)] = None
            return Column(self._moved(str(name), self.names.of("vec", str(name))), context.vectors[str(name)])
        if str(name) in context.bases:
            return self._basis(str(name))
        if base in ("k", "v", "q", "x") and len(subs) <= 1:
            found = self._attention_vector(name)
            if found is not None:
                return found
        value = context.definition(name)
        if value is not None:
            return self._defined(name, value)
        if len(subs) == 1 and base in context.families:
            return self._member(base, subs[0])
        raise NotExported(f"the name {name}")

    def _defined(self, name: L.Name, value: L.Expr) -> Term:
        """A definition: numbers and vectors get a name of their own in the theorem, matrices are written out."""
        template = str(name) not in self.context.lets
        found = self.term(value)
        if template or self.bound or self.random_argument or not isinstance(found, Number | Column):
            return found
        return self._with_name(self.names.of("let", str(name)), found)

    def _with_name(self, word: str, found: Number | Column) -> Term:
        if self.inline:
            return found
        self.used.definitions.setdefault(word, found.text)
        text = " ".join([word, *(self.names.of("num", one) for one in self.moving)])
        text = f"({text})" if self.moving else text
        return Number(text) if isinstance(found, Number) else Column(text, found.space)

    def _attention_vector(self, name: L.Name) -> Term | None:
        """k_i, v_i, q_i and x_i where they come from tokens, noise or templates."""
        base, subs, context = name.base, name.subs, self.context
        if context.tokens and len(subs) == 1 and base in ("k", "v", "q"):
            return Column(f"({self.family_text(base)} {self.item(subs[0])})")
        if context.tokens and len(subs) == 1 and base == "x":
            return Column(f"({self._tokens()} {self.item(subs[0])})")
        if base == "k" and len(subs) == 1 and (context.noise or "k" in context.template_names):
            return Column(f"({self.family_text('k')} {self.item(subs[0])})")
        if base == "v" and len(subs) == 1 and str(name) not in context.lets and "v" not in context.families:
            return Column(f"({self.family_text('v')} {self.item(subs[0])})")
        return None

    def _member(self, base: str, item: str) -> Column:
        family = self.context.families[base]
        if base.upper() in self.context.bases and family.items is None and base in ("a", "b"):
            size = self.context.bases[base.upper()]
            self.used.bases.add(base.upper())
            return Column(f"(vec_{base} {self._index(item, size)})")
        self.used.families[base] = None
        text = self._moved(base, self.names.of("vec", base))
        if family.items is not None:
            if item not in family.items:
                raise NotExported(f"an index {item} over a closed family")
            return Column(f"({text} {family.items.index(item)}%nat)")
        return Column(f"({text} {self.item(item)})")

    def _basis(self, name: str) -> Matrix:
        size = self.context.bases[name]
        self.used.bases.add(name)
        word = f"vec_{name.lower()}"

        def combined(x: Column) -> Column:
            if x.space != size:
                raise NotExported("a product whose shapes do not fit")
            return Column(f"(combine {SIZES[size]} {word} {x.text})")

        def coordinates(x: Column) -> Column:
            if x.space != "d":
                raise NotExported("a product whose shapes do not fit")
            return Column(f"(coordinates {word} {x.text})", size)

        return Matrix("d", size, combined, coordinates)

    def _moved(self, name: str, text: str) -> str:
        """A vector that may move with a limit, at the current numbers."""
        numbers = self.moving_vectors.get(name, ())
        return f"({' '.join([text, *(self.names.of('num', one) for one in numbers)])})" if numbers else text

    # Items.
    def item(self, name: str) -> str:
        """An index or named item as a Coq term."""
        return self._index(name, "n")

    def _index(self, name: str, size: str) -> str:
        context = self.context
        if name in self.bound:
            self.used.indices.setdefault(name, set()).add(size)
            return self.bound[name]
        if size == "n" and context.all_items_named and name in context.items:
            return f"{context.items.index(name)}%nat"
        self.used.indices.setdefault(name, set()).add(size)
        return self.names.of("item", name)

    def _size(self, size: str) -> str:
        if size == "n":
            self.used.count = True
            return self.items_text()
        self.used.bases.add("A" if size == "m" else "B")
        return SIZES[size]

    def items_text(self) -> str:
        """How many items there are, as a Coq natural number."""
        self.used.count = True
        return f"{len(self.context.items)}%nat" if self.context.all_items_named else "n"

    # Attention.
    def family_text(self, base: str) -> str:
        """Keys, values or queries as a function of the item."""
        context = self.context
        if context.tokens:
            matrix = context.lets.get({"k": "K", "v": "V", "q": "Q"}[base])
            if any(f"{base}_{t}" in context.lets for t in context.tokens):
                raise NotExported("a query, key or value set by hand beside tokens")
            if matrix is None:
                return self._tokens()
            image = multiplied(self.term(matrix.value), Column(f"({self._tokens()} i)"))
            text = "vzero" if isinstance(image, Zero) else image.text if isinstance(image, Column) else ""
            if not text:
                raise NotExported("tokens under something that is no matrix")
            return self._with_name(self.names.of("let", base), Column(f"(fun i : nat => {text})")).text  # type: ignore[union-attr]
        if base == "k" and context.noise:
            return self._noisy_keys()
        overrides = [let for let in context.lets.values() if let.name.base == base and len(let.name.subs) == 1]
        if base in context.families and not overrides:
            self.used.families[base] = None
            return self._moved(base, self.names.of("vec", base))
        if base == "v" and not overrides:
            self.used.families["v"] = None
            return self.names.of("vec", "v")
        return self._templated(base, overrides)

    def _templated(self, base: str, overrides: list[L.Let]) -> str:
        """A family of which members are defined: `k_i = ...` for all, `k_a = ...` for one."""
        if base == "v" and "v_i" not in self.context.lets:
            self.used.families["v"] = None
            text = self.names.of("vec", "v")
        elif f"{base}_i" in self.context.lets:
            text = self.for_each_item(self.context.lets[f"{base}_i"].value)
        else:
            raise NotExported(f"vectors {base} that are not declared for every item")
        for let in overrides:
            if let.name.subs != ("i",):
                text = f"(update {text} {self.item(let.name.subs[0])} {self.column(let.value)})"
        return self._with_name(self.names.of("let", base), Column(text)).text  # type: ignore[union-attr]

    def _tokens(self) -> str:
        lets = [self.context.lets[f"x_{t}"] for t in self.context.tokens]
        text = "; ".join(self.column(let.value) for let in lets)
        word = self.names.of("let", "x")
        return self._with_name(word, Column(f"(fun i : nat => nth i [{text}] vzero)")).text  # type: ignore[union-attr]

    def _noisy_keys(self) -> str:
        """Keys m + sqrt(w) z for every value of the noise z; within a statistic, random keys with given moments."""
        self.used.noise = True
        if self.random_argument or self.statistics:
            numbers = [self.names.of("num", one) for one in self.moving if one in self.context.noise_sizes]
            if not self.random_argument:
                raise NotExported("random keys beside their statistics")
            return f"({' '.join(['keys', *numbers, self.random_argument])})"
        if "i" not in self.context.noise:
            raise NotExported("noise on some keys only")
        text = self.for_each_item(self.context.noise["i"])
        for item, given in self.context.noise.items():
            if item != "i":
                text = f"(update {text} {self.item(item)} {self._noisy_key(given, item)})"
        return self._with_name(self.names.of("let", "k"), Column(text)).text  # type: ignore[union-attr]

    def for_each_item(self, expr: L.Expr | L.Gaussian) -> str:
        """A template, with the index i, as a function of the item."""
        bound, indices = dict(self.bound), self.used.indices
        self.bound["i"] = "i"
        self.used.indices = {}
        text = self._noisy_key(expr, "i") if isinstance(expr, L.Gaussian) else self.column(expr)
        self.used.indices.pop("i", None)
        for index, sizes in self.used.indices.items():
            indices.setdefault(index, set()).update(sizes)
        self.bound, self.used.indices = bound, indices
        return f"(fun i : nat => {text})"

    def _noisy_key(self, given: L.Gaussian, item: str) -> str:
        text = self.column(given.mean)
        vanished = set(self.moving) if self.limits.noise_gone else set()
        for j, (weight, direction) in enumerate(spread_terms(given.spread)):
            names = {str(n) for n in L.nodes(tuple(weight)) if isinstance(n, L.Name)}
            if names & vanished & self.context.noise_sizes:
                continue
            size = "(sqrt " + self.product(weight) + ")"
            if direction is None:
                text = f"({text} +v {size} *v noise {self.item(item)})"
            else:
                text = f"({text} +v ({size} * factor {j}%nat {self.item(item)}) *v {self.column(direction)})"
        return text

    def product(self, factors: list[L.Expr]) -> str:
        """A product of numbers."""
        texts = [self.number(one) for one in factors]
        return texts[0] if len(texts) == 1 else "(" + " * ".join(texts or ["1"]) + ")"

    def query(self, head: str) -> str:
        """The query of a head."""
        if self.context.tokens:
            return f"({self.family_text('q')} {self.item(head)})"
        return self.column(L.Name("q", (head,) if head else (), NOWHERE))

    def _weight(self, name: L.Name) -> Number:
        heads = self.context.heads()
        if len(name.subs) == 2:
            head, item = name.subs
        elif len(name.subs) == 1 and heads == ("",):
            head, item = "", name.subs[0]
        elif len(name.subs) == 1 and len(name.subs[0]) == 2 and self.context.tokens:
            head, item = name.subs[0][0], name.subs[0][1]
        else:
            raise NotExported(f"the weight {name}")
        if head in self.limits.tops:
            top = "; ".join(self.item(one) for one in self.limits.tops[head])
            return Number(f"(if existsb (Nat.eqb {self.item(item)}) [{top}] then / INR (length [{top}]) else 0)")
        return Number(f"(alpha {self.items_text()} {self.family_text('k')} {self.query(head)} {self.item(item)})")

    def output(self, head: str) -> str:
        """The output of a head; without an index the average over the heads."""
        heads = self.context.heads()
        if head == "" and heads != ("",):
            if self.context.tokens or not heads:
                raise NotExported("an output without an index")
            text = " +v ".join(self.output(one) for one in heads)
            return f"((/ {len(heads)}) *v ({text}))"
        if self.statistics or self.random_argument:
            raise NotExported("outputs beside statistics")
        if head in self.limits.tops:
            top = "; ".join(self.item(one) for one in self.limits.tops[head])
            return f"(average [{top}] {self.family_text('v')})"
        return f"(attend {self.items_text()} {self.family_text('k')} {self.family_text('v')} {self.query(head)})"


def spread_terms(expr: L.Expr) -> list[tuple[list[L.Expr], L.Expr | None]]:
    """A covariance as a sum of w*I, with None for the direction, and of w*u*u', with u."""
    if isinstance(expr, L.Op) and expr.sign == "+":
        return spread_terms(expr.left) + spread_terms(expr.right)
    factors = _factors(expr)
    plain = [f for f in factors if not _is_identity(f)]
    columns = [f for f in plain if isinstance(f, L.Name) and f.subs]
    rows = [f.inner for f in plain if isinstance(f, L.Transpose)]
    weight: list[L.Expr] = [f for f in plain if not (isinstance(f, L.Transpose) or (isinstance(f, L.Name) and f.subs))]
    if len(plain) == len(factors) - 1 and not columns and not rows:
        return [(weight, None)]
    if len(plain) == len(factors) and len(columns) == len(rows) == 1 and str(columns[0]) == str(rows[0]):
        return [(weight, columns[0])]
    raise NotExported("a covariance of this form")


def _is_identity(expr: L.Expr) -> bool:
    return isinstance(expr, L.Name) and expr.base == "I" and not expr.subs


def _factors(expr: L.Expr) -> list[L.Expr]:
    if isinstance(expr, L.Op) and expr.sign == "*":
        return _factors(expr.left) + _factors(expr.right)
    return [expr]


def _moving_vectors(context: Context, moving: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The vectors that depend on numbers of which limits are taken: by their norm, or by a condition on scores."""
    found: dict[str, tuple[str, ...]] = {}
    for base, family in context.families.items():
        names = {str(n) for n in L.nodes(family.norm) if isinstance(n, L.Name)} if family.norm is not None else set()
        if names & set(moving):
            found[base] = tuple(one for one in moving if one in names)
    for fact in context.score_conditions:
        every = [n for n in L.nodes(fact.relation) if isinstance(n, L.Name)]
        numbers = tuple(one for one in moving if one in {str(n) for n in every})
        for name in every if numbers else ():
            if str(name) in context.vectors:
                found[str(name)] = numbers
            elif name.base in context.families:
                found[name.base] = numbers
    return found
