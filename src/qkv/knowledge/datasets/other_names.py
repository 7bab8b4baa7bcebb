"""Other names of cities, countries and occupations: a small table, written by hand (data/other_names.tsv).

A name is accepted if people use it for the same place today or did so in the past. A region is not accepted for a city
in it, nor a city for its region, except where the expected value is itself an area that is named after its city.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib import resources

_WITH_CITY = frozenset(["belize", "guatemala", "kuwait", "luxembourg", "new york", "panama", "quebec", "vatican"])
"""Cities that are also called "… City"; Kansas City is not a city called Kansas."""
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_SIGNS_OVER_LETTERS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
"""Accents of European letters, and the vowel signs that Hebrew and Arabic leave out; others are letters themselves."""


def same_name(text: str) -> str:
    """A name without accents, case, punctuation, a leading article, and with "St." written out."""
    plain = _SIGNS_OVER_LETTERS.sub("", unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS)))
    plain = re.sub(r"['’`.]", "", unicodedata.normalize("NFKC", plain))
    words = "".join(" " if unicodedata.category(c)[0] in "PSZC" else c for c in plain).split()
    words = words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words
    return " ".join("saint" if word == "st" else word for word in words)


def accepted_names(expected: str, relation: str = "") -> tuple[str, ...]:
    """The expected value and its other names. The table is not read backwards: Canton in Ohio is not Guangzhou."""
    return (expected, *_by_plain_name(relation).get(same_name(expected), ()))


@cache
def other_names(relation: str) -> dict[str, tuple[str, ...]]:
    """Other names of each value of a relation. Names that only differ in accents or case need no entry."""
    text = resources.files("qkv.knowledge.datasets").joinpath("data/other_names.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines())
    return {value: tuple(others.split("|")) for own, value, others in rows if own == relation}


@cache
def _by_plain_name(relation: str) -> dict[str, tuple[str, ...]]:
    """The table of a relation, by values without accents and case."""
    return {same_name(value): others for value, others in other_names(relation).items()}


def forms_of_name(expected: str, relation: str = "") -> frozenset[str]:
    """The plain forms of a value and of its other names; of a city also with "ue" for "ü", as in Muenchen."""
    names = accepted_names(expected, relation)
    forms = {same_name(each) for each in names} - {""}
    if relation == "city":
        forms |= {same_name(unicodedata.normalize("NFC", each).casefold().translate(_UMLAUTS)) for each in names} - {""}
    return frozenset(forms | {f"{name} city" for name in forms & _WITH_CITY} if relation == "city" else forms)
