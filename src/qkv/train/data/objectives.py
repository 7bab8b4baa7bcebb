"""Pretraining objectives: from documents to examples by span corruption, salient spans, next tokens or questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.train.data.salient_spans import find_salient_spans
from qkv.train.tokenizers import END_ID, MASK_ID, Tokenizer, encode_all

MIN_SPAN_TOKENS = 4  # tokens that span corruption leaves of a longer text, at the least


class Example(NamedTuple):
    """A sequence of token ids and which of them are targets.

    Attributes:
        ids: Token ids; the model reads all but the last and predicts all but the first.
        start: Tokens from here on are targets.
        head: Tokens 1, …, head - 1 are targets too (the title of a cloze example); 1 for none.
    """

    ids: list[int]
    start: int = 1
    head: int = 1


@dataclass(frozen=True)
class Document:
    """A text as token ids, with the places (first, past last) of its salient spans."""

    ids: list[int]
    spans: tuple[tuple[int, int], ...] = ()


Objective = Callable[[Document, int, np.random.Generator], Example]
"""From a document, the context length and a random generator to an example of at most context_length + 1 ids."""


def split_at_random_span(
    ids: Sequence[int], context_length: int, random: np.random.Generator
) -> tuple[list[int], list[int], list[int]]:
    """(prefix, masked, suffix) of a text, truncated to a random length, with one random span masked.

    The length is uniform in [4, ⌊7/8·context_length⌋] (a shorter text stays whole). Of n tokens, m are masked, uniform
    in [1, h] with h = n/2 - 1, rounded up as often as down, so that the mean of m, (h + 1)/2, is n/4.
    """
    longest = _max_text_tokens(context_length)
    ids = list(ids[: int(random.integers(MIN_SPAN_TOKENS, longest + 1))])
    n = len(ids)
    high = max(1, (n - 2 + int(random.integers(0, 2))) // 2)
    m = min(int(random.integers(1, high + 1)), n)
    first = int(random.integers(0, n - m + 1))
    return ids[:first], ids[first : first + m], ids[first + m :]


def span_corruption(document: Document, context_length: int, random: np.random.Generator) -> Example:
    """Span corruption as in the course: prefix ⁇ suffix ⁇ masked ⁇; every token is a target."""
    prefix, masked, suffix = split_at_random_span(document.ids, context_length, random)
    return Example([*prefix, MASK_ID, *suffix, MASK_ID, *masked, MASK_ID])


def next_token(document: Document, context_length: int, random: np.random.Generator) -> Example:
    """Next-token prediction on a text between two end tokens, or on a random window of one that is too long."""
    ids = [END_ID, *document.ids, END_ID]
    first = int(random.integers(0, len(ids) - context_length)) if len(ids) > context_length + 1 else 0
    return Example(ids[first : first + context_length + 1])


def salient_span_corruption(document: Document, context_length: int, random: np.random.Generator) -> Example:
    """Span corruption whose masked span is a name, date, number or place; only the span is a target."""
    longest = _max_text_tokens(context_length)
    spans = [(a, b) for a, b in document.spans if b - a <= longest // 2]
    if not spans:
        prefix, masked, suffix = split_at_random_span(document.ids, context_length, random)
    else:
        a, b = spans[int(random.integers(len(spans)))]
        ids = document.ids
        # A window of the text around the span, of random length and at a random place.
        shortest = min(max(MIN_SPAN_TOKENS, b - a), len(ids), longest)
        length = int(random.integers(shortest, min(len(ids), longest) + 1))
        first = int(random.integers(max(0, b - length), min(a, len(ids) - length) + 1))
        prefix, masked, suffix = ids[first:a], ids[a:b], ids[b : first + length]
    prompt = [*prefix, MASK_ID, *suffix, MASK_ID]
    return Example([*prompt, *masked, MASK_ID], start=len(prompt))


def question_example(question: Sequence[int], answer: Sequence[int], context_length: int) -> Example:
    """A question and its answer, question ⁇ answer ⁇; the answer is the target."""
    ids = [*question, MASK_ID]
    if len(ids) + len(answer) + 1 > context_length + 1:
        raise QkvError(
            "making an example of a question",
            f"question and answer are {len(question)} and {len(answer)} tokens, and two special tokens",
            f"The model holds {context_length}: shorten them, or raise context_length",
        )
    return Example([*ids, *answer, MASK_ID], start=len(ids))


def question_examples(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, context_length: int) -> list[Example]:
    """Questions with answers as examples."""
    ids = encode_all(tokenizer, [part for pair in pairs for part in pair])
    return [question_example(q, a, context_length) for q, a in zip(ids[::2], ids[1::2], strict=True)]


def unchanged(examples: Sequence[Example]) -> tuple[list[Document], Objective]:
    """Documents and an objective that give these examples as they are: for data that is not corrupted."""
    return [Document([i]) for i in range(len(examples))], lambda document, length, random: examples[document.ids[0]]


OBJECTIVES: dict[str, Objective] = {
    "span": span_corruption,
    "next": next_token,
    "salient": salient_span_corruption,
}


def objective(name: str) -> Objective:
    """The objective of this name."""
    if name not in OBJECTIVES:
        raise QkvError(
            "choosing an objective", f"there is none called {name!r}", f"Choose from {', '.join(OBJECTIVES)} or cloze"
        )
    return OBJECTIVES[name]


def documents(texts: Sequence[str], tokenizer: Tokenizer, spans: bool = False) -> list[Document]:
    """Texts as token ids; with `spans`, tokenised in parts so that each salient span is whole tokens."""
    if not spans:
        return [Document(ids) for ids in encode_all(tokenizer, texts)]
    parts, owners = [], []
    for number, text in enumerate(texts):
        last = 0
        for a, b in find_salient_spans(text):
            # The space before a word belongs to its token, so the cut is before the space.
            a -= a > last and text[a - 1] == " "
            parts += [text[last:a], text[a:b]]
            owners += [(number, False), (number, True)]
            last = b
        parts.append(text[last:])
        owners.append((number, False))
    ids: list[list[int]] = [[] for _ in texts]
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    for (number, is_span), part in zip(owners, encode_all(tokenizer, parts), strict=True):
        if is_span:
            found[number].append((len(ids[number]), len(ids[number]) + len(part)))
        ids[number] += part
    return [Document(each, tuple(where)) for each, where in zip(ids, found, strict=True)]


def _max_text_tokens(context_length: int) -> int:
    """Tokens of a text that fit beside the three signs of span corruption: 7/8 of the context."""
    longest = 7 * context_length // 8
    if longest < MIN_SPAN_TOKENS or longest + 3 > context_length + 1:
        raise QkvError(
            "span corruption",
            f"context_length is {context_length}",
            "Use 16 or more: 7/8 of it for the text, and three signs",
        )
    return longest
