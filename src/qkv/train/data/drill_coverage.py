"""Which questions and texts cloze training can drill, counted before training starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qkv.train.data.answer_spans import find_answer
from qkv.train.data.entity_passages import Passage
from qkv.train.data.span_relevance import MatchedQuestion, SpanRelevance


@dataclass(frozen=True)
class DrillCoverage:
    """How many questions and texts cloze examples are made for; the rest of the questions is trained on as it is.

    Attributes:
        questions: Number of questions.
        unnamed: Questions that name the title of no text.
        unanswered: Questions whose answer is not in the text that they name.
        unmarked: Questions whose answer is in it, but is not recognised as a span of its own.
        rare: Questions of a kind that has too few of them to learn from which words of a text it asks for.
        texts: Number of texts.
        empty: Texts without anything to ask for.
        example: One of the questions that are not drilled, or "".
    """

    questions: int
    unnamed: int
    unanswered: int
    unmarked: int
    rare: int
    texts: int
    empty: int
    example: str = ""

    @property
    def undrilled(self) -> int:
        """Number of questions from which nothing about texts is learned."""
        return self.unnamed + self.unanswered + self.unmarked + self.rare

    def __str__(self) -> str:
        """What cannot be drilled, in one sentence; empty if everything can."""
        parts = []
        if self.undrilled:
            why = (
                (self.unnamed, "name no text by its title"),
                (self.unanswered, "have an answer that is not in their text"),
                (self.unmarked, "have one there that is not recognised as a whole name"),
                (self.rare, "are of a kind with too few questions"),
            )
            reasons = ", ".join(f"{count:,} {what}" for count, what in why if count)
            parts.append(
                f"{self.undrilled:,} of {self.questions:,} questions do not show what to learn from a text: {reasons} "
                f"(such as: {self.example})"
            )
        if self.empty:
            parts.append(f"{self.empty:,} of {self.texts:,} texts hold nothing to ask for, and are not read")
        return "; ".join(parts)


def measure_coverage(
    passages: Sequence[Passage], questions: Sequence[MatchedQuestion], relevance: SpanRelevance
) -> DrillCoverage:
    """Count what cannot be drilled, by its reason."""
    reasons: Counter[str] = Counter()
    example = ""
    for each in questions:
        spans = (span.text for number in each.passages for span in passages[number].spans)
        if not each.passages:
            reason = "unnamed"
        elif each.answer not in spans:
            held = any(find_answer(passages[number], each.answer) for number in each.passages)
            reason = "unmarked" if held else "unanswered"
        elif each.frame not in relevance.frames:
            reason = "rare"
        else:
            continue
        reasons[reason] += 1
        example = example or each.question
    empty = sum(not passage.spans for passage in passages)
    return DrillCoverage(
        len(questions), reasons["unnamed"], reasons["unanswered"], reasons["unmarked"], reasons["rare"],
        len(passages), empty, example,
    )  # fmt: skip
