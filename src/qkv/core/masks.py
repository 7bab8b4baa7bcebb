"""Causal, sliding-window, latent and padding masks: booleans, True where a token may be attended.

Masks combine with &.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from qkv.core.types import ArrayLike
from qkv.core.validation import booleans, whole
from qkv.errors import QkvError


def causal(n: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "n n"]:
    """Token i may attend to tokens 0..i."""
    n = whole("a causal mask", "n", n)
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def window(n: int, width: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "n n"]:
    """Token i may attend to itself and the `width` - 1 tokens before it."""
    n = whole("a window mask", "n", n)
    width = whole("a window mask", "width", width)
    # Of the causal triangle, keep the `width` diagonals nearest the main one.
    return causal(n, device=device).triu(1 - width)


def latent(m: int, n: int, stride: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "m n"]:
    """Latent i owns `stride` tokens from i·stride on, and may attend to every token up to its last one."""
    request = "a mask of latents and the tokens they own"
    m, n, stride = whole(request, "m", m), whole(request, "n", n), whole(request, "stride", stride)
    return torch.arange(n, device=device) < stride * torch.arange(1, m + 1, device=device)[:, None]


def padding(lengths: ArrayLike, n: int) -> Bool[Tensor, "b 1 n"]:
    """Every token of sequence b may attend to its first lengths[b] tokens; the rest, up to n, is padding.

    The middle axis makes `causal(n) & padding(lengths, n)` broadcast to the shape (b, n, n).
    """
    request = "a padding mask"
    n = whole(request, "n", n)
    listed = lengths.tolist() if isinstance(lengths, Tensor | np.ndarray) else lengths
    if not isinstance(listed, list | tuple) or not listed:
        raise QkvError(request, f"lengths is {listed!r}", "Give one length for each sequence, such as [5, 3]")
    counts = [whole(request, f"lengths[{b}]", length) for b, length in enumerate(listed)]
    if max(counts) > n:
        raise QkvError(
            request,
            f"lengths[{counts.index(max(counts))}] is {max(counts)}, more than n={n}",
            f"Give lengths from 1 to {n}",
        )
    return (torch.arange(n) < torch.tensor(counts)[:, None])[:, None, :]


def allowed(request: str, mask: ArrayLike, shape: tuple[int, ...]) -> Bool[Tensor, " ..."]:
    """`mask` as booleans broadcast to `shape`, whose last axis is the items; each row must allow an item."""
    out = booleans(request, mask)
    try:
        out = out.broadcast_to(shape)
    except RuntimeError:
        raise QkvError(
            request,
            f"the mask has shape {tuple(out.shape)} but the scores have {shape}",
            "Give a mask of the scores' shape, or one that broadcasts to it",
        ) from None
    empty = ~out.any(-1)
    if bool(empty.any()):
        where = ", ".join(str(int(i)) for i in empty.nonzero()[0])
        problem = f"row {where} of the mask allows no item" if where else "the mask allows no item"
        raise QkvError(request, problem, "Allow each query at least one item: weights on nothing cannot sum to 1")
    return out
