"""Which heads look at the name: attention weights from the place of the answer to some places of the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qkv.model.numpy_gpt import NumpyGPT


class HeadAttention(NamedTuple):
    """How much of its attention one head gives to some places."""

    layer: int
    head: int
    weight: float


def looks(model: NumpyGPT, ids: Sequence[int], places: tuple[int, int]) -> list[HeadAttention]:
    """Weights on the places (first, past last) from the last token, heaviest first.

    A perceiver's tokens do not read tokens: there it is its last latent that looks, in the first block.
    """
    seen: list[np.ndarray] = []
    model.read(np.array([ids]), seen=seen)
    on = [weights[0, :, -1, places[0] : places[1]].sum(-1) for weights in seen]
    found = [HeadAttention(layer, head, float(w)) for layer, each in enumerate(on) for head, w in enumerate(each)]
    return sorted(found, key=lambda look: -look.weight)
