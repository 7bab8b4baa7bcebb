"""Whether tokens can be chosen so that an output approximates something: a reasoned "no", a wrong "yes"."""

from __future__ import annotations

import re
from dataclasses import replace

from qkv.sheets.answers.construction import declared_names, joined, names, renamed
from qkv.sheets.answers.decide import decide_answer
from qkv.sheets.answers.decided import Decided
from qkv.sheets.answers.find_outcomes import find_outputs
from qkv.sheets.answers.goal_check import Found, decided
from qkv.sheets.answers.letters import families
from qkv.sheets.answers.regions import Region
from qkv.sheets.answers.tree_text import claim_text, said
from qkv.sheets.answers.wording import people_write
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import HOLE, Problem, Question
from qkv.sheets.statements import tree as T
from qkv.sheets.statements.changes import changes_in, sentence

TOKENS = ("u", "mu", "x", "v")
"""Families in which the output of a token may be written."""
YES = re.compile(
    r"\byes\b|\b(?:it|this|that) is (?:indeed |also )?possible\b|\bwe can (?:do|reach|get|achieve|obtain|make)\b|"
    r"\bcan be (?:done|reached|achieved|obtained)\b|(?:^|[。；.;\s])(?:可以|能够|能|可能)\s*[，。,.：:；!！]|"
    r"可以做到|可以实现|是可能的|可以得到",
    re.I,
)
NO = re.compile(
    r"\bno\b|\bnot\b|n't\b|\bimpossible|\bcannot\b|\bnever\b|\bneither\b|\bnor\b|\bunable\b|\bout of reach\b|"
    r"\bfails?\b|\bunfortunately\b|\bonly if\b|\bunless\b|不能|不可能|无法|不可以|不行|做不到|"
    r"没有|不会|办不到|并非|不是|除非|只有",
    re.I,
)


def decide_possibility(question: Question, region: Region, problem: Problem) -> Decided | None:
    """What the author says of an output with other tokens, decided; None where only words tell.

    A right output meets what is asked, and so does "no" with right scores of the tokens; "yes" misses it if none of the
    choices that the problem names gives the value. "No" for another reason stays words.
    """
    token, output = question.holes[0], question.holes[-1]
    chosen: list[tuple[int, str]] = []
    for one in said(list(region.formulas)):
        head = one.clause.sides[0]
        if isinstance(head, T.Symbol) and joined(head.base, "".join(head.index)) == token:
            texts = [claim_text(side) for side in one.clause.sides[1:]]
            chosen += [(one.formula.line, text) for text in texts if text is not None and "+" in text]
    chosen += _told_tokens(region, token, problem, question.part)
    words = re.sub(r"\$[^$]*\$", " $ ", region.words)
    if YES.search(words) and not NO.search(words):
        return _affirmed(question, region)
    stated = find_outputs(output, region, TOKENS)
    for line, text in chosen:
        for outcome in stated:
            if outcome.line < line:
                continue
            tried = decide_answer(question, None, {}, problem, [replace(outcome, condition=f"{token} = {text}")])
            if tried.answer.verdict in ("meets", "limit"):
                return tried
    if not NO.search(words) or YES.search(words):
        return None
    before = f"{token} = {_given_value(problem, question.part, token)}"
    wrong = [
        o
        for o in stated
        if decide_answer(question, None, {}, problem, [replace(o, condition=before)]).answer.verdict != "limit"
    ]
    return None if wrong else _by_scores(question, region, chosen, problem)


def _affirmed(question: Question, region: Region) -> Decided | None:
    """A "yes" that is wrong: no choice that the problem names gives the value."""
    found = [_put(question, value, choice) for value, choice in question.outcomes]
    if not found or any(one.kind != "refuted" for one in found):
        return None
    value, choice = question.outcomes[0]
    because = f"with {people_write(choice)}, {question.holes[-1]} does not approach {people_write(value)}: "
    because += people_write(found[0].because)
    written = " ".join(region.words.split())[:160]
    answer = GradedAnswer(question.part, question.asked, region.line, written, "misses", because, found[0].block)
    return Decided(answer)


def _put(question: Question, value: str, choice: str) -> Found:
    goals = tuple(goal.replace(HOLE, value) for goal in question.goal)
    return decided(question.given, (*question.let, choice), goals)


def _by_scores(question: Question, region: Region, chosen: list[tuple[int, str]], problem: Problem) -> Decided | None:
    """A "no" with the scores of the changed token, the largest of which is its own."""
    token = question.holes[0]
    change = families(declared_names(question.given, question.let), problem)

    def own(text: str) -> str:
        return renamed(text, lambda base, index: joined(change(base, index) or base, index))

    for line, text in chosen:
        lets = (*question.let, f"{token} = {own(text)}")
        after = [one for one in said(list(region.formulas)) if one.formula.line >= line]
        for one in after:
            for left, sign, right in zip(one.clause.sides, one.clause.signs, one.clause.sides[1:], strict=False):
                sides = [claim_text(left), claim_text(right)]
                if sign not in ("=", ">") or sides[0] is None or sides[1] is None:
                    continue
                if {base for base, _ in names(sides[0])} != {"x"} or f"{token}'*{token}" not in sides[0]:
                    continue
                found = decided(question.given, lets, (f"{own(sides[0])} {sign} {own(sides[1])}",))
                if found.kind == "proved":
                    because = (
                        f"with {token} = {people_write(text)} its own score is the largest: {people_write(found.says)}"
                    )
                    answer = GradedAnswer(
                        question.part,
                        question.asked,
                        one.formula.line,
                        one.formula.source,
                        "limit",
                        because,
                        found.block,
                    )
                    return Decided(answer)
    return None


def _told_tokens(region: Region, token: str, problem: Problem, part: str) -> list[tuple[int, str]]:
    """What a token becomes by changes that are told in words, with their lines."""
    given = _given_value(problem, part, token)
    found: dict[tuple[int, str], None] = {}
    for formula in region.formulas:
        for change in changes_in(sentence(formula), token):
            value = claim_text(change.value)
            if change.token == token and value is not None and given:
                found[formula.line, f"{given} + {value}" if change.added else value] = None
    return list(found)


def _given_value(problem: Problem, part: str, token: str) -> str:
    """What the problem says that a token is; empty if it does not say."""
    here = problem.part(part)
    lets = [one for let in (here.let if here is not None else ()) for one in re.split(r",\s*(?=\w+ =)", let)]
    return next((one.partition("=")[2].strip() for one in lets if one.split("=")[0].strip() == token), "")
