"""decide_answer: the author's construction put to the goal of a question, by qkv.claims."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qkv.sheets.answers.construction import Construction, Outcome, declared_names, is_expression, joined, names, renamed
from qkv.sheets.answers.counterexamples import fails_for_some_values, uses_values, with_small_basis
from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.goal_check import SHOWN_ITEMS, Found, decided, in_limit, shown
from qkv.sheets.answers.letters import FRESH, Put, families, logarithms_as_scales, numbers_as_scales, put_in
from qkv.sheets.answers.samples import decide_samples
from qkv.sheets.answers.wording import number_text, people_write
from qkv.sheets.closeness import CLOSE
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import HOLE, SCALE, Problem, Question


def decide_answer(
    question: Question,
    construction: Construction | None,
    context: Mapping[str, Decided] | None = None,
    problem: Problem | None = None,
    outcomes: Sequence[Outcome] = (),
) -> Decided:
    """Put a construction, or what the author says of an output, to the goal of its question.

    Args:
        question: What is asked.
        construction: The author's values for the holes, or None if there are none.
        context: The decided answers of earlier parts, by part.
        problem: The problem, for the letters that usually stand for keys and means.
        outcomes: For questions about an output: what the author says of it.

    Returns:
        The answer with a verdict: "meets", "limit", "misses", "none" if there is nothing, or "not_read" where it cannot
        be decided.

    Example:
        >>> from qkv.sheets.problems import load_problem
        >>> question = load_problem("attention-2021").part("b").questions[0]
        >>> decide_answer(question, Construction((("q", "lambda*(k_a + k_b)"),))).answer.verdict
        'limit'
        >>> print(decide_answer(question, Construction((("q", "k_a + k_b"),))).answer.because)
        q = k_a + k_b has no large scale: α_a = e/(n − 2 + 2e), which is 0.202 at n = 10; multiply by t ≫ 0
    """
    if question.kind == "samples":
        return decide_samples(question, outcomes, context or {}, problem)
    if question.kind in ("output", "possibility"):
        return decide_output(question, outcomes, problem)
    if construction is None:
        return Decided(none_found(question))
    if question.kind != "construction":
        return Decided(_answer(question, construction, "not_read", "this kind of question has no construction"))
    return _decide_construction(question, construction, problem)


def _answer(
    question: Question, given: Construction | Outcome, verdict: str, because: str, found: Found | None = None
) -> GradedAnswer:
    return GradedAnswer(
        question.part,
        question.asked,
        given.line,
        given.written or ", ".join(f"{h} = {v}" for h, v in getattr(given, "values", ())),
        verdict,  # type: ignore[arg-type]
        because,
        found.block if found is not None else "",
    )


def _decide_construction(question: Question, construction: Construction, problem: Problem | None) -> Decided:
    """The goal with the author's values; if it fails, other fair readings, then what is missing."""
    if uses_values(question, construction, problem):
        return _of_values(question, construction, problem)
    put = put_in(question, construction, problem)
    if put is None:
        because = "it is not an expression that the checker can read"
        return Decided(_answer(question, construction, "not_read", because), construction)
    given, let = _declarations(question, put)
    goals = tuple(in_limit(goal, put.scales) for goal in question.goal)
    found = decided(given, let, goals)
    limit = _limit_words(goals)
    if construction.supposed:
        return _supposed(question, construction, put, found)
    small = with_small_basis(construction) if found.kind == "unknown" and "M" in question.holes else None
    if small is not None:
        return _decide_construction(question, small, problem)
    if found.kind in ("proved", "conditional"):
        verdict = "limit" if limit or found.kind == "conditional" else "meets"
        because = f"{put.written()} meets the goal{put.said(limit)}"
        if found.kind == "conditional":
            because += f"; {found.because}"
        return Decided(_answer(question, construction, verdict, because, found), construction)
    larger = logarithms_as_scales(put) if found.kind == "unknown" else None
    if larger is not None:
        again = decided(
            *_declarations(question, larger), tuple(in_limit(goal, larger.scales) for goal in question.goal)
        )
        found = again if again.kind == "proved" else found
        if again.kind == "proved":
            because = f"{put.written()} meets the goal{put.said(limit)}"
            return Decided(_answer(question, construction, "limit", because, found), construction)
    numbers = numbers_as_scales(put) if found.kind == "unknown" and not put.scales and question.show else None
    if numbers is not None:
        again = decided(
            *_declarations(question, numbers), tuple(in_limit(goal, numbers.scales) for goal in question.goal)
        )
        if again.kind == "proved":
            because = f"{put.written()} meets the goal nearly: its numbers are large"
            return Decided(_answer(question, construction, "limit", because, again), construction)
    if found.kind == "unknown":
        return Decided(
            _answer(question, construction, "not_read", f"not decided: {found.because}", found), construction
        )
    return _missed(question, construction, put, found)


def _of_values(question: Question, construction: Construction, problem: Problem | None) -> Decided:
    """Queries that are built of values: they fail for some, or nothing is said."""
    example = fails_for_some_values(question, construction, problem)
    if example is None:
        because = "values stand where keys are asked for, and it was not decided what follows"
        return Decided(_answer(question, construction, "not_read", because), construction)
    answer = _answer(question, construction, "misses", example.words, example.found)
    return Decided(answer, construction, example=example.words)


def _supposed(question: Question, construction: Construction, put: Put, found: Found) -> Decided:
    """A construction with numbers put for what may be any: it fails with them, or nothing is said."""
    if found.kind != "refuted":
        because = f"not decided: {construction.supposed} was tried"
        return Decided(_answer(question, construction, "not_read", because, found), construction)
    because = f"with {construction.supposed}, which is allowed, {put.said(found.says)} fails: {put.said(found.because)}"
    return Decided(_answer(question, construction, "misses", because, found), construction, example=because)


def _missed(question: Question, construction: Construction, put: Put, found: Found) -> Decided:
    """A goal that is refuted as it was read: other fair readings, then what would mend it."""
    given, let = _declarations(question, put)
    if put.scales:
        small = tuple(in_limit(goal, put.scales, "0") for goal in question.goal)
        positive = tuple(f"{scale} > 0" for scale in put.scales)
        other = decided((*given, *positive), let, small)
        if other.kind == "proved":
            because = f"{put.written()} meets the goal{put.said(_limit_words(small))}"
            return Decided(_answer(question, construction, "limit", because, other), construction)
    if len(put.scales) > 1:
        one = replace(
            put, values=tuple((h, _with_one_scale(v, put.scales)) for h, v in put.values), scales=put.scales[:1]
        )
        goals = tuple(in_limit(goal, one.scales) for goal in question.goal)
        other = decided(*_declarations(question, one), goals)
        if other.kind == "proved":
            equal = " = ".join(put.said(scale) for scale in put.scales)
            because = f"right if {equal}, wrong if they grow apart: {put.said(found.because)}"
            verdict = "limit" if construction.same else "not_read"
            return Decided(_answer(question, construction, verdict, because, other), construction)
    if put.sizes and not put.scales and question.show:
        vanishing = _vanishing(question)
        limits = ", ".join([*(f"{size} -> 0" for size in vanishing), *(f"{size} -> oo" for size in put.sizes)])
        other = decided(given, let, (f"{question.show[0]} -> {question.show[1]} as {limits}",))
        if other.kind != "refuted":
            sizes = " and ".join(put.sizes)
            because = f"right only if {sizes} is taken to be large; otherwise {put.said(found.because)}"
            return Decided(_answer(question, construction, "not_read", because, found), construction)
    if not put.scales and question.show:
        number = shown(given, let, question.show[0], _vanishing(question))
        wanted = _number(question.show[1])
        if number is not None and wanted is not None and abs(number.value - wanted) < CLOSE:
            because = (
                f"{put.written()} is near the goal: {put.said(question.show[0])} = {number_text(number.value)} at "
                f"n = {SHOWN_ITEMS}; more items need a larger number"
            )
            return Decided(
                _answer(question, construction, "limit", because, found), construction, for_items=SHOWN_ITEMS
            )
        scaled = _scaled(question, put)
        if scaled is not None:
            because = f"{put.written()} has no large scale"
            if number is not None:
                formula = f"{put.said(question.show[0])} = {put.said(number.formula)}"
                because += f": {formula}, which is {number_text(number.value)} at n = {SHOWN_ITEMS}"
            because += "; multiply by t ≫ 0"
            return Decided(_answer(question, construction, "misses", because, found), construction, lacks_scale=True)
    because = f"with {put.written()}, {put.said(found.says)} fails: {put.said(found.because)}"
    return Decided(_answer(question, construction, "misses", because, found), construction)


def _declarations(question: Question, put: Put) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The givens and definitions of a block; numbers that no limit names are declared as real."""
    limited = any(SCALE in goal for goal in question.goal)
    extra = () if limited else tuple(f"{scale} real" for scale in put.scales)
    extra += ("d >= 1",) if "d" in put.sizes else ()
    lets = (*question.let, *(f"{hole} = {value}" for hole, value in put.values))
    return (*question.given, *extra), lets


def _limit_words(goals: Sequence[str]) -> str:
    """The limits of the goals as text, " as t -> oo"; empty without one."""
    limits: dict[str, None] = {}
    for goal in goals:
        found = re.search(r" as (.*?)(?: when | for |$)", goal)
        if found:
            limits.update(dict.fromkeys(one.strip() for one in found[1].split(",")))
    return " as " + ", ".join(limits) if limits else ""


def _vanishing(question: Question) -> tuple[str, ...]:
    """The sizes of noise that a goal lets go to 0."""
    found = {m for goal in question.goal for m in re.findall(r"(\w+) -> 0", goal)}
    return tuple(sorted(found))


def _with_one_scale(value: str, scales: Sequence[str]) -> str:
    return renamed(value, lambda base, index: scales[0] if joined(base, index) in scales else None)


def _scaled(question: Question, put: Put) -> Found | None:
    """The goal with every value multiplied by a large number, if that meets it."""
    taken = {base for _, value in put.values for base, _ in names(value)} | declared_names(question.given, question.let)
    scale = next((name for name in FRESH if name not in taken), "t")
    larger = replace(put, values=tuple((h, f"{scale}*({v})") for h, v in put.values), scales=(scale,))
    goals = tuple(in_limit(goal, larger.scales) for goal in question.goal)
    found = decided(*_declarations(question, larger), goals)
    return found if found.kind == "proved" else None


def _number(text: str) -> float | None:
    top, _, bottom = text.partition("/")
    try:
        return float(top) / float(bottom or 1)
    except (ValueError, ZeroDivisionError):
        return None


def decide_output(question: Question, outcomes: Sequence[Outcome], problem: Problem | None) -> Decided:
    """What an output approximates: the author's value in the place of the hole."""
    if not outcomes:
        return Decided(none_found(question))
    worst: Decided | None = None
    for outcome in outcomes:
        found = _output(question, outcome, problem)
        if found.answer.verdict in ("meets", "limit"):
            return found
        worst = worst or found
    assert worst is not None
    return worst


def _output(question: Question, outcome: Outcome, problem: Problem | None) -> Decided:
    declared = declared_names(question.given, question.let)
    change = families(declared, problem)
    letters: dict[str, str] = {}

    def one(base: str, index: str) -> str | None:
        family = change(base, index)
        if family is None:
            return None
        letters[family] = base
        return joined(family, index)

    values = [renamed(value, one) for value in outcome.value.split(" ; ")]
    if not all(is_expression(value) for value in values):
        because = "it is not an expression that the checker can read"
        return Decided(_answer(question, outcome, "not_read", because))
    let = question.let
    if outcome.condition:  # tokens that the author puts in
        let = (*let, renamed(outcome.condition, one))
    goals = tuple(goal.replace(HOLE, value) for goal in question.goal for value in values[-1:])
    found = decided(question.given, let, goals)
    limit = people_write(_limit_words(goals), letters)
    if found.kind in ("proved", "conditional"):
        verdict = "limit" if limit else "meets"
        because = f"{outcome.output} → {people_write(values[-1], letters)}{limit}"
        return Decided(_answer(question, outcome, verdict, because, found))
    if found.kind == "refuted":
        because = f"{outcome.output} does not approach {people_write(values[-1], letters)}: "
        because += people_write(found.because, letters)
        return Decided(_answer(question, outcome, "misses", because, found))
    if "beside a number" in found.because or "beside a vector" in found.because:
        because = f"{outcome.output} is a vector, and {people_write(values[-1], letters)} is not: {found.because}"
        return Decided(_answer(question, outcome, "misses", because, found))
    return Decided(_answer(question, outcome, "not_read", f"not decided: {found.because}", found))
