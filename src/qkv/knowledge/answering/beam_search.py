"""Batched beam search with a KV cache: the most likely whole answers to many prompts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.model.numpy_gpt import NumpyGPT

MAX_BATCH_PROMPTS = 128
PRUNE_NATS = 9.0  # an unfinished answer this far below the best finished one is dropped


class Candidate(NamedTuple):
    """An answer with its log-probability, including that of its end; `ended` is False if the tokens ran out."""

    tokens: tuple[int, ...]
    log_probability: float
    ended: bool


def beam_search(
    model: NumpyGPT, prompts: Sequence[Sequence[int]], beams: int, max_tokens: int, stop: int
) -> list[list[Candidate]]:
    """Up to `beams` answers to each prompt, most likely first, each of up to `max_tokens` tokens before `stop`.

    An answer has as many tokens as its own prompt leaves in the context; a long prompt shortens no other answer.
    """
    longest = max(map(len, prompts), default=0)
    if not prompts or min(map(len, prompts)) == 0 or beams < 1 or max_tokens < 1:
        raise QkvError(
            f"searching {beams} answers of up to {max_tokens} tokens",
            f"there are {len(prompts)} prompts, or an empty one",
            "Give prompts of at least one token, beams ≥ 1 and max_tokens ≥ 1",
        )
    if longest > model.config.context_length:
        raise QkvError(
            "searching answers",
            f"a prompt has {longest} tokens",
            f"The context of the model is {model.config.context_length} tokens: shorten the prompt",
        )
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out: list[list[Candidate]] = [[] for _ in prompts]
    for length, group in groupby(by_length, key=lambda i: len(prompts[i])):  # the model takes sequences of one length
        same_length = list(group)
        for first in range(0, len(same_length), MAX_BATCH_PROMPTS):
            batch = same_length[first : first + MAX_BATCH_PROMPTS]
            room = min(max_tokens, model.config.context_length + 1 - length)
            found = _search(model, np.array([prompts[i] for i in batch]), beams, room, stop)
            for i, candidates in zip(batch, found, strict=True):
                out[i] = candidates
    return out


def _search(model: NumpyGPT, prompts: np.ndarray, beams: int, max_tokens: int, stop: int) -> list[list[Candidate]]:
    n = len(prompts)
    hidden, cache = model.forward(prompts)
    scores, last = _top_tokens(model, hidden[:, -1], beams)
    # If there are more beams than tokens, the other beams start with probability 0 and are filled in later steps.
    unused = ((0, 0), (0, beams - scores.shape[1]))
    scores, last = np.pad(scores, unused, constant_values=-np.inf), np.pad(last, unused, constant_values=stop)
    texts = last[:, :, None]
    done = last == stop
    cache_rows = np.repeat(np.arange(n), beams)
    for _ in range(max_tokens - 1):
        if done.all():
            break
        cache = cache.select(cache_rows)
        hidden, cache = model.forward(last.reshape(-1, 1), cache)
        step, tokens = (each.reshape(n, beams, -1) for each in _top_tokens(model, hidden[:, 0], beams))
        # A finished answer keeps its score: its only continuation is `stop` with log-probability 0.
        step[done], tokens[done] = -np.inf, stop
        step[done, 0] = 0.0
        total = (scores[..., None] + step).reshape(n, -1)
        best = np.argsort(-total, axis=1, kind="stable")[:, :beams]
        scores, parent = np.take_along_axis(total, best, 1), best // step.shape[2]
        last = np.take_along_axis(tokens.reshape(n, -1), best, 1)
        texts = np.concatenate((np.take_along_axis(texts, parent[..., None], 1), last[..., None]), -1)
        done = np.take_along_axis(done, parent, 1) | (last == stop)
        cache_rows = (np.arange(n)[:, None] * beams + parent).ravel()  # each beam continues the cache of its parent
        best_done = np.where(done, scores, -np.inf).max(-1, keepdims=True)
        pruned = ~done & (scores < best_done - PRUNE_NATS)
        scores, done = np.where(pruned, -np.inf, scores), done | pruned
    return [
        [
            Candidate(tuple(text[: text.index(stop)] if stop in text else text), score, ended)
            for text, score, ended in zip(*found, strict=True)
            if score > -np.inf
        ]
        for found in zip(texts.tolist(), scores.tolist(), done.tolist(), strict=True)
    ]


def _top_tokens(model: NumpyGPT, hidden: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities and ids of the `count` most likely next tokens, most likely first."""
    logs = model.log_probabilities(hidden)
    count = min(count, logs.shape[1])
    top = np.argpartition(logs, -count, axis=1)[:, -count:]
    top = np.take_along_axis(top, np.argsort(-np.take_along_axis(logs, top, 1), axis=1, kind="stable"), 1)
    return np.take_along_axis(logs, top, 1), top
