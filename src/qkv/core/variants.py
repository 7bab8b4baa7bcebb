"""Attention variants as functions behind one signature, in one table."""

from __future__ import annotations

import difflib
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from qkv.core import masks
from qkv.core.attention import Number
from qkv.core.kernels.causal import SHORT, short_causal
from qkv.errors import QkvError

WIDTH = 64  # tokens that a window sees, unless told otherwise: partial(window, width=...)
BASE = 10_000.0  # rope's pairs of coordinates turn by BASE^(-2c/d) radians per token, c = 0, 1, ..., d/2 - 1


@runtime_checkable
class Variant(Protocol):
    """Queries (..., m, d), keys (..., n, d) and values (..., n, dv) to outputs (..., m, dv).

    A mask narrows what the kind lets a query see. A query that may see nothing reads zero, since that
    happens to padding inside a batch. Where order matters, the m queries belong to the last m of the n
    tokens, so that a decoder with remembered keys gives the outputs that it would give without.
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
    """Every query sees every token."""
    # The fused kernel never stores the weights; `attention.read` is the same thing with the weights in view.
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=float(scale))


def causal(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """A token sees itself and what came before."""
    m, n = _lengths("causal attention", q, k)
    if mask is None and m == n:
        if n <= SHORT and q.device.type == "cpu" and q.shape[:-1] == k.shape[:-1] == v.shape[:-1]:
            return short_causal(q, k, v, float(scale))
        # The one case in which the fused kernel needs no mask in memory.
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=float(scale))
    seen = masks.causal(n, device=q.device)[n - m :]
    return full(q, k, v, scale=scale, mask=seen if mask is None else seen & mask)


def window(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    width: int,
) -> Float[Tensor, "*#batch m dv"]:
    """A token sees the last `width` tokens, itself included."""
    m, n = _lengths("window attention", q, k)
    seen = masks.window(n, width, device=q.device)[n - m :]
    return full(q, k, v, scale=scale, mask=seen if mask is None else seen & mask)


def rope(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """Causal, with queries and keys rotated by their positions: a score knows how far back a token is."""
    m, n = _lengths("rotary attention", q, k)
    at = torch.arange(n, device=q.device)
    return causal(rotate(q, at[n - m :]), rotate(k, at), v, scale=scale, mask=mask)


def rotate(x: Float[Tensor, "*batch n d"], positions: Num[Tensor, "*#batch n"]) -> Float[Tensor, "*batch n d"]:
    """Turn the pair (x_c, x_{c+d/2}) of each row by its position times the pair's frequency.

    With R_p for the turn at position p, R_p is orthogonal and R_iᵀR_j = R_{j-i}; so (R_i q)·(R_j k), which is
    q·(R_{j-i} k), depends on the two positions through their difference alone.
    """
    d = x.shape[-1]
    if d % 2:
        raise QkvError(
            "rotating vectors by their positions",
            f"their dimension is {d}",
            "Give an even one: it turns pairs",
        )
    # Angles in float64 whatever x is: in float32 those of far positions would lose the digits that cos needs.
    steps = torch.arange(d // 2, dtype=torch.float64, device=x.device) / (d // 2)
    angle = positions[..., None].to(torch.float64) * BASE**-steps
    return turn(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def turn(
    x: Float[Tensor, "*batch d"], cos: Float[Tensor, "*#batch half"], sin: Float[Tensor, "*#batch half"]
) -> Float[Tensor, "*batch d"]:
    """Each pair (x_c, x_{c+d/2}) turned by the angle whose cosine and sine are given."""
    one, two = x.chunk(2, dim=-1)
    return torch.cat((one * cos - two * sin, one * sin + two * cos), dim=-1)


def synthesizer(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
) -> Float[Tensor, "*#batch m dv"]:
    """Causal, and scores are relu(q)·k_j where k_j belongs to position j: a token chooses places, not contents.

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
    """m latents read n tokens: latent i owns the tokens i·stride, ..., (i+1)·stride - 1 and sees all up to there."""
    seen = masks.owned(q.shape[-2], k.shape[-2], stride, device=q.device)
    return full(q, k, v, scale=scale, mask=seen if mask is None else seen & mask)


def read_out(
    q: Float[Tensor, "*#batch m d"],
    k: Float[Tensor, "*#batch n d"],
    v: Float[Tensor, "*#batch n dv"],
    *,
    scale: Number,
    mask: Bool[Tensor, "*#batch #m #n"] | None = None,
    stride: int,
) -> Float[Tensor, "*#batch m dv"]:
    """m tokens read n latents: a token sees the latents whose tokens all came before it, the first ones none."""
    # A latent that sees token p is one that p must not see: it knows p itself, or what comes after.
    seen = ~masks.owned(k.shape[-2], q.shape[-2], stride, device=q.device).mT
    return full(q, k, v, scale=scale, mask=seen if mask is None else seen & mask)


def share(kv: Float[Tensor, "*batch g n d"], heads: int) -> Float[Tensor, "*batch h n d"]:
    """Keys or values of g heads for `heads` heads of queries, each used by heads/g neighbours (grouped queries)."""
    g = kv.shape[-3]
    if g == heads:
        return kv
    if heads % g:
        raise QkvError(
            "sharing keys among heads", f"{heads} heads cannot share {g} evenly", "Give a multiple of the shared heads"
        )
    return kv.repeat_interleave(heads // g, dim=-3)


STRIDE = 4  # tokens that a latent owns, unless told otherwise: partial(read_in, stride=...)

KINDS: dict[str, Variant] = {
    "full": full,
    "causal": causal,
    "window": partial(window, width=WIDTH),
    "rope": rope,
    "synthesizer": synthesizer,
    "read_in": partial(read_in, stride=STRIDE),
    "read_out": partial(read_out, stride=STRIDE),
}


def kind(name: str) -> Variant:
    """The attention variant of this name."""
    if name not in KINDS:
        close = difflib.get_close_matches(str(name), KINDS, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise QkvError(
            "choosing a kind of attention",
            f"there is none called {name!r}",
            f"{hint}Choose from {', '.join(KINDS)}",
        )
    return KINDS[name]


def _lengths(asked: str, q: Tensor, k: Tensor) -> tuple[int, int]:
    m, n = q.shape[-2], k.shape[-2]
    if m > n:
        raise QkvError(asked, f"there are {m} queries for {n} tokens", "Give at most one query for each token")
    return m, n
