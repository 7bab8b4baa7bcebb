"""evaluate: exact-match accuracy of runs on questions, with a confidence interval, beside baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qkv.core.display import Card, Displayable, percent, percent_interval
from qkv.errors import QkvError
from qkv.knowledge.answering.answer_model import MAX_ANSWER_TOKENS, answer_text, frames_of
from qkv.knowledge.datasets.facts import Questions
from qkv.knowledge.datasets.templates import find_name, name_of
from qkv.knowledge.intervals import independent_draws, wilson_interval
from qkv.model.decoding import decode
from qkv.train import run_files
from qkv.train.data.text_files import read_questions
from qkv.train.runs import Run, as_run
from qkv.train.tokenizers import MASK_ID, encode_all

QuestionSource = Questions | Sequence[tuple[str, str]] | str | Path
RunOrFolder = Run | str | Path


@dataclass(frozen=True)
class Score(Displayable):
    """Accuracy on n questions with its 95 % interval (Wilson), which counts subjects, not questions about them."""

    accuracy: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, accuracy: float, n: int, draws: float | None = None) -> Score:
        """The score with its interval computed from so many independent draws (`independent_draws`), n if left out."""
        draws = n if draws is None else draws
        return cls(accuracy, *wilson_interval(min(accuracy * draws, draws), draws), n)

    def __str__(self) -> str:
        return f"{percent(self.accuracy)} ({percent_interval(self.low, self.high)})"

    def card(self) -> Card:
        return Card(f"{self} of {self.n} questions")


@dataclass(frozen=True)
class Scores(Displayable):
    """Exact-match accuracy of one run, or the mean over several seeds, beside baselines.

    All seeds answer the same questions, so the interval is that of one run with the mean accuracy: more seeds do not
    make it narrower. Nor do several questions about one subject, whose answers are not independent: it counts subjects,
    and fewer than there are if some of them have more questions than others (`independent_draws`).

    Attributes:
        accuracy: Share of right answers, averaged over the runs.
        low: Lower end of the 95 % interval (Wilson).
        high: Upper end of the 95 % interval.
        n: Number of questions.
        baselines: Score of each baseline by its name.
        subjects: Number of names that are asked about; a question without a name counts as one.
        runs: Accuracy of each run.
        questions: The questions with the right answers.
        answers: For each run, its answer to each question.
        unnamed: Questions in which no name was found, each of which counts as a subject of its own.
    """

    accuracy: float
    low: float
    high: float
    n: int
    subjects: int
    baselines: dict[str, Score]
    runs: tuple[float, ...]
    questions: tuple[tuple[str, str], ...] = field(repr=False)
    answers: tuple[tuple[str, ...], ...] = field(repr=False)
    unnamed: int = field(default=0, kw_only=True)

    @property
    def right(self) -> tuple[tuple[bool, ...], ...]:
        """For each run, whether each answer is right."""
        return tuple(
            tuple(exact_match(answer, expected) for answer, (_, expected) in zip(answers, self.questions, strict=True))
            for answers in self.answers
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row per run and question, in the form that pandas.DataFrame takes."""
        return [
            {
                "run": run,
                "question": question,
                "wanted": expected,
                "answer": answer,
                "right": exact_match(answer, expected),
            }
            for run, answers in enumerate(self.answers)
            for answer, (question, expected) in zip(answers, self.questions, strict=True)
        ]

    def card(self) -> Card:
        several = len(self.runs) > 1
        own_name = f"these runs (mean of {len(self.runs)} runs)" if several else "this run"
        scores = {own_name: Score(self.accuracy, self.low, self.high, self.n), **self.baselines}
        rows = tuple((name, percent(s.accuracy), percent_interval(s.low, s.high)) for name, s in scores.items())
        each = (("each run", ", ".join(percent(a) for a in self.runs)),) if several else ()
        fewer = f" about {self.subjects} subjects, which the intervals count" if self.subjects < self.n else ""
        note = (
            f"In {self.unnamed} questions no name was found: each counts as a subject of its own, and the intervals "
            "are too narrow where several are about one."
            if self.unnamed
            else ""
        )
        columns = ("answers of", "right", "95 % interval")
        return Card(f"{self.n} questions{fewer}, exact match", each, columns, rows, note)


def evaluate(
    run: RunOrFolder | Sequence[RunOrFolder],
    questions: QuestionSource,
    *,
    training: QuestionSource | None = None,
    unpretrained: RunOrFolder | None = None,
    ablated: RunOrFolder | None = None,
) -> Scores:
    """Score one run, or several seeds of one, on questions by exact match.

    Args:
        run: A run or its folder, or a list of them: several seeds of one experiment.
        questions: Questions with right answers: `Questions`, pairs, or a file of lines `question<TAB>answer`.
        training: Training questions, for the baseline that always gives their most frequent answer. If left out, the
            file that the (first) run was finetuned on is read, if it still exists.
        unpretrained: Baseline: a run that was finetuned without pretraining.
        ablated: Baseline: a run whose pretraining text leaves out the people in `questions`.

    Returns:
        Accuracy with its 95 % interval, the accuracy of each run and of each baseline, and all answers.

    Raises:
        QkvError: There are no runs or no questions; a question does not fit into the model's context; or the run's
            tokenizer has no special token ⁇ (the model was not trained on questions by qkv).

    Example:
        >>> import tempfile, qkv
        >>> texts, questions = ["Ada was born in London."], [("Where was Ada born?", "London")]
        >>> run = qkv.knowledge.train_mixed(
        ...     tempfile.mkdtemp(), texts, questions, 0.5,
        ...     config=qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16),
        ...     settings=qkv.train.TrainSettings(steps=60, batch_size=2, lr=3e-2, objective="next"),
        ...     tokenizer=qkv.train.Characters.train([*texts, "Where was Ada born?"]),
        ... )
        >>> qkv.knowledge.evaluate(run, questions).accuracy
        1.0
    """
    runs = [as_run(run)] if isinstance(run, Run | str | Path) else [as_run(each) for each in run]
    if not runs:
        raise QkvError("evaluating", "there are no runs", "Give at least one")
    pairs = question_pairs(questions)
    asked = [question for question, _ in pairs]
    answers = tuple(tuple(greedy_answers(each, asked)) for each in runs)
    each = tuple(accuracy(own, pairs) for own in answers)
    frames = frames_of(runs[0])
    names = [name_of(question, frames) for question in asked]
    unnamed = sum(find_name(question, frames) is None for question in asked)
    n, draws = len(pairs), independent_draws(names)
    mean = Score.of(sum(each) / len(each), n, draws)
    baselines = {}
    seen = question_pairs(training) if training is not None else _finetuning_questions(runs[0])
    if seen:
        common = Counter(answer for _, answer in seen).most_common(1)[0][0]
        baselines[f"always {common}"] = Score.of(accuracy([common] * n, pairs), n, draws)
    for name, other in (("no pretraining", unpretrained), ("people not in the text", ablated)):
        if other is not None:
            baselines[name] = Score.of(accuracy(greedy_answers(as_run(other), asked), pairs), n, draws)
    return Scores(
        mean.accuracy,
        mean.low,
        mean.high,
        n,
        len(set(names)),
        baselines,
        each,
        tuple(pairs),
        answers,
        unnamed=unnamed,
    )


def greedy_answers(run: Run, questions: Sequence[str]) -> list[str]:
    """The answer to each question by greedy decoding; too long questions are refused.

    Questions that leave as much room for an answer are one batch: all, unless some are nearly as long as the context.
    """
    if not run.tokenizer.special:
        raise QkvError(
            "evaluating",
            "the tokenizer of this model has no special token ⁇",
            "Evaluate a run that qkv trained on questions",
        )
    ids = [[*each, MASK_ID] for each in encode_all(run.tokenizer, questions)]
    longest = max(map(len, ids))
    if longest > run.config.context_length:
        raise QkvError(
            "evaluating",
            f"a question has {longest} tokens",
            f"The context of the model is {run.config.context_length} tokens: leave this question out",
        )
    batches: dict[int, list[int]] = {}
    for i, each in enumerate(ids):
        batches.setdefault(min(MAX_ANSWER_TOKENS, run.config.context_length + 1 - len(each)), []).append(i)
    answers = [""] * len(ids)
    for room, batch in batches.items():
        decoded = decode(run.model, [ids[i] for i in batch], room, stop=MASK_ID)
        for i, tokens in zip(batch, decoded.tokens, strict=True):
            answers[i] = answer_text(run.tokenizer, tokens)
    return answers


def exact_match(answer: str, expected: str) -> bool:
    """Whether the answer equals the expected one, up to white space at both ends."""
    return answer.strip() == expected.strip()


def accuracy(answers: Sequence[str], pairs: Sequence[tuple[str, str]]) -> float:
    """Share of answers that match exactly."""
    return sum(exact_match(answer, expected) for answer, (_, expected) in zip(answers, pairs, strict=True)) / len(pairs)


def question_pairs(questions: QuestionSource) -> list[tuple[str, str]]:
    """(question, answer) pairs from any source of questions; an empty one is refused."""
    pairs = list(questions.pairs) if isinstance(questions, Questions) else read_questions(questions)
    if not pairs:
        raise QkvError("evaluating", "there are no questions", "Give at least one")
    return pairs


def _finetuning_questions(run: Run) -> list[tuple[str, str]]:
    """The questions that a run was finetuned on, if their file is still there as it was."""
    record = run.data if run.data.get("kind") == "questions" else run.data.get("questions", {})
    return run_files.read_recorded(record, run.folder, read_questions) or []
