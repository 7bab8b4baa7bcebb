"""The likeliest whole answers, not only the greedy one: beam search over many prompts at once, with remembered keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.model.numpy_gpt import NumpyGPT

ROWS = 128  # prompts that are searched together
LEAST = 9.0  # nats by which an unfinished answer may fall behind the best finished one before it is given up


class Candidate(NamedTuple):
    """An answer, and the log-probability of it and of its end; `ended` unless there was no room left."""

    tokens: tuple[int, ...]
    log_probability: float
    ended: bool


def likeliest(
    model: NumpyGPT, prompts: Sequence[Sequence[int]], width: int, new: int, stop: int
) -> list[list[Candidate]]:
    """Up to `width` answers of each prompt, likeliest first, each of up to `new` tokens before `stop`."""
    longest = max(map(len, prompts), default=0)
    if not prompts or min(map(len, prompts)) == 0 or width < 1 or new < 1:
        raise QkvError(
            f"searching {width} answers of up to {new} tokens", f"there are {len(prompts)} prompts, or an empty one",
            "Give at least one token each, and ask for one answer or more",
        )  # fmt: skip
    new = min(new, model.config.context_length + 1 - longest)
    if new < 1:
        raise QkvError(
            "searching answers",
            f"a prompt has {longest} tokens",
            f"The model holds {model.config.context_length}: shorten it",
        )
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out: list[list[Candidate]] = [[] for _ in prompts]
    for _, same in groupby(order, key=lambda i: len(prompts[i])):
        alike = list(same)
        for first in range(0, len(alike), ROWS):
            some = alike[first : first + ROWS]
            found = _search(model, np.array([prompts[i] for i in some]), width, new, stop)
            for i, candidates in zip(some, found, strict=True):
                out[i] = candidates
    return out


def _search(model: NumpyGPT, prompts: np.ndarray, width: int, new: int, stop: int) -> list[list[Candidate]]:
    n = len(prompts)
    hidden, past = model.read(prompts)
    scores, picked = _next(model, hidden[:, -1], width)
    spare = ((0, 0), (0, width - scores.shape[1]))  # more beams than first tokens: these wait, impossible, for others
    scores, picked = np.pad(scores, spare, constant_values=-np.inf), np.pad(picked, spare, constant_values=stop)
    texts = picked[:, :, None]
    done = picked == stop
    rows = np.repeat(np.arange(n), width)
    for _ in range(new - 1):
        if done.all():
            break
        past = past.pick(rows)
        hidden, past = model.read(picked.reshape(-1, 1), past)
        more, tokens = (each.reshape(n, width, -1) for each in _next(model, hidden[:, 0], width))
        # An answer that has ended stays what it is: its one continuation is the end again, at no cost.
        more[done], tokens[done] = -np.inf, stop
        more[done, 0] = 0.0
        each = (scores[..., None] + more).reshape(n, -1)
        at = np.argsort(-each, axis=1, kind="stable")[:, :width]
        scores, beam = np.take_along_axis(each, at, 1), at // more.shape[2]
        picked = np.take_along_axis(tokens.reshape(n, -1), at, 1)
        texts = np.concatenate((np.take_along_axis(texts, beam[..., None], 1), picked[..., None]), -1)
        done = np.take_along_axis(done, beam, 1) | (picked == stop)
        rows = (np.arange(n)[:, None] * width + beam).ravel()  # each beam remembers what the one it continues does
        best = np.where(done, scores, -np.inf).max(-1, keepdims=True)
        behind = ~done & (scores < best - LEAST)
        scores, done = np.where(behind, -np.inf, scores), done | behind
    return [
        [
            Candidate(tuple(text[: text.index(stop)] if stop in text else text), score, end)
            for text, score, end in zip(*found, strict=True)
            if score > -np.inf
        ]
        for found in zip(texts.tolist(), scores.tolist(), done.tolist(), strict=True)
    ]


def _next(model: NumpyGPT, hidden: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest next tokens, and how likely they are: the heirs of a beam are among them."""
    logs = model.logs(hidden)
    count = min(count, logs.shape[1])
    at = np.argpartition(logs, -count, axis=1)[:, -count:]
    at = np.take_along_axis(at, np.argsort(-np.take_along_axis(logs, at, 1), axis=1, kind="stable"), 1)
    return np.take_along_axis(logs, at, 1), at
