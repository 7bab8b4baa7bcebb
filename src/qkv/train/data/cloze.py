"""Entity cloze examples: a title, words around a span, and the span to predict; with questions mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.errors import QkvError
from qkv.train.data.entity_passages import Passage, parse_passage
from qkv.train.data.objectives import Example, question_examples
from qkv.train.data.packing import BatchSource, EpochOrder
from qkv.train.data.span_relevance import fit_span_relevance
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import MASK_ID, Tokenizer, encode_all

MAX_WORDS_BEFORE, MAX_WORDS_AFTER = 5, 3  # of context around a span


@dataclass(frozen=True, eq=False)
class ClozeExample:
    """A salient span as token ids.

    Attributes:
        title: Title of the text.
        before: Words before the span, each as ids.
        after: Words after it.
        answer: The span.
    """

    title: list[int]
    before: list[list[int]]
    after: list[list[int]]
    answer: list[int]

    def example(self, before: int, after: int, context_length: int) -> Example:
        """With so many words of context: title before ⁇ after ⁇ span ⁇, or title ⁇ span ⁇ without any, as a question.

        Where it is too long, the end of the context is cut off rather than the title.
        """
        ids = list(self.title)
        if before or after:
            for word in self.before[len(self.before) - before :] if before else ():
                ids += word
            ids.append(MASK_ID)
            for word in self.after[:after]:
                ids += word
        ids.append(MASK_ID)
        room = context_length - len(self.answer)  # the last ⁇ is predicted, but never read
        if len(ids) > room:
            ids = [*ids[: room - 1], MASK_ID]
        return Example([*ids, *self.answer, MASK_ID], start=len(ids))

    def with_title_as_target(self, example: Example) -> Example:
        """The same example whose title is a target too, with the ⁇ after it if no context follows."""
        head = min(len(self.title), example.start - 1)
        return example._replace(head=head + (example.ids[head] == MASK_ID))


class ClozeSource:
    """Cloze examples of texts, and which of them are in the batch of a step: a function of the step alone.

    Args:
        texts: Texts that begin with the name of what they are about.
        questions: Questions with answers that are mixed in, and that tell which spans matter; may be empty.
        tokenizer: The model's tokenizer.
        context_length: The model's context length.

    Raises:
        QkvError: If no text holds a salient span that fits.
    """

    def __init__(
        self,
        texts: Sequence[str],
        questions: Sequence[tuple[str, str]],
        tokenizer: Tokenizer,
        context_length: int,
    ) -> None:
        self.context_length = context_length
        passages = [each for each in map(parse_passage, texts) if each.spans]
        self.relevance = fit_span_relevance(passages, questions)
        self.examples: list[list[ClozeExample]] = []  # by passage
        self._cumulative: list[np.ndarray] = []  # sums of the spans' probabilities, by passage
        for spans, shares in zip(_tokenised(passages, tokenizer), self.relevance.probabilities, strict=True):
            fits = [i for i, span in enumerate(spans) if len(span.answer) + len(span.title) + 3 <= context_length]
            if fits:
                self.examples.append([spans[i] for i in fits])
                self._cumulative.append(np.cumsum(shares[fits]))
        if not self.examples:
            raise QkvError(
                "making cloze examples of texts",
                f"none of {len(texts)} texts has a salient span that fits into {context_length} tokens with its title",
                "Give texts that begin with a name and hold names, dates or numbers, or choose --objective span",
            )
        self.questions = question_examples(questions, tokenizer, context_length)

    def source(self, settings: TrainSettings) -> BatchSource:
        """Batches in which each passage comes once per epoch, and so does each question."""
        s = settings
        mixed = bool(self.questions and s.question_fraction)
        n_questions = min(s.batch_size - 1, max(1, round(s.question_fraction * s.batch_size))) if mixed else 0
        n_cloze = s.batch_size - n_questions
        passages = EpochOrder(len(self.examples), lambda epoch: (s.seed, epoch, 6))
        questions = EpochOrder(len(self.questions), lambda epoch: (s.seed + 1, epoch, 6))

        def examples(step: int) -> list[Example]:
            random = np.random.default_rng((s.seed, step, 5))
            found = [self.questions[i] for i in questions.numbers(step * n_questions, n_questions)]
            return found + [self._draw(n, s, random) for n in passages.numbers(step * n_cloze, n_cloze)]

        return examples

    def _draw(self, passage: int, s: TrainSettings, random: np.random.Generator) -> Example:
        """A random example of a passage."""
        spans = self.examples[passage]
        relevant = self.relevance.fitted and random.random() < s.relevant_span_fraction
        # A title without context asks for one thing only if all questions do; another span needs a word of context.
        no_context = s.no_context_fraction if relevant and len(self.relevance.frames) == 1 else 0.0
        if relevant:
            sums = self._cumulative[passage]
            chosen = spans[min(int(np.searchsorted(sums, random.random() * sums[-1])), len(spans) - 1)]
        else:
            chosen = spans[int(random.integers(len(spans)))]
        before = after = 0
        if random.random() >= no_context:
            before = int(random.integers(0 if no_context else min(1, len(chosen.before)), len(chosen.before) + 1))
            after = int(random.integers(0, len(chosen.after) + 1))
        example = chosen.example(before, after, self.context_length)
        if s.predict_title_fraction and random.random() < s.predict_title_fraction:
            return chosen.with_title_as_target(example)
        return example


def _tokenised(passages: Sequence[Passage], tokenizer: Tokenizer) -> list[list[ClozeExample]]:
    """The spans of each passage as ids; titles and words keep the space before them that they have in a question."""
    parts: list[str] = []
    for each in passages:
        parts.append(" " + each.title)
        for span in each.spans:
            before, after = span.before[-MAX_WORDS_BEFORE:], span.after[:MAX_WORDS_AFTER]
            parts += [span.text, *(" " + word for word in before), *(" " + word for word in after)]
    ids = iter(encode_all(tokenizer, parts))
    out = []
    for each in passages:
        title = next(ids)
        examples = []
        for span in each.spans:
            answer = next(ids)
            before_ids = [next(ids) for _ in span.before[-MAX_WORDS_BEFORE:]]
            after_ids = [next(ids) for _ in span.after[:MAX_WORDS_AFTER]]
            examples.append(ClozeExample(title, before_ids, after_ids, answer))
        out.append(examples)
    return out
