"""A GPT with a slot for attention, from token to logits: to be read from top to bottom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from qkv.core import masks, variants
from qkv.core.attention import read
from qkv.core.kernels.causal import SHORT
from qkv.core.kernels.equal_length import even_causal
from qkv.core.kernels.ragged import rows_causal
from qkv.core.rotary import complex_of, paired, rotations, turned
from qkv.model.config import ModelConfig
from qkv.model.layers import dropout, norm, picked
from qkv.model.linear import Linear, product
from qkv.model.mlp import MLP, SwiGLU
from qkv.model.packed_sequences import KVCache, PackedLayout, fits


class GPT(nn.Module):
    """Embed tokens, let blocks read and think, and say how likely each next token is.

    `causal` is GPT-2, `rope` is Llama; `synthesizer` chooses places, not contents, to read from; `perceiver`
    squeezes the sequence through a few latents.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.places = None if c.attention == "rope" else nn.Embedding(c.context_length, c.d_model)
        self.latents = nn.Embedding(c.latents, c.d_model) if c.attention == "perceiver" else None
        self.blocks: Any = nn.ModuleList(Block(c, attention_of(c, layer)) for layer in range(c.n_layer))
        self.norm = norm(c)
        self.head = Linear(c.d_model, c.vocab_size, bias=False)
        if c.tie_embeddings:
            self.head.weight = self.embedding.weight
        self.apply(partial(initialise, layers=c.n_layer))

    def forward(
        self,
        tokens: Tensor,
        layout: PackedLayout | None = None,
        keep: Tensor | None = None,
        targets: Tensor | None = None,
        cache: Sequence[KVCache] | None = None,
    ) -> Tensor:
        """Logits of the next token, from tokens (b, t) or from a long row (N,) of sequences in a layout.

        `keep` picks the tokens of the row whose logits are wanted: the last block computes no others. With
        `targets`, one for each kept token and -1 for nothing, the result is the sum of their losses.
        """
        if layout is None:
            layout = PackedLayout([(tokens.shape[0], tokens.shape[1])]).to(tokens.device)
        logits = self.head(self.hidden(tokens.flatten(), layout, keep, cache))
        if targets is not None:
            exact = logits.float() if logits.dtype == torch.bfloat16 else logits
            return F.cross_entropy(exact, targets, ignore_index=-1, reduction="sum")
        return logits if keep is not None else logits.view(*tokens.shape, -1)

    @property
    def ragged(self) -> bool:
        """Whether rows of many different lengths cost no more than those of a few."""
        c = self.config
        return (
            c.attention in ("causal", "rope")
            and c.context_length <= SHORT
            and self.embedding.weight.device.type == "cpu"
        )

    def hidden(
        self, tokens: Tensor, layout: PackedLayout, keep: Tensor | None = None, cache: Sequence[KVCache] | None = None
    ) -> Tensor:
        """The vectors (N, width) from which the logits are read, or those of the kept tokens."""
        fits("running a model", layout.longest, self.config.context_length)
        x = self.embedding(tokens)
        if self.places is not None:
            x = x + self.places(layout.positions)
        if self.training:
            x = dropout(x, self.config.dropout)
        shelves: Sequence[KVCache | None] = cache or [None] * len(self.blocks)
        if self.latents is not None:
            return self.norm(self._through_latents(x, layout, shelves, keep))
        for i, (block, shelf) in enumerate(zip(self.blocks, shelves, strict=True)):
            x = block(x, layout, shelf, keep=keep if i == len(self.blocks) - 1 else None)
        return self.norm(x)

    def _through_latents(
        self, x: Tensor, tokens: PackedLayout, shelves: Sequence[KVCache | None], keep: Tensor | None
    ) -> Tensor:
        """The first block reads tokens into latents, the last reads latents back out, the others work on latents."""
        assert self.latents is not None
        reading, *working, writing = self.blocks
        stride = self.config.stride
        source = reading.attention.items(x, tokens, shelves[0])
        if tokens.steps:
            # A latent is made when its last token comes: in this step, for the sequences where that is so.
            ready = ((tokens.positions + 1) % stride == 0).nonzero()[:, 0]
            inner = PackedLayout.step(tokens.positions[ready] // stride, ready)
            made_from, readable = (
                PackedLayout.step(tokens.positions[ready], ready),
                PackedLayout.step(tokens.positions // stride - 1),
            )
        else:
            # A latent that the sequence does not fill is read by nobody; but there is one, since no shape is empty.
            inner = PackedLayout((b, max(1, t // stride)) for b, t in tokens.shapes).to(tokens.device)
            made_from, readable = tokens, inner
        results = None
        if len(inner.positions):
            z = reading(self.latents(inner.positions), inner, shelves[0], source=(source, made_from))
            for block, shelf in zip(working, shelves[1:-1], strict=True):
                z = block(z, inner, shelf)
            results = writing.attention.items(z, inner, shelves[-1])
        return writing(x, tokens, shelves[-1], source=(results, readable), keep=keep)

    def cache(self, rows: int, places: int) -> list[KVCache]:
        """Empty shelves for decoding `rows` sequences of up to `places` tokens."""
        c = self.config
        # A perceiver's first block remembers tokens, the others latents.
        later = places if self.latents is None else max(1, places // c.stride)
        return [
            KVCache(rows, n, c.n_kv_head_effective, c.head_dim, self.embedding.weight)
            for n in (places, *[later] * (c.n_layer - 1))
        ]


class Block(nn.Module):
    """Read with attention, then think with an MLP; each adds to what was there."""

    def __init__(self, config: ModelConfig, attention: nn.Module) -> None:
        super().__init__()
        self.rate = config.dropout
        self.norm1, self.attention = norm(config), cast(Any, attention)
        self.norm2, self.mlp = norm(config), (SwiGLU if config.attention == "rope" else MLP)(config)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        shelf: KVCache | None = None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        rate = self.rate if self.training else 0.0
        # If only some tokens are kept, no later block reads the others: what is left is theirs alone.
        read = self.attention(self.norm1(x), layout, shelf, source, keep)
        x = picked(x, keep) + dropout(self.attention.out(read), rate)
        return x + dropout(self.mlp(self.norm2(x)), rate)


class SelfAttention(nn.Module):
    """Each token reads itself and what came before; with rope, queries and keys are turned by their places first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = config
        self.heads, self.shared, self.size = c.n_head, c.n_kv_head_effective, c.head_dim
        bias = c.bias and c.attention != "rope"
        self.qkv = Linear(c.d_model, (c.n_head + 2 * c.n_kv_head_effective) * c.head_dim, bias)
        self.out = Linear(c.d_model, c.d_model, bias)
        self.turns: Tensor | None
        self.order: Tensor | None
        rope = c.attention == "rope"
        self.register_buffer(
            "turns", rotations(c.context_length, c.head_dim, c.rope_theta) if rope else None, persistent=False
        )
        self.register_buffer(
            "order",
            paired(c.n_head + c.n_kv_head_effective, c.n_kv_head_effective, c.head_dim) if rope else None,
            persistent=False,
        )

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        shelf: KVCache | None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        # With pairs that turn together as neighbours, turning is one product of complex numbers; q·k stays the same.
        weight, bias = picked(self.qkv.weight, self.order), self.qkv.bias
        turns = None if self.turns is None else complex_of(self.turns[layout.positions])[:, None]
        scale, first = self.size**-0.5, self.heads * self.size
        short = shelf is None and layout.longest <= SHORT and x.device.type == "cpu"
        if keep is not None and not layout.steps and (short or shelf is not None):
            ask, know = (None, None) if bias is None else (bias[:first], bias[first:])
            asking, whole = self._heads(picked(x, keep), weight[:first], ask), self._heads(x, weight[first:], know)
            turn = None if turns is None else turns[keep]
            if shelf is None:
                return rows_causal(whole, asking, layout.taken(keep), self.shared, scale, (turns, turn)).flatten(1)
            k, v = whole.chunk(2, dim=1)
            shelf.put(layout, k if turns is None else turned(k, turns), v)
            return step(asking if turn is None else turned(asking, turn), layout.asking(keep), shelf, scale)
        if short:
            each = self._heads(x, weight, bias)
            if layout.even:
                return even_causal(each, layout.longest, self.shared, scale, turns).flatten(1)
            return rows_causal(each, None, layout.taken(), self.shared, scale, (turns,)).flatten(1)
        qk, v = self._heads(x, weight, bias).split((self.heads + self.shared, self.shared), dim=1)
        q, k = (qk if turns is None else turned(qk, turns)).split((self.heads, self.shared), dim=1)
        return picked(attend(variants.causal, q, k, v, layout, shelf, scale), keep)

    def _heads(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return product(x, weight, bias).unflatten(-1, (-1, self.size))


class Synthesizer(nn.Module):
    """Weights from the token alone, softmax(relu(xA + b₁)B + b₂): attention whose keys are learned for places."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = config
        self.heads, self.size = c.n_head, c.head_dim
        self.qv = Linear(c.d_model, 2 * c.d_model, c.bias)
        # For each head and place a column of B and, as one more coordinate, the entry of b₂.
        self.keys = nn.Parameter(torch.empty(c.context_length, c.n_head, c.head_dim + 1))
        self.out = Linear(c.d_model, c.d_model, c.bias)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        shelf: KVCache | None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        q, v = self.qv(x).unflatten(-1, (-1, self.size)).chunk(2, dim=1)
        q = F.pad(q, (0, 1), value=1.0)
        if shelf is not None:
            shelf.put(layout, v, v)
        if layout.steps:
            assert shelf is not None
            values = shelf.get(layout)[1]
            places, seen = self.keys[: values.shape[2]].transpose(0, 1), layout.seen(values.shape[2])
            read = variants.full(torch.relu(q)[:, :, None], places, values, scale=1.0, mask=seen)
            return picked(layout.join([read]), keep)
        each = [
            variants.synthesizer(q, self.keys[: q.shape[2]].transpose(0, 1), v, scale=1.0)
            for q, v in zip(layout.split(q), layout.split(v), strict=True)
        ]
        return picked(layout.join(each), keep)


class CrossAttention(nn.Module):
    """Some read others: latents the tokens (`read_in`), or tokens the latents (`read_out`)."""

    def __init__(self, config: ModelConfig, kind: variants.Variant) -> None:
        super().__init__()
        c = config
        self.kind, self.size = kind, c.head_dim
        self.q = Linear(c.d_model, c.d_model, c.bias)
        self.norm, self.kv = norm(c), Linear(c.d_model, 2 * c.d_model, c.bias)
        self.out = Linear(c.d_model, c.d_model, c.bias)

    def items(self, x: Tensor, layout: PackedLayout, shelf: KVCache | None) -> tuple[Tensor, Tensor]:
        """The keys and values of what will be read, remembered if there is a shelf."""
        k, v = self.kv(self.norm(x)).unflatten(-1, (-1, self.size)).chunk(2, dim=1)
        if shelf is not None:
            shelf.put(layout, k, v)
        return k, v

    def forward(
        self, x: Tensor, layout: PackedLayout, shelf: KVCache | None, source: Source | None, keep: Tensor | None = None
    ) -> Tensor:
        assert source is not None
        (items, where), q = source, self.q(x).unflatten(-1, (-1, self.size))
        scale = self.size**-0.5
        if layout.steps:
            assert shelf is not None
            k, v = shelf.get(where)
            read = variants.full(q[:, :, None], k, v, scale=scale, mask=where.seen(v.shape[2]))
            return picked(layout.join([read]), keep)
        assert items is not None
        split = zip(layout.split(q), *map(where.split, items), strict=True)
        return picked(layout.join([self.kind(q, k, v, scale=scale) for q, k, v in split]), keep)


Source = tuple[tuple[Tensor, Tensor] | None, PackedLayout]
"""Keys and values to read from, and how they lie; in a step they are on the shelf."""


def attend(
    kind: variants.Variant, q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout, shelf: KVCache | None, scale: float
) -> Tensor:
    """What each token reads, (N, width), from the sequences in the row and from those that are remembered."""
    heads = q.shape[1]
    if shelf is not None:
        shelf.put(layout, k, v)
    if layout.steps:
        assert shelf is not None
        return step(q, layout, shelf, scale)
    if layout.after:
        assert shelf is not None
        parts = []
        for queries, (k, v) in zip(layout.split(q), shelf.filled(layout), strict=True):
            seen = masks.causal(k.shape[2], device=q.device)[layout.after :]
            parts.append(read(queries, variants.share(k, heads), variants.share(v, heads), scale, seen)[1])
        return layout.join(parts)
    split = zip(layout.split(q), layout.split(k), layout.split(v), strict=True)
    return layout.join([kind(q, variants.share(k, heads), variants.share(v, heads), scale=scale) for q, k, v in split])


def step(q: Tensor, layout: PackedLayout, shelf: KVCache, scale: float) -> Tensor:
    """What one query of each sequence (r, heads, size) reads from what is remembered, (r, width)."""
    k, v = shelf.get(layout)
    # Heads that share keys are rows of one product; weights in view, since one query's are few.
    return read(q.unflatten(1, (k.shape[1], -1)), k, v, scale, layout.seen(v.shape[2]))[1].flatten(1)


def attention_of(config: ModelConfig, layer: int) -> nn.Module:
    """The attention that fills the slot of a block."""
    if config.attention == "synthesizer":
        return Synthesizer(config)
    if config.attention == "perceiver" and layer == 0:
        return CrossAttention(config, partial(variants.read_in, stride=config.stride))
    if config.attention == "perceiver" and layer == config.n_layer - 1:
        return CrossAttention(config, partial(variants.read_out, stride=config.stride))
    return SelfAttention(config)


def initialise(module: nn.Module, layers: int) -> None:
    """Small normal weights; what adds to the residual stream is smaller, the more blocks add to it."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, Synthesizer):
        nn.init.normal_(module.keys, std=0.02)
    if isinstance(module, Block):
        for out in cast(Any, (module.attention.out, module.mlp.out)):
            nn.init.normal_(out.weight, std=0.02 / math.sqrt(2 * layers))
