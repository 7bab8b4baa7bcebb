"""answers_of: for each question of a problem the author's answer, found in the sheet and put to its goal."""

from __future__ import annotations

import re
from dataclasses import replace
from time import process_time

from qkv.sheets.answers.construction import Length, Outcome, names
from qkv.sheets.answers.decide import decide_answer
from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.find_conditions import decide_condition
from qkv.sheets.answers.find_constructions import (
    calls_keys_values,
    find_constructions,
    says_as_before,
    says_columns,
    says_rows,
    says_scaled,
    transposed_basis,
    writes_basis,
)
from qkv.sheets.answers.find_facts import decide_facts
from qkv.sheets.answers.find_outcomes import find_outputs, find_samples, length_letter
from qkv.sheets.answers.letters import put_in
from qkv.sheets.answers.possibility import TOKENS, decide_possibility
from qkv.sheets.answers.regions import Region, regions_of
from qkv.sheets.answers.weight_outcomes import find_either, find_weights
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import Problem, Question
from qkv.sheets.reading.sheet import Sheet

VECTORS = {"v": ("v",), "u": TOKENS}
"""Families in which the value of an output may be written, by the family of the problem."""


STATED_ITEMS = re.compile(r"(?<![A-Za-z_\\])n\s*=\s*(\d{1,9})(?![\d.])")
SECONDS_PER_SHEET = 8.0  # of processor time
MAX_REASON_LENGTH = 300  # characters


def answers_of(sheet: Sheet, problem: Problem) -> tuple[GradedAnswer, ...]:
    """The answers to all questions of a problem, in its order.

    Args:
        sheet: The sheet as it was read.
        problem: The edition that it answers.
    """
    regions = regions_of(sheet, problem)
    length = length_letter(f for f in sheet.formulas if not f.own_text) or length_letter(sheet.formulas)
    context: dict[str, Decided] = {}
    found: list[GradedAnswer] = []
    start = process_time()
    for question in problem.questions:
        region = regions.get(question.part, Region())
        if process_time() - start > SECONDS_PER_SHEET:
            because = "the time for one sheet was used up"
            found.append(GradedAnswer(question.part, question.asked, region.line, "", "not_read", because))
            continue
        try:
            decided = _answer(question, region, problem, context, length)
        except Exception as why:  # a defect must not end the reading of the sheet
            because = f"the checker failed on it, which is a bug ({type(why).__name__}: {why})"[:MAX_REASON_LENGTH]
            decided = Decided(GradedAnswer(question.part, question.asked, region.line, "", "not_read", because))
        if question.kind == "construction" or question.part not in context:
            context[question.part] = decided
        found += _other_offers(question, region, problem, decided)
        found.append(decided.answer)
    return tuple(found)


def _answer(
    question: Question, region: Region, problem: Problem, context: dict[str, Decided], length: Length | None
) -> Decided:
    """The answer to one question, by its kind."""
    if question.kind == "construction":
        return _construction(question, region, problem, context)
    if question.kind == "condition":
        return decide_condition(question, region, problem)
    if question.kind == "facts":
        return decide_facts(question, region, problem.letters_for("weights") or ("alpha",))
    if question.kind == "output":
        hole = question.holes[0]
        family = "u" if hole != "c" else "v"
        outcomes = [_for_item(question, o) for o in find_outputs(hole, region, VECTORS[family])]
        return _or_words(question, region, decide_answer(question, None, context, problem, outcomes))
    if question.kind == "samples":
        holes = [hole for hole, _ in question.default]
        scales = _scales(question, problem, context)
        outcomes = find_samples(region, scales, length, holes)
        if len(holes) == 1:
            outcomes += find_weights(region, scales, length)
            outcomes += find_either(region) if not outcomes else []
        return _or_words(question, region, decide_answer(question, None, context, problem, outcomes))
    if question.kind == "possibility":
        return decide_possibility(question, region, problem) or _words(question, region)
    return _words(question, region)


def _construction(question: Question, region: Region, problem: Problem, context: dict[str, Decided]) -> Decided:
    """The last construction; if that misses and an earlier one of the same part does not, both are shown."""
    found = find_constructions(question, region, problem)
    if not found and says_as_before(region):
        earlier = next((d.construction for d in reversed(context.values()) if d.construction is not None), None)
        if earlier is not None and tuple(h for h, _ in earlier.values) == question.holes:
            found = [replace(earlier, line=region.line, written=" ".join(region.words.split())[:120])]
    if not found and not calls_keys_values(region):
        found = find_constructions(question, region, problem, values=True)
    if not found:
        return _words(question, region)
    decided = decide_answer(question, found[-1], context, problem)
    stated = STATED_ITEMS.search(region.words)
    if decided.for_items and stated is not None and int(stated[1]) > decided.for_items:
        because = f"{decided.answer.because}; the sheet states n = {stated[1]}"
        return replace(decided, answer=replace(decided.answer, verdict="not_read", because=because))
    if decided.answer.verdict != "misses":
        return decided
    if decided.lacks_scale and says_scaled(region):
        because = (
            f"{decided.answer.because}; the words beside it speak of a large number, which the formula does not have"
        )
        return replace(decided, answer=replace(decided.answer, verdict="not_read", because=because))
    other_way = transposed_basis(found[-1]) if not writes_basis(region) else None
    if other_way is not None and (says_rows(region) or not says_columns(region)):
        tried = decide_answer(question, other_way, context, problem)
        if tried.answer.verdict == "meets":
            because = f"right if the rows of A are the basis, wrong if its columns are: {decided.answer.because}"
            if says_rows(region):
                return tried
            return replace(tried, answer=replace(tried.answer, verdict="not_read", because=because))
    for other in found[:-1]:
        tried = decide_answer(question, other, context, problem)
        if tried.answer.verdict in ("meets", "limit"):
            first = f"line {other.line} ({tried.answer.because})"
            because = f"two readings: {first}; line {found[-1].line} ({decided.answer.because})"
            return replace(tried, answer=replace(decided.answer, verdict="not_read", because=because))
    return decided


OFFERS = re.compile(
    r"\b(?:for example|for instance|alternative\w*|another|either|options?|e\.g\.|or|also)\b|或|也可以|另一种|例如",
    re.I,
)


def _other_offers(question: Question, region: Region, problem: Problem, decided: Decided) -> list[GradedAnswer]:
    """Earlier constructions that the author offers beside the last one, each of which meets the goal too."""
    single = sum(other.part == question.part for other in problem.questions) == 1
    if question.kind != "construction" or not single or decided.answer.verdict not in ("meets", "limit"):
        return []
    if not OFFERS.search(region.words):
        return []
    found: dict[object, GradedAnswer] = {}
    last = decided.construction
    for other in find_constructions(question, region, problem)[:-1][:2]:
        if last is None or other.values == last.values:
            continue
        tried = decide_answer(question, other, None, problem)
        if tried.answer.verdict in ("meets", "limit"):
            found.setdefault(other.values, tried.answer)
    return list(found.values())


def _scales(question: Question, problem: Problem, context: dict[str, Decided]) -> list[str]:
    """The author's letters for the scales of the construction that a question takes over."""
    earlier = context.get(question.uses)
    if earlier is None or earlier.construction is None:
        return []
    put = put_in(replace(question, let=()), earlier.construction, problem)
    return [put.letters.get(scale, scale) for scale in put.scales] if put is not None else []


def _for_item(question: Question, outcome: Outcome) -> Outcome:
    """An output of the item that the author calls by another letter: v_i for v_j."""
    letters = {index for base, index in names(outcome.value) if base == "v"}
    if (
        question.item
        and len(letters) == 1
        and re.fullmatch("[a-z]", next(iter(letters)))
        and "sum_" not in outcome.value
    ):
        return replace(outcome, value=outcome.value.replace(f"v_{next(iter(letters))}", f"v_{question.item}"))
    return outcome


def _or_words(question: Question, region: Region, decided: Decided) -> Decided:
    """An answer that has no formula to decide, as words if there are any."""
    if decided.answer.verdict == "none" or (decided.answer.verdict == "not_read" and not decided.answer.claim):
        return _words(question, region)
    return decided


def _words(question: Question, region: Region) -> Decided:
    words = " ".join(region.words.split())
    if region.formulas and question.kind == "construction":
        holes = ", ".join(question.holes)
        because = f"there are formulas, and none that gives {holes} in the vectors of the problem"
        return Decided(GradedAnswer(question.part, question.asked, region.line, words[:160], "not_read", because))
    if (
        not region.formulas
        and sum(char.isalpha() or "\u4e00" <= char <= "\u9fff" for char in re.sub(r"\$[^$]*\$", "", words)) < 12
    ):
        return Decided(none_found(question))
    because = "words, which are not decided"
    return Decided(GradedAnswer(question.part, question.asked, region.line, words[:160], "prose", because))
