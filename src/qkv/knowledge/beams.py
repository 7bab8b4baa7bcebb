"""The likeliest whole answers, not only the greedy one: beam search over many prompts at once, with remembered keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from qkv.errors import QkvError
from qkv.model.gpt import GPT
from qkv.model.layout import Layout, Shelf

ROWS = 512  # prompts that are searched together
LEAST = 9.0  # nats by which an unfinished answer may fall behind the best finished one before it is given up


class Candidate(NamedTuple):
    """An answer, and the log-probability of it and of its end; `ended` unless there was no room left."""

    tokens: tuple[int, ...]
    log_probability: float
    ended: bool


@torch.inference_mode()
def likeliest(model: GPT, prompts: Sequence[Sequence[int]], width: int, new: int, stop: int) -> list[list[Candidate]]:
    """Up to `width` answers of each prompt, likeliest first, each of up to `new` tokens before `stop`."""
    longest = max(map(len, prompts), default=0)
    if not prompts or min(map(len, prompts)) == 0 or width < 1 or new < 1:
        raise QkvError(
            f"searching {width} answers of up to {new} tokens", f"there are {len(prompts)} prompts, or an empty one",
            "Give at least one token each, and ask for one answer or more",
        )  # fmt: skip
    new = min(new, model.config.block + 1 - longest)
    if new < 1:
        raise QkvError(
            "searching answers", f"a prompt has {longest} tokens", f"The model holds {model.config.block}: shorten it"
        )
    was_training = model.training
    model.eval()
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out: list[list[Candidate]] = [[] for _ in prompts]
    for first in range(0, len(order), ROWS):
        some = order[first : first + ROWS]
        for i, found in zip(some, _search(model, [prompts[i] for i in some], width, new, stop), strict=True):
            out[i] = found
    model.train(was_training)
    return out


def _search(model: GPT, prompts: list[Sequence[int]], width: int, new: int, stop: int) -> list[list[Candidate]]:
    device = model.embedding.weight.device
    n, lengths = len(prompts), torch.tensor([len(p) for p in prompts], device=device)
    cache = model.cache(n, int(lengths[-1]) + new)
    layout = Layout((len(list(same)), t) for t, same in groupby(map(len, prompts))).to(device)
    row = torch.tensor([token for prompt in prompts for token in prompt], device=device)
    logits = model(row, layout, keep=lengths.cumsum(0) - 1, cache=cache)
    vocab = logits.shape[-1]
    width = min(width, vocab)
    scores, picked = logits.double().log_softmax(-1).topk(width)  # (n, width)
    texts = picked[:, :, None]
    done = picked == stop
    for shelf in cache:
        shelf.k, shelf.v = shelf.k.repeat_interleave(width, 0), shelf.v.repeat_interleave(width, 0)
    places = lengths.repeat_interleave(width)
    for step in range(new - 1):
        if bool(done.all()):
            break
        logits = model(picked.flatten(), Layout.step(places + step), keep=None, cache=cache)
        more = logits.double().log_softmax(-1).view(n, width, vocab)
        # An answer that has ended stays what it is: its one continuation is the end again, at no cost.
        more[done] = -torch.inf
        more[..., stop] = torch.where(done, 0.0, more[..., stop])
        scores, at = (scores[..., None] + more).flatten(1).topk(width)
        beam, picked = at // vocab, at % vocab
        texts = torch.cat((texts.gather(1, beam[..., None].expand(-1, -1, texts.shape[-1])), picked[..., None]), -1)
        done = done.gather(1, beam) | (picked == stop)
        _reorder(cache, beam, width)
        best = scores.masked_fill(~done, -torch.inf).amax(-1, keepdim=True)
        behind = ~done & (scores < best - LEAST)
        scores, done = scores.masked_fill(behind, -torch.inf), done | behind
    return [
        [
            Candidate(tuple(tokens[: tokens.index(stop)] if stop in tokens else tokens), score, end)
            for tokens, score, end in zip(*each, strict=True)
            if score > -torch.inf
        ]
        for each in zip(texts.tolist(), scores.tolist(), done.tolist(), strict=True)
    ]


def _reorder(cache: list[Shelf], beam: Tensor, width: int) -> None:
    """Let each beam remember what the one it continues remembers."""
    if bool((beam == torch.arange(width, device=beam.device)).all()):
        return
    rows = (torch.arange(len(beam), device=beam.device)[:, None] * width + beam).flatten()
    for shelf in cache:
        shelf.k, shelf.v = shelf.k[rows], shelf.v[rows]
