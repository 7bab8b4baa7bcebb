"""Questions about samples: what the author says that the output does as one number varies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qkv.sheets.answers.construction import (
    OTHER_GAMMA,
    Construction,
    Outcome,
    declared_names,
    is_expression,
    joined,
    names,
    renamed,
)
from qkv.sheets.answers.decided import Decided, none_found
from qkv.sheets.answers.goal_check import Found, decided, in_limit
from qkv.sheets.answers.letters import Put, logarithms_as_scales, put_in
from qkv.sheets.feedback import GradedAnswer
from qkv.sheets.problems.problem import HOLE, Problem, Question

PROBES = ("2", "3/2", "1/2", "3/4")  # values of the number that varies at which a statement is tried
OUTPUTS = re.compile(r"c(?:_[12])?|alpha_(?:[ab]|\{[12],[ab]\})")


def decide_samples(
    question: Question, outcomes: Sequence[Outcome], context: Mapping[str, Decided], problem: Problem | None
) -> Decided:
    """Every outcome that the author states, with the construction of the part that the question takes over.

    All of them hold: "limit" or "meets". One fails: "misses", which follows from the earlier part if that misses too.
    """
    if not outcomes:
        return Decided(none_found(question))
    earlier = context.get(question.uses)
    if earlier is not None and earlier.example:
        return Decided(_after_example(question, outcomes, earlier))
    construction = earlier.construction if earlier is not None else None
    known = construction is not None and earlier is not None and earlier.answer.verdict != "not_read"
    if construction is None or not known:
        construction = Construction(question.default)
    put = put_in(replace(question, let=()), construction, problem)
    if put is None:
        return Decided(_answer(question, outcomes[0], "not_read", "the construction of the earlier part was not read"))
    tried = []
    for outcome in outcomes:
        own = put_in(replace(question, let=()), Construction(outcome.queries), problem) if outcome.queries else put
        if own is not None:
            tried.append((outcome, _tried(question, own, outcome)))
    if not tried:
        return Decided(_answer(question, outcomes[0], "not_read", "the queries of that sentence were not read"))
    failed = [(outcome, found) for outcome, found in tried if found.kind == "refuted" and not outcome.loose]
    tried = [(outcome, found) for outcome, found in tried if found.kind != "refuted" or not outcome.loose]
    if not tried:
        return Decided(none_found(question))
    held = [(outcome, found) for outcome, found in tried if found.kind in ("proved", "conditional")]
    if failed and _about_another_part(question, [o for o, _ in held], [o for o, _ in failed]):
        said = f"line {held[0][0].line} holds, line {failed[0][0].line} does not: {put.said(failed[0][1].because)}"
        return Decided(_answer(question, held[0][0], "not_read", f"two statements: {said}", failed[0][1]))
    if failed and _is_tendency(earlier, outcomes, [outcome for outcome, _ in failed]):
        return Decided(none_found(question))
    if failed:
        return Decided(_missed(question, put, earlier, failed[0]))
    if not held:
        return Decided(_answer(question, outcomes[0], "not_read", f"not decided: {tried[0][1].because}", tried[0][1]))
    said = "; ".join(f"{_told(put, outcome, found)}{_when(put, outcome.condition)}" for outcome, found in held[:3])
    scales = ", ".join(f"{put.said(scale)} → ∞" for scale in put.scales)
    because = f"{said} as {scales}" if scales else said
    return Decided(_answer(question, held[-1][0], "limit" if scales else "meets", because, held[-1][1]))


def _is_tendency(earlier: Decided | None, outcomes: Sequence[Outcome], failed: Sequence[Outcome]) -> bool:
    """Whether a query without a scale is said to move the output one way or the other, which it does."""
    unscaled = earlier is not None and earlier.answer.verdict == "misses" and earlier.lacks_scale
    return unscaled and any(outcome.loose for outcome in outcomes) and all("exp" in o.value for o in failed)


def _after_example(question: Question, outcomes: Sequence[Outcome], earlier: Decided) -> GradedAnswer:
    """Outcomes of a construction that fails for some choice of what is arbitrary: they fail for it too."""
    stated = [o for o in outcomes if not (o.loose or o.moves or o.queries) and re.search(r"v_[ab]", o.value)]
    line = earlier.answer.line
    if not stated:
        because = f"not decided: it rests on line {line}, which misses"
        return _answer(question, outcomes[0], "not_read", because)
    because = f"follows from line {line}: {earlier.example}"
    return replace(_answer(question, stated[0], "misses", because), follows_from=line)


def _told(put: Put, outcome: Outcome, found: Found) -> str:
    """What holds: the weights that are compared, or what the output approaches."""
    compared = outcome.compares and " > " in found.says.partition(" when ")[0]
    return put.said(found.says.partition(" when ")[0]) if compared else f"{outcome.output} → {put.said(outcome.value)}"


def _about_another_part(question: Question, held: list[Outcome], failed: list[Outcome]) -> bool:
    """Whether what fails may be said of another part: the expected holds, and what fails has no condition."""
    expected = {_plain(value) for value, _ in question.outcomes}
    elsewhere = {_plain(value) for value in ("v_a", "v_b", "(v_a + v_b)/2", "1/2*(v_a + v_b)")} - expected
    return any(_plain(o.value) in expected for o in held) and all(
        _plain(o.value) in elsewhere and not o.condition and not o.moves for o in failed
    )


def _plain(value: str) -> str:
    return re.sub(r"[\s*()]", "", value)


def _when(put: Put, condition: str) -> str:
    return f" when {put.said(condition)}" if condition else ""


def _missed(question: Question, put: Put, earlier: Decided | None, failed: tuple[Outcome, Found]) -> GradedAnswer:
    outcome, found = failed
    if outcome.moves:
        because = (
            f"with {put.written()} the weights of {outcome.output} do not vary in the limit: {put.said(found.because)}"
        )
        return _answer(question, outcome, "misses", because, found)
    value = put.said(outcome.value)
    because = f"with {put.written()}, {outcome.output} does not approach {value}{_when(put, outcome.condition)}: "
    because += put.said(found.because)
    answer = _answer(question, outcome, "misses", because, found)
    if earlier is not None and earlier.answer.verdict == "misses":
        line = earlier.answer.line
        because = f"follows from line {line}: {put.written()} has no large scale" if earlier.lacks_scale else because
        return replace(answer, because=because, follows_from=line)
    return answer


def _answer(
    question: Question, outcome: Outcome, verdict: str, because: str, found: Found | None = None
) -> GradedAnswer:
    block = found.block if found is not None else ""
    return GradedAnswer(question.part, question.asked, outcome.line, outcome.written, verdict, because, block)  # type: ignore[arg-type]


def _tried(question: Question, put: Put, outcome: Outcome) -> Found:
    """One outcome, under the condition that the author gives or else the one that is expected for its value."""
    if not OUTPUTS.fullmatch(outcome.output):
        return Found("unknown", f"{outcome.output} is not an output", "")
    lets = (*question.let, *(f"{hole} = {value}" for hole, value in put.values))
    value = in_problem_letters(question, put, outcome.value)
    if value is None:
        return Found("unknown", "the value could not be read", "")
    unknown = _unknown_letters(question, put, value)
    if unknown and not outcome.moves:
        return _with_readings(question, put, outcome, unknown)
    if outcome.moves:
        return _movement(question, put, lets, outcome.output, value)
    condition = outcome.condition or _expected(question, value)
    if outcome.condition.startswith("as "):  # a limit of the number that varies
        goal = f"{outcome.output} -> {value} as " + ", ".join(
            [*(f"{scale} -> oo" for scale in put.scales), outcome.condition[3:]]
        )
        return decided(question.given, lets, (goal,))
    plain = logarithms_as_scales(put)
    if plain is not None and len(put.scales) > 1:  # limits through several logarithms are not decided
        put, lets = plain, (*question.let, *(f"{hole} = {one}" for hole, one in plain.values))
    goal = question.goal[0].replace(HOLE, value)
    goal = in_limit(f"{outcome.output}{goal[goal.index(' ') :]}", put.scales)
    found = decided(question.given, lets, (f"{goal} when {condition}" if condition else goal,))
    if found.kind == "proved" or not question.varies:
        return found
    if outcome.compares:
        return _nearer(question, put, lets, outcome, value) or found
    expected = _expected(question, value)
    if outcome.in_words and expected and decided(question.given, lets, (f"{goal} when {expected}",)).kind == "proved":
        because = f"as it is worded it fails when {condition}, and holds when {expected}"
        return Found("unknown", because, found.block, found.says)
    if found.kind == "refuted":
        return found
    for probe in PROBES:  # a number at which it surely fails
        if condition and not _admits(condition, question.varies, probe):
            continue
        given = tuple(_at(one, question.varies, probe) for one in question.given)
        at = tuple(_with_number(one, question.varies, probe) for one in lets)
        there = _with_number(goal, question.varies, probe)
        tried = decided(given, at, (there,))
        if tried.kind == "refuted":
            return replace(tried, because=f"at {question.varies} = {probe}, {tried.because}")
    return found


def _nearer(question: Question, put: Put, lets: tuple[str, ...], outcome: Outcome, value: str) -> Found | None:
    """That an output leans to one of the two values: its weight is the larger one; None for another value."""
    pair = {"v_a": ("alpha_a", "alpha_b"), "v_b": ("alpha_b", "alpha_a")}.get(_plain(value))
    condition = outcome.condition or _expected(question, value)
    if pair is None or outcome.output != "c" or not condition:
        return None
    given = (*question.given, *(f"{scale} > 0" for scale in put.scales))
    found = decided(given, lets, (f"{pair[0]} > {pair[1]} when {condition}",))
    return found if found.kind == "proved" else None


def _unknown_letters(question: Question, put: Put, value: str) -> list[str]:
    """Letters of a value that nothing says the meaning of."""
    known = {*declared_names(question.given, question.let), *put.scales, "c", "alpha", "v", "n", question.varies}
    found = [joined(base, index) for base, index in names(value) if base not in known]
    return [one for one in found if one not in known]


def _with_readings(question: Question, put: Put, outcome: Outcome, unknown: list[str]) -> Found:
    """A value with letters of unknown meaning: it fails only if it does with each of their likely meanings."""
    own = [put.letters.get(scale, scale) for scale in put.scales]
    tried = []
    for meaning in ("1", question.varies, *own[:1]):

        def meant(base: str, index: str, meaning: str = meaning) -> str | None:
            return meaning if joined(base, index) in unknown else None

        value = renamed(outcome.value, meant)
        tried.append(_tried(question, put, replace(outcome, value=value)))
        if tried[-1].kind == "proved":
            return tried[-1]
    if all(found.kind == "refuted" for found in tried):
        return tried[0]
    because = f"what {', '.join(unknown)} stands for is not said"
    return replace(tried[0], kind="unknown", because=because)


def _with_number(expression: str, name: str, number: str) -> str:
    """An expression with a number in the place of a letter."""
    return renamed(expression, lambda base, index: f"({number})" if joined(base, index) == name else None)


def _movement(question: Question, put: Put, lets: tuple[str, ...], output: str, value: str) -> Found:
    """That an output varies with the number: refuted if it approaches one value for all of them."""
    goal = in_limit(f"{output} -> {value} as scale -> oo", put.scales)
    found = decided(question.given, lets, (goal,))
    if found.kind == "proved":
        return replace(found, kind="refuted", because=f"{output} -> {value} for every {question.varies}")
    return replace(found, kind="proved" if found.kind == "refuted" else "unknown")


def in_problem_letters(question: Question, put: Put, value: str) -> str | None:
    """An author's value with the letters of the block: scales as in the construction, lengths of other keys as 1."""
    declared = declared_names(question.given, question.let)
    back = {own: name for name, own in put.letters.items()}
    known = {*declared, *put.scales, "c", "alpha", "v", "c_1", "c_2"}

    def one(base: str, index: str) -> str | None:
        own = "gamma" if base == OTHER_GAMMA else joined(base, index)
        if own == question.varies and base != OTHER_GAMMA:
            return None
        if own in back and back[own] in put.scales:
            return back[own]
        if base in known or own in known:
            return None
        return None

    text = renamed(value, one)
    return text if is_expression(text) else None


def _expected(question: Question, value: str) -> str:
    """The condition under which the problem expects a value."""
    for output, condition in question.outcomes:
        if _plain(output) == _plain(value):
            return condition
    return ""


def _admits(condition: str, name: str, probe: str) -> bool:
    """Whether a value of the number meets a condition such as gamma > 1; conditions of another form admit none."""
    found = re.fullmatch(rf"\s*{re.escape(name)}\s*(<=|>=|<|>|=)\s*([\d./]+)\s*", condition)
    if found is None:
        return False
    left, right = _value(probe), _value(found[2])
    return {
        "<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right, "=": left == right
    }[found[1]]  # fmt: skip


def _value(text: str) -> float:
    top, _, bottom = text.partition("/")
    try:
        return float(top) / float(bottom or 1)
    except (ValueError, ZeroDivisionError):
        return float("nan")


def _at(given: str, name: str, probe: str) -> str:
    """The givens without the range of a number that is fixed."""
    return re.sub(rf",?\s*{re.escape(name)}\s*(?:real|[<>]=?\s*[\d./]+)", "", given)
