"""Which items of a head get all the weight in a limit, and the gap below them; Coq checks what is found here."""

from __future__ import annotations

import random
from dataclasses import dataclass

import sympy as sp

from qkv.claims.kernel.score_hints import Hints, NoHint, Scalar
from qkv.claims.kernel.terms import NotExported
from qkv.claims.kernel.translation import Translator
from qkv.claims.semantics.context import REST, Context
from qkv.claims.syntax import nodes as L

TRIES = 24  # random places at which scores are compared
ATTEMPTS = 400  # random places tried in order to meet the given conditions


@dataclass(frozen=True)
class Top:
    """The items with the highest score of a head, that score, and the gap below it: a factor times a growing base."""

    items: tuple[str, ...]
    score: str
    factor: str
    base: str
    grows: str  # the lemma that the base goes to infinity
    factors: tuple[str, ...] = ()  # those whose lower bound is called `smallest`
    smallest: tuple[str, str] | None = None  # the item and the vector whose fixed scores give the factor its name

    @property
    def gap(self) -> str:
        """The gap as a Coq real."""
        return f"({self.factor} * {self.base})"


def head_items(context: Context) -> list[str]:
    """The items with scores of their own, and one without a name."""
    return [*context.items, *([] if context.all_items_named else [REST])]


def top_of(context: Context, writer: Translator, head: str, name: str) -> Top | None:
    """The items on top of a head as a number grows; None if its scores do not depend on that number."""
    if context.score_conditions:
        return _given_top(context, writer, head, name)
    hints = Hints(context, writer)
    try:
        scores = {item: hints.score(head, item) for item in head_items(context)}
        symbol = hints.number(L.Name.parsed(name, (0, 0)))
    except NoHint:
        raise NotExported("scores that have no formula") from None
    if not any(score.has(symbol) for score in scores.values()):
        return None
    places = sample(hints, [*scores.values()], symbol)
    best = max(scores, key=lambda item: float(scores[item].subs(places[0])))
    tied = tuple(item for item in scores if sp.expand(scores[item] - scores[best]) == 0)
    gaps = {sp.expand(scores[best] - score) for item, score in scores.items() if item not in tied}
    if REST in tied:
        raise NotExported("a limit in which no named item has the highest score")
    base, text, lemma = _base(gaps, symbol, hints)
    factors = sorted({sp.simplify(gap / base) for gap in gaps}, key=lambda f: float(f.subs(places[0])))
    factor: str | None = next(
        (hints.text(f) for f in factors if all(f.subs(p) <= g.subs(p) for p in places for g in factors)), None
    )
    both: tuple[str, ...] = ()
    if factor is None:
        if len(factors) != 2 or any(f.subs(p) <= 0 for f in factors for p in places):
            raise NotExported("a limit whose fastest term depends on a number")
        factor, both = "smallest", tuple(hints.text(f) for f in factors)
    return Top(tied, hints.text(scores[best]), factor if factors else "1", text, lemma, both)


def _base(gaps: set[Scalar], symbol: Scalar, hints: Hints) -> tuple[Scalar, str, str]:
    word = hints.texts[symbol]
    for base, text, lemma in (
        (symbol, word, "inf_id"),
        (sp.log(symbol), f"ln {word}", "inf_ln"),
        (symbol**2, f"{word} ^ 2", "inf_square"),
    ):
        if all(not sp.simplify(gap / base).has(symbol) for gap in gaps):
            return base, f"({text})" if " " in text else text, lemma
    raise NotExported("a gap that grows in another way")


def sample(hints: Hints, formulas: list[Scalar], symbol: Scalar) -> list[dict[Scalar, Scalar]]:
    """Values of the numbers that meet what is given, with the moving number large."""
    draw = random.Random(7)
    context = hints.context
    conditions = []
    for relation in context.number_conditions:
        (left, right), (op,) = relation.sides, relation.ops
        try:
            conditions.append((hints.number(left) - hints.number(right), op))
        except NoHint:
            raise NotExported("a condition that has no formula") from None
    symbols = {s for f in [*formulas, *(c for c, _ in conditions)] for s in f.free_symbols} - {symbol}
    found: list[dict[Scalar, Scalar]] = []
    for attempt in range(ATTEMPTS):
        ends = [0.03, 0.97] if attempt < TRIES // 2 else []  # the ends of a range first
        values = {s: _value(draw.choice(ends) if ends else draw.uniform(0.05, 0.95), context, str(s)) for s in symbols}
        values[symbol] = sp.Integer(50)
        if all(_meets(float(c.subs(values)), op) for c, op in conditions):
            found.append(values)
        if len(found) == TRIES:
            return found
    raise NotExported("conditions that no number tried meets")


def _value(part: float, context: Context, name: str) -> Scalar:
    where = context.numbers.get(name)
    low = float(where.lo) if where is not None and where.lo is not None else None
    high = float(where.hi) if where is not None and where.hi is not None else None
    if low is None and high is None:
        low, high = -3.0, 3.0
    low = high - 3 if low is None and high is not None else low
    high = low + 3 if high is None and low is not None else high
    assert low is not None and high is not None
    return sp.Rational(str(round(low + (high - low) * part, 4)))


def _meets(value: float, op: str) -> bool:
    return {"<": value < 0, "<=": value <= 0, ">": value > 0, ">=": value >= 0, "=": value == 0}.get(op, False)


def _given_top(context: Context, writer: Translator, head: str, name: str) -> Top | None:
    """The top that a condition on scores gives: k_j'q - k_i'q >= m, or k_j'p > k_i'p with q = t*p."""
    for fact in context.score_conditions:
        quantifier, (left, right), (op,) = fact.quantifier, fact.relation.sides, fact.relation.ops
        if quantifier is None or not quantifier.but:
            continue
        items = quantifier.but
        score = f"(({writer.family_text('k')} {writer.item(items[0])}) dot {writer.query(head)})"
        word = writer.names.of("num", name)
        if isinstance(right, L.Name) and str(right) == name and op in (">=", ">"):
            return Top(items, score, "1", word, "inf_id")
        if op == ">" and isinstance(left, L.Op) and left.sign == "*":
            return Top(items, score, "smallest", word, "inf_id", (), (items[0], writer.column(left.right)))
    raise NotExported("a limit under this condition on scores")
