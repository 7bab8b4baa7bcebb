"""KVCache: keys and values of the tokens that one layer has already processed."""

from __future__ import annotations

from torch import Tensor

from qkv.model.packed_sequences import PackedLayout

MAX_SLICED_FRACTION = 0.7
"""Filled fraction of a cache from which on a decoding step reads it whole.

A product with all of a contiguous tensor is faster than one with a slice, unless the slice is much smaller; positions
that are not filled yet are masked either way.
"""


class KVCache:
    """One layer's keys (sequences, heads, head_dim, positions) and values (sequences, heads, positions, head_dim).

    Keys are stored transposed: products of one query with all keys are fastest that way.
    """

    def __init__(self, n_sequences: int, n_positions: int, n_kv_head: int, head_dim: int, like: Tensor) -> None:
        self.k = like.new_zeros(n_sequences, n_kv_head, head_dim, n_positions)
        self.v = like.new_zeros(n_sequences, n_kv_head, n_positions, head_dim)

    def view(self, first: int, end: int) -> KVCache:
        """A cache of the sequences first, ..., end - 1 that shares memory with this one."""
        return _of(self.k[first:end], self.v[first:end])

    def select(self, sequences: Tensor) -> KVCache:
        """A cache of some sequences, copied."""
        return _of(self.k[sequences], self.v[sequences])

    def fill(self, one: KVCache, n_positions: int) -> None:
        """Start every sequence with the first positions of another cache, which holds a single sequence."""
        self.k[..., :n_positions] = one.k[..., :n_positions]
        self.v[:, :, :n_positions] = one.v[:, :, :n_positions]

    def append(self, layout: PackedLayout, k: Tensor, v: Tensor) -> None:
        """Store the keys and values (N, heads, head_dim) of a layout's tokens at their positions."""
        if layout.is_step:
            self.k[layout.sequences, :, :, layout.positions] = k
            self.v[layout.sequences, :, layout.positions] = v
            return
        first, start = 0, layout.past_length
        for (b, t), keys, values in zip(layout.shapes, layout.split(k), layout.split(v), strict=True):
            self.k[first : first + b, :, :, start : start + t] = keys.mT
            self.v[first : first + b, :, start : start + t] = values
            first += b

    def sequences_of(self, layout: PackedLayout) -> list[tuple[Tensor, Tensor]]:
        """Keys and values (b, heads, past_length + t, head_dim) for each shape of a layout that is not a step."""
        out, first = [], 0
        for b, t in layout.shapes:
            rows, n = slice(first, first + b), layout.past_length + t
            out.append((self.k[rows, :, :, :n].mT, self.v[rows, :, :n]))
            first += b
        return out

    def for_step(self, layout: PackedLayout) -> tuple[Tensor, Tensor]:
        """Keys and values (r, heads, positions, head_dim) of a decoding step; `layout.attended` masks the rest."""
        n_positions = self.v.shape[2]
        n = n_positions if layout.max_length >= MAX_SLICED_FRACTION * n_positions else layout.max_length
        k, v = (self.k, self.v) if layout.covers_cache else (self.k[layout.sequences], self.v[layout.sequences])
        return k[..., :n].mT, v[:, :, :n]


def _of(k: Tensor, v: Tensor) -> KVCache:
    cache = object.__new__(KVCache)
    cache.k, cache.v = k, v
    return cache
