"""What a model's own numbers say of each of its answers: how likely, how much likelier than the next, how settled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.answering.answer_model import AnswerModel, answerer
from qkv.knowledge.answering.beam_search import Candidate, likeliest
from qkv.knowledge.confidence.badge import NAMES
from qkv.knowledge.datasets.templates import name_in
from qkv.model.numpy_gpt import NumpyGPT
from qkv.train.tokenizers import MASK_ID

if TYPE_CHECKING:
    from qkv.train.runs import Run

BEAMS, SAMPLES, LONGEST = 5, 8, 32
CHUNK = 2048  # tokens that are read together


class EncodedQuestion(NamedTuple):
    """A question as the model reads it, and the places of the name in it (first, past last)."""

    text: str
    ids: list[int]
    name: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Signals:
    """For each question: the candidate answers, the signals, and the hidden state at the end of the name."""

    asked: tuple[EncodedQuestion, ...]
    texts: tuple[tuple[str, ...], ...]
    candidates: tuple[tuple[Candidate, ...], ...]
    numbers: np.ndarray
    """(questions, signals), in the order of NAMES."""
    hidden: np.ndarray
    """(questions, width)."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The likeliest answer to each."""
        return tuple(each[0] for each in self.texts)

    def column(self, name: str) -> np.ndarray:
        """One signal by its name."""
        return self.numbers[:, NAMES.index(name)]


def signals(
    run: Run | AnswerModel, questions: Sequence[str], *, beams: int = BEAMS, samples: int = SAMPLES, seed: int = 0
) -> Signals:
    """Answer questions and measure each answer."""
    run = answerer(run)
    asked = tuple(read(run, question) for question in questions)
    prompts = [each.ids for each in asked]
    room = min(LONGEST, run.config.context_length + 1 - max(map(len, prompts)))
    found = likeliest(run.model, prompts, max(2, beams), room, MASK_ID)
    candidates = [_distinct(run, each) for each in found]
    best = [each[0][1] for each in candidates]
    margins = [
        each[0][1].log_probability - (each[1][1].log_probability if len(each) > 1 else -50.0) for each in candidates
    ]
    entropies, along, hidden = _along(run.model, asked, best)
    agreed = _agreement(along, samples, seed)
    beside = _beside_the_question(run, asked, best)
    numbers = np.stack([[each.log_probability for each in best], margins, entropies, agreed, *beside], axis=1)
    return Signals(
        asked,
        tuple(tuple(text for text, _ in each) for each in candidates),
        tuple(tuple(one for _, one in each) for each in candidates),
        numbers,
        hidden,
    )


def read(run: Run | AnswerModel, question: str) -> EncodedQuestion:
    """A question as ids, ⁇ after it, with the places of the name."""
    if not run.tokenizer.special:
        raise QkvError("asking", "this model's tokenizer has no sign ⁇", "Ask a run that qkv trained on questions")
    text = question.strip()
    if not text:
        raise QkvError("asking", "the question is empty", "Write it out, like: Where was Ada Lovelace born?")
    ids = run.tokenizer.encode(text)
    if len(ids) + 2 > run.config.context_length:
        raise QkvError(
            f"asking {text[:40]!r}…",
            f"the question has {len(ids)} tokens",
            f"The model holds {run.config.context_length}: shorten it",
        )
    first, last = name_in(text)
    before = text[:first].rstrip(" ")  # the space before a word belongs to its token
    start = len(run.tokenizer.encode(before)) if before else 0
    end = len(run.tokenizer.encode(text[:last]))
    start = min(start, len(ids) - 1)
    return EncodedQuestion(text, [*ids, MASK_ID], (start, max(start + 1, min(end, len(ids)))))


def _distinct(run: AnswerModel, found: list[Candidate]) -> list[tuple[str, Candidate]]:
    """Candidates as texts: two ways to spell one text are one answer, as likely as both together."""
    out: dict[str, Candidate] = {}
    for one in found:
        text = run.tokenizer.decode(list(one.tokens)).strip()
        old = out.get(text)
        if old is not None:
            one = old._replace(log_probability=float(np.logaddexp(old.log_probability, one.log_probability)))
        out[text] = one
    return sorted(out.items(), key=lambda item: -item[1].log_probability)


def _along(
    model: NumpyGPT, asked: Sequence[EncodedQuestion], best: Sequence[Candidate]
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Of each answer and its end: the entropy of the next token, summed; the log-probability of each token; and the
    hidden state at the end of the name."""
    rows = [[*a.ids, *b.tokens] for a, b in zip(asked, best, strict=True)]
    entropies = np.zeros(len(rows))
    sure: list[np.ndarray] = [np.zeros(0)] * len(rows)
    hidden = np.zeros((len(rows), model.config.d_model), dtype=np.float32)
    for some, states in _read(model, rows):
        for i, state in zip(some, states, strict=True):
            hidden[i] = state[asked[i].name[1] - 1]
            logs = model.logs(state[len(asked[i].ids) - 1 : len(rows[i])])
            entropies[i] = -(np.exp(logs) * logs).sum()
            sure[i] = logs[np.arange(len(logs)), [*best[i].tokens, MASK_ID]]
    return entropies, sure, hidden


def _agreement(along: Sequence[np.ndarray], samples: int, seed: int) -> np.ndarray:
    """The share of sampled answers that are the likeliest one.

    A sample is drawn token by token along that answer, and given up where it parts from it: it agrees no more.
    """
    if samples < 1:
        return np.array([np.exp(each.sum()) for each in along])
    random = np.random.default_rng((seed, 17))
    drawn = random.random((len(along), samples, max(map(len, along))))
    return np.array([(u[:, : len(each)] < np.exp(each)).all(-1).mean() for u, each in zip(drawn, along, strict=True)])


def _beside_the_question(
    run: AnswerModel, asked: Sequence[EncodedQuestion], best: Sequence[Candidate]
) -> tuple[np.ndarray, ...]:
    """How likely the model finds the name itself and its end, in mean log-probability of all tokens but the first, and
    the least likely of them, since a name put together from two others has one step that nobody's has; how likely the
    same answer is to the name alone, since knowing does not hang on the wording; and to nobody's name at all, since
    what is said of anybody is no knowledge."""
    names = [each.ids[slice(*each.name)] for each in asked]
    room = run.config.context_length + 1
    rows = [[*name, MASK_ID][:room] for name in names]
    nobody: list[list[int]] = [[] for _ in names]
    for before in (names, nobody):
        rows += [[*name, MASK_ID, *b.tokens, MASK_ID][:room] for name, b in zip(before, best, strict=True)]
    logs = _logs(run.model, rows)
    n = len(names)
    return (
        np.array([each.mean() for each in logs[:n]]),
        np.array([each.min() for each in logs[:n]]),
        np.array([each[len(name) :].sum() for each, name in zip(logs[n : 2 * n], names, strict=True)]),
        np.array([each.sum() for each in logs[2 * n :]]),
    )


def _logs(model: NumpyGPT, rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """The log-probability of every token of each row, but the first, after those before it."""
    out: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for some, states in _read(model, [row[:-1] for row in rows]):
        for i, state in zip(some, states, strict=True):
            wanted = rows[i][1:]
            out[i] = model.logs(state[: len(wanted)])[np.arange(len(wanted)), wanted]
    return out


def _read(model: NumpyGPT, rows: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Hidden states of rows, some at a time: their numbers, and states of which those past a row's end mean nothing.

    No token reads what comes after it, so that rows may be filled up to one length.
    """
    for some in _chunks(rows):
        filled = np.zeros((len(some), max(len(rows[i]) for i in some)), dtype=int)
        for row, i in zip(filled, some, strict=True):
            row[: len(rows[i])] = rows[i]
        yield some, model.read(filled)[0]


def _chunks(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Numbers of rows sorted by length, some at a time."""
    out: list[list[int]] = []
    total = CHUNK
    for i in sorted(range(len(rows)), key=lambda i: len(rows[i])):
        if total + len(rows[i]) > CHUNK:
            out.append([])
            total = 0
        out[-1].append(i)
        total += len(rows[i])
    return out
