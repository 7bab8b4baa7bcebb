"""evaluate: how many answers match exactly, with an interval, beside what one would score without knowing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.knowledge.datasets.facts import Questions
from qkv.knowledge.intervals import wilson
from qkv.model.decoding import decode
from qkv.train.data.text_files import read_questions
from qkv.train.runs import Run, as_run
from qkv.train.tokenizers import MASK_ID, encode_all

LONGEST = 32  # tokens of an answer
QuestionSource = Questions | Sequence[tuple[str, str]] | str | Path
Runs = Run | str | Path


@dataclass(frozen=True)
class Score(Displayable):
    """A share of right answers with its 95 % interval."""

    accuracy: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, accuracy: float, n: int) -> Score:
        """With the interval of Wilson."""
        return cls(accuracy, *wilson(accuracy * n, n), n)

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def card(self) -> Card:
        return Card(f"{self} of {self.n} questions")


@dataclass(frozen=True)
class Scores(Displayable):
    """The mean score of one or several runs, beside the baselines.

    Runs of several seeds answer the same questions, so the interval is that of one run with their mean score.
    """

    accuracy: float
    low: float
    high: float
    n: int
    baselines: dict[str, Score]
    runs: tuple[float, ...]
    questions: tuple[tuple[str, str], ...] = field(repr=False)
    answers: tuple[tuple[str, ...], ...] = field(repr=False)

    @property
    def right(self) -> tuple[tuple[bool, ...], ...]:
        """For each run, which answers were right."""
        return tuple(
            tuple(match(said, true) for said, (_, true) in zip(each, self.questions, strict=True))
            for each in self.answers
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row for each run and question; pandas.DataFrame takes them as they are."""
        return [
            {"run": run, "question": asked, "wanted": wanted, "answer": said, "right": match(said, wanted)}
            for run, each in enumerate(self.answers)
            for said, (asked, wanted) in zip(each, self.questions, strict=True)
        ]

    def card(self) -> Card:
        mine = Score(self.accuracy, self.low, self.high, self.n)
        several = f" (mean of {len(self.runs)} runs)" if len(self.runs) > 1 else ""
        lines = [(f"this run{several}" if not several else f"these runs{several}", mine), *self.baselines.items()]
        rows = tuple(
            (name, f"{100 * s.accuracy:.1f} %", f"{100 * s.low:.1f} to {100 * s.high:.1f} %") for name, s in lines
        )
        each = (("each run", ", ".join(f"{100 * a:.1f} %" for a in self.runs)),) if several else ()
        return Card(f"{self.n} questions, exact match", each, ("who answers", "right", "95 % interval"), rows)


def evaluate(
    run: Runs | Sequence[Runs],
    questions: QuestionSource,
    *,
    training: QuestionSource | None = None,
    unpretrained: Runs | None = None,
    lacking: Runs | None = None,
) -> Scores:
    """Score one run, or several seeds of it, on questions.

    Baselines: the most frequent answer of the `training` questions (a finetuned run's own, if they are where they
    were); a run that was `unpretrained`; one whose pretraining text was `lacking` the people asked about.
    """
    runs = [as_run(run)] if isinstance(run, Run | str | Path) else [as_run(each) for each in run]
    if not runs:
        raise QkvError("evaluating", "there are no runs", "Give one, or some")
    pairs = pairs_of(questions)
    asked = [question for question, _ in pairs]
    answers = tuple(tuple(answered(each, asked)) for each in runs)
    each = tuple(share(said, pairs) for said in answers)
    mean = Score.of(sum(each) / len(each), len(pairs))
    baselines = {}
    seen = pairs_of(training) if training is not None else _trained_on(runs[0])
    if seen:
        common = Counter(answer for _, answer in seen).most_common(1)[0][0]
        baselines[f"always {common}"] = Score.of(share([common] * len(pairs), pairs), len(pairs))
    for name, other in (("no pretraining", unpretrained), ("people not in the text", lacking)):
        if other is not None:
            baselines[name] = Score.of(share(answered(as_run(other), asked), pairs), len(pairs))
    return Scores(mean.accuracy, mean.low, mean.high, mean.n, baselines, each, tuple(pairs), answers)


def answered(run: Run, questions: Sequence[str]) -> list[str]:
    """The likeliest answer to each question, word by word; a question that the model cannot hold is refused."""
    if not run.tokenizer.special:
        raise QkvError(
            "evaluating", "this model's tokenizer has no sign ⁇", "Evaluate a run that qkv trained on questions"
        )
    ids = [[*each, MASK_ID] for each in encode_all(run.tokenizer, questions)]
    room = run.config.context_length + 1 - max(map(len, ids))
    if room < 1:
        raise QkvError(
            "evaluating",
            f"a question has {max(map(len, ids))} tokens",
            f"The model holds {run.config.context_length}: leave it out",
        )
    done = decode(run.model, ids, min(LONGEST, room), stop=MASK_ID)
    return [run.tokenizer.decode(tokens).strip() for tokens in done.tokens]


def match(said: str, wanted: str) -> bool:
    """Whether an answer is exactly the wanted one, spaces around it aside."""
    return said.strip() == wanted.strip()


def share(answers: Sequence[str], pairs: Sequence[tuple[str, str]]) -> float:
    """The share of right answers."""
    return sum(match(said, wanted) for said, (_, wanted) in zip(answers, pairs, strict=True)) / len(pairs)


def pairs_of(questions: QuestionSource | Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Questions with answers, from wherever they are; none at all is refused."""
    pairs = list(questions.pairs) if isinstance(questions, Questions) else read_questions(questions)  # type: ignore[arg-type]
    if not pairs:
        raise QkvError("asking", "there are no questions", "Give some")
    return pairs


def _trained_on(run: Run) -> list[tuple[str, str]]:
    """The questions that a run was finetuned on, if they are still in their file."""
    record = run.data if run.data.get("kind") == "questions" else run.data.get("questions", {})
    path = record.get("path")
    if path is None or not Path(path).is_file():
        return []
    return read_questions(path)
