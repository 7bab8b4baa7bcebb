"""Attention over a prefix that all rows of a batch share: its keys and values are held once, not once for each row.

A language model is asked thousands of questions after the same examples. The library's cache would repeat the keys and
values of the examples for each row, and copy them at each generated token. Here the scores on the prefix are one
matrix product for all rows; those on a row's own tokens are computed as usual; one softmax runs over both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

NAME = "qkv_shared_prefix"
"""The name under which the attention function is registered with transformers."""

_PLAIN_ONLY = ("softcap", "s_aux", "sliding_window")


@dataclass
class Prefix:
    """Keys and values of a prefix: for each attention layer, (key heads, tokens, size).

    Attributes:
        length: Its tokens.
        layers: (keys, values) of each layer's module.
        recording: Whether the next forward pass stores its keys and values here.
    """

    length: int = 0
    layers: dict[nn.Module, tuple[Tensor, Tensor]] = field(default_factory=dict)
    recording: bool = False


class UnsupportedAttention(Exception):
    """The family's attention has a term that the shared prefix does not compute."""


_ACTIVE: ContextVar[Prefix | None] = ContextVar("qkv_shared_prefix", default=None)


@contextmanager
def using(prefix: Prefix) -> Iterator[None]:
    """While open, the registered attention function attends to this prefix first (or records it)."""
    token = _ACTIVE.set(prefix)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def register() -> str:
    """Register the attention function with transformers, and its mask (none: it is causal by itself)."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, _no_mask)
    return NAME


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Causal attention of queries (batch, heads, tokens, size) to the active prefix and to keys of the same rows.

    Returns:
        Outputs (batch, tokens, heads, size), and no weights.

    Raises:
        UnsupportedAttention: The layer caps its scores, has sinks, or sees a window only.
    """
    if any(options.get(name) is not None for name in _PLAIN_ONLY):
        raise UnsupportedAttention(type(module).__name__)
    prefix = _ACTIVE.get()
    batch, heads, length, size = query.shape
    key_heads, total = key.shape[1], key.shape[2]
    scaling = options.get("scaling")
    query = query * (size**-0.5 if scaling is None else scaling)
    if prefix is not None and prefix.recording:
        prefix.layers[module] = (key[0], value[0])
    grouped = query.reshape(batch, key_heads, -1, size)  # heads that share keys, one after the other
    own = (grouped @ key.transpose(-1, -2)).reshape(batch, heads, length, total)
    ahead = torch.ones(length, total, dtype=torch.bool).triu(total - length + 1)
    own = own.masked_fill(ahead, -torch.inf).reshape(batch, key_heads, -1, total)
    if prefix is None or prefix.recording or not prefix.length:
        out = own.softmax(-1) @ value
    else:
        keys, values = prefix.layers[module]
        # all rows in one product: (key heads, batch · queries, size)
        flat = grouped.transpose(0, 1).reshape(key_heads, -1, size)
        before = (flat @ keys.transpose(-1, -2)).reshape(key_heads, batch, -1, prefix.length).transpose(0, 1)
        weights = torch.cat((before, own), -1).softmax(-1)
        on_prefix = weights[..., : prefix.length].transpose(0, 1).reshape(key_heads, -1, prefix.length)
        out = (on_prefix @ values).reshape(key_heads, batch, -1, size).transpose(0, 1)
        out = out + weights[..., prefix.length :] @ value
    return out.reshape(batch, heads, length, size).transpose(1, 2).contiguous(), None


def _no_mask(*_: Any, **__: Any) -> None:
    return None
