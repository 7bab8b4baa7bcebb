"""Confidence features of answers: log-probabilities, margin, entropy, agreement of samples, hidden state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkv.knowledge.answering.answer_model import (
    MAX_ANSWER_TOKENS,
    AnswerModel,
    EncodedQuestion,
    answer_text,
    encode_question,
    load_answer_model,
)
from qkv.knowledge.answering.beam_search import Candidate, beam_search
from qkv.model.numpy_gpt import NumpyGPT
from qkv.train.tokenizers import MASK_ID

if TYPE_CHECKING:
    from qkv.train.runs import Run

FEATURES = {
    "log_probability": "log-probability of the answer and its end",
    "margin": "log-probability of the answer minus that of the runner-up",
    "entropy": "entropy of the next token, summed over the answer and its end",
    "agreement": "share of sampled answers that equal the answer",
    "name_mean_log_probability": "mean log-probability of the tokens of the name and its end, without a question",
    "name_min_log_probability": "least of these: a name made of parts of two others has one unlikely step",
    "name_only_log_probability": "log-probability of the answer after the name alone, without a question",
    "no_name_log_probability": "log-probability of the answer after no name at all: how common the answer is",
    "question_only_log_probability": "log-probability of the answer after the question without the name",
    "name_mean_excess_surprise": "surprise of the tokens of the name beyond what is expected there (entropy), mean",
    "name_max_excess_surprise": "largest of these: where the name goes on as no name in the text does",
}
"""The scalar features and their meanings, in the order of the columns of `AnswerFeatures.values`."""
N_BEAMS, N_SAMPLES = 5, 8
MAX_BATCH_TOKENS = 2048
MISSING_RUNNER_UP = -50.0  # its log-probability where the beam search has found a single answer


@dataclass(frozen=True, eq=False)
class AnswerFeatures:
    """The answers of a model to some questions, and the features of each best answer."""

    questions: tuple[EncodedQuestion, ...]
    texts: tuple[tuple[str, ...], ...]
    """For each question the different answers of the beam search, most likely first."""
    candidates: tuple[tuple[Candidate, ...], ...]
    """The same answers as tokens with log-probabilities."""
    values: np.ndarray
    """(questions, features), columns in the order of FEATURES."""
    hidden: np.ndarray
    """(questions, d_model): hidden state at the last token of the name."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The most likely answer to each question."""
        return tuple(each[0] for each in self.texts)

    def column(self, feature: str) -> np.ndarray:
        """One feature of all answers."""
        return self.values[:, list(FEATURES).index(feature)]


def answer_features(
    run: Run | AnswerModel,
    questions: Sequence[str],
    *,
    beams: int = N_BEAMS,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
) -> AnswerFeatures:
    """Answer questions by beam search, and compute the features of each best answer."""
    run = load_answer_model(run)
    encoded = tuple(encode_question(run, question) for question in questions)
    prompts = [each.ids for each in encoded]
    found = beam_search(run.model, prompts, max(2, beams), MAX_ANSWER_TOKENS, MASK_ID)
    candidates = [_distinct_texts(run, each) for each in found]
    best = [each[0][1] for each in candidates]
    margins = [
        each[0][1].log_probability - (each[1][1].log_probability if len(each) > 1 else MISSING_RUNNER_UP)
        for each in candidates
    ]
    entropies, token_logs, hidden = _answer_pass(run.model, encoded, best)
    columns = {
        "log_probability": [each.log_probability for each in best],
        "margin": margins,
        "entropy": entropies,
        "agreement": _sample_agreement(token_logs, n_samples, seed),
        **_name_features(run, encoded),
        **_features_of_other_prompts(run, encoded, best),
    }
    values = np.stack([np.asarray(columns[name], dtype=float) for name in FEATURES], axis=1)
    return AnswerFeatures(
        encoded,
        tuple(tuple(text for text, _ in each) for each in candidates),
        tuple(tuple(candidate for _, candidate in each) for each in candidates),
        values,
        hidden,
    )


def _distinct_texts(run: AnswerModel, found: list[Candidate]) -> list[tuple[str, Candidate]]:
    """Candidates as texts; the probabilities of different tokenizations of one text are added up."""
    out: dict[str, Candidate] = {}
    for candidate in found:
        text = answer_text(run.tokenizer, candidate.tokens)
        old = out.get(text)
        if old is not None:
            total = float(np.logaddexp(old.log_probability, candidate.log_probability))
            candidate = old._replace(log_probability=total)
        out[text] = candidate
    return sorted(out.items(), key=lambda item: -item[1].log_probability)


def _answer_pass(
    model: NumpyGPT, questions: Sequence[EncodedQuestion], best: Sequence[Candidate]
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """One forward pass over each question and its answer.

    Returns, for each, the entropy of the next token summed over the answer and its end, the log-probability of each of
    these tokens, and the hidden state at the last token of the name. Where question and answer fill the context, there
    is no room for the end.
    """
    context = model.config.context_length
    rows = [[*question.ids, *answer.tokens][:context] for question, answer in zip(questions, best, strict=True)]
    entropies = np.zeros(len(rows))
    token_logs: list[np.ndarray] = [np.zeros(0)] * len(rows)
    hidden = np.zeros((len(rows), model.config.d_model), dtype=np.float32)
    for batch, states in _hidden_states(model, rows):
        for i, state in zip(batch, states, strict=True):
            hidden[i] = state[questions[i].name[1] - 1]
            logs = model.log_probabilities(state[len(questions[i].ids) - 1 : len(rows[i])])
            entropies[i] = -(np.exp(logs) * logs).sum()
            token_logs[i] = logs[np.arange(len(logs)), [*best[i].tokens, MASK_ID][: len(logs)]]
    return entropies, token_logs, hidden


def _sample_agreement(token_logs: Sequence[np.ndarray], n_samples: int, seed: int) -> np.ndarray:
    """Share of sampled answers that equal the best one; with no samples, its expectation.

    A sample is drawn token by token and ends at the first token that differs: from there on it cannot agree. So the
    log-probabilities along the best answer are all that is needed.
    """
    if n_samples < 1:
        return np.array([np.exp(each.sum()) for each in token_logs])
    random = np.random.default_rng((seed, 17))
    drawn = random.random((len(token_logs), n_samples, max(map(len, token_logs))))
    return np.array(
        [(u[:, : len(each)] < np.exp(each)).all(-1).mean() for u, each in zip(drawn, token_logs, strict=True)]
    )


def _name_features(run: AnswerModel, questions: Sequence[EncodedQuestion]) -> dict[str, np.ndarray]:
    """Features of the tokens of each name and its end ⁇, without a question."""
    room = run.config.context_length + 1
    rows = [[*question.ids[slice(*question.name)], MASK_ID][:room] for question in questions]
    logs, entropies = _token_logs(run.model, rows)
    excess = [-log - entropy for log, entropy in zip(logs, entropies, strict=True)]
    return {
        "name_mean_log_probability": np.array([each.mean() for each in logs]),
        "name_min_log_probability": np.array([each.min() for each in logs]),
        "name_mean_excess_surprise": np.array([each.mean() for each in excess]),
        "name_max_excess_surprise": np.array([each.max() for each in excess]),
    }


def _features_of_other_prompts(
    run: AnswerModel, questions: Sequence[EncodedQuestion], best: Sequence[Candidate]
) -> dict[str, np.ndarray]:
    """Log-probability of each answer after the name alone, after nothing, and after the question without the name."""
    prompts: dict[str, list[list[int]]] = {
        "name_only_log_probability": [each.ids[slice(*each.name)] for each in questions],
        "no_name_log_probability": [[] for _ in questions],
        "question_only_log_probability": [
            [*each.ids[: each.name[0]], *each.ids[each.name[1] : -1]] for each in questions
        ],
    }
    room, n = run.config.context_length + 1, len(questions)
    rows = [
        [*prompt, MASK_ID, *answer.tokens, MASK_ID][:room]
        for own in prompts.values()
        for prompt, answer in zip(own, best, strict=True)
    ]
    logs, _ = _token_logs(run.model, rows)
    return {
        name: np.array([log[len(prompt) :].sum() for log, prompt in zip(logs[i * n : (i + 1) * n], own, strict=True)])
        for i, (name, own) in enumerate(prompts.items())
    }


def _token_logs(model: NumpyGPT, rows: Sequence[Sequence[int]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each row, the log-probability of every token but the first given those before it, and the entropy there."""
    out: list[np.ndarray] = [np.zeros(0)] * len(rows)
    entropies: list[np.ndarray] = [np.zeros(0)] * len(rows)
    for batch, states in _hidden_states(model, [row[:-1] for row in rows]):
        for i, state in zip(batch, states, strict=True):
            targets = rows[i][1:]
            logs = model.log_probabilities(state[: len(targets)])
            out[i] = logs[np.arange(len(targets)), targets]
            entropies[i] = -(np.exp(logs) * logs).sum(-1)
    return out, entropies


def _hidden_states(model: NumpyGPT, rows: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Batches of (row indices, hidden states); states beyond the end of a row are padding.

    Attention is causal, so padding at the end does not change the states before it.
    """
    for batch in _batches(rows):
        padded = np.zeros((len(batch), max(len(rows[i]) for i in batch)), dtype=int)
        for row, i in zip(padded, batch, strict=True):
            row[: len(rows[i])] = rows[i]
        yield batch, model.forward(padded)[0]


def _batches(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Row indices sorted by length, in batches of at most MAX_BATCH_TOKENS tokens."""
    out: list[list[int]] = []
    total = MAX_BATCH_TOKENS
    for i in sorted(range(len(rows)), key=lambda i: len(rows[i])):
        if total + len(rows[i]) > MAX_BATCH_TOKENS:
            out.append([])
            total = 0
        out[-1].append(i)
        total += len(rows[i])
    return out
