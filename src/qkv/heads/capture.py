"""Queries, keys, values and weights of every head on one text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qkv.core.display import Card, Displayable
from qkv.errors import QkvError
from qkv.heads.adapter import AttentionCall

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel


@dataclass(frozen=True, eq=False)
class Capture(Displayable):
    """What the heads of a model computed on one text.

    Attributes:
        model: The model's name.
        tokens: The text's tokens.
        calls: One AttentionCall for each layer.
    """

    model: str
    tokens: tuple[str, ...]
    calls: tuple[AttentionCall, ...] = field(repr=False)

    def card(self) -> Card:
        first = self.calls[0]
        size = f"{len(self.calls)} layers × {first.query.shape[1]} heads of size {first.query.shape[-1]}"
        return Card(f"{self.model} on {len(self.tokens)} tokens", (("captured", size),))


def capture(model: AttentionModel, text: str) -> Capture:
    """Run a model on one text and keep every layer's attention.

    Raises:
        QkvError: The text is longer than the model's context.
    """
    ids = model.token_ids(text)
    if len(ids) > model.context:
        problem = f"the text has {len(ids)} tokens, more than the {model.context} that the model takes"
        raise QkvError("capturing a text", problem, "Give a shorter text, or use table(), which cuts it into windows")
    if not len(ids):
        raise QkvError("capturing a text", "the text is empty", "Give some words")
    calls: list[AttentionCall] = []
    model.run(ids[None], calls.append)
    return Capture(model.name, model.token_texts(ids), tuple(calls))
