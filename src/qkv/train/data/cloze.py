"""Entity cloze examples: a title, words around a span, and the span to predict; with questions mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkv.errors import QkvError
from qkv.train.data.answer_spans import add_answer_spans
from qkv.train.data.drill_coverage import measure_coverage
from qkv.train.data.entity_passages import Passage, parse_passages
from qkv.train.data.objectives import Example, question_example, question_examples
from qkv.train.data.packing import BatchSource, EpochOrder
from qkv.train.data.question_frames import PLACE
from qkv.train.data.span_relevance import SpanRelevance, fit_matched, match_questions
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import MASK_ID, Tokenizer, encode_all

MAX_WORDS_BEFORE, MAX_WORDS_AFTER = 5, 3  # of context around a span
MIN_SHARE = 0.02  # least probability to be asked for of a span that is not salient
MIN_CERTAINTY = 0.5  # least probability of a span that a question of some frame is drilled with


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
        parsed = parse_passages(texts, [question for question, _ in questions])
        matched = match_questions(parsed, questions)
        passages = add_answer_spans(parsed, [(n, each.frame, each.answer) for each in matched for n in each.passages])
        self.relevance = fit_matched(passages, matched)
        self.coverage = measure_coverage(passages, matched, self.relevance)
        self.examples: list[list[ClozeExample]] = []  # by passage
        self._cumulative: list[np.ndarray] = []  # sums of the spans' probabilities, by passage
        self._none: list[float] = []  # probability that no span is what questions ask for, by passage
        self._asked: list[list[Example]] = []  # the span that each frame asks for where it is certain, by passage
        asked = _asked_spans(passages, self.relevance, tokenizer, context_length)
        for number, (spans, shares) in enumerate(
            zip(_tokenised(passages, tokenizer), self.relevance.probabilities, strict=True)
        ):
            fits = [
                i
                for i, span in enumerate(spans)
                if len(span.answer) + len(span.title) + 3 <= context_length
                and (passages[number].spans[i].salient or shares[i] >= MIN_SHARE)
            ]
            if fits:
                self.examples.append([spans[i] for i in fits])
                self._cumulative.append(np.cumsum(shares[fits]))
                self._none.append(max(0.0, 1.0 - float(shares.sum())))
                self._asked.append(asked[number])
        if not self.examples:
            raise QkvError(
                "making cloze examples of texts",
                f"none of {len(texts)} texts has a span to ask for that fits into {context_length} tokens with its "
                "title",
                "Give texts that begin with a name, and questions about them or texts with names, dates or numbers; "
                "or choose --objective span",
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
        several = len(self.relevance.frames) > 1
        # Where a text hardly says what is asked for, its title is hardly drilled: a model that is made to answer from
        # such a text is sure of it, and wrong.
        wanted = s.relevant_span_fraction * (1.0 - self._none[passage])
        relevant = self.relevance.fitted and random.random() < wanted
        # A title without context asks for one thing only if all questions do: otherwise the question is asked instead,
        # and another span needs a word of context. A question does not begin with the title, and cannot predict it.
        titled = several and random.random() < s.predict_title_fraction
        if relevant and several and not titled and random.random() < s.no_context_fraction and self._asked[passage]:
            return self._asked[passage][int(random.integers(len(self._asked[passage])))]
        no_context = s.no_context_fraction if relevant and not several else 0.0
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
        if not several:
            titled = s.predict_title_fraction > 0 and random.random() < s.predict_title_fraction
        return chosen.with_title_as_target(example) if titled else example


def _asked_spans(
    passages: Sequence[Passage], relevance: SpanRelevance, tokenizer: Tokenizer, context_length: int
) -> list[list[Example]]:
    """For each passage, where there are several frames, their questions with the span that is likely the answer."""
    out: list[list[Example]] = [[] for _ in passages]
    if len(relevance.frames) < 2:
        return out
    chosen, parts = [], []
    for number, passage in enumerate(passages):
        for frame, shares in enumerate(relevance.by_frame):
            own = shares[number]
            if len(own) and own.max() >= MIN_CERTAINTY:
                chosen.append(number)
                parts += [relevance.frames[frame].replace(PLACE, passage.title), passage.spans[int(own.argmax())].text]
    ids = encode_all(tokenizer, parts)
    for number, question, answer in zip(chosen, ids[::2], ids[1::2], strict=True):
        if len(question) + len(answer) + 2 <= context_length + 1:
            out[number].append(question_example(question, answer, context_length))
    return out


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
