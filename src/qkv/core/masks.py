"""Which tokens a query may attend: boolean masks, True where it may, that combine with &."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from qkv.core.validation import ArrayLike
from qkv.errors import QkvError


def causal(n: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "n n"]:
    """Token i sees tokens 0..i."""
    n = whole("a causal mask", "n", n)
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def window(n: int, width: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "n n"]:
    """Token i sees the last `width` tokens up to and including itself."""
    n = whole("a window mask", "n", n)
    width = whole("a window mask", "width", width)
    # Of the causal triangle, keep the `width` diagonals nearest the main one.
    return causal(n, device=device).triu(1 - width)


def owned(m: int, n: int, stride: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "m n"]:
    """Latent i, which owns `stride` tokens from i·stride on, sees the tokens up to the last that it owns."""
    asked = "a mask of latents and the tokens they own"
    m, n, stride = whole(asked, "m", m), whole(asked, "n", n), whole(asked, "stride", stride)
    return torch.arange(n, device=device) < stride * torch.arange(1, m + 1, device=device)[:, None]


def padding(lengths: ArrayLike, n: int) -> Bool[Tensor, "b 1 n"]:
    """Every token of sequence b sees its first lengths[b] tokens; the rest, up to n, is padding.

    The middle axis is there so that `causal(n) & padding(lengths, n)` has the shape (b, n, n).
    """
    asked = "a padding mask"
    n = whole(asked, "n", n)
    listed = lengths.tolist() if isinstance(lengths, Tensor | np.ndarray) else lengths
    if not isinstance(listed, list | tuple) or not listed:
        raise QkvError(asked, f"lengths is {listed!r}", "Give one length for each sequence, such as [5, 3]")
    counts = [whole(asked, f"lengths[{b}]", length) for b, length in enumerate(listed)]
    if max(counts) > n:
        raise QkvError(
            asked,
            f"lengths[{counts.index(max(counts))}] is {max(counts)}, more than n={n}",
            f"Give lengths from 1 to {n}",
        )
    return (torch.arange(n) < torch.tensor(counts)[:, None])[:, None, :]


def allowed(asked: str, mask: ArrayLike, shape: tuple[int, ...]) -> Bool[Tensor, " ..."]:
    """`mask` as booleans spread over `shape`, whose last axis is the items; each row must allow something."""
    out = booleans(asked, mask)
    try:
        out = out.broadcast_to(shape)
    except RuntimeError:
        raise QkvError(
            asked,
            f"the mask has shape {tuple(out.shape)} but the scores have {shape}",
            "Give a mask of the scores' shape, or one that broadcasts to it",
        ) from None
    empty = ~out.any(-1)
    if bool(empty.any()):
        where = ", ".join(str(int(i)) for i in empty.nonzero()[0])
        came = f"row {where} of the mask allows no item" if where else "the mask allows no item"
        raise QkvError(asked, came, "Allow each query at least one item: weights on nothing cannot sum to 1")
    return out


def booleans(asked: str, mask: ArrayLike) -> Bool[Tensor, " ..."]:
    """`mask` as a tensor, if it holds booleans."""
    try:
        out = mask.detach().cpu() if isinstance(mask, Tensor) else torch.from_numpy(np.array(mask))
    except (TypeError, ValueError) as why:
        raise QkvError(asked, f"the mask is not an array ({why})", "Give an array of booleans") from None
    if out.dtype != torch.bool:
        # A 0/1 or additive mask is refused rather than guessed at: both conventions for its sign exist.
        raise QkvError(asked, f"the mask holds {out.dtype}", "Give booleans, True where an item may be attended")
    return out


def whole(asked: str, name: str, value: Any, least: int = 1) -> int:
    """`value` as an int of at least `least`, whoever's integer it is; 2.0 and True are refused."""
    try:
        out = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        out = None
    if out is None or out < least:
        raise QkvError(asked, f"{name} is {value!r}", f"Give a whole number, {least} or more")
    return out
