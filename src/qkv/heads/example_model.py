"""A small model that qkv designed itself, to look at heads without weights of anybody else's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from qkv.core.masks import causal
from qkv.design.sequences.circuit import Layer
from qkv.design.sequences.rules import ReadRule
from qkv.design.sequences.text_wiring import wire_texts
from qkv.design.sequences.texts import Vocabulary
from qkv.errors import QkvError
from qkv.heads.adapter import AttentionCall, OutputChange, Tap
from qkv.heads.attention_model import AttentionModel, HeadShape, checked_text

if TYPE_CHECKING:
    from qkv.heads.table import HeadTable

LENGTH = 64
"""Tokens of a text, and different words in it, the first token included."""
FIRST = "[start]"
"""The token in front of every text, which is read where there is nothing else to read."""
NAME = "example"
TEXT = "the cat saw the dog and the dog saw the cat"


@dataclass(frozen=True, eq=False)
class ExampleModel(AttentionModel):
    """Two layers of two heads: previous token, duplicate; induction, and one that reads all tokens equally.

    The first three are the circuits of `qkv.design.wire_texts`, each with its certificate. A word is a token; its
    number is the place at which it first occurs in the text.
    """

    words: dict[int, str] = field(default_factory=dict, repr=False)

    def token_ids(self, text: str) -> Tensor:
        """The numbers of a text's words, in the order in which they first occur, after the first token."""
        written = checked_text(text).split()
        if len(written) >= LENGTH:
            problem = f"the text has {len(written)} words, and the example takes {LENGTH - 1}"
            raise QkvError("reading a text with the example", problem, "Give a shorter text, or a model of your own")
        numbers = {word: i for i, word in enumerate(dict.fromkeys(written), 1)}
        self.words.clear()
        self.words.update({0: FIRST, **{i: word for word, i in numbers.items()}})
        return torch.tensor([0, *(numbers[word] for word in written)])

    def token_texts(self, ids: Tensor) -> tuple[str, ...]:
        """The words of the last text."""
        return tuple(self.words.get(int(i), f"word {int(i)}") for i in ids)

    def table(self, text: str | Sequence[str], **options: Any) -> HeadTable:
        """Refused: the example has no loss, and no other parts that a head's output goes to."""
        problem = "the example has no model around its heads, so that nothing is lost without one"
        hint = "Look at one head (--head 1.0, or .head(1, 0).view(text)), or name a model of your own"
        raise QkvError("measuring the heads of the example", problem, hint)

    def run(
        self,
        ids: Tensor,
        tap: Tap | None = None,
        *,
        output: OutputChange | None = None,
        keys: Any = None,
        logits: int | None = None,
    ) -> Any:
        """Hand the attention of both layers to `tap`; ids are (1, tokens)."""
        induction, duplicate = _circuits()
        x, other = induction.vocabulary.vectors(ids[0].tolist()), duplicate.vocabulary.vectors(ids[0].tolist())
        first, second = induction.layers
        after = first.weights(x)[1]
        layers = (((first, x), (duplicate.layers[0], other)), ((second, after), (None, after)))
        mask = torch.zeros(len(x), len(x), dtype=torch.float64).masked_fill(~causal(len(x)), -torch.inf)
        for number, heads in enumerate(layers):
            query, key, value = (_stacked(part) for part in zip(*(_vectors(*head) for head in heads), strict=True))
            weights = (query @ key.transpose(-1, -2) + mask).softmax(-1)
            if tap is not None:
                tap(AttentionCall(number, query, key, value, mask[None, None], 1.0, None, None, weights))
        return None


def example() -> ExampleModel:
    """The built-in example: `qkv.heads.example().survey("the cat saw the cat")`.

    Returns:
        A model whose heads are designed, and certified, to read the previous token, earlier copies of the token, and
        what followed those; the last head reads all tokens equally. It predicts no tokens.
    """
    settings = SimpleNamespace(config=SimpleNamespace(vocab_size=LENGTH))
    tokenizer = SimpleNamespace(all_special_ids=(0,), bos_token_id=0)
    size = max(head.Q.shape[0] for circuit in _circuits() for head in circuit.layers)
    shape = HeadShape(2, 2, 2, size)
    nothing: Any = None
    return ExampleModel(NAME, "Designed", shape, True, False, LENGTH, settings, tokenizer, nothing)


@cache
def _circuits() -> tuple[Any, Any]:
    words = Vocabulary.side_by_side(torch.eye(LENGTH, dtype=torch.float64), length=LENGTH)
    return wire_texts(words, ReadRule("induction", sink=0)), wire_texts(words, ReadRule("duplicate", sink=0))


def _vectors(layer: Layer | None, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value of every token; a query of zeros, which reads all equally, where there is no layer."""
    if layer is None:
        return torch.zeros(len(x), 1, dtype=x.dtype), torch.ones(len(x), 1, dtype=x.dtype), x[:, :LENGTH]
    return x @ layer.Q.T, x @ layer.K.T, x @ layer.V.T


def _stacked(parts: tuple[Tensor, ...]) -> Tensor:
    """(1, heads, tokens, size), with zeros behind vectors that are shorter than the size of the model's heads."""
    size = max(part.shape[1] for part in parts)
    return torch.stack([torch.nn.functional.pad(part, (0, size - part.shape[1])) for part in parts])[None]
