"""The theorem of a claim: what it quantifies over, what it assumes, and what it says, over vectors and n items."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.claims.kernel.terms import Column, Matrix, NotExported, Number, Row, Term, Zero, equation, rational
from qkv.claims.kernel.translation import SIZES, Translator
from qkv.claims.semantics.context import Context
from qkv.claims.semantics.ranges import Range
from qkv.claims.syntax import nodes as L

COQ_OP = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True)
class Statement:
    """A theorem without its proof.

    Attributes:
        binders: The variables that it quantifies over, as Coq binders.
        hypotheses: What it assumes, as propositions.
        definitions: Pairs of the left side of a `let`, and its text.
        conclusion: What it says.
        approaches: The numbers of which limits are taken, with their filters, in order.
    """

    binders: tuple[str, ...]
    hypotheses: tuple[str, ...]
    definitions: tuple[tuple[str, str], ...]
    conclusion: str
    approaches: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """The theorem in Coq, up to its proof."""
        lines = [f"Theorem {name} :"]
        if self.binders:
            lines.append(f"  forall {' '.join(self.binders)},")
        lines += [f"  {one} ->" for one in self.hypotheses]
        lines += [f"  let {left} := {right} in" for left, right in self.definitions]
        return "\n".join(lines) + f"\n  {self.conclusion}."


def approaches_of(context: Context) -> tuple[tuple[str, str], ...]:
    """The numbers of which limits are taken, with the filter of each, in their order."""
    core = context.claim.statement.core
    inner = core.inner if isinstance(core, L.Never) else core
    every = [*context.limits, *(inner.approach if isinstance(inner, L.Limit) else ())]
    return tuple((one.name, _filter(context, one)) for one in every)


def _filter(context: Context, approach: L.Approach) -> str:
    where = context.numbers[approach.name]
    if approach.name == "n" or where.whole:
        raise NotExported("a limit in the number of items")
    to = approach.to
    if isinstance(to, L.Name) and to.base == "oo" and where.hi is None:
        return "at_infinity"
    if isinstance(to, L.Neg) and isinstance(to.inner, L.Name) and to.inner.base == "oo" and where.lo is None:
        return "at_minus_infinity"
    if L.constant(to) == 0 and where.lo == 0 and where.lo_open and (where.hi is None or where.hi > 0):
        return "above_zero"
    raise NotExported("a limit at this place")


def stated(context: Context) -> Statement:
    """The theorem of a claim."""
    core = context.claim.statement.core
    approaches = approaches_of(context)
    if isinstance(core, L.Relation) and approaches:
        raise NotExported("a comparison in a limit")
    translator = Translator(context, tuple(name for name, _ in approaches))
    quantified = quantified_indices(context)
    conclusion = _conclusion(translator, core, approaches)
    conditions = _conditions(translator)
    binders, hypotheses = _declarations(translator, {i for i, _ in quantified})
    for index, but in reversed(quantified):
        conclusion = _quantified(translator, index, but, conclusion)
    arguments = "".join(f" ({translator.names.of('num', one)} : R)" for one in translator.moving)
    definitions = tuple((word + arguments, text) for word, text in translator.used.definitions.items())
    return Statement(tuple(binders), (*hypotheses, *conditions), definitions, conclusion, approaches)


def quantified_indices(context: Context) -> list[tuple[str, tuple[str, ...]]]:
    """The indices that the statement is meant for all values of, each with the items that are left out."""
    statement = context.claim.statement
    found: list[tuple[str, tuple[str, ...]]] = []
    bound = {n.index for n in L.nodes(statement.core) if isinstance(n, L.Sum)}
    names = [n for n in L.nodes(statement.core) if isinstance(n, L.Name)]
    free = any("i" in n.subs and "i" not in bound for n in names)
    if free and (statement.quantifier is None or statement.quantifier.index != "i"):
        found.append(("i", ()))
    if statement.quantifier is not None:
        found.append((statement.quantifier.index, statement.quantifier.but))
    return found


def _quantified(translator: Translator, index: str, but: tuple[str, ...], conclusion: str) -> str:
    word = translator.item(index)
    sizes = sorted(translator.used.indices.get(index, {"n"}))
    if len(sizes) > 1 and "n" in sizes:  # an index of columns is counted among the columns only
        sizes.remove("n")
    bounds = [f"({word} < {_size_text(translator, size)})%nat" for size in sizes]
    bounds += [f"{word} <> {_item_of(translator, one, sizes[0])}" for one in but]
    return f"forall {word} : nat, {' -> '.join(bounds)} ->\n  {conclusion}"


def _item_of(translator: Translator, name: str, size: str) -> str:
    """An item that is left out, as an index of the same kind."""
    return translator.item(name) if size == "n" else translator._index(name, size)


def _size_text(translator: Translator, size: str) -> str:
    return translator.items_text() if size == "n" else SIZES[size]


def _conclusion(translator: Translator, core: L.Core, approaches: tuple[tuple[str, str], ...]) -> str:
    if isinstance(core, L.Relation):
        return " /\\ ".join(_link(translator, left, op, right) for left, op, right in core.pairs())
    if isinstance(core, L.Limit):
        text = limit_text(translator, core, approaches)
        return text if core.tends else f"~ {text}"
    if isinstance(core, L.Distribution):
        name = core.name
        item = L.Name("alpha", (*name.subs, "i"), core.at)
        translator.bound["i"] = "at_i"
        weight = translator.number(item)
        n = translator.items_text()
        del translator.bound["i"]
        translator.used.indices.pop("i", None)
        return (
            f"(forall at_i : nat, (at_i < {n})%nat -> 0 <= {weight})\n  /\\ total {n} (fun at_i : nat => {weight}) = 1"
        )
    if isinstance(core, L.Never) and core.kind == "real":
        if isinstance(core.inner, L.Limit):
            return f"~ {limit_text(translator, core.inner, approaches)}"
        return "~ (" + _conclusion(translator, core.inner, ()) + ")"
    raise NotExported({"Within": "probabilities", "Equivariant": "permutations"}.get(type(core).__name__, "this form"))


def _link(translator: Translator, left: L.Expr, op: str, right: L.Expr) -> str:
    one, two = translator.term(left), translator.term(right)
    if op == "=":
        return equation(one, two, SIZES)
    if isinstance(one, Number | Zero) and isinstance(two, Number | Zero):
        return f"{one.text} {COQ_OP[op]} {two.text}"
    if op == "!=":
        return f"~ ({equation(one, two, SIZES)})"
    raise NotExported("an order between vectors")


def side_texts(one: Term, two: Term) -> tuple[str, str, bool]:
    """Both sides of a limit as texts, and whether they are vectors."""
    if isinstance(one, Row) and isinstance(two, Row | Zero):
        one, two = one.column, two.column if isinstance(two, Row) else two
    if isinstance(one, Matrix) or isinstance(two, Matrix | Row):
        raise NotExported("limits of matrices")
    columns = [x for x in (one, two) if isinstance(x, Column)]
    if any(x.space != "d" for x in columns) or (columns and any(isinstance(x, Number) for x in (one, two))):
        raise NotExported("limits of coordinates")
    if not columns:
        return one.text, two.text, False  # type: ignore[union-attr]
    return ("vzero" if isinstance(one, Zero) else one.text, "vzero" if isinstance(two, Zero) else two.text, True)  # type: ignore[union-attr]


def limit_text(translator: Translator, core: L.Limit, approaches: tuple[tuple[str, str], ...]) -> str:
    """The proposition that the left side tends to the right side."""
    if not 1 <= len(approaches) <= 3:
        raise NotExported("more than three limits")
    one, two, vectors = side_texts(translator.term(core.left), translator.term(core.right))
    word = ("v" if vectors else "") + "tends" + "_then" * (len(approaches) - 1)
    filters = " ".join(name for _, name in approaches)
    numbers = " ".join(f"({translator.names.of('num', name)} : R)" for name, _ in approaches)
    return f"{word} {filters} (fun {numbers} => {one}) (fun {numbers} => {two})"


def range_hypotheses(word: str, where: Range) -> list[str]:
    """The bounds of a real number as propositions."""
    if where.point is not None:
        return [f"{word} = {rational(where.point)}"]
    found = []
    if where.lo is not None:
        found.append(f"{rational(where.lo)} {'<' if where.lo_open else '<='} {word}")
    if where.hi is not None:
        found.append(f"{word} {'<' if where.hi_open else '<='} {rational(where.hi)}")
    return found


def _conditions(translator: Translator) -> list[str]:
    """Given conditions on scores and between numbers."""
    found = []
    context, moving = translator.context, set(translator.moving)
    for relation in context.number_conditions:
        if moving & {str(n) for n in L.nodes(relation) if isinstance(n, L.Name)}:
            raise NotExported("a condition on a number of which a limit is taken")
        found += [_link(translator, *pair) for pair in relation.pairs()]
    for fact in context.score_conditions:
        quantifier = fact.quantifier
        if quantifier is not None:
            translator.bound[quantifier.index] = "at_other"
        text = " /\\ ".join(_link(translator, *pair) for pair in fact.relation.pairs())
        if quantifier is not None:
            del translator.bound[quantifier.index]
            translator.used.indices.pop(quantifier.index, None)
            bounds = [f"(at_other < {translator.items_text()})%nat"]
            bounds += [f"at_other <> {translator.item(one)}" for one in quantifier.but]
            text = f"(forall at_other : nat, {' -> '.join(bounds)} -> {text})"
        names = {str(n) for n in L.nodes(fact.relation) if isinstance(n, L.Name)}
        for vector in [*(n.base for n in L.nodes(fact.relation) if isinstance(n, L.Name)), *names]:
            names |= set(translator.moving_vectors.get(vector, ()))
        for name in reversed([one for one in translator.moving if one in names]):
            word = translator.names.of("num", name)
            limits = "".join(f"{h} -> " for h in range_hypotheses(word, context.numbers[name]))
            text = f"(forall {word} : R, {limits}{text})"
        found.append(text)
    return found


def _declarations(translator: Translator, quantified: set[str]) -> tuple[list[str], list[str]]:
    """Binders and hypotheses for everything that the statement uses."""
    binders, hypotheses = ["(E : InnerSpace)"], []
    context, used = translator.context, translator.used
    random = _randomness(translator) if used.noise else ([], [])
    families = _families(translator)
    items, distinct = _items(translator, quantified)
    if used.count and not context.all_items_named:
        binders.append("(n : nat)")
        where = context.numbers["n"]
        if where.point is not None:
            hypotheses.append(f"n = {where.point}%nat")
        else:
            hypotheses += [f"({where.lo} <= n)%nat"] if where.lo is not None else []
            hypotheses += [f"(n <= {where.hi})%nat"] if where.hi is not None else []
    if used.bases:
        binders.append(f"({' '.join(sorted(SIZES[context.bases[b]] for b in used.bases))} : nat)")
    binders += items
    numbers = [name for name in used.numbers if name not in translator.moving and name != "n"]
    for name in numbers:
        word = translator.names.of("num", name)
        binders.append(f"({word} : R)")
        hypotheses += range_hypotheses(word, context.numbers[name])
    binders += families[0] + random[0]
    return binders, [*hypotheses, *distinct, *families[1], *random[1]]


def _items(translator: Translator, quantified: set[str]) -> tuple[list[str], list[str]]:
    """Named items: below their number, and different from each other."""
    words: dict[str, set[str]] = {}
    for name, sizes in translator.used.indices.items():
        if name not in quantified:
            words[translator.names.of("item", name)] = sizes
    binders = [f"({' '.join(words)} : nat)"] if words else []
    hypotheses = [f"({w} < {_size_text(translator, size)})%nat" for w, sizes in words.items() for size in sorted(sizes)]
    every = list(words)
    hypotheses += [
        f"{one} <> {two}" for i, one in enumerate(every) for two in every[i + 1 :] if words[one] & words[two]
    ]
    return binders, hypotheses


def _families(translator: Translator) -> tuple[list[str], list[str]]:
    """Vectors, families and bases with what is given of them."""
    context, used = translator.context, translator.used
    binders: list[str] = []
    hypotheses: list[str] = []
    for name in used.vectors:
        arrows = "R -> " * len(translator.moving_vectors.get(name, ()))
        kind = "E" if context.vectors[name] == "d" else "nat -> R"
        binders.append(f"({translator.names.of('vec', name)} : {arrows}{kind})")
    for base in list(used.families):
        family = context.families.get(base)
        word = translator.names.of("vec", base)
        moved = translator.moving_vectors.get(base, ())
        binders.append(f"({word} : {'R -> ' * len(moved)}nat -> E)")
        if family is None or family.kind == "free":
            continue
        count = f"{len(family.items)}%nat" if family.items is not None else translator.items_text()
        at = f"({' '.join([word, *(translator.names.of('num', one) for one in moved)])})" if moved else word
        if family.kind == "orthonormal":
            text = f"orthonormal {count} {at}"
        elif family.norm is not None:
            text = f"orthogonal_of_norm {count} {translator.number(family.norm)} {at}"
        else:
            raise NotExported(f"a family that is {family.kind}")
        for one in reversed(moved):
            number = translator.names.of("num", one)
            limits = "".join(f"{h} -> " for h in range_hypotheses(number, context.numbers[one]))
            text = f"(forall {number} : R, {limits}{text})"
        hypotheses.append(text)
    _crossed(translator, hypotheses)
    for basis in sorted(used.bases):
        binders.append(f"(vec_{basis.lower()} : nat -> E)")
        hypotheses.append(f"orthonormal {SIZES[context.bases[basis]]} vec_{basis.lower()}")
    if context.right_angles and used.bases >= {"A", "B"}:
        hypotheses.append("right_angles num_m num_p vec_a vec_b")
    return binders, hypotheses


def _crossed(translator: Translator, hypotheses: list[str]) -> None:
    """Families of one declaration are at right angles to each other."""
    context = translator.context
    bases = list(translator.used.families)
    for i, one in enumerate(bases):
        for two in bases[i + 1 :]:
            if frozenset({one, two}) in context.orthogonal_families:
                if one in translator.moving_vectors or two in translator.moving_vectors:
                    raise NotExported("several families of a norm that moves")
                counts = []
                for base in (one, two):
                    items = context.families[base].items
                    counts.append(f"{len(items)}%nat" if items is not None else translator.items_text())
                words = [translator.names.of("vec", base) for base in (one, two)]
                hypotheses.append(f"right_angles {' '.join(counts)} {' '.join(words)}")


def _randomness(translator: Translator) -> tuple[list[str], list[str]]:
    """Noise as arbitrary vectors; under statistics, random keys with the moments of their distribution."""
    if not translator.statistics:
        return ["(noise : nat -> E)", "(factor : nat -> nat -> R)"], []
    context = translator.context
    sizes = [one for one in translator.moving if one in context.noise_sizes]
    keys = " ".join(["keys", *(translator.names.of("num", one) for one in sizes), "outcome"])
    binders = ["(Outcomes : Type)", "(law : Expectation Outcomes)"]
    binders.append(f"(keys : {'R -> ' * len(sizes)}Outcomes -> nat -> E)")
    hypotheses = []
    for item, given in context.noise.items():
        if item == "i":
            translator.bound["i"] = "at_i"
        word = translator.item(item)
        mean = translator.column(given.mean)
        spread = translator.term(given.spread)
        if not isinstance(spread, Matrix):
            raise NotExported("a covariance of this form")
        image = spread.apply(Column("direction")).text
        text = f"moments law (fun outcome => {keys} {word}) {mean} (fun direction : E => {image})"
        if item == "i":
            del translator.bound["i"]
            translator.used.indices.pop("i", None)
            others = [translator.item(one) for one in context.noise if one != "i"]
            bounds = [f"(at_i < {translator.items_text()})%nat", *(f"at_i <> {one}" for one in others)]
            text = f"(forall at_i : nat, {' -> '.join(bounds)} -> {text})"
        for one in reversed(sizes):
            number = translator.names.of("num", one)
            limits = "".join(f"{h} -> " for h in range_hypotheses(number, context.numbers[one]))
            text = f"(forall {number} : R, {limits}{text})"
        hypotheses.append(text)
    return binders, hypotheses
