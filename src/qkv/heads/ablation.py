"""The effect of removing heads: what the model loses without them.

A head is removed by putting its mean output in place of its output, token by token: what it adds to every token alike
stays, what it tells one token from another by is gone. Outputs of zero are an option; they also take away what is
common to all tokens, which later layers count on, so that a head can have a large effect that looks nothing up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from qkv.core.validation import whole
from qkv.errors import QkvError, kind_of
from qkv.heads.adapter import widened
from qkv.heads.attention_model import checked_model

if TYPE_CHECKING:
    from qkv.heads.adapter import OutputChange
    from qkv.heads.attention_model import AttentionModel, Progress


Removal = Literal["mean", "zero"]
REPLACEMENTS = {"mean": "replaced by its mean over all tokens", "zero": "set to zero"}
"""What each kind of removal does to a head's output, for readers."""


MEANS = "Give what mean_outputs returns: for each layer, a tensor (heads, size)"


def checked_removal(request: str, by: Any) -> Removal:
    """The word "mean" or "zero"."""
    if by not in get_args(Removal):
        raise QkvError(request, f"outputs are to be replaced by {by!r:.40}", "Choose mean or zero")
    return by


class MeanOutputs:
    """The mean output of every head over tokens; a change of outputs for `AttentionModel.run` that changes nothing.

    Args:
        counted: Which tokens of a batch count, (batch, tokens); all if None.
    """

    def __init__(self, counted: Tensor | None = None) -> None:
        self.counted = counted
        self.sums: dict[int, Tensor] = {}
        self.tokens: dict[int, int] = {}

    def __call__(self, layer: int, output: Tensor) -> Tensor:
        rows = output.flatten(0, 1) if self.counted is None else output[self.counted]
        total = rows.double().sum(0)
        self.sums[layer] = self.sums[layer] + total if layer in self.sums else total
        self.tokens[layer] = self.tokens.get(layer, 0) + len(rows)
        return output

    def result(self) -> list[Tensor]:
        """For each layer, (heads, size)."""
        return [(self.sums[layer] / self.tokens[layer]).float() for layer in sorted(self.sums)]


def checked_ids(request: str, model: AttentionModel, ids: Any, least: int = 2) -> Tensor:
    """Token ids of a model, (batch, tokens): whole numbers that its vocabulary has, in rows that its context holds.

    Args:
        request: What is asked for, for the refusal.
        model: The model.
        ids: A tensor, an array or nested lists.
        least: Fewest tokens of a row.

    Raises:
        QkvError: They have another shape, are no whole numbers, or none of the model's.
    """
    try:
        found = ids.detach() if isinstance(ids, Tensor) else torch.from_numpy(np.array(ids))
    except (TypeError, ValueError):
        problem = f"token ids are {kind_of(ids)} that is no array of numbers"
        raise QkvError(request, problem, "Give rows of equal length, such as model.windows(text)[0][None]") from None
    if found.dim() != 2 or not len(found):
        hint = "Give them as ids[None]" if found.dim() == 1 and len(found) else "Give one or more rows of tokens"
        raise QkvError(request, f"token ids have the shape {tuple(found.shape)}, not (batch, tokens)", hint)
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise QkvError(request, f"token ids are of type {found.dtype}", "Give whole numbers")
    if not least <= found.shape[1] <= model.context:
        problem = f"a row has {found.shape[1]} tokens, and {model.name} takes {least} to {model.context} here"
        raise QkvError(request, problem, "Give rows of such a length")
    if not hasattr(model.model, "get_input_embeddings"):
        problem = f"{model.name} has no model around its heads"
        raise QkvError(request, problem, "Open a model of your own")
    known = int(model.model.get_input_embeddings().weight.shape[0])
    low, high = int(found.min()), int(found.max())
    if low < 0 or high >= known:
        problem = f"one token id is {low if low < 0 else high}, and {model.name} knows 0 to {known - 1}"
        raise QkvError(request, problem, "Give ids of the tokenizer that belongs to the model")
    return found.long()


def checked_means(request: str, model: AttentionModel, means: Any) -> list[Tensor] | None:
    """Mean outputs of every layer's heads, (heads, size) each, as `mean_outputs` gives them; None for none."""
    if means is None:
        return None
    if not isinstance(means, Sequence) or len(means) != model.shape.layers:
        count = len(means) if isinstance(means, Sequence) else type(means).__name__
        raise QkvError(request, f"means are {count}, and {model.name} has {model.shape.layers} layers", MEANS)
    for layer, one in enumerate(means):
        if not isinstance(one, Tensor) or not bool(one.isfinite().all()):
            what = "have entries that are not finite" if isinstance(one, Tensor) else f"are {kind_of(one)}"
            raise QkvError(request, f"the means of layer {layer} {what}", MEANS)
    return list(means)


def mean_outputs(model: AttentionModel, ids: Tensor) -> list[Tensor]:
    """The mean output of every head over token ids (batch, tokens): for each layer, (heads, size)."""
    request = "the mean outputs of heads"
    means, ids = MeanOutputs(), checked_ids(request, checked_model(request, model), ids, 1)
    model.run(ids, output=means, logits=1)
    return means.result()


def token_losses(
    model: AttentionModel,
    ids: Tensor,
    removed: Iterable[tuple[int, int]] = (),
    *,
    by: Removal = "mean",
    means: Sequence[Tensor] | None = None,
) -> Tensor:
    """Loss of each token but the first, in nats, without some heads.

    Args:
        model: A model that predicts the next token.
        ids: Token ids, (batch, tokens).
        removed: Pairs of layer and head.
        by: What takes the place of their outputs: their "mean" over tokens, or "zero".
        means: The mean outputs, such as `mean_outputs` of other texts; of these token ids if None.

    Returns:
        (batch, tokens - 1).

    Raises:
        QkvError: The model predicts no tokens, token ids are none of it, or there is no such head or kind of removal.
    """
    request = "losses of tokens"
    model, by = checked_model(request, model, predicts=True), checked_removal("removing heads", by)
    ids, means = checked_ids(request, model, ids), checked_means(request, model, means)
    chosen = [model.head(*pair) for pair in _pairs(removed)]  # which refuses heads that are not there
    if by == "mean" and chosen and means is None:
        means = mean_outputs(model, ids)
    change = without_heads([(one.layer, one.head) for one in chosen], means if by == "mean" else None)
    return _losses(model.run(ids, output=change).logits, ids)


def _pairs(removed: Any) -> list[tuple[Any, Any]]:
    """Pairs of layer and head."""
    try:
        pairs = [tuple(pair) for pair in removed]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 for pair in pairs):
        raise QkvError("removing heads", f"they are {removed!r:.60}", "Give pairs of layer and head, such as [(0, 1)]")
    return pairs


def head_effects(
    model: AttentionModel,
    windows: Sequence[Tensor],
    progress: Progress,
    *,
    last: int | None = None,
    by: Removal = "mean",
    means: Sequence[Tensor] | None = None,
) -> Tensor:
    """For every head, how much the loss grows without it.

    For a model that predicts no tokens: how far its last hidden states move, relative to their length.

    Args:
        model: The model.
        windows: Token ids of texts of equal length; they are run as one batch.
        progress: Called with layers done and in all.
        last: Count the losses of the last so many tokens only; of all but the first if None.
        by: What takes the place of a head's output: its "mean" over tokens, or "zero".
        means: The mean outputs, such as `mean_outputs` of other texts; of these windows if None.

    Returns:
        (layers, heads): nats per token, or a share.

    Raises:
        QkvError: The windows are of different lengths, token ids are none of the model's, or there is no such kind of
            removal.
    """
    request = "the effect of removing each head"
    model, by = checked_model(request, model), checked_removal("removing heads", by)
    ids = _stacked(request, model, windows)
    shape, means = model.shape, checked_means(request, model, means)
    if last is not None and whole(request, "last", last) >= ids.shape[1]:
        problem = f"last is {last}, and {ids.shape[1] - 1} tokens have one before them"
        raise QkvError(request, problem, "Count the losses of fewer tokens")
    effects = torch.zeros(shape.layers, shape.heads, dtype=torch.float64)
    copies = ids.repeat(shape.heads, 1)  # one copy of the texts for each head of a layer, run as one batch
    rows = torch.arange(len(copies)).reshape(shape.heads, len(ids))
    kept = ids.shape[1] if last is None else last + 1
    own = MeanOutputs()
    with _resumable(model, shape.heads) as blocks:
        once = _summary(model, model.run(ids, output=own, logits=kept), ids, kept)
        base = _repeated(once, shape.heads)
        means = None if by == "zero" else own.result() if means is None else means
        for layer in range(shape.layers):
            progress(layer, shape.layers)
            blocks.start(layer)

            def remove(at: int, output: Tensor, layer: int = layer) -> Tensor:
                if at != layer:
                    return output
                output = output.clone()
                for head in range(shape.heads):
                    output[rows[head], :, head] = _replacement(means, layer, [head], output)[0]
                return output

            found = _summary(model, model.run(copies, output=remove, logits=kept), copies, kept)
            moved = found - base if model.predicts else (found - base).norm(dim=-1) / base.norm(dim=-1)
            effects[layer] = moved.reshape(shape.heads, -1).double().mean(-1)
    progress(shape.layers, shape.layers)
    return effects


def _stacked(request: str, model: AttentionModel, windows: Any) -> Tensor:
    """Windows of equal length as one batch."""
    rows = windows if isinstance(windows, Tensor) else list(windows) if isinstance(windows, Sequence) else windows
    if isinstance(rows, list) and rows and all(isinstance(row, Tensor) for row in rows):
        if len({row.shape for row in rows}) > 1:
            lengths = " and ".join(map(str, sorted({len(row) for row in rows})[:2]))
            problem = f"the windows are of different lengths, {lengths} tokens"
            raise QkvError(request, problem, "Give texts of equal length, such as model.windows(text)[:1]")
        rows = torch.stack(rows)
    return checked_ids(request, model, rows)


def _summary(model: AttentionModel, out: Any, ids: Tensor, kept: int) -> Tensor:
    return _losses(out.logits[:, -kept:], ids[:, -kept:]) if model.predicts else out.last_hidden_state


def _losses(logits: Tensor, ids: Tensor) -> Tensor:
    losses = [
        nn.functional.cross_entropy(widened(row[:-1]), of[1:], reduction="none")
        for row, of in zip(logits, ids, strict=True)
    ]
    return torch.stack(losses)


def without_heads(removed: Iterable[tuple[int, int]], means: Sequence[Tensor] | None = None) -> OutputChange | None:
    """A change of outputs that puts their means, or zero if None, in place of those of the given heads.

    None if there are no heads.
    """
    by_layer: dict[int, list[int]] = {}
    for layer, head in removed:
        by_layer.setdefault(layer, []).append(head)

    def change(layer: int, output: Tensor) -> Tensor:
        if layer not in by_layer:
            return output
        output, heads = output.clone(), by_layer[layer]
        output[:, :, heads] = _replacement(means, layer, heads, output)
        return output

    return change if by_layer else None


def _replacement(means: Sequence[Tensor] | None, layer: int, heads: list[int], output: Tensor) -> Tensor:
    """What takes the place of the outputs of some heads of a layer, (heads, size)."""
    if means is None:
        return output.new_zeros(len(heads), output.shape[-1])
    if means[layer].shape != output.shape[2:]:
        own, needed = tuple(means[layer].shape), tuple(output.shape[2:])
        raise QkvError("removing heads", f"the means of layer {layer} have the shape {own}, not {needed}", MEANS)
    return means[layer][heads].to(output.dtype)


def _repeated(found: Any, copies: int) -> Any:
    """The output of a block for several copies of its batch."""
    if isinstance(found, Tensor):
        return found.repeat(copies, *[1] * (found.dim() - 1))
    return tuple(_repeated(part, copies) for part in found) if isinstance(found, tuple) else found


class _Blocks:
    """The blocks of a model: those before `start` give back what they gave in the first run, for each copy of it."""

    def __init__(self, blocks: Sequence[nn.Module], copies: int) -> None:
        self.blocks, self.copies = blocks, copies
        self.kept: dict[int, Any] = {}
        self.first = 0

    def start(self, layer: int) -> None:
        self.first = layer if self.blocks else 0

    def forward(self, number: int, own: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            if number < self.first:
                return _repeated(self.kept[number], self.copies)
            found = own(*args, **options)
            self.kept.setdefault(number, found)
            return found

        return run


@contextmanager
def _resumable(model: AttentionModel, copies: int) -> Iterator[_Blocks]:
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
    blocks = _Blocks(found, copies)
    try:
        for number, block in enumerate(found):
            block.forward = blocks.forward(number, block.forward)
        yield blocks
    finally:
        for block in found:
            del block.forward
