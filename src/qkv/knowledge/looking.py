"""Which heads look at the name: attention weights from the place of the answer to some places of the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from qkv.core import kinds, masks
from qkv.core.attention import read
from qkv.model.gpt import GPT, CrossAttention, SelfAttention, Synthesizer
from qkv.model.layout import Layout


class Look(NamedTuple):
    """How much of its attention one head gives to some places."""

    layer: int
    head: int
    weight: float


@torch.inference_mode()
def looks(model: GPT, ids: Sequence[int], places: tuple[int, int]) -> list[Look]:
    """Weights on the places (first, past last) from the last token, heaviest first.

    A perceiver's tokens do not read tokens: there it is its last latent that looks, in the first block.
    """
    heard: list[tuple[int, nn.Module, tuple[Any, ...], dict[str, Any]]] = []
    hooks = [
        block.attention.register_forward_pre_hook(
            lambda module, args, kwargs, layer=layer: heard.append((layer, module, args, kwargs)), with_kwargs=True
        )
        for layer, block in enumerate(model.blocks)
    ]
    try:
        layout = Layout([(1, len(ids))]).to(model.embedding.weight.device)
        model.hidden(torch.tensor(list(ids), device=layout.device), layout)
    finally:
        for hook in hooks:
            hook.remove()
    found = []
    for layer, module, args, kwargs in heard:
        weights = _weights(module, len(ids), *args, **kwargs)
        if weights is not None:
            on = weights[:, places[0] : places[1]].sum(-1)
            found += [Look(layer, head, float(w)) for head, w in enumerate(on)]
    return sorted(found, key=lambda look: -look.weight)


def _weights(
    module: nn.Module, n: int, x: Tensor, layout: Layout, shelf: object, source: Any = None, keep: object = None
) -> Tensor | None:
    """The weights (heads, n) with which the last query of a module reads tokens, or None if it does not read tokens."""
    if isinstance(module, SelfAttention) and len(x) == n:
        each = module.qkv(x).unflatten(-1, (-1, module.size))
        q, k, _ = each.split((module.heads, module.shared, module.shared), dim=1)
        if module.turns is not None:
            cos, sin = module.turns[layout.positions, None].to(x.dtype).unbind(-1)
            q, k = kinds.turn(q, cos, sin), kinds.turn(k, cos, sin)
        k = kinds.share(k.transpose(0, 1), module.heads)
        return read(q[-1][:, None], k, k, module.size**-0.5)[0][:, 0]
    if isinstance(module, Synthesizer):
        q = torch.relu(
            nn.functional.pad(module.qv(x)[-1].unflatten(-1, (-1, module.size))[: module.heads], (0, 1), value=1.0)
        )
        keys = module.keys[:n].transpose(0, 1)
        return read(q[:, None], keys, keys, 1.0)[0][:, 0]
    if isinstance(module, CrossAttention) and source is not None and source[0] is not None and len(source[0][0]) == n:
        q, k = module.q(x).unflatten(-1, (-1, module.size)).transpose(0, 1), source[0][0].transpose(0, 1)
        if q.shape[1] < n:  # latents that read tokens
            stride: int = module.kind.keywords["stride"]  # type: ignore[attr-defined]
            seen = masks.owned(q.shape[1], n, stride, device=x.device)
            return read(q, k, k, module.size**-0.5, seen)[0][:, -1]
    return None
