"""Whom a text is about, and what it says: its title and its salient spans, each with the words around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qkv.train.data.salient_spans import JOINT, salient

LONGEST = 60  # characters that a title may have
# A full stop after one of these, or after a single letter, ends no title.
SHORTENED = frozenset("jr sr st dr mr mrs ms prof rev hon gen col capt lt sgt no vol".split())  # noqa: SIM905


@dataclass(frozen=True)
class Span:
    """One thing that a text says: where it stands, and the words before and after it."""

    first: int
    last: int
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Passage:
    """A text, the name it begins with, and what it says besides."""

    title: str
    text: str
    spans: tuple[Span, ...]


def passage(text: str) -> Passage:
    """A text taken apart. What only repeats the title is nothing that it says."""
    name = title(text)
    own = {_bare(word) for word in name.split()}
    spans = []
    for first, last in salient(text):
        said = text[first:last]
        if first < len(name) or all(_bare(word) in own for word in said.split()):
            continue
        spans.append(Span(first, last, said, tuple(text[:first].split()), tuple(text[last:].split())))
    return Passage(name, text, tuple(spans))


def title(text: str) -> str:
    """The name that a text begins with: up to a full stop, if that is soon, or its first name.

    What stands before a full stop and again right after it is a title whatever it looks like: Malcolm X, J.J. Abrams.
    """
    stops = [match.start() for match in re.finditer(r"\.(?=\s|$)", text[: LONGEST + 1])]
    for stop in reversed(stops):
        if stop > 2 and re.match(rf"{re.escape(text[:stop])}(?!\w)", text[stop + 1 :].lstrip()):
            return text[:stop]
    for stop in stops:
        found = text[:stop]
        word = _bare(found.split()[-1]) if found.split() else ""
        if len(word) > 1 and word not in SHORTENED:
            # A sentence is no title: in a title words are capitalised, but for the small ones that join names.
            words = found.split()
            small = sum(w[0].islower() and not re.fullmatch(JOINT, w) for w in words)
            if small <= len(words) // 3 and len(words) <= 8:
                return found
            break
    spans = salient(text)
    if spans and spans[0][0] == 0:
        return text[: spans[0][1]]
    return " ".join(text.split()[:3])


class Titles:
    """Passages by title, to find those that a question names."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by: dict[str, list[int]] = {}
        for number, each in enumerate(passages):
            self._by.setdefault(each.title, []).append(number)
        self._longest = max((len(name.split()) for name in self._by), default=0)

    def named(self, question: str) -> list[int]:
        """The passages whose title stands in the question as whole words; the longest title wins."""
        words = [(m.start(), m.end()) for m in re.finditer(r"\S+", question)]
        for size in range(min(self._longest, len(words)), 0, -1):
            for first in range(len(words) - size + 1):
                found = question[words[first][0] : words[first + size - 1][1]]
                for said in (found, found.rstrip("?!.,:;"), re.sub(r"['’]s?$", "", found)):
                    if said in self._by:
                        return self._by[said]
        return []

    def frame(self, question: str) -> tuple[list[int], str]:
        """The passages a question names, and the question without the name: what it asks of anybody."""
        found = self.named(question)
        if not found:
            return [], question
        name = next(n for n, numbers in self._by.items() if numbers is found)
        return found, question.replace(name, "…", 1)


def _bare(word: str) -> str:
    return word.strip(".,;:()'\"’").lower()
