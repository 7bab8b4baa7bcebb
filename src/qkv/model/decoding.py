"""Batched greedy and sampled decoding of prompts of different lengths, with KV caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.model.config import MAX_INTEGER, shortened
from qkv.model.gpt import GPT
from qkv.model.kv_cache import KVCache
from qkv.model.packed_sequences import PackedLayout

DEFAULT_BATCH_SIZE = 1024  # prompts that are decoded together
MIN_SHARED_PREFIX = 4  # tokens that all prompts must start with for the prefix to be processed once for all of them
MAX_PREFILL_TOKENS = (
    4096  # tokens of prompts that are processed at a time; more no longer fit in the processor's caches
)


@dataclass(frozen=True)
class Decoded:
    """Continuations of prompts.

    Attributes:
        tokens: the new tokens after each prompt, up to the stop token, which is left out.
        log_probabilities: the log-probability of each new token under the model, or None if not asked for.
    """

    tokens: list[list[int]]
    log_probabilities: list[list[float]] | None = None


@dataclass(frozen=True)
class Sampler:
    """How the next token is chosen: the likeliest one (temperature 0), or a random one.

    Attributes:
        temperature: what logits are divided by; 0 for greedy decoding.
        top_k: sample among the k likeliest tokens only; 0 for all.
        top_p: sample among the fewest likeliest tokens whose probabilities add up to p (nucleus sampling).
        seed: seed of the random numbers; each prompt and step has one of its own.

    Raises:
        QkvError: if a field is out of range.

    Example:
        >>> import torch
        >>> from qkv.model import Sampler
        >>> logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
        >>> Sampler()(logits, torch.tensor([0.9])).tolist()  # greedy: the likeliest, whatever the random number
        [0]
        >>> Sampler(temperature=1.0)(logits, torch.tensor([0.9], dtype=torch.float64)).tolist()
        [2]
        >>> Sampler(temperature=1.0, top_k=2)(logits, torch.tensor([0.9], dtype=torch.float64)).tolist()
        [1]
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = [f"temperature is {self.temperature}"] if not 0 <= self.temperature < float("inf") else []
        wrong += [f"top_k is {self.top_k}"] if self.top_k < 0 else []
        wrong += [f"top_p is {self.top_p}"] if not 0 < self.top_p <= 1 else []
        wrong += [f"seed is {shortened(self.seed)}"] if not 0 <= self.seed < MAX_INTEGER else []
        if wrong:
            hint = "Give a temperature, top_k and a seed from 0 up, and top_p in (0, 1]"
            raise QkvError("choosing tokens", "; ".join(wrong), hint)

    def __call__(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Choose a token (r,) for each row of logits (r, vocab_size), given a uniform random number (r,) for each."""
        if self.temperature == 0:
            return logits.argmax(-1)
        scaled = logits.double() / self.temperature
        order = scaled.argsort(dim=-1, descending=True, stable=True)
        p = scaled.gather(-1, order).softmax(-1)
        allowed = p.cumsum(-1) - p < self.top_p  # a token is left out if the likelier ones already add up to top_p
        if self.top_k:
            allowed &= torch.arange(p.shape[-1], device=p.device) < self.top_k
        # Inverse of the cumulative distribution of the allowed tokens.
        cumulative = (p * allowed).cumsum(-1)
        rank = (cumulative > uniform[:, None] * cumulative[:, -1:]).int().argmax(-1, keepdim=True)
        return order.gather(-1, rank)[:, 0]


@torch.inference_mode()
def decode(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    sampler: Sampler | None = None,
    *,
    stop: int | None = None,
    log_probabilities: bool = False,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> Decoded:
    """Continue prompts, many at a time; the result does not depend on what else is in the batch.

    Args:
        model: the model; it is put into evaluation mode while decoding.
        prompts: token ids of each prompt, of any lengths.
        max_new_tokens: new tokens after each prompt, at most.
        sampler: how tokens are chosen; greedily if it is None.
        stop: token id that ends a continuation.
        log_probabilities: whether to return the log-probability of each new token.
        batch_size: prompts that are decoded together.

    Returns:
        The new tokens of each prompt, in the order of the prompts.

    Raises:
        QkvError: if there is no prompt, a prompt is empty or has tokens outside the vocabulary, or prompt and new
            tokens do not fit into the model's context length.

    Example:
        >>> import torch
        >>> from qkv.model import GPT, ModelConfig, decode
        >>> _ = torch.manual_seed(0)
        >>> model = GPT(ModelConfig(n_layer=1, n_head=2, d_model=16, context_length=8, vocab_size=20))
        >>> done = decode(model, [[1, 2, 3], [4]], 5, log_probabilities=True)
        >>> [len(tokens) for tokens in done.tokens]
        [5, 5]
        >>> len(done.log_probabilities[0])
        5
    """
    _check(model, prompts, max_new_tokens)
    sampler = sampler or Sampler()
    # One random number for each prompt and step, whatever the batch.
    generator = torch.Generator().manual_seed(sampler.seed)
    uniform = torch.rand(len(prompts), max_new_tokens, dtype=torch.float64, generator=generator)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    out: list[list[int]] = [[] for _ in prompts]
    values: list[list[float]] = [[] for _ in prompts]
    was_training = model.training
    model.eval()
    try:
        for first in range(0, len(order), batch_size):
            batch = order[first : first + batch_size]
            each = _decode_batch(model, [prompts[i] for i in batch], uniform[batch], sampler, stop, log_probabilities)
            for i, tokens, logs in zip(batch, *(x.tolist() for x in each), strict=True):
                end = tokens.index(stop) if stop in tokens else len(tokens)
                out[i], values[i] = tokens[:end], logs[:end]
    finally:
        model.train(was_training)
    return Decoded(out, values if log_probabilities else None)


def _check(model: GPT, prompts: Sequence[Sequence[int]], max_new_tokens: int) -> None:
    """Refuse prompts that cannot be continued."""
    request = f"continuing {len(prompts)} prompts"
    whole(request, "max_new_tokens", max_new_tokens)
    lengths = [len(prompt) for prompt in prompts]
    if not prompts or min(lengths) == 0:
        raise QkvError(request, "one of them is empty" if prompts else "there are none", "Give at least one token each")
    longest, c = max(lengths), model.config
    if longest + max_new_tokens > c.context_length + 1:  # the last new token is never processed
        raise QkvError(
            request, f"the longest has {longest} tokens, and {max_new_tokens} more are wanted",
            f"The model's context length is {c.context_length}: shorten prompts, or ask for fewer tokens",
        )  # fmt: skip
    if max(max(p) for p in prompts) >= c.vocab_size or min(min(p) for p in prompts) < 0:
        raise QkvError(request, f"there are tokens outside 0 to {c.vocab_size - 1}", "Use the model's own tokenizer")


def _decode_batch(
    model: GPT,
    prompts: list[Sequence[int]],
    uniform: Tensor,
    sampler: Sampler,
    stop: int | None,
    log_probabilities: bool,
) -> tuple[Tensor, Tensor]:
    """New tokens (r, max_new_tokens) and log-probabilities, for prompts sorted by length; arbitrary after a stop."""
    device = model.embedding.weight.device
    max_new_tokens = uniform.shape[1]
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    uniform = uniform.to(device)
    tokens = lengths.new_zeros(len(prompts), max_new_tokens)
    values = torch.zeros(len(prompts), max_new_tokens, dtype=torch.float64 if log_probabilities else torch.float32)
    active = torch.arange(len(prompts), device=device)  # prompts whose continuation has not stopped
    # Prefill: process the prompts, fill the caches. The last new token is never processed, so it needs no room there.
    caches = model.cache(len(prompts), int(lengths[-1]) + max_new_tokens - 1)
    logits = _prefill(model, prompts, caches, device)
    for step in range(max_new_tokens):
        # Choose one token for each active prompt.
        chosen = sampler(logits, uniform[active, step])
        tokens[active, step] = chosen
        if log_probabilities:
            values[active.cpu(), step] = logits.double().log_softmax(-1).gather(-1, chosen[:, None])[:, 0].cpu()
        if step == max_new_tokens - 1:
            break
        # Drop the prompts that have stopped.
        if stop is not None and bool((stopped := chosen == stop).any()):
            left = (~stopped).nonzero()[:, 0]
            if not len(left):
                break
            active, chosen = active[left], chosen[left]
            caches = [cache.select(left) for cache in caches]
        # Process the chosen tokens.
        logits = model(chosen, PackedLayout.decoding_step(lengths[active] + step), cache=caches)
    return tokens, values


def _prefill(model: GPT, prompts: list[Sequence[int]], caches: list[KVCache], device: torch.device) -> Tensor:
    """Process prompts and fill their caches, in chunks; the logits (r, vocab_size) after each prompt."""
    prefix = _shared_prefix(prompts) if model.config.attention in ("causal", "rope") else 0
    if prefix:
        once = model.cache(1, prefix)
        model.hidden(
            torch.tensor(prompts[0][:prefix], device=device), PackedLayout([(1, prefix)]).to(device), cache=once
        )
        for cache, one in zip(caches, once, strict=True):
            cache.fill(one, prefix)
        prompts = [prompt[prefix:] for prompt in prompts]
    logits = []
    for first, end in _chunks([len(p) for p in prompts]):
        chunk = prompts[first:end]
        packed = torch.tensor([token for prompt in chunk for token in prompt], device=device)
        shapes = ((len(list(same)), t) for t, same in groupby(map(len, chunk)))
        layout = PackedLayout(shapes, past_length=prefix).to(device)
        last = torch.tensor([len(p) for p in chunk], device=device).cumsum(0) - 1
        logits.append(model(packed, layout, keep=last, cache=[cache.view(first, end) for cache in caches]))
    return torch.cat(logits)


def _shared_prefix(prompts: list[Sequence[int]]) -> int:
    """Tokens that all prompts start with, if they are worth processing once; each prompt keeps one token of its own."""
    first, last = min(map(tuple, prompts)), max(map(tuple, prompts))  # a prefix that these two share, all share
    most = min(map(len, prompts)) - 1
    same = next((i for i in range(most) if first[i] != last[i]), max(0, most))
    return same if len(prompts) > 1 and same >= MIN_SHARED_PREFIX else 0


def _chunks(lengths: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges (first, end) of prompts of at most MAX_PREFILL_TOKENS tokens in all, or of a single prompt."""
    first, total = 0, 0
    for i, length in enumerate(lengths):
        if i > first and total + length > MAX_PREFILL_TOKENS:
            yield first, i
            first, total = i, 0
        total += length
    yield first, len(lengths)
