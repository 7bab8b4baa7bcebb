"""Causal attention kernels for training, and which one is taken when.

`packed_causal_attention` takes sequences packed end to end and asks `choose_kernel`:

=============  ==========================================================================================
kernel         taken for
=============  ==========================================================================================
equal_length   short sequences of one length on a CPU, enough of them that one head fills the processor
ragged         other short sequences on a CPU (different lengths, few sequences, or queries of some tokens)
fused          sequences longer than MAX_STORED_LENGTH, and other devices: torch's own fused kernel
=============  ==========================================================================================

The first two store the attention weights for the backward pass; the fused kernel computes them again there.
`causal_attention` takes a dense batch: `causal.py` stores its weights where the sequences are short, else the fused
kernel computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from qkv.core import masks
from qkv.core.attention import read
from qkv.core.kernels.causal import stored_causal
from qkv.core.kernels.equal_length import equal_length_causal
from qkv.core.kernels.ragged import RaggedPlan, ragged_causal
from qkv.core.rotary import apply_rotary
from qkv.errors import QkvError

MAX_STORED_LENGTH = 128
"""Longest sequence, in tokens, whose weights are stored on a CPU.

Up to there the n² weights of a head are about as large as its keys and values, and reading them back is faster than
computing them again, as the fused kernel does. A longer sequence's weights no longer stay in the caches.
"""

MIN_HEADWISE_SCORES = 1 << 16
"""Scores (sequences · length²) of one head from which on the equal-length kernel is taken.

It calls one product for each head and copies nothing; the ragged kernel gathers the vectors of all heads and calls one
product for all of them. Below about 65,000 scores (256 KB) a call's overhead costs more than the copies.
"""

Kernel = Literal["equal_length", "ragged", "fused"]
Shape = tuple[int, int]


@runtime_checkable
class PackedSequences(Protocol):
    """Sequences packed end to end, such as `qkv.model.PackedLayout`: (b, t) in `shapes` is b sequences of t tokens."""

    shapes: tuple[Shape, ...]

    def plan(self, keep: Tensor | None = None) -> RaggedPlan:
        """The ragged kernel's plan, if the tokens in `keep` have queries (all, if None)."""

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Views (b, heads, t, d) for each shape, of packed vectors (N, heads, d)."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Packed vectors (N, heads · d), from (b, heads, t, d) for each shape."""


def choose_kernel(device: torch.device, shapes: Sequence[Shape], selects_queries: bool = False) -> Kernel:
    """The kernel for sequences of these shapes; `selects_queries` if only some tokens have queries."""
    if not stores_weights(device, max(t for _, t in shapes)):
        return "fused"
    b, t = shapes[0]
    if len(shapes) == 1 and not selects_queries and b * t * t >= MIN_HEADWISE_SCORES:
        return "equal_length"
    return "ragged"


def stores_weights(device: torch.device, length: int) -> bool:
    """Whether attention over sequences of up to `length` tokens stores its weights for the backward pass."""
    return device.type == "cpu" and length <= MAX_STORED_LENGTH


def packed_causal_attention(
    qkv: Tensor,
    sequences: PackedSequences,
    n_kv_head: int,
    scale: float,
    rotation: Tensor | None = None,
    *,
    queries: Tensor | None = None,
    keep: Tensor | None = None,
) -> Tensor:
    """Causal self-attention of packed sequences, by the kernel that is fastest for them.

    Args:
        qkv: queries, keys and values of each token, (N, heads + 2·n_kv_head, d); with `queries`, keys and values only.
        sequences: how the N tokens are packed.
        n_kv_head: heads of keys and of values; heads/n_kv_head heads of queries share each.
        scale: factor of the scores.
        rotation: complex numbers (N, 1, d/2) that queries and keys are multiplied by first (`core/rotary.py`).
        queries: queries (M, heads, d) of the tokens in `keep`, where only those have one.
        keep: the indices of these M tokens.

    Returns:
        Outputs (N, heads · d), or (M, heads · d) of the tokens in `keep`.
    """
    kernel = choose_kernel(qkv.device, sequences.shapes, selects_queries=queries is not None)
    if kernel == "equal_length":
        return equal_length_causal(qkv, sequences.shapes[0][1], n_kv_head, scale, rotation).flatten(1)
    if kernel == "ragged":
        query_rotation = None if rotation is None or keep is None else rotation[keep]
        return ragged_causal(
            qkv, sequences.plan(keep), n_kv_head, scale, rotation, queries=queries, query_rotation=query_rotation
        ).flatten(1)
    if queries is not None:
        # The fused kernel needs no mask only if every token has a query: other tokens get a zero query.
        assert keep is not None
        qkv = torch.cat((queries.new_zeros(len(qkv), *queries.shape[1:]).index_copy(0, keep, queries), qkv), dim=1)
    n_head = qkv.shape[1] - 2 * n_kv_head
    qk, v = qkv.split((n_head + n_kv_head, n_kv_head), dim=1)
    q, k = (qk if rotation is None else apply_rotary(qk, rotation)).split((n_head, n_kv_head), dim=1)
    split = zip(sequences.split(q), sequences.split(k), sequences.split(v), strict=True)
    out = sequences.join([causal_attention(q, repeat_kv(k, n_head), repeat_kv(v, n_head), scale) for q, k, v in split])
    return out if keep is None else out.index_select(0, keep)


def causal_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Causal attention of a dense batch.

    Args:
        q: queries (..., m, d) of the last m of n tokens.
        k: keys (..., n, d) of all n tokens.
        v: values (..., n, dv).
        scale: factor of the scores.
    """
    m, n = q.shape[-2], k.shape[-2]
    short = stores_weights(q.device, n)
    if m < n:
        # A continuation of cached tokens. Short ones are faster by plain products than by the fused kernel with a mask.
        allowed = masks.causal(n, device=q.device)[n - m :]
        if short:
            return read(q, k, v, scale, allowed)[1]
        return scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=scale)
    if short and q.shape[:-1] == k.shape[:-1] == v.shape[:-1]:
        return stored_causal(q, k, v, scale)
    return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)


def repeat_kv(kv: Tensor, n_head: int) -> Tensor:
    """Keys or values (..., g, n, d) of g heads repeated for `n_head` heads of queries (grouped-query attention)."""
    n_kv_head = kv.shape[-3]
    if n_kv_head == n_head:
        return kv
    if n_head % n_kv_head:
        raise QkvError(
            "sharing keys among heads",
            f"{n_head} heads cannot share {n_kv_head} heads of keys evenly",
            "Give a number of heads that is a multiple of the heads of keys",
        )
    return kv.repeat_interleave(n_head // n_kv_head, dim=-3)
