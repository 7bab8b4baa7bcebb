"""Texts about one entity: title, salient spans with the words around them, and which title a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qkv.train.data.question_frames import PLACE
from qkv.train.data.salient_spans import JOINT, find_salient_spans

MAX_TITLE_CHARACTERS = 60
MAX_NAMED_TITLE_CHARACTERS = 120  # of a title that a question names
MIN_VOTES_FOR_HEADS = 0.2  # fraction of the texts with a question whose title the rules miss
_FINAL_MARKS = "?!.,:;\"”“’')»"
# A full stop after one of these, or after a single letter, does not end a title.
ABBREVIATIONS = frozenset("jr sr st dr mr mrs ms prof rev hon gen col capt lt sgt no vol".split())  # noqa: SIM905


@dataclass(frozen=True)
class Span:
    """A span that can be asked for: its place in the text, and the words before and after it.

    `salient` is False if no rule of `salient_spans` found it, but questions ask for spans like it.
    """

    first: int
    last: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    salient: bool = True


@dataclass(frozen=True)
class Passage:
    """A text, its title and the spans of it that can be asked for."""

    title: str
    text: str
    spans: tuple[Span, ...]


def make_span(text: str, first: int, last: int) -> Span:
    """The span at a place of a text, with the words around it."""
    return Span(first, last, text[first:last], tuple(text[:first].split()), tuple(text[last:].split()))


def parse_passage(text: str, title: str | None = None) -> Passage:
    """Find the title (unless it is given) and the salient spans of a text, without those that only repeat the title."""
    name = find_title(text) if title is None else title
    title_words = {_bare(word) for word in name.split()}
    spans = []
    for first, last in find_salient_spans(text):
        if first < len(name) or all(_bare(word) in title_words for word in text[first:last].split()):
            continue
        spans.append(make_span(text, first, last))
    return Passage(name, text, tuple(spans))


def parse_passages(texts: Sequence[str], questions: Sequence[str] = ()) -> list[Passage]:
    """The passages of texts; what questions call the subject of a text is its title, whatever it looks like."""
    return [parse_passage(text, title) for text, title in zip(texts, find_titles(texts, questions), strict=True)]


def find_titles(texts: Sequence[str], questions: Sequence[str]) -> list[str]:
    """The title of each text.

    Of the beginnings of a text that end at a full stop, and of `find_title`'s, it is the longest that a question
    names. A text that no question names has `find_title`'s, unless that is wrong for many of the other texts: then its
    title is what stands before its first full stop.
    """
    asked = "\n".join(questions)
    titles, heads, votes = [], [], 0
    for text in texts:
        usual, all_heads = find_title(text), _heads(text)
        named = max((each for each in {usual, *all_heads} if _is_named(each, asked)), key=len, default=None)
        votes += named is not None and named != usual
        titles.append((named, usual))
        heads.append(next((head for head in all_heads if not _is_abbreviated(head)), usual))
    by_head = votes > MIN_VOTES_FOR_HEADS * sum(named is not None for named, _ in titles)
    return [named or (head if by_head else usual) for (named, usual), head in zip(titles, heads, strict=True)]


def _heads(text: str) -> list[str]:
    """Beginnings of a text that end at an early full stop, and may be its title; the shortest first."""
    stops = (match.start() for match in re.finditer(r"[.:](?=\s|$)", text[: MAX_NAMED_TITLE_CHARACTERS + 1]))
    return [text[:stop] for stop in stops if len(_bare(text[:stop])) > 1]


def _is_abbreviated(head: str) -> bool:
    """Whether a full stop after these words does not end a title: an initial or an abbreviation."""
    word = _bare(head.split()[-1])
    return len(word) < 2 or word in ABBREVIATIONS


def _is_named(title: str, asked: str) -> bool:
    """Whether a title is in the questions as whole words; "J" is no title in a question about J. N. Williamson."""
    first = asked.find(title)
    while first >= 0:
        last = first + len(title)
        initial = asked[last : last + 2] == ". " and _is_abbreviated(title)
        if not (first and asked[first - 1].isalnum()) and not asked[last : last + 1].isalnum() and not initial:
            return True
        first = asked.find(title, first + 1)
    return False


def find_title(text: str) -> str:
    """The name that a text begins with: up to an early full stop, or else its first name.

    What is repeated right after a full stop is a title whatever it looks like: Malcolm X, J.J. Abrams.
    """
    stops = [match.start() for match in re.finditer(r"\.(?=\s|$)", text[: MAX_TITLE_CHARACTERS + 1])]
    for stop in reversed(stops):
        if stop > 2 and re.match(rf"{re.escape(text[:stop])}(?!\w)", text[stop + 1 :].lstrip()):
            return text[:stop]
    for stop in stops:
        found = text[:stop]
        word = _bare(found.split()[-1]) if found.split() else ""
        if len(word) > 1 and word not in ABBREVIATIONS:
            # Most words of a title are capitalised, except those that join names; most of a sentence are not.
            words = found.split()
            small = sum(w[0].islower() and not re.fullmatch(JOINT, w) for w in words)
            if small <= len(words) // 3 and len(words) <= 8:
                return found
            break
    spans = find_salient_spans(text)
    if spans and spans[0][0] == 0:
        return text[: spans[0][1]]
    return " ".join(text.split()[:3])


class TitleIndex:
    """Passages by title, to find those that a question names."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_title: dict[str, list[int]] = {}
        for number, each in enumerate(passages):
            self._by_title.setdefault(each.title, []).append(number)
        self._max_words = max((len(name.split()) for name in self._by_title), default=0)

    def named_in(self, question: str) -> list[int]:
        """Numbers of the passages whose title is in the question as whole words; the longest title wins."""
        return self._find(question)[0]

    def frame(self, question: str) -> tuple[list[int], str]:
        """(numbers of the passages that a question names, the question with … for the name)."""
        found, first, last = self._find(question)
        return found, question[:first] + PLACE + question[last:] if found else question

    def _find(self, question: str) -> tuple[list[int], int, int]:
        """(numbers of the passages, first, past last character of their title in the question)."""
        words = [(m.start(), m.end()) for m in re.finditer(r"\S+", question)]
        for size in range(min(self._max_words, len(words)), 0, -1):
            for i in range(len(words) - size + 1):
                first, last = words[i][0], words[i + size - 1][1]
                for start, end in _trimmed(question, first, last):
                    if question[start:end] in self._by_title:
                        return self._by_title[question[start:end]], start, end
        return [], 0, 0


def _trimmed(question: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """A run of words as it is, then without a quote, the marks at its end one after the other, and a possessive."""
    starts = [first, *([first + 1] if question[first] in "\"“„‘'(«" else [])]
    ends, end = [last], last
    while end - 1 > first and question[end - 1] in _FINAL_MARKS:
        end -= 1
        ends.append(end)
    for each in tuple(ends):
        if (ending := re.search(r"['’]s?$", question[first:each])) is not None:
            ends.append(first + ending.start())
    for end in ends:
        for start in starts:
            if start < end:
                yield start, end


def _bare(word: str) -> str:
    return word.strip(".,;:()'\"’").lower()
