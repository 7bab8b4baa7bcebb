"""Continue many prompts of different lengths at once, with remembered keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.model.gpt import GPT
from qkv.model.packed_sequences import KVCache, PackedLayout

ROWS = 1024  # prompts that are continued together, unless told otherwise
COMMON = 4  # tokens at the beginning of all prompts from which on they are read once for all
CHUNK = 4096  # tokens of prompts that are read together: more fall out of the processor's caches


@dataclass(frozen=True)
class Decoded:
    """New tokens for each prompt, up to a stop token which is left out; and the log-probability of each."""

    tokens: list[list[int]]
    log_probabilities: list[list[float]] | None = None


@dataclass(frozen=True)
class Sampler:
    """How the next token is chosen: the likeliest, or at random from the likely ones."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = [f"temperature is {self.temperature}"] if not 0 <= self.temperature < float("inf") else []
        wrong += [f"top_k is {self.top_k}"] if self.top_k < 0 else []
        wrong += [f"top_p is {self.top_p}"] if not 0 < self.top_p <= 1 else []
        if wrong:
            raise QkvError(
                "choosing tokens", "; ".join(wrong), "Give a temperature and top_k from 0 up, and top_p in (0, 1]"
            )

    def __call__(self, logits: Tensor, chance: Tensor) -> Tensor:
        """A token for each row (r, vocab), given one uniform random number for each."""
        if self.temperature == 0:
            return logits.argmax(-1)
        scaled = logits.double() / self.temperature
        order = scaled.argsort(dim=-1, descending=True, stable=True)
        p = scaled.gather(-1, order).softmax(-1)
        below = p.cumsum(-1) - p  # the chance of all that are likelier
        keep = below < self.top_p
        if self.top_k:
            keep &= torch.arange(p.shape[-1], device=p.device) < self.top_k
        mass = (p * keep).cumsum(-1)
        at = (mass > chance[:, None] * mass[:, -1:]).int().argmax(-1, keepdim=True)
        return order.gather(-1, at)[:, 0]


@torch.inference_mode()
def decode(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    new: int,
    choice: Sampler | None = None,
    *,
    stop: int | None = None,
    log_probabilities: bool = False,
    rows: int = ROWS,
) -> Decoded:
    """Up to `new` tokens after each prompt; the result does not depend on what else is in the batch."""
    asked = f"continuing {len(prompts)} prompts"
    whole(asked, "new", new)
    lengths = [len(prompt) for prompt in prompts]
    if not prompts or min(lengths) == 0:
        raise QkvError(asked, "one of them is empty" if prompts else "there are none", "Give at least one token each")
    longest, vocab = max(lengths), model.config.vocab_size
    if longest + new > model.config.context_length + 1:
        raise QkvError(
            asked, f"the longest has {longest} tokens, and {new} more are wanted",
            f"The model holds {model.config.context_length}: shorten prompts, or ask for fewer",
        )  # fmt: skip
    if max(max(p) for p in prompts) >= vocab or min(min(p) for p in prompts) < 0:
        raise QkvError(asked, f"there are tokens outside 0 to {vocab - 1}", "Use the model's own tokenizer")
    choice = choice or Sampler()
    # One random number for each prompt and step, whatever the batch.
    chances = torch.rand(len(prompts), new, dtype=torch.float64, generator=torch.Generator().manual_seed(choice.seed))
    was_training = model.training
    model.eval()
    order = sorted(range(len(prompts)), key=lengths.__getitem__)
    out: list[list[int]] = [[] for _ in prompts]
    scores: list[list[float]] = [[] for _ in prompts]
    for first in range(0, len(order), rows):
        some = order[first : first + rows]
        chosen, sure = _together(model, [prompts[i] for i in some], new, choice, chances[some], stop, log_probabilities)
        for i, tokens, values in zip(some, chosen.tolist(), sure.tolist(), strict=True):
            end = tokens.index(stop) if stop in tokens else len(tokens)
            out[i], scores[i] = tokens[:end], values[:end]
    model.train(was_training)
    return Decoded(out, scores if log_probabilities else None)


def _together(
    model: GPT, prompts: list[Sequence[int]], new: int, choice: Sampler, chances: Tensor, stop: int | None, sure: bool
) -> tuple[Tensor, Tensor]:
    """New tokens (r, new) and their log-probabilities for prompts sorted by length; after a stop, anything."""
    device = model.embedding.weight.device
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    cache = model.cache(len(prompts), int(lengths[-1]) + new - 1)  # what the last new token leads to, nobody asks
    chances = chances.to(device)
    logits = _read(model, prompts, cache, device)
    tokens = lengths.new_zeros(len(prompts), new)
    values = torch.zeros(len(prompts), new, dtype=torch.float64 if sure else torch.float32)
    alive = torch.arange(len(prompts), device=device)
    for step in range(new):
        picked = choice(logits, chances[alive, step])
        tokens[alive, step] = picked
        if sure:
            values[alive.cpu(), step] = logits.double().log_softmax(-1).gather(-1, picked[:, None])[:, 0].cpu()
        if step == new - 1:
            break
        if stop is not None and bool((done := picked == stop).any()):
            left = (~done).nonzero()[:, 0]
            if not len(left):
                break
            alive, picked = alive[left], picked[left]
            for shelf in cache:
                shelf.k, shelf.v = shelf.k[left], shelf.v[left]
        logits = model(picked, PackedLayout.step(lengths[alive] + step), keep=None, cache=cache)
    return tokens, values


def _common(prompts: list[Sequence[int]]) -> int:
    """Tokens with which all prompts begin, if they are worth reading once for all; each keeps one of its own."""
    first, last = min(map(tuple, prompts)), max(map(tuple, prompts))  # if these two begin alike, all do
    most = min(map(len, prompts)) - 1
    same = next((i for i in range(most) if first[i] != last[i]), max(0, most))
    return same if len(prompts) > 1 and same >= COMMON else 0


def _read(model: GPT, prompts: list[Sequence[int]], cache: list[KVCache], device: torch.device) -> Tensor:
    """Read prompts into the cache, some at a time; the logits after each."""
    logits, first = [], 0
    common = _common(prompts) if model.config.attention in ("causal", "rope") else 0
    if common:
        once = model.cache(1, common)
        model.hidden(
            torch.tensor(prompts[0][:common], device=device), PackedLayout([(1, common)]).to(device), cache=once
        )
        for shelf, one in zip(cache, once, strict=True):
            shelf.repeat(one, common)
        prompts = [prompt[common:] for prompt in prompts]
    while first < len(prompts):
        count, total = 0, 0
        while first + count < len(prompts) and (count == 0 or total + len(prompts[first + count]) <= CHUNK):
            total += len(prompts[first + count])
            count += 1
        some = prompts[first : first + count]
        row = torch.tensor([token for prompt in some for token in prompt], device=device)
        layout = PackedLayout(((len(list(same)), t) for t, same in groupby(map(len, some))), after=common).to(device)
        last = torch.tensor([len(p) for p in some], device=device).cumsum(0) - 1
        part = [shelf.part(first, first + count) for shelf in cache]
        logits.append(model(row, layout, keep=last, cache=part))
        first += count
    return torch.cat(logits)
