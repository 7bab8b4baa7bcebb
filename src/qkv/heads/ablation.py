"""The effect of removing heads: what the model loses without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from qkv.heads.adapter import OutputChange
    from qkv.heads.attention_model import AttentionModel, Progress


def token_losses(model: AttentionModel, ids: Tensor, removed: Iterable[tuple[int, int]] = ()) -> Tensor:
    """Loss of each token but the first, in nats, with the outputs of some heads set to zero.

    Args:
        model: A model that predicts the next token.
        ids: Token ids, (batch, tokens).
        removed: Pairs of layer and head.

    Returns:
        (batch, tokens - 1).

    Raises:
        QkvError: There is no such head.
    """
    chosen = [model.head(layer, head) for layer, head in removed]  # which refuses heads that are not there
    logits = model.run(ids, output=without_heads([(one.layer, one.head) for one in chosen])).logits
    return _losses(logits, ids)


def head_effects(
    model: AttentionModel, windows: Sequence[Tensor], progress: Progress, *, last: int | None = None
) -> Tensor:
    """For every head, how much the loss grows without it.

    For a model that predicts no tokens: how far its last hidden states move, relative to their length.

    Args:
        model: The model.
        windows: Token ids of texts of equal length; they are run as one batch.
        progress: Called with layers done and in all.
        last: Count the losses of the last so many tokens only; of all but the first if None.

    Returns:
        (layers, heads): nats per token, or a share.
    """
    shape, ids = model.shape, torch.stack(list(windows))
    effects = torch.zeros(shape.layers, shape.heads, dtype=torch.float64)
    copies = ids.repeat(shape.heads, 1)  # one copy of the texts for each head of a layer, run as one batch
    rows = torch.arange(len(copies)).reshape(shape.heads, len(ids))
    kept = ids.shape[1] if last is None else last + 1
    with _resumable(model) as blocks:
        base = _summary(model, model.run(copies, logits=kept), copies, kept)
        for layer in range(shape.layers):
            progress(layer, shape.layers)
            blocks.start(layer)

            def remove(at: int, output: Tensor, layer: int = layer) -> Tensor:
                if at != layer:
                    return output
                output = output.clone()
                for head in range(shape.heads):
                    output[rows[head], :, head] = 0
                return output

            found = _summary(model, model.run(copies, output=remove, logits=kept), copies, kept)
            moved = found - base if model.predicts else (found - base).norm(dim=-1) / base.norm(dim=-1)
            effects[layer] = moved.reshape(shape.heads, -1).double().mean(-1)
    progress(shape.layers, shape.layers)
    return effects


def _summary(model: AttentionModel, out: Any, ids: Tensor, kept: int) -> Tensor:
    return _losses(out.logits[:, -kept:], ids[:, -kept:]) if model.predicts else out.last_hidden_state


def _losses(logits: Tensor, ids: Tensor) -> Tensor:
    losses = [
        nn.functional.cross_entropy(row[:-1], of[1:], reduction="none") for row, of in zip(logits, ids, strict=True)
    ]
    return torch.stack(losses)


def without_heads(removed: Iterable[tuple[int, int]]) -> OutputChange | None:
    """A change of outputs that sets those of the given heads to zero; None if there are no heads."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in removed:
        by_layer.setdefault(layer, []).append(head)

    def change(layer: int, output: Tensor) -> Tensor:
        if layer not in by_layer:
            return output
        output = output.clone()
        output[:, :, by_layer[layer]] = 0
        return output

    return change if by_layer else None


class _Blocks:
    """The blocks of a model: those before `start` give back what they gave in the first run."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        self.blocks = blocks
        self.kept: dict[int, Any] = {}
        self.first = 0

    def start(self, layer: int) -> None:
        self.first = layer if self.blocks else 0

    def forward(self, number: int, own: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            if number < self.first:
                return self.kept[number]
            found = own(*args, **options)
            self.kept.setdefault(number, found)
            return found

        return run


@contextmanager
def _resumable(model: AttentionModel) -> Iterator[_Blocks]:
    """While open, blocks below the layer in question are not computed again.

    Where the layers are no list of blocks with one attention each, everything is computed every time.
    """
    attention = model.adapter.modules
    found = next(
        (
            list(m)
            for m in model.model.modules()
            if isinstance(m, nn.ModuleList)
            and len(m) == len(attention)
            and all(a in set(block.modules()) for a, block in zip(attention, m, strict=True))
        ),
        [],
    )
    blocks = _Blocks(found)
    try:
        for number, block in enumerate(found):
            block.forward = blocks.forward(number, block.forward)
        yield blocks
    finally:
        for block in found:
            del block.forward
