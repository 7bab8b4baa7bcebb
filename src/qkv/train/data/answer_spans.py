"""Spans that questions ask for and that rules do not find, such as answers in lower case: learned from the questions.

The answers that are known show which words stand before and after what is asked for, and how long it is. Every run of
words with such neighbours is a candidate; `span_relevance` then decides between the candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qkv.train.data.entity_passages import Passage, make_span
from qkv.train.data.salient_spans import find_salient_spans

MIN_SALIENT_FRACTION = 0.9  # of the answers in texts; where fewer are salient spans, others are looked for
MAX_ANSWER_WORDS = 12
MAX_CANDIDATES = 40  # per passage
MIN_NEIGHBOURS = 5  # answers with the same word before them, and with the same after, as a span that repeats a title
MIN_PARTS = 5  # questions whose answer is a part of a salient span; with fewer, salient spans are taken whole
_WORD = re.compile(r"[^\s.,;:!?()\"“”]+(?:[.,:'’][^\s.,;:!?()\"“”]+)*")
_END = ""  # stands for the end of a text, and for the beginning


@dataclass
class _Neighbours:
    """What stands around known answers."""

    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    answers: set[str] = field(default_factory=set)


def find_answer(passage: Passage, answer: str) -> list[tuple[int, int]]:
    """Places (first, past last) of an answer in a passage as whole words, after its title."""
    if not answer:
        return []
    found = re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", passage.text)
    return [match.span() for match in found if match.start() >= len(passage.title)]


def add_answer_spans(passages: Sequence[Passage], asked: Sequence[tuple[int, str, str]]) -> list[Passage]:
    """The passages with spans that are not salient but look like the answers to questions.

    For a kind of question most of whose answers are salient spans, these are the salient spans that were left out
    because they repeat the title ("Charles IX of France came from France"), and, where some of its questions ask for
    such, the parts of salient spans that answer questions about other texts ("Frankfurt" of "Frankfurt am Main"). For
    any other kind, they are runs of words.

    Args:
        passages: Passages with their salient spans.
        asked: (number of a passage, frame of a question about it, answer) of all questions.

    Returns:
        The passages with more spans, all in the order of the text.
    """
    places = [(number, frame, answer, find_answer(passages[number], answer)) for number, frame, answer in asked]
    held = [each for each in places if each[3]]
    total = Counter(frame for _, frame, _, _ in held)
    salient = Counter(frame for number, frame, answer, _ in held if _is_salient(passages[number], answer))
    by_rules = {frame for frame, count in total.items() if salient[frame] >= MIN_SALIENT_FRACTION * count}
    words = [_words(passage) for passage in passages]
    around: dict[str, _Neighbours] = {frame: _Neighbours() for frame in total}
    exact: dict[int, set[tuple[int, int]]] = {}
    for number, frame, answer, spans in held:
        if frame not in by_rules:
            exact.setdefault(number, set()).update(spans)
        _learn(around[frame], words[number], spans, answer)
    learned = [each for frame, each in around.items() if frame not in by_rules]
    repeated = [each for frame, each in around.items() if frame in by_rules]
    parts = _passages_by_part([each for each in held if each[1] in by_rules], passages)
    out = []
    for number, passage in enumerate(passages):
        found = exact.get(number, set()) | set(_candidates(words[number], learned, passage))
        found |= set(_title_repetitions(words[number], repeated, passage))
        found |= set(_parts_of_spans(words[number], passage, number, parts))
        taken = {(span.first, span.last) for span in passage.spans}
        new = [replace(make_span(passage.text, *each), salient=False) for each in sorted(found - taken)]
        spans_ = sorted((*passage.spans, *new), key=lambda span: (span.first, span.last))
        out.append(replace(passage, spans=tuple(spans_)))
    return out


def _title_repetitions(
    words: Sequence[tuple[int, int, str]], frames: Iterable[_Neighbours], passage: Passage
) -> Iterator[tuple[int, int]]:
    """Salient spans that a passage leaves out, since they repeat its title, but that answers elsewhere are like."""
    kept = {(span.first, span.last) for span in passage.spans}
    for first, last in find_salient_spans(passage.text):
        inside = [i for i, (a, b, _) in enumerate(words) if a < last and b > first]
        if (first, last) in kept or first < len(passage.title) or not inside:
            continue
        before, after = _around(words, inside)
        text = passage.text[first:last]
        if any(
            text in each.answers and min(each.before[before], each.after[after]) >= MIN_NEIGHBOURS for each in frames
        ):
            yield first, last


def _passages_by_part(
    held: Sequence[tuple[int, str, str, list[tuple[int, int]]]], passages: Sequence[Passage]
) -> dict[str, set[int]]:
    """Answers that may stand inside a salient span, with the numbers of the passages that they are the answer for.

    None at all, unless some questions ask for a part of a salient span.
    """
    inside = sum(
        any(span.first <= first and last <= span.last for first, last in places for span in passages[number].spans)
        for number, _, answer, places in held
        if not _is_salient(passages[number], answer)
    )
    out: dict[str, set[int]] = {}
    if inside >= MIN_PARTS:
        for number, _, answer, _ in held:
            out.setdefault(answer, set()).add(number)
    return out


def _parts_of_spans(
    words: Sequence[tuple[int, int, str]], passage: Passage, number: int, known: Mapping[str, set[int]]
) -> Iterator[tuple[int, int]]:
    """Parts of the salient spans of a passage that answer questions about others, if the whole span answers none."""
    for span in passage.spans if known else ():
        inside = [(first, last) for first, last, _ in words if span.first <= first and last <= span.last]
        if len(inside) < 2 or known.get(span.text, set()) - {number}:
            continue
        for i, (first, _) in enumerate(inside):
            for _, last in inside[i : i + MAX_ANSWER_WORDS]:
                if known.get(passage.text[first:last], set()) - {number}:
                    yield first, last


def _is_salient(passage: Passage, answer: str) -> bool:
    return any(span.text == answer for span in passage.spans)


def _words(passage: Passage) -> list[tuple[int, int, str]]:
    """(first, past last, the word or punctuation mark in lower case) of a passage, after its title."""
    found = re.finditer(rf"{_WORD.pattern}|[.,;:!?()\"“”]", passage.text)
    return [(m.start(), m.end(), m.group().lower()) for m in found if m.start() >= len(passage.title)]


def _around(words: Sequence[tuple[int, int, str]], inside: Sequence[int]) -> tuple[str, str]:
    """The words before and after some consecutive ones."""
    first, last = inside[0], inside[-1]
    return words[first - 1][2] if first else _END, words[last + 1][2] if last + 1 < len(words) else _END


def _learn(
    around: _Neighbours, words: Sequence[tuple[int, int, str]], spans: Iterable[tuple[int, int]], answer: str
) -> None:
    around.answers.add(answer)
    for first, last in spans:
        inside = [i for i, (a, b, _) in enumerate(words) if a < last and b > first]
        if inside:
            before, after = _around(words, inside)
            around.before[before] += 1
            around.after[after] += 1
            around.lengths[len(inside)] += 1


def _candidates(
    words: Sequence[tuple[int, int, str]], frames: Iterable[_Neighbours], passage: Passage
) -> Iterable[tuple[int, int]]:
    """Runs of words with neighbours, and of a length, that known answers have; sentences are not crossed."""
    found: dict[tuple[int, int], None] = {}
    for around in frames:
        longest = min(MAX_ANSWER_WORDS, max(around.lengths, default=0))
        for i in range(len(words)):
            before = words[i - 1][2] if i else _END
            for j in range(i, min(i + longest, len(words))):
                if words[j][2] in ".!?":
                    break
                after = words[j + 1][2] if j + 1 < len(words) else _END
                place = words[i][0], words[j][1]
                fits = before in around.before and after in around.after and j - i + 1 in around.lengths
                if (fits or passage.text[slice(*place)] in around.answers) and not _is_mark(words[i][2] + words[j][2]):
                    found[place] = None
    return list(found)[:MAX_CANDIDATES]


def _is_mark(text: str) -> bool:
    return not text[0].isalnum() or not text[-1].isalnum()
