"""Attention variants as functions behind one signature, in one table."""

from __future__ import annotations

import difflib
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from qkv.core import masks
from qkv.core.attention import Number
from qkv.core.kernels import causal_attention
from qkv.core.rotary import rotate
from qkv.errors import QkvError

WIDTH = 64  # tokens that a query of the table's window attends; partial(window, width=...) gives another width
STRIDE = 4  # tokens that each latent of the table's read_in and read_out owns; partial(read_in, stride=...) likewise


@runtime_checkable
class Variant(Protocol):
    """Queries (..., m, d), keys (..., n, d) and values (..., n, dv) to outputs (..., m, dv).

    A mask further restricts which keys a query may attend. The output of a query that may attend nothing is zero,
    since that happens to padding inside a batch. Where order matters, the m queries belong to the last m of the n
    tokens, so that decoding with a KV cache gives the outputs that it would give without.
    """

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: Number, mask: Tensor | None = None) -> Tensor: ...


def full(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """Every query attends every token."""
    # The fused kernel never stores the weights; `attention.read` computes the same and returns them.
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=float(scale))


def causal(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """A token attends itself and the tokens before it."""
    m, n = _lengths("causal attention", q, k)
    if mask is None:
        return causal_attention(q, k, v, float(scale))
    return full(q, k, v, scale=scale, mask=masks.causal(n, device=q.device)[n - m :] & mask)


def window(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    width: int,
) -> Float[Tensor, "*#batch m dv"]:
    """A token attends the last `width` tokens, itself included."""
    m, n = _lengths("window attention", q, k)
    allowed = masks.window(n, width, device=q.device)[n - m :]
    return full(q, k, v, scale=scale, mask=allowed if mask is None else allowed & mask)


def rope(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """Causal, with queries and keys rotated by their positions: a score depends on the distance of the two tokens."""
    m, n = _lengths("rotary attention", q, k)
    positions = torch.arange(n, device=q.device)
    return causal(rotate(q, positions[n - m :]), rotate(k, positions), v, scale=scale, mask=mask)


def synthesizer(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """Causal, with scores relu(q)·k_j where k_j belongs to position j: weights depend on positions, not on contents.

    softmax(relu(xA + b₁)B + b₂) is this with q = (xA + b₁, 1) and k_j = (column j of B, b₂_j).
    """
    return causal(torch.relu(q), k, v, scale=scale, mask=mask)


def read_in(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    stride: int,
) -> Float[Tensor, "*#batch m dv"]:
    """m latents attend n tokens: latent i owns tokens i·stride, ..., (i+1)·stride - 1 and attends all up to those."""
    allowed = masks.latent(q.shape[-2], k.shape[-2], stride, device=q.device)
    return full(q, k, v, scale=scale, mask=allowed if mask is None else allowed & mask)


def read_out(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    stride: int,
) -> Float[Tensor, "*#batch m dv"]:
    """m tokens attend n latents: those whose tokens all came before; the first tokens attend none."""
    # Token p must not attend a latent that attends p: that latent depends on p itself, or on later tokens.
    allowed = ~masks.latent(k.shape[-2], q.shape[-2], stride, device=q.device).mT
    return full(q, k, v, scale=scale, mask=allowed if mask is None else allowed & mask)


VARIANTS: dict[str, Variant] = {
    "full": full,
    "causal": causal,
    "window": partial(window, width=WIDTH),
    "rope": rope,
    "synthesizer": synthesizer,
    "read_in": partial(read_in, stride=STRIDE),
    "read_out": partial(read_out, stride=STRIDE),
}


def variant(name: str) -> Variant:
    """The attention variant of this name in `VARIANTS`."""
    if name not in VARIANTS:
        close = difflib.get_close_matches(str(name), VARIANTS, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise QkvError(
            "choosing an attention variant",
            f"there is none called {name!r}",
            f"{hint}Choose from {', '.join(VARIANTS)}",
        )
    return VARIANTS[name]


def _lengths(request: str, q: Tensor, k: Tensor) -> tuple[int, int]:
    m, n = q.shape[-2], k.shape[-2]
    if m > n:
        raise QkvError(request, f"there are {m} queries for {n} tokens", "Give at most one query for each token")
    return m, n
