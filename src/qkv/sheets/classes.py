"""ClassGrade: many sheets on one problem as a table of questions, with alike answers grouped and mistakes counted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qkv.core.display import Card, Displayable
from qkv.sheets.equivalent_answers import normal_form
from qkv.sheets.feedback import SIGNS, Grade, GradedAnswer, Statement, said, words

MAX_SHOWN_PLACES = 8
"""Places of a mistake that the card names; further ones are counted."""
MAX_SHOWN_MISTAKES = 12


@dataclass(frozen=True)
class Place:
    """Where something stands: a sheet, its position in the class, and a line (0 for no line)."""

    file: str
    sheet: int
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class AlikeAnswers:
    """Answers to one question that say the same, in other letters or another order perhaps.

    Attributes:
        part: The part of the problem.
        asked: What it asks for.
        verdict: The verdict on all of them.
        given: The first of them, as read.
        because: The reason of its verdict.
        places: Where they stand.
    """

    part: str
    asked: str
    verdict: str
    given: str
    because: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Mistake:
    """One mistake, made on one or more sheets.

    Attributes:
        part: The part of the problem.
        kind: "answer" for a construction that misses its goal, "formula" for a wrong statement.
        written: What was written, on the first sheet that has it.
        because: Why it is wrong.
        places: Where it stands.
    """

    part: str
    kind: str
    written: str
    because: str
    places: tuple[Place, ...]

    @property
    def n_sheets(self) -> int:
        """On how many sheets it is."""
        return len({place.sheet for place in self.places})


@dataclass(frozen=True)
class NotRead:
    """A formula, an answer or a whole sheet that was not read, to be looked at by a person."""

    part: str
    written: str
    because: str
    place: Place


@dataclass(frozen=True)
class ClassGrade(Displayable):
    """The feedback on the sheets of a class.

    Attributes:
        sheets: One grade for each sheet, in their order; those that failed too.

    Example:
        >>> from qkv.sheets.classes import ClassGrade
        >>> from qkv.sheets.feedback import GradedAnswer, Grade
        >>> def sheet(name, query, verdict):
        ...     claim = f"let q = {query}\\nthen c -> v_a as t -> oo"
        ...     answer = GradedAnswer("b", "a query", 3, query, verdict, claim=claim)
        ...     return Grade(name, "demo", (), (), (answer,))
        >>> found = ClassGrade((sheet("x.md", "t*(k_a+k_b)", "misses"), sheet("y.md", "s*k_b + s*k_a", "misses")))
        >>> [(m.written, m.n_sheets) for m in found.mistakes]
        [('t*(k_a+k_b)', 2)]
    """

    sheets: tuple[Grade, ...]

    def __iter__(self) -> Iterator[Grade]:
        return iter(self.sheets)

    def __len__(self) -> int:
        return len(self.sheets)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """The problems that the sheets are on, in order of appearance; failed sheets have none."""
        return tuple(dict.fromkeys(g.problem for g in self.sheets if not g.failed))

    def questions(self, problem: str) -> tuple[tuple[str, str], ...]:
        """The questions of a problem as pairs of part and what is asked, in order."""
        return tuple(dict.fromkeys((a.part, a.asked) for g in self.sheets if g.problem == problem for a in g.answers))

    @cached_property
    def alike(self) -> tuple[AlikeAnswers, ...]:
        """Groups of answers that say the same, by question and then from the largest; missing answers are left out."""
        groups: dict[tuple[str, ...], list[tuple[GradedAnswer, Place]]] = {}
        for place, answer in self._answers():
            if answer.verdict != "none":
                groups.setdefault((answer.part, answer.verdict, *_form(answer)), []).append((answer, place))
        order = {(part, asked): i for p in self.problems for i, (part, asked) in enumerate(self.questions(p))}
        found = [
            AlikeAnswers(first.part, first.asked, first.verdict, first.given, said(first), tuple(p for _, p in group))
            for group in groups.values()
            for first in [group[0][0]]
        ]
        return tuple(sorted(found, key=lambda g: (order[g.part, g.asked], -len(g.places))))

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes from the commonest to the rarest; what follows from another mistake is not counted."""
        found: dict[tuple[str, ...], list[tuple[Statement | GradedAnswer, Place]]] = {}
        told = set()  # a construction that is missed is not counted again as a formula
        for place, answer in self._answers():
            if answer.is_mistake:
                told.add((place.sheet, place.line, answer.given))
                found.setdefault(("answer", answer.part, *_form(answer)), []).append((answer, place))
        for place, statement in self._statements():
            if statement.is_mistake and (place.sheet, place.line, statement.formula) not in told:
                form = normal_form(statement.claim, statement.formula)
                found.setdefault(("formula", statement.part, form), []).append((statement, place))
        rows = []
        for key, group in found.items():
            one = group[0][0]
            written = one.given if isinstance(one, GradedAnswer) else one.formula
            rows.append(Mistake(key[1], key[0], written, one.because, tuple(p for _, p in group)))
        return tuple(sorted(rows, key=lambda m: (-m.n_sheets, m.kind, m.part)))

    @cached_property
    def not_read(self) -> tuple[NotRead, ...]:
        """Everything that was not read, sheet by sheet: look at it yourself."""
        found = []
        for i, grade in enumerate(self.sheets):
            if grade.is_empty:
                why = " ".join(grade.remarks) or "nothing in it was read"
                found.append(NotRead("", "", why, Place(grade.file, i, 0)))
            for a in grade.answers:
                if a.verdict == "not_read":
                    found.append(NotRead(a.part, a.given, a.because, Place(grade.file, i, a.line)))
            for s in grade.statements:
                if s.verdict == "not_read":
                    found.append(NotRead(s.part, s.formula, s.because, Place(grade.file, i, s.line)))
        return tuple(found)

    def table(self, problem: str) -> list[tuple[Grade, tuple[GradedAnswer | None, ...]]]:
        """One row for each sheet on a problem: the grade, and its answers in the order of `questions`."""
        questions = self.questions(problem)
        rows = []
        for grade in self.sheets:
            if grade.problem == problem and not grade.failed:
                given = {(a.part, a.asked): a for a in reversed(grade.answers)}
                rows.append((grade, tuple(given.get(question) for question in questions)))
        return rows

    def group_numbers(self) -> dict[tuple[int, str, str], int]:
        """Numbers of the groups of alike answers from 1 in each question, by sheet, part and what is asked."""
        last: dict[tuple[str, str], int] = {}
        out = {}
        for group in self.alike:
            question = (group.part, group.asked)
            last[question] = last.get(question, 0) + 1
            out.update({(place.sheet, *question): last[question] for place in group.places})
        return out

    def to_csv(self) -> str:
        """One row for each sheet: verdict and group of each answer, counts of its formulas, and remarks."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        questions = list(dict.fromkeys(q for p in self.problems for q in self.questions(p)))
        names = question_labels(questions)
        head = ["sheet", "problem", *(f"{name}{more}" for name in names for more in ("", " group"))]
        writer.writerow([*head, "wrong formulas", "formulas not read", "first mistake at line", "remarks"])
        groups = self.group_numbers()
        for i, grade in enumerate(self.sheets):
            given = {(a.part, a.asked): a for a in reversed(grade.answers)}
            cells: list[str] = [grade.file, grade.problem]
            for question in questions:
                answer = given.get(question)
                cells += [words(answer.verdict) if answer else "", str(groups.get((i, *question), ""))]
            counts, mistakes = grade.counts(), grade.mistakes
            first = next((str(m.line) for m in mistakes if m.line), "")
            cells += [str(counts.get("wrong", 0)), str(counts.get("not_read", 0)), first, " ".join(grade.remarks)]
            writer.writerow([_cell(cell) for cell in cells])
        return out.getvalue()

    def card(self) -> Card:
        """Verdicts by question as a table, the commonest mistakes as facts."""
        failed = sum(g.is_empty for g in self.sheets)
        facts = [("problem", ", ".join(self.problems) or "–")]
        facts += [("not graded", f"{failed} of {len(self)}")] if failed else []
        for mistake in self.mistakes[:MAX_SHOWN_MISTAKES]:
            many = f"{mistake.n_sheets} sheet{'s' * (mistake.n_sheets != 1)}"
            where = f"{mistake.part}: " if mistake.part else ""
            text = f"{where}{' '.join(mistake.written.split())} ({_places(mistake.places)}): {mistake.because}"
            facts.append((many, text))
        facts.append(("not read", f"{len(self.not_read)}, to look at"))
        rows = []
        for problem in self.problems:
            questions = self.questions(problem)
            for question, name in zip(questions, question_labels(questions), strict=True):
                given = [a for _, row in self.table(problem) for a in row if a and (a.part, a.asked) == question]
                counts = [sum(a.verdict == v for a in given) for v in COLUMNS]
                rows.append((name, question[1], *(str(count or "") for count in counts)))
        columns = ("part", "asked", *(f"{SIGNS[v]} {words(v)}" for v in COLUMNS)) if rows else ()
        return Card(f"{len(self)} sheets", tuple(facts), columns, tuple(rows))

    def to_json(self) -> dict[str, Any]:
        """The sheets as a list of JSON objects."""
        return {"sheets": [grade.to_json() for grade in self.sheets]}

    def _answers(self) -> Iterator[tuple[Place, GradedAnswer]]:
        for i, grade in enumerate(self.sheets):
            for answer in grade.answers:
                yield Place(grade.file, i, answer.line), answer

    def _statements(self) -> Iterator[tuple[Place, Statement]]:
        for i, grade in enumerate(self.sheets):
            for statement in grade.statements:
                yield Place(grade.file, i, statement.line), statement


COLUMNS = ("meets", "limit", "misses", "prose", "none", "not_read")
"""Verdicts on answers, in the order of the columns of a class."""


def question_labels(questions: Iterable[tuple[str, str]]) -> list[str]:
    """How questions are named at the head of a column: their parts, numbered where a part has several."""
    seen: dict[str, int] = {}
    out = []
    for part, _ in questions:
        seen[part] = seen.get(part, 0) + 1
        out.append(part if seen[part] == 1 else f"{part} #{seen[part]}")
    return out


def _form(answer: GradedAnswer) -> tuple[str, str]:
    """What is asked, and the normal form of what was given."""
    return answer.asked, normal_form(answer.claim, answer.given)


def _places(places: tuple[Place, ...]) -> str:
    shown = ", ".join(map(str, places[:MAX_SHOWN_PLACES]))
    return shown + (f" and {len(places) - MAX_SHOWN_PLACES} more" if len(places) > MAX_SHOWN_PLACES else "")


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
