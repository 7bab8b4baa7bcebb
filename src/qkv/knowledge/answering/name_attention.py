"""Attention of each head from the last token to the name in the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qkv.model.numpy_gpt import NumpyGPT


class HeadAttention(NamedTuple):
    """Sum of one head's attention weights on a span of tokens."""

    layer: int
    head: int
    weight: float


def span_attention(model: NumpyGPT, ids: Sequence[int], span: tuple[int, int]) -> list[HeadAttention]:
    """Attention of every head from the last token to the positions [first, last), largest weight first.

    In a perceiver tokens do not attend to tokens: the weights are those of the last latent, in the first block.
    """
    layers: list[np.ndarray] = []
    model.forward(np.array([ids]), seen=layers)
    sums = [weights[0, :, -1, span[0] : span[1]].sum(-1) for weights in layers]
    found = [HeadAttention(layer, head, float(w)) for layer, each in enumerate(sums) for head, w in enumerate(each)]
    return sorted(found, key=lambda attention: -attention.weight)
