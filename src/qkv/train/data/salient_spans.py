"""Salient spans of a text by rules: names, dates, numbers and places."""

from __future__ import annotations

import re
from itertools import dropwhile

MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
)
DATE = (
    rf"\d{{1,2}}(?:st|nd|rd|th)?\s+{MONTH}(?:,?\s+\d{{3,4}})?"
    rf"|{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{3,4}})?"
    rf"|{MONTH}\s+\d{{3,4}}"
)
NUMBER = r"\d+(?:[.,:/–-]\d+)*(?:s|st|nd|rd|th|%)?(?!\w)"
# A name is a run of capitalised words, which small words may join: "Ludwig van Beethoven", "Isle of Man".
INITIALS = r"(?:[^\W\d_a-z]\.){2,}"
CAPITAL = rf"{INITIALS}|(?:St|Ste|Mt|Ft)\.|[^\W\d_a-z][\w'’.-]*[\w]|[^\W\d_a-z]\."
JOINT = (
    r"(?:of|the|de|da|do|di|du|dos|das|del|dels|der|den|van|von|und|and|la|le|las|los|el|al|bin|ibn|y|e"
    r"|upon|am|im|bei|aan|nad|pod)"
)
NAME = rf"(?:{CAPITAL})(?:\s+(?:{JOINT}\s+){{0,2}}(?:{CAPITAL}))*(?:,\s+D\.\s?C\.)?"
# Words that are capitalised at the beginning of a sentence, or too common to be part of a span's beginning.
COMMON = frozenset(
    """a an the he she it they we you i his her its their our my this that these those there here who whom whose
    which what when where why how in on at by for from of to with without as and or but nor so yet if then than after
    before during since until while although though because born died is was were are be been has have had not no
    also later early mr mrs ms dr sir prof rev hon lord lady""".split()  # noqa: SIM905 (a list of words, to read)
)
_INSIDE = re.compile(r"[\w,;]\s+$")  # the text before a word inside a sentence
_INITIALS = re.compile(rf"(?:^|\W){INITIALS}$")
_FOUND = re.compile(rf"(?P<date>{DATE})|(?P<number>\b{NUMBER})|(?P<name>{NAME})")


def find_salient_spans(text: str) -> list[tuple[int, int]]:
    """The salient spans (first, past last) of a text, in order, none overlapping."""
    spans = []
    for match in _FOUND.finditer(text):
        first, last = match.span()
        if match.lastgroup == "name":
            trimmed = _trim(text, first, last)
            if trimmed is None:
                continue
            first, last = trimmed
        spans.append((first, last))
    return spans


def _trim(text: str, first: int, last: int) -> tuple[int, int] | None:
    """A name without common words at its beginning ("In") and without a full stop at its end.

    "The" belongs to a name unless it begins a sentence: The Hague.
    """
    words = list(re.finditer(r"\S+", text[first:last]))
    rest = list(dropwhile(lambda word: word[0].rstrip(".").lower() in COMMON, words))
    if not rest:
        return None
    the = len(words) == len(rest) + 1 and words[0][0] == "The" and _INSIDE.search(text[max(0, first - 9) : first])
    words = words if the else rest
    first, last = first + words[0].start(), first + words[-1].end()
    if text[last - 1] in ".,;" and last - first > 2 and not _INITIALS.search(text[first:last]):
        last -= 1
    return (first, last) if any(c.isalpha() for c in text[first:last]) and last - first > 1 else None
