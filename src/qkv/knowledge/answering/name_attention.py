"""Attention of each head from the last token to the name in the question, and of one head among all its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.knowledge.answering.answer_model import SPECIAL_IDS, AnswerModel, encode_question, load_answer_model
from qkv.model.numpy_gpt import NumpyGPT

if TYPE_CHECKING:
    from qkv.train.runs import Run

ANSWER = "(answer)"
"""The token after the question, at whose place the answer begins."""


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


class QuestionAttention(NamedTuple):
    """What each token of a question looks at, in one head: row i of `weights` belongs to token i."""

    tokens: tuple[str, ...]
    weights: np.ndarray


def question_attention(run: Run | AnswerModel, question: str, layer: int, head: int) -> QuestionAttention:
    """The weights of one head on a question, as `ask` encodes it.

    Args:
        run: The run that is asked.
        question: The question.
        layer: The head's layer, from 0.
        head: Its number in the layer, from 0.

    Raises:
        QkvError: There is no such head; the question cannot be asked; or tokens do not look at tokens in this layer, as
            in a perceiver.
    """
    model = load_answer_model(run)
    ids = encode_question(model, question).ids
    layers: list[np.ndarray] = []
    model.model.forward(np.array([ids]), seen=layers)
    request = f"head {layer}.{head} on a question"
    if not (0 <= layer < len(layers) and 0 <= head < layers[layer].shape[1]):
        raise QkvError(request, "there is no such head", "Choose a head that is there")
    weights = layers[layer][0, head]
    if weights.shape != (len(ids), len(ids)):
        raise QkvError(request, "tokens do not look at tokens in this kind of attention", "Ask a causal model")
    return QuestionAttention(tuple(ANSWER if i in SPECIAL_IDS else model.tokenizer.decode([i]) for i in ids), weights)
