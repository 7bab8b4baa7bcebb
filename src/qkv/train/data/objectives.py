"""What a model is trained to do with a text: fill in a span, fill in a salient span, say what comes next, answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkv.errors import QkvError
from qkv.train.data.salient_spans import salient
from qkv.train.tokenizers import END_ID, MASK_ID, Tokenizer, encode_all

LEAST = 4  # tokens that span corruption leaves of a text, at the least


class Example(NamedTuple):
    """A sequence of ids; the model is asked for those from `start` on, and for those before `head` but the first."""

    ids: list[int]
    start: int = 1
    head: int = 1


@dataclass(frozen=True)
class Document:
    """A text as ids, and where in them its salient spans are."""

    ids: list[int]
    spans: tuple[tuple[int, int], ...] = ()


Objective = Callable[[Document, int, np.random.Generator], Example]
"""From a document, the model's block and randomness to an example of at most block + 1 ids."""


def corrupt(ids: Sequence[int], block: int, random: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
    """(prefix, masked, suffix) of a text, truncated to a random length, with one random span masked.

    The length is uniform in [4, ⌊7/8·block⌋] (a shorter text stays whole). Of n tokens, m are masked, uniform
    in [1, h] with h = n/2 - 1, rounded up as often as down, so that the mean of m, (h + 1)/2, is n/4.
    """
    top = _check(block)
    ids = list(ids[: int(random.integers(LEAST, top + 1))])
    n = len(ids)
    high = max(1, (n - 2 + int(random.integers(0, 2))) // 2)
    m = min(int(random.integers(1, high + 1)), n)
    first = int(random.integers(0, n - m + 1))
    return ids[:first], ids[first : first + m], ids[first + m :]


def span(document: Document, block: int, random: np.random.Generator) -> Example:
    """Span corruption as in the course: prefix ⁇ suffix ⁇ masked ⁇, every token asked for."""
    prefix, masked, suffix = corrupt(document.ids, block, random)
    return Example([*prefix, MASK_ID, *suffix, MASK_ID, *masked, MASK_ID])


def following(document: Document, block: int, random: np.random.Generator) -> Example:
    """Next-token prediction on a text and its end, or on a random stretch of one that is too long."""
    ids = [END_ID, *document.ids, END_ID]
    first = int(random.integers(0, len(ids) - block)) if len(ids) > block + 1 else 0
    return Example(ids[first : first + block + 1])


def salient_span(document: Document, block: int, random: np.random.Generator) -> Example:
    """Like span corruption, but a name, date, number or place is masked, and only it is asked for."""
    top = _check(block)
    spans = [(a, b) for a, b in document.spans if b - a <= top // 2]
    if not spans:
        prefix, masked, suffix = corrupt(document.ids, block, random)
    else:
        a, b = spans[int(random.integers(len(spans)))]
        ids = document.ids
        # A window of the text around the span, of random length and at a random place.
        length = int(random.integers(min(max(LEAST, b - a), len(ids), top), min(len(ids), top) + 1))
        first = int(random.integers(max(0, b - length), min(a, len(ids) - length) + 1))
        prefix, masked, suffix = ids[first:a], ids[a:b], ids[b : first + length]
    asked = [*prefix, MASK_ID, *suffix, MASK_ID]
    return Example([*asked, *masked, MASK_ID], start=len(asked))


def question(asked: Sequence[int], answer: Sequence[int], block: int) -> Example:
    """A question and its answer, question ⁇ answer ⁇, the answer asked for."""
    ids = [*asked, MASK_ID]
    if len(ids) + len(answer) + 1 > block + 1:
        raise QkvError(
            "making an example of a question",
            f"question and answer are {len(asked)} and {len(answer)} tokens, and two signs",
            f"The model holds {block}: shorten them, or use a longer block",
        )
    return Example([*ids, *answer, MASK_ID], start=len(ids))


OBJECTIVES: dict[str, Objective] = {"span": span, "next": following, "salient": salient_span}


def objective(name: str) -> Objective:
    """The objective of this name."""
    if name not in OBJECTIVES:
        raise QkvError(
            "choosing an objective", f"there is none called {name!r}", f"Choose from {', '.join(OBJECTIVES)}"
        )
    return OBJECTIVES[name]


def documents(texts: Sequence[str], tokenizer: Tokenizer, spans: bool = False) -> list[Document]:
    """Texts as ids; with `spans`, cut so that each salient span is whole tokens."""
    if not spans:
        return [Document(ids) for ids in encode_all(tokenizer, texts)]
    pieces, owners = [], []
    for number, text in enumerate(texts):
        last = 0
        for a, b in salient(text):
            # The space before a word belongs to its token, so the cut is before the space.
            a -= a > last and text[a - 1] == " "
            pieces += [text[last:a], text[a:b]]
            owners += [(number, False), (number, True)]
            last = b
        pieces.append(text[last:])
        owners.append((number, False))
    ids: list[list[int]] = [[] for _ in texts]
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    for (number, wanted), part in zip(owners, encode_all(tokenizer, pieces), strict=True):
        if wanted:
            found[number].append((len(ids[number]), len(ids[number]) + len(part)))
        ids[number] += part
    return [Document(each, tuple(where)) for each, where in zip(ids, found, strict=True)]


def _check(block: int) -> int:
    top = 7 * block // 8
    if top < LEAST or top + 3 > block + 1:
        raise QkvError(
            "span corruption", f"the block is {block} tokens", "Use a block of 16 or more: 7/8 of it, and three signs"
        )
    return top
