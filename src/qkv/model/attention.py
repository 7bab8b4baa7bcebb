"""The attention layers of a block: SelfAttention, Synthesizer, CrossAttention.

All take packed tokens (N, d_model) and return the heads' outputs side by side, (N, d_model); the block applies `out`,
the output projection. With `keep`, they return only the rows of these tokens. With a KV cache, they store the new
tokens' keys and values there and attend what the cache holds.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from qkv.core import variants
from qkv.core.attention import read
from qkv.core.kernels import causal_attention, packed_causal_attention, repeat_kv
from qkv.core.rotary import apply_rotary, interleaved_order, rotary_table, rotations_at
from qkv.model.config import ModelConfig
from qkv.model.kv_cache import KVCache
from qkv.model.layers import norm, select_rows
from qkv.model.linear import Linear, linear
from qkv.model.packed_sequences import PackedLayout


class Source(NamedTuple):
    """What CrossAttention attends: keys and values, and their layout; in a decoding step they are in the KV cache."""

    keys_values: tuple[Tensor, Tensor] | None
    layout: PackedLayout


def make_attention(config: ModelConfig, layer: int) -> nn.Module:
    """The attention layer of block `layer`."""
    if config.attention == "synthesizer":
        return Synthesizer(config)
    if config.attention == "perceiver" and layer == 0:
        return CrossAttention(config, partial(variants.read_in, stride=config.stride))
    if config.attention == "perceiver" and layer == config.n_layer - 1:
        return CrossAttention(config, partial(variants.read_out, stride=config.stride))
    return SelfAttention(config)


class SelfAttention(nn.Module):
    """Causal self-attention; for `rope` with rotary positions and grouped queries."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = config
        self.n_head, self.n_kv_head, self.head_dim = c.n_head, c.n_kv_head_effective, c.head_dim
        rope = c.attention == "rope"
        bias = c.bias and not rope
        self.qkv = Linear(c.d_model, (self.n_head + 2 * self.n_kv_head) * self.head_dim, bias)
        self.out = Linear(c.d_model, c.d_model, bias)
        self.rotary_table: Tensor | None
        self.row_order: Tensor | None
        table = rotary_table(c.context_length, self.head_dim, c.rope_theta) if rope else None
        order = interleaved_order(self.n_head + self.n_kv_head, self.n_kv_head, self.head_dim) if rope else None
        self.register_buffer("rotary_table", table, persistent=False)
        self.register_buffer("row_order", order, persistent=False)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        cache: KVCache | None = None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        scale = self.head_dim**-0.5
        # Rotary positions: the projection gives interleaved pairs, which are rotated as complex numbers.
        weight, bias = select_rows(self.qkv.weight, self.row_order), self.qkv.bias
        rotation = None if self.rotary_table is None else rotations_at(self.rotary_table, layout.positions)
        # Project to heads. Only tokens in `keep` need queries; all tokens need keys and values.
        if keep is None:
            queries, qkv = None, self._heads(x, weight, bias)
        else:
            n = self.n_head * self.head_dim
            q_bias, kv_bias = (None, None) if bias is None else (bias[:n], bias[n:])
            queries = self._heads(select_rows(x, keep), weight[:n], q_bias)
            qkv = self._heads(x, weight[n:], kv_bias)
        # Training and evaluation: causal attention within each packed sequence.
        if cache is None:
            return packed_causal_attention(qkv, layout, self.n_kv_head, scale, rotation, queries=queries, keep=keep)
        # Decoding: rotate, store the new keys and values, attend all that the cache holds.
        q, k, v = self._rotated(queries, qkv, rotation, keep)
        cache.append(layout, k, v)
        return attend_cached(q, layout, cache, scale, keep)

    def _heads(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x Wᵀ + b as heads, (N, heads, head_dim)."""
        return linear(x, weight, bias).unflatten(-1, (-1, self.head_dim))

    def _rotated(
        self, queries: Tensor | None, qkv: Tensor, rotation: Tensor | None, keep: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys, and values; `qkv` has no queries if they are given."""
        if queries is None:
            qk, v = qkv.split((self.n_head + self.n_kv_head, self.n_kv_head), dim=1)
            q, k = (qk if rotation is None else apply_rotary(qk, rotation)).split((self.n_head, self.n_kv_head), dim=1)
            return q, k, v
        k, v = qkv.chunk(2, dim=1)
        if rotation is None:
            return queries, k, v
        return apply_rotary(queries, rotation[keep]), apply_rotary(k, rotation), v


class Synthesizer(nn.Module):
    """Attention weights from the token alone, softmax(relu(xA + b₁)B + b₂): learned keys for positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        c = config
        self.n_head, self.head_dim = c.n_head, c.head_dim
        self.qv = Linear(c.d_model, 2 * c.d_model, c.bias)
        # For each position and head, a column of B and, as one more coordinate, the entry of b₂.
        self.keys = nn.Parameter(torch.empty(c.context_length, c.n_head, c.head_dim + 1))
        self.out = Linear(c.d_model, c.d_model, c.bias)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        cache: KVCache | None = None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        # Project to heads; the query's last coordinate, 1, multiplies b₂.
        q, v = self.qv(x).unflatten(-1, (-1, self.head_dim)).chunk(2, dim=1)
        q = F.pad(q, (0, 1), value=1.0)
        if cache is not None:
            cache.append(layout, v, v)  # keys belong to positions: only the values are read again
        # Decoding step: each new token attends the cached positions up to its own.
        if layout.is_step:
            assert cache is not None
            values = cache.for_step(layout)[1]
            n = values.shape[2]
            out = variants.full(torch.relu(q)[:, :, None], self._keys(n), values, scale=1.0, mask=layout.attended(n))
            return select_rows(layout.join([out]), keep)
        # Otherwise: causal attention, shape by shape.
        sequences = layout.split(v) if cache is None else [v for _, v in cache.sequences_of(layout)]
        parts = [
            variants.synthesizer(q, self._keys(v.shape[2]), v, scale=1.0)
            for q, v in zip(layout.split(q), sequences, strict=True)
        ]
        return select_rows(layout.join(parts), keep)

    def _keys(self, n: int) -> Tensor:
        """Keys (heads, n, head_dim + 1) of the first n positions."""
        return self.keys[:n].transpose(0, 1)


class CrossAttention(nn.Module):
    """Attention from one set of vectors to another: latents to tokens (`read_in`), tokens to latents (`read_out`)."""

    def __init__(self, config: ModelConfig, variant: variants.Variant) -> None:
        super().__init__()
        c = config
        self.variant, self.head_dim = variant, c.head_dim
        self.q = Linear(c.d_model, c.d_model, c.bias)
        self.norm, self.kv = norm(c), Linear(c.d_model, 2 * c.d_model, c.bias)
        self.out = Linear(c.d_model, c.d_model, c.bias)

    def keys_values(self, x: Tensor, layout: PackedLayout, cache: KVCache | None) -> tuple[Tensor, Tensor]:
        """Keys and values (N, heads, head_dim) of the vectors that will be attended; stored, if there is a cache."""
        k, v = self.kv(self.norm(x)).unflatten(-1, (-1, self.head_dim)).chunk(2, dim=1)
        if cache is not None:
            cache.append(layout, k, v)
        return k, v

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        cache: KVCache | None = None,
        source: Source | None = None,
        keep: Tensor | None = None,
    ) -> Tensor:
        assert source is not None
        scale = self.head_dim**-0.5
        q = self.q(x).unflatten(-1, (-1, self.head_dim))
        # Decoding step: the keys and values are in the cache.
        if layout.is_step:
            assert cache is not None
            k, v = cache.for_step(source.layout)
            out = variants.full(q[:, :, None], k, v, scale=scale, mask=source.layout.attended(v.shape[2]))
            return select_rows(layout.join([out]), keep)
        # Otherwise: shape by shape; the variant says which keys a query attends.
        assert source.keys_values is not None
        split = zip(layout.split(q), *map(source.layout.split, source.keys_values), strict=True)
        return select_rows(layout.join([self.variant(q, k, v, scale=scale) for q, k, v in split]), keep)


def attend_cached(q: Tensor, layout: PackedLayout, cache: KVCache, scale: float, keep: Tensor | None = None) -> Tensor:
    """Causal attention over the cache, outputs (N, d_model) or those of `keep`.

    Args:
        q: queries (N, heads, head_dim) of a layout's tokens or, with `keep`, of these tokens only.
        layout: the tokens, whose keys and values are in the cache already.
        cache: keys and values of all tokens so far.
        scale: factor of the scores.
        keep: indices of the tokens that have queries.
    """
    # Prefill: all tokens of the layout have queries; they are the last ones of the cached tokens.
    if keep is None and not layout.is_step:
        n_head = q.shape[1]
        pairs = zip(layout.split(q), cache.sequences_of(layout), strict=True)
        return layout.join(
            [causal_attention(q, repeat_kv(k, n_head), repeat_kv(v, n_head), scale) for q, (k, v) in pairs]
        )
    # Single queries: a decoding step, or the kept tokens of a prefill.
    step = layout if keep is None else layout.as_steps(keep)
    k, v = cache.for_step(step)
    # Heads that share keys are rows of one product. The weights of single queries are small: no fused kernel is needed.
    grouped = q.unflatten(1, (k.shape[1], -1))
    return read(grouped, k, v, scale, step.attended(v.shape[2]))[1].flatten(1)
