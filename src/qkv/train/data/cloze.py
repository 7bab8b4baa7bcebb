"""Drills: a title, a random crop of the words around a span, and the span asked for; questions are mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.errors import QkvError
from qkv.train.data.entity_passages import Passage, passage
from qkv.train.data.objectives import Example, question
from qkv.train.data.packing import Source
from qkv.train.data.span_relevance import interests
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import MASK_ID, Tokenizer, encode_all

BEFORE, AFTER = 5, 3  # most words of context before and after a span


@dataclass(frozen=True, eq=False)
class ClozeExample:
    """A span as ids: the title, the words before it and after it, and what is asked for."""

    title: list[int]
    before: list[list[int]]
    after: list[list[int]]
    answer: list[int]

    def example(self, before: int, after: int, block: int) -> Example:
        """Title and context ⁇ rest of the context ⁇ span ⁇; with no context, title ⁇ span ⁇ as in a question."""
        ids = list(self.title)
        if before or after:
            for word in self.before[len(self.before) - before :] if before else ():
                ids += word
            ids.append(MASK_ID)
            for word in self.after[:after]:
                ids += word
        ids.append(MASK_ID)
        room = block - len(self.answer)  # the last ⁇ is asked for, but never read
        if len(ids) > room:  # the title is worth more than the context
            ids = [*ids[: room - 1], MASK_ID]
        return Example([*ids, *self.answer, MASK_ID], start=len(ids))

    def named(self, example: Example) -> Example:
        """The same, asking for the title too, and for its end where no context follows."""
        head = min(len(self.title), example.start - 1)
        return example._replace(head=head + (example.ids[head] == MASK_ID))


class ClozeSource:
    """All drills of some texts, and which of them to ask: a function of the step alone."""

    def __init__(
        self,
        texts: Sequence[str],
        questions: Sequence[tuple[str, str]],
        tokenizer: Tokenizer,
        block: int,
    ) -> None:
        self.block = block
        passages = [each for each in map(passage, texts) if each.spans]
        self.interest = interests(passages, questions)
        self.drills: list[list[ClozeExample]] = []
        self._shares: list[np.ndarray] = []
        for deck, shares in zip(_drills(passages, tokenizer), self.interest.shares, strict=True):
            fits = [i for i, drill in enumerate(deck) if len(drill.answer) + len(drill.title) + 3 <= block]
            if fits:
                self.drills.append([deck[i] for i in fits])
                self._shares.append(np.cumsum(shares[fits]))
        if not self.drills:
            raise QkvError(
                "making drills of texts",
                f"none of {len(texts)} texts says anything that fits into {block} tokens beside its title",
                "Give texts that begin with a name and hold names, dates or numbers, or choose --objective span",
            )
        ids = encode_all(tokenizer, [part for pair in questions for part in pair])
        self.questions = [question(q, a, block) for q, a in zip(ids[::2], ids[1::2], strict=True)]

    def source(self, settings: TrainSettings) -> Source:
        """Each passage once an epoch, in an order that seed and epoch decide; questions likewise."""
        s = settings
        asked = (
            min(s.batch_size - 1, max(1, round(s.question_fraction * s.batch_size)))
            if self.questions and s.question_fraction
            else 0
        )
        drills = s.batch_size - asked
        passages, turns = _Turns(len(self.drills), s.seed), _Turns(len(self.questions), s.seed + 1)

        def examples(step: int) -> list[Example]:
            random = np.random.default_rng((s.seed, step, 5))
            found = [self.questions[i] for i in turns.some(step * asked, asked)]
            return found + [self._drill(n, s, random) for n in passages.some(step * drills, drills)]

        return examples

    def _drill(self, number: int, s: TrainSettings, random: np.random.Generator) -> Example:
        drills = self.drills[number]
        tilted = self.interest.any and random.random() < s.relevant_span_fraction
        # A bare title asks for one thing only where questions do, and what nobody asks for needs a word to be told.
        bare = s.no_context_fraction if tilted and len(self.interest.frames) == 1 else 0.0
        if tilted:
            shares = self._shares[number]
            chosen = drills[min(int(np.searchsorted(shares, random.random() * shares[-1])), len(drills) - 1)]
        else:
            chosen = drills[int(random.integers(len(drills)))]
        before = after = 0
        if random.random() >= bare:
            before = int(random.integers(0 if bare else min(1, len(chosen.before)), len(chosen.before) + 1))
            after = int(random.integers(0, len(chosen.after) + 1))
        found = chosen.example(before, after, self.block)
        return chosen.named(found) if s.predict_title_fraction and random.random() < s.predict_title_fraction else found


class _Turns:
    """Numbers below a count, each once an epoch, in an order of its own."""

    def __init__(self, count: int, seed: int) -> None:
        self._count, self._seed = count, seed
        self._orders: dict[int, np.ndarray] = {}

    def some(self, first: int, count: int) -> list[int]:
        return [int(self._order(i // self._count)[i % self._count]) for i in range(first, first + count)]

    def _order(self, epoch: int) -> np.ndarray:
        if epoch not in self._orders:
            for old in [e for e in self._orders if e < epoch - 1]:
                del self._orders[old]
            self._orders[epoch] = np.random.default_rng((self._seed, epoch, 6)).permutation(self._count)
        return self._orders[epoch]


def _drills(passages: Sequence[Passage], tokenizer: Tokenizer) -> list[list[ClozeExample]]:
    """Each span in tokens; names and words have the space before them that they have inside a question."""
    parts: list[str] = []
    for each in passages:
        parts.append(" " + each.title)
        for span in each.spans:
            parts += [span.text, *(" " + w for w in span.before[-BEFORE:]), *(" " + w for w in span.after[:AFTER])]
    ids = iter(encode_all(tokenizer, parts))
    decks = []
    for each in passages:
        title = next(ids)
        deck = []
        for span in each.spans:
            answer = next(ids)
            before = [next(ids) for _ in span.before[-BEFORE:]]
            after = [next(ids) for _ in span.after[:AFTER]]
            deck.append(ClozeExample(title, before, after, answer))
        decks.append(deck)
    return decks
