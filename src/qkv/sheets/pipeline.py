"""grade: the text of an answer sheet to feedback on its statements and its answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from qkv.errors import QkvError, kind_of
from qkv.sheets.answers import answers_of
from qkv.sheets.feedback import Grade, GradedAnswer, Statement
from qkv.sheets.problems import Problem, best_fit, detect_edition, editions, is_own_text
from qkv.sheets.reading import Formula, Sheet, read_sheet
from qkv.sheets.statements.deciding import Budget
from qkv.sheets.statements.judge import judge

DEFAULT_PROBLEM = "attention"


def grade(
    text: str, problem: str | None = None, file: str = "", callback: Callable[[Grade], None] | None = None
) -> Grade:
    """Read an answer sheet as it stands and give feedback on it.

    Args:
        text: The sheet: LaTeX, Markdown, Typst, a notebook as JSON, or plain text.
        problem: The problem that it answers: an id such as "attention-2021", a family such as "attention" of which the
            edition is detected, or the path of a problem file; without one, "attention".
        file: The name of the sheet's file, whose ending tells its form.
        callback: Called with what is known so far: first the problem, then also the answers.

    Returns:
        The statements of the sheet with their verdicts, and the answers put to the questions of the problem.

    Raises:
        QkvError: The text is not a string, or there is no such problem. Whatever is wrong with the sheet becomes part
            of the feedback.

    Example:
        >>> from qkv.sheets import grade
        >>> found = grade("(b) Let $q = t(k_a + k_b)$. Then $k_a^T q = t$ and $k_a^T q = 2t$.", "attention-2021")
        >>> [(s.formula, s.verdict) for s in found.statements]
        [('q = t(k_a + k_b)', 'choice'), ('k_a^T q = t', 'right'), ('k_a^T q = 2t', 'wrong')]
    """
    if not isinstance(text, str):
        raise QkvError("grading a sheet", f"the sheet is {kind_of(text)}", "Give its text as a string")
    candidates = editions(problem or DEFAULT_PROBLEM)
    sheet, numbered = _as_labelled(text, Path(file).name, candidates)
    chosen = detect_edition(sheet.parts, sheet.text, candidates)
    sheet = read_sheet(text, Path(file).name, titles=_titles(sheet, chosen), numbered=numbered)
    report = callback or (lambda so_far: None)
    known = Grade(file, chosen.id, (), (), (), tuple(_remarks(sheet)), text=text)
    if not sheet.formulas and not sheet.parts and len(candidates) > 1:
        return replace(known, problem="")  # nothing that could tell an edition
    report(known)
    answers = answers_of(sheet, chosen)
    report(replace(known, answers=answers))
    sheet = _without_own_text(sheet, chosen)
    statements, notation = judge(sheet, chosen, Budget())
    statements = tuple(_with_answers(statement, chosen, answers) for statement in statements)
    return replace(known, answers=answers, statements=statements, notation=notation.said())


def _as_labelled(text: str, file: str, candidates: Sequence[Problem]) -> tuple[Sheet, bool]:
    """The sheet, and whether numbers under a letter count parts: as it fits an edition better."""
    plain, numbered = read_sheet(text, file), read_sheet(text, file, numbered=True)
    fits = [best_fit(sheet.parts, sheet.text, candidates) for sheet in (plain, numbered)]
    return (numbered, True) if fits[1] > fits[0] else (plain, False)


def _with_answers(statement: Statement, problem: Problem, answers: tuple[GradedAnswer, ...]) -> Statement:
    """The statement in the light of the answers.

    A condition that is not enough is wrong, and what rests on a construction that misses its goal follows from it.
    """
    for answer in answers:
        if answer.verdict != "misses" or answer.part.split(".")[0] != statement.part.split(".")[0]:
            continue
        part = problem.part(answer.part)
        kinds = {q.kind for q in part.questions} if part is not None else set()
        if kinds == {"condition"} and answer.line == statement.line and answer.given == statement.formula:
            return replace(statement, verdict="wrong", because=answer.because, claim=answer.claim)
        if "construction" in kinds and statement.verdict == "wrong" and 0 < answer.line < statement.line:
            return replace(statement, follows_from=answer.line)
    return statement


def _without_own_text(sheet: Sheet, problem: Problem) -> Sheet:
    """The sheet with formulas in the problem's own words marked as such, where no marks tell answers from questions."""
    if any(formula.own_text for formula in sheet.formulas):
        return sheet
    return replace(sheet, formulas=tuple(replace(f, own_text=_is_given(f, problem)) for f in sheet.formulas))


_CHOSEN = re.compile(r"\s*(?:[qMVKQ](?:_\{?[12ab]\}?)?|[qg])\s*(?:&\s*)?(?:=|:=|\\propto|\\coloneqq)")


def _is_given(formula: Formula, problem: Problem) -> bool:
    """Whether a formula stands in a sentence of the problem and chooses nothing."""
    return _CHOSEN.match(formula.math) is None and is_own_text(problem, f"{formula.before} {formula.after}")


def _titles(sheet: Sheet, problem: Problem) -> dict[str, tuple[str, ...]]:
    """Titles by which parts are told, for sheets that do not label them."""
    labelled = {part.split(".")[0] for part in sheet.parts}
    if len(labelled) >= 2:
        return {}
    return {part.id: part.titles for part in problem.parts if part.titles}


def _remarks(sheet: Sheet) -> list[str]:
    out = []
    if sheet.cut:
        out.append("The sheet is very long; only its beginning was read.")
    if not sheet.formulas:
        out.append("No formula was found.")
    if not sheet.parts:
        out.append("No part of the problem was found: label the answers (a), (b), (c) i and so on.")
    return out
