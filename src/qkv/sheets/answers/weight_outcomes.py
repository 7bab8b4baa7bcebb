"""What an author says that weights do over samples, and values that come "either … or …": in formulas and in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from qkv.sheets.answers.construction import Length, Outcome
from qkv.sheets.answers.find_outcomes import condition_of, condition_on_length, length_letter
from qkv.sheets.answers.outcome_words import CONTRAST, NEGATED
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import Said, clauses
from qkv.sheets.reading.sheet import Formula
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.parser import Unreadable, expression

TENDS_TO = (
    r"(?:\b(?:close to|near(?:ly)?|approach\w*|tends? to|goes to|converges? to|about|approximately|almost|"
    r"essentially|to|is)\b|接近|趋于|趋近于|约为|几乎为|等于|为)"
)
VALUE_FOR = re.compile(
    rf"[^$.。;]{{0,60}}?{TENDS_TO}\s*\$?\s*(?P<value>[01])\s*\$?\s*(?:,\s*)?"
    r"(?:for|if|when|whenever|where|as soon as|in case)\s+\$(?P<condition>[^$]+)\$",
    re.I,
)
"""\"close to 1 for $w > 0$\"."""
EITHER = re.compile(
    r"(?P<before>[^.。;；]*?)(?:\b(?:either|sometimes|randomly)\b|要么|或者|有时)[^$.。;；]{0,20}\$\s*v_\{?(?P<one>[ab])\}?\s*\$"
    r"[^$.。;；]{0,30}?(?:\b(?:or|and)\b|要么|或者?|有时|和)[^$.。;；]{0,20}\$\s*v_\{?(?P<two>[ab])\}?\s*\$",
    re.I,
)
"""\"either $v_a$ or $v_b$\"."""
EXPECTED = {"v_a": "gamma > 1", "v_b": "gamma < 1"}


def find_weights(region: Region, scales: Iterable[str], length: Length | None) -> list[Outcome]:
    """What the weights of a and b are said to approach as the length of k_a varies, each under its condition.

    Args:
        region: What the sheet says on the part.
        scales: The author's letters for scales, which no condition on the length uses.
        length: The author's letter for the length, where the region itself names none.
    """
    scales = set(scales)
    length = length_letter(region.formulas, scales) or length
    found: list[Outcome] = []
    for formula in region.formulas:
        here = [clause for clause in clauses(formula.math) if clause.sides]
        for place, clause in enumerate(here):
            weight, last = _weight(clause.sides[0]), clause.sides[-1]
            plain = set(clause.signs) <= {"=", "~", "->"} and isinstance(last, T.Number) and last.text in ("0", "1")
            if not weight or not plain or NEGATED.search(formula.before[-30:]):
                continue
            condition, worded = condition_of(Said(clause, formula), here, place, scales, length)
            if condition and isinstance(last, T.Number):
                found.append(
                    Outcome(weight, last.text, condition, formula.line, formula.source, in_words=worded, loose=worded)
                )
        found += _in_words(formula, scales, length)
    return found


def find_either(region: Region) -> list[Outcome]:
    """Values that are said to come at random, one or the other; they can agree with a goal and fail none."""
    found = []
    for one in EITHER.finditer(region.words):
        if one["one"] == one["two"] or NEGATED.search(one["before"]) or CONTRAST.search(one["before"]):
            continue
        written = " ".join(one[0].split())[-120:]
        for value in (f"v_{one['one']}", f"v_{one['two']}"):
            line = next((f.line for f in region.formulas if re.sub(r"[\s{}]", "", f.math) == value), region.line)
            found.append(Outcome("c", value, EXPECTED[value], line, written, in_words=True, loose=True))
    return found


def _weight(node: T.Node) -> str:
    """alpha_a or alpha_b, or "" for anything else."""
    if isinstance(node, T.Symbol) and node.base == "alpha" and node.index in (("a",), ("b",)):
        return f"alpha_{node.index[0]}"
    return ""


def _in_words(formula: Formula, scales: set[str], length: Length | None) -> list[Outcome]:
    """A weight, or a formula for it, of which words say what it is close to, case by case."""
    found: list[Outcome] = []
    head = _head(formula.math)
    at = 0
    while head and (one := VALUE_FOR.match(formula.after, at)) is not None:
        at = one.end()
        if NEGATED.search(one[0]):
            return []
        conditions = [condition_on_length(c, scales, length) for c in clauses(one["condition"]) if c.sides]
        if len(conditions) != 1 or not conditions[0]:
            return []
        written = f"{formula.source} {formula.after[:at].strip()}"
        found.append(Outcome(head, one["value"], conditions[0], formula.line, written))
    return found


def _head(math: str) -> str:
    try:
        return _weight(expression(math))
    except Unreadable:
        found = [clause for clause in clauses(math) if clause.sides]
        return _weight(found[0].sides[0]) if len(found) == 1 else ""
