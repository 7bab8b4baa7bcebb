"""All heads of a model on one text: kinds, firmness and a small picture of each, and the weights of any one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from qkv.core.display import Card, Displayable, lower_bound
from qkv.core.validation import whole
from qkv.errors import QkvError
from qkv.heads.adapter import AttentionCall
from qkv.heads.attention_model import checked_model
from qkv.heads.firmness import Firmness, FirmnessParts
from qkv.heads.key_grid import Per, checked_bits, checked_per
from qkv.heads.patterns import SKIPPED, Patterns, PatternSums, checked_seed, judged_on, kind, score_text
from qkv.heads.rounding import HeadRounding, RoundingParts, share_text
from qkv.heads.table import repeated_ids, repeated_patterns

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel

PICTURE = 24
"""Rows and columns of the small picture of a head."""
MIN_TOKENS = 2


@dataclass(frozen=True)
class HeadSummary:
    """One head on one text; the fields are those of `qkv.heads.HeadRow`.

    Attributes:
        layer: Its layer, from 0.
        head: Its number in the layer, from 0.
        kind: What it looks up.
        score: The mean weight that gave the kind; for "broad" the share of tokens that it averages.
        effective: How many tokens it effectively averages.
        margin: Median margin of the first item's score over the second's; None if it is not finite.
        radius: Median distance that every key may move without another item on top, as a share of a key's length;
            None for a query of zeros.
        reads: Share of queries that put at least 90 % of their weight on one item.
    """

    layer: int
    head: int
    kind: str
    score: float
    effective: float
    margin: float | None
    radius: float | None
    reads: float


@dataclass(frozen=True, eq=False)
class Survey(Displayable):
    """What every head of a model does on one text.

    Attributes:
        model: The model's name.
        tokens: The text's tokens.
        causal: Whether a token sees only those before it.
        repeated: Whether induction and duplicates were judged on repeated random tokens.
        heads: One summary for each head.
        pictures: (layers, heads, rows, rows), from 0 to 255: the largest weight in each part of the matrix of weights.
        calls: What each layer computed from; its weights are left out and computed again where they are asked for.
    """

    model: str
    tokens: tuple[str, ...]
    causal: bool
    repeated: bool
    heads: tuple[HeadSummary, ...]
    pictures: Tensor = field(repr=False)
    calls: tuple[AttentionCall, ...] = field(repr=False)

    def card(self) -> Card:
        kinds: dict[str, int] = {}
        for one in self.heads:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        counted = ", ".join(f"{count} {name}" for name, count in sorted(kinds.items(), key=lambda k: -k[1]))
        rows = tuple(
            (f"{h.layer}.{h.head}", h.kind, score_text(h.kind, h.score), f"{h.effective:.1f}", _shown(h.margin, 2),
             "–" if h.radius is None else lower_bound(h.radius, 3), share_text(h.reads))
            for h in self.heads
        )  # fmt: skip
        columns = ("head", "kind", "score", "averages", "margin", "radius", "reads")
        return Card(f"{self.model} on {len(self.tokens)} tokens", (("heads", counted),), columns, rows)

    def weights(self, layer: int, head: int) -> Tensor:
        """The weights of one head, (tokens, tokens): row i holds what token i looks at.

        Raises:
            QkvError: There is no such head.
        """
        call = self._call(layer, head)
        return call.softmax(call.scores())[0, head]

    def scores(self, layer: int, head: int) -> Tensor:
        """The scores of one head, (tokens, tokens); -inf where a token may not look.

        Raises:
            QkvError: There is no such head.
        """
        return self._call(layer, head).scores()[0, head]

    def summary(self, layer: int, head: int) -> HeadSummary:
        """What one head does on the text.

        Raises:
            QkvError: There is no such head.
        """
        self._call(layer, head)
        return next(one for one in self.heads if (one.layer, one.head) == (int(layer), int(head)))

    def rounding(self, layer: int, head: int, bits: Sequence[int], per: Per = "channel") -> tuple[HeadRounding, ...]:
        """One head with its keys rounded to each number of bits; see `qkv.heads.rounding`.

        Args:
            layer: The head's layer, from 0.
            head: Its number in the layer, from 0.
            bits: Numbers of bits, from 1 to 8.
            per: Whether each channel or each token has a grid of its own.

        Raises:
            QkvError: There is no such head, or a number of bits is out of range.
        """
        call, request = self._call(layer, head), f"rounding the keys of head {layer}.{head}"
        shared, own = slice(head // call.groups, head // call.groups + 1), slice(head, head + 1)
        mask = call.mask if call.mask is None or call.mask.shape[1] == 1 else call.mask[:, own]
        alone = replace(
            call,
            layer=0,
            query=call.query[:, own],
            key=call.key[:, shared],
            value=call.value[:, shared],
            mask=mask,
            sinks=None if call.sinks is None else call.sinks.reshape(-1)[own],
        )
        parts = RoundingParts(1, 1, checked_bits(request, bits), checked_per(request, per))
        parts.add(replace(alone, weights=alone.softmax(alone.scores())))
        return tuple(replace(row, layer=layer, head=head) for row in parts.rows())

    def judged_on(self, kind: str) -> str:
        """What a kind of these heads was judged on: "the text", or "repeated random tokens"."""
        return judged_on(kind, len(self.tokens) > SKIPPED, self.repeated)

    def _call(self, layer: int, head: int) -> AttentionCall:
        request = f"head {layer!s:.20}.{head!s:.20} of {self.model}"
        layer, head = whole(request, "layer", layer, 0), whole(request, "head", head, 0)
        if not (layer < len(self.calls) and head < self.calls[0].query.shape[1]):
            problem = f"layers are 0 to {len(self.calls) - 1}, heads 0 to {self.calls[0].query.shape[1] - 1}"
            raise QkvError(request, problem, "Choose a head that is there")
        return self.calls[layer]


def survey(model: AttentionModel, text: str, *, max_tokens: int | None = None, seed: int = 0) -> Survey:
    """Run a model on one text and summarise every head, layer by layer.

    Args:
        model: From `qkv.heads.open`.
        text: At most as many tokens as the model's context.
        max_tokens: A further limit on its tokens; None for none.
        seed: Of the repeated random tokens, on which induction and duplicates are judged.

    Returns:
        Summaries of all heads. Queries, keys and values are kept, weights are not.

    Raises:
        QkvError: The text has less than two tokens, or too many.
    """
    model = checked_model("looking at the heads of a model on a text", model)
    request = f"looking at the heads of {model.name} on a text"
    limit = model.context if max_tokens is None else whole(request, "max_tokens", max_tokens, MIN_TOKENS)
    ids, most = model.token_ids(text), min(model.context, limit)
    seed = checked_seed(request, seed)
    if len(ids) > most:
        raise QkvError(request, f"the text has {len(ids)} tokens, and at most {most} fit", "Give a shorter text")
    if len(ids) < MIN_TOKENS:
        problem = f"the text has {'one token' if len(ids) else 'no tokens'}"
        raise QkvError(request, problem, "Give a text of two tokens or more")
    shape, size = model.shape, min(PICTURE, len(ids))
    sums, firmness = PatternSums(shape.layers, shape.heads), FirmnessParts(shape.layers, shape.heads)
    pictures, calls = [], []

    def tap(call: AttentionCall) -> None:
        scores = call.scores_and_plain()[1][0]
        sums.add(call.layer, call.weights[0], ids, torch.isfinite(scores[0]), call.layer == 0)
        firmness.add(call, scores)
        small = adaptive_max_pool2d(call.weights[0].float(), (size, size)).clamp(0, 1)
        pictures.append((255 * small).round().to(torch.uint8))
        calls.append(replace(call, weights=call.weights[..., :0]))

    model.run(ids[None], tap)
    repeated = repeated_patterns(model, repeated_ids(model, seed))
    return Survey(
        model.name,
        model.token_texts(ids),
        model.causal,
        repeated is not None,
        _summaries(sums.result(), repeated, firmness.result()),
        torch.stack(pictures),
        tuple(calls),
    )


def _summaries(patterns: Patterns, repeated: Patterns | None, firmness: Firmness) -> tuple[HeadSummary, ...]:
    rows = []
    for layer in range(len(patterns.previous)):
        for head in range(patterns.previous.shape[1]):
            at = (layer, head)
            name, score = kind(patterns, repeated, layer, head)
            measured: dict[str, Any] = {
                "effective": float(patterns.effective[at]),
                "margin": _finite(firmness.margin[at]),
                "radius": _finite(firmness.radius[at]),
                "reads": float(firmness.reads[at]),
            }
            rows.append(HeadSummary(layer, head, name, score, **measured))
    return tuple(rows)


def _finite(value: Tensor) -> float | None:
    return float(value) if bool(value.isfinite()) else None


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
