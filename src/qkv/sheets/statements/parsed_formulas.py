"""The formulas of a sheet that state something, with their clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from qkv.sheets.reading.sheet import Formula, Sheet
from qkv.sheets.reading.spans import has_relation
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, parse


@dataclass(frozen=True)
class Parsed:
    """A formula with its clauses, or with the reason why it has none."""

    order: int
    formula: Formula
    clauses: tuple[T.Clause, ...]
    problem: str = ""
    head: T.Node | None = None  # the first side of the display that a row goes on with


OTHER_G = "ℊ"
"""The letter g where a query q is made with it, so that g is none."""


def parsed_formulas(sheet: Sheet) -> list[Parsed]:
    """The formulas with their clauses; rows that begin with a relation go on from the row before."""
    found = list(_parsed(sheet))
    if not any(_is_made_with_g(clause) for one in found for clause in one.clauses):
        return found
    return [
        replace(one, **{n: T.with_base(getattr(one, n), "g", OTHER_G) for n in ("clauses", "head")}) for one in found
    ]


def _is_made_with_g(clause: T.Clause) -> bool:
    """Whether a clause defines a query q by an expression with g, as q = g(k_a + k_b) does."""
    head = clause.sides[0] if clause.sides else None
    return isinstance(head, T.Symbol) and head.base == "q" and any("g" in T.bases(side) for side in clause.sides[1:])


def _parsed(sheet: Sheet) -> Iterator[Parsed]:
    last: T.Node | None = None
    head: T.Node | None = None
    previous: Formula | None = None
    for order, formula in enumerate(sheet.formulas):
        if formula.own_text or not has_relation(formula.math):
            continue
        try:
            clauses = parse(_without_rest(formula.math))
        except Unreadable as why:
            yield Parsed(order, formula, (), str(why))
            if not formula.math.lstrip("& ").startswith("="):
                head = last = _first_side(formula.math)
            previous = formula
            continue
        goes_on = any(c.sides and isinstance(c.sides[0], T.Missing) for c in clauses[:1])
        clauses = _continued(clauses, formula, previous, last, head)
        yield Parsed(order, formula, clauses, head=head if goes_on else None)
        if not goes_on and not all(_is_size(c) for c in clauses):
            head = next((c.sides[0] for c in clauses if c.sides), None)
        sides = [c for c in clauses if c.sides]
        if sides and not formula.math.startswith("("):
            last = sides[-1].sides[-1]
        previous = formula


_REST = re.compile(
    r"\s*(?:\+|-|\\pm)\s*\\(?:text|textrm|mathrm|mbox)\s*\{[^{}]*"
    r"(?:tiny|small|nois|negligib|error|rest\b|correction|fluctuation|微小|噪声|小量|忽略)[^{}]*\}",
    re.I,
)


def _without_rest(math: str) -> str:
    """A formula whose addend is "tiny" or "noise" in words, as an approximation without it."""
    bare = _REST.sub("", math)
    return math if bare == math else re.sub(r"(?<![<>:!\\])=(?!=)", r"\\approx ", bare)


def _is_size(clause: T.Clause) -> bool:
    """Whether a clause only says where a letter goes or how large it is, as α → 0 does."""
    sized = clause.signs[:1] and clause.signs[0] in ("->", ">>", "<<", ">", "<")
    return not clause.sides or bool(sized and isinstance(clause.sides[0], T.Symbol) and not clause.sides[0].index)


def _first_side(math: str) -> T.Node | None:
    """The side before the first relation of a formula that cannot be read as a whole."""
    found = re.match(r"([^=≈<>]*?)\s*(?:=|≈|\\approx(?![A-Za-z])|\\simeq(?![A-Za-z]))", math)
    try:
        return parse(f"{found[1]} = 0")[0].sides[0] if found and found[1].strip("& ") else None
    except (Unreadable, IndexError):
        return None


_PRONOUN = re.compile(r"\b(?:this|which|it)\s+(?:is|becomes|tends to|goes to|will be|equals)\s*$", re.I)
r"""Words that take up the left side of the formula before: "as $\alpha \to 0$ this is $\approx t$"."""


def _continued(
    clauses: tuple[T.Clause, ...], formula: Formula, previous: Formula | None, last: T.Node | None, head: T.Node | None
) -> tuple[T.Clause, ...]:
    out = list(clauses)
    for place, clause in enumerate(out):
        if not clause.sides or not isinstance(clause.sides[0], T.Missing):
            continue
        left: T.Node | None = None
        if place == 0 and previous is not None and last is not None and previous.part == formula.part:
            same = previous.display == formula.display and formula.display >= 0
            near = formula.line - previous.line <= 6 and not re.sub(r"\W", "", formula.before.rsplit("$", 1)[-1])
            left = last if same or near else None
        if left is None and place == 0 and previous is not None and _PRONOUN.search(formula.before):
            left = head if previous.part == formula.part and formula.line - previous.line <= 6 else None
        if left is None and formula.display < 0:
            found = re.search(
                r"\$([^$]*)\$\s*(?:is|are|remains?|stays?|still|will|be|becomes|approximately|roughly|\s)*$",
                formula.before,
            )
            if found is not None:
                try:
                    left = parse(f"{found[1]} = 0")[0].sides[0]
                except (Unreadable, IndexError):
                    left = None
        if left is not None:
            out[place] = replace(clause, sides=(left, *clause.sides[1:]))
    return tuple(out)
