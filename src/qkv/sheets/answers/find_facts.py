"""Questions whose goal is a statement itself: which of the statements the author makes, in formulas or in words."""

from __future__ import annotations

import re
from collections.abc import Collection

from qkv.sheets.answers.construction import names, renamed
from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.goal_check import decided
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import Said, claim_text, said
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Question
from qkv.sheets.statements import tree as T

EQUALITIES = ("=", "~")
SUMS_TO_ONE = re.compile(
    r"\b(?:sum\w*|add\w*|total\w*)\b[^.。;]{0,60}?(?:\b(?:one|unity)\b|\b1\b)|\bnormali[sz]\w+\b|(?:和|总和|相加|之和)[^.。;]{0,20}(?:1|一)|归一",
    re.I,
)
"""That weights sum to 1, in words."""


def decide_facts(question: Question, region: Region, weights: Collection[str] = ("alpha",)) -> Decided:
    """Every goal is stated by a formula, or one is and words state the others: "meets"; words alone stay words.

    Args:
        question: A question of the kind "facts".
        region: What the sheet says on its part.
        weights: The letters that may stand for weights.
    """
    if region.empty:
        return Decided(none_found(question))
    stated: dict[str, Said] = {}
    for one in said(list(region.formulas)):
        for goal in question.goal:
            if goal not in stated and _states(question, goal, one, weights):
                stated[goal] = one
    written = " ".join(region.words.split())[:160]
    left = [goal for goal in question.goal if goal not in stated]
    if stated and all(_in_words(question, goal, region) for goal in left):
        line = min(one.formula.line for one in stated.values())
        given = ", ".join(dict.fromkeys(one.formula.source for one in stated.values()))
        found = decided(question.given, question.let, question.goal)
        because = "what is asked for is stated, and true" if found.kind == "proved" else "what is asked for is stated"
        return Decided(GradedAnswer(question.part, question.asked, line, given, "meets", because, found.block))
    return Decided(
        GradedAnswer(question.part, question.asked, region.line, written, "prose", "words, which are not decided")
    )


def _states(question: Question, goal: str, one: Said, weights: Collection[str]) -> bool:
    """Whether a clause says what a goal says: the same letters, the same kind of relation, and true."""
    equality = "=" in goal and not re.search(r"[<>]", goal)
    wanted = {base for base, _ in names(re.sub(r"sum_\w+", "", goal))}
    sides, signs = one.clause.sides, one.clause.signs
    links = list(zip(sides, signs, sides[1:], strict=False))
    if len(signs) > 1 and set(signs) <= set(EQUALITIES):
        links.append((sides[0], "=", sides[-1]))
    unequal = set(signs) - set(EQUALITIES)
    if len(signs) > 1 and len(unequal) == 1 and unequal <= {">", ">="}:  # α_i = … > 0
        links.append((sides[0], unequal.pop(), sides[-1]))
    for left, sign, right in links:
        if sign == "in" and not equality and isinstance(right, T.Matrix) and right.rows and right.rows[0]:
            sign, right = ">=", right.rows[0][0]  # an interval, of which the lower end is asked for
        if (sign in EQUALITIES) != equality:
            continue
        texts = (claim_text(left), claim_text(right))
        if texts[0] is None or texts[1] is None or sign not in ("=", "~", "<", ">", "<=", ">="):
            continue
        statement = f"{texts[0]} {'=' if equality else sign} {texts[1]}"
        statement = renamed(statement, lambda base, index: f"alpha_{index}" if base in weights and index else None)
        found = {base for base, _ in names(re.sub(r"sum_(\w+|\{[^}]*\})(\^\w+)?", "", statement))}
        if found != wanted or ("sum_" in statement) != ("sum_" in goal):
            continue
        if decided(question.given, question.let, (statement,)).kind == "proved":
            return True
    return False


def _in_words(question: Question, goal: str, region: Region) -> bool:
    """Whether words state a goal: a sum by the words for sums, others by those of the question."""
    low = region.words.lower()
    if goal.startswith("sum_"):
        return bool(SUMS_TO_ONE.search(low))
    return any(all(word in low for word in words) for words in question.words)
