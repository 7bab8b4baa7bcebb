"""Texts about one entity: title, salient spans with the words around them, and which title a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qkv.train.data.salient_spans import JOINT, find_salient_spans

MAX_TITLE_CHARACTERS = 60
# A full stop after one of these, or after a single letter, does not end a title.
ABBREVIATIONS = frozenset("jr sr st dr mr mrs ms prof rev hon gen col capt lt sgt no vol".split())  # noqa: SIM905


@dataclass(frozen=True)
class Span:
    """A salient span: its place in the text, and the words before and after it."""

    first: int
    last: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Passage:
    """A text, its title and its salient spans."""

    title: str
    text: str
    spans: tuple[Span, ...]


def parse_passage(text: str) -> Passage:
    """Find the title and the salient spans of a text; spans that only repeat the title are left out."""
    name = find_title(text)
    title_words = {_bare(word) for word in name.split()}
    spans = []
    for first, last in find_salient_spans(text):
        found = text[first:last]
        if first < len(name) or all(_bare(word) in title_words for word in found.split()):
            continue
        spans.append(Span(first, last, found, tuple(text[:first].split()), tuple(text[last:].split())))
    return Passage(name, text, tuple(spans))


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
        words = [(m.start(), m.end()) for m in re.finditer(r"\S+", question)]
        for size in range(min(self._max_words, len(words)), 0, -1):
            for first in range(len(words) - size + 1):
                found = question[words[first][0] : words[first + size - 1][1]]
                for candidate in (found, found.rstrip("?!.,:;"), re.sub(r"['’]s?$", "", found)):
                    if candidate in self._by_title:
                        return self._by_title[candidate]
        return []

    def frame(self, question: str) -> tuple[list[int], str]:
        """(numbers of the passages that a question names, the question with … for the name)."""
        found = self.named_in(question)
        if not found:
            return [], question
        name = next(n for n, numbers in self._by_title.items() if numbers is found)
        return found, question.replace(name, "…", 1)


def _bare(word: str) -> str:
    return word.strip(".,;:()'\"’").lower()
