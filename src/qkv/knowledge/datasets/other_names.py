"""Other names of cities, countries and occupations: a small table, written by hand (data/other_names.tsv).

A name is accepted if people use it for the same place today or did so in the past. A region is not accepted for a city
in it, nor a city for its region, except where the expected value is itself an area that is named after its city.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib import resources

from qkv.knowledge.datasets.pantheon import pantheon

_WITH_CITY = frozenset(["belize", "guatemala", "kuwait", "luxembourg", "new york", "panama", "quebec", "vatican"])
"""Cities that are also called "… City"; Kansas City is not a city called Kansas."""
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_SIGNS_OVER_LETTERS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
"""Accents of European letters, and the vowel signs that Hebrew and Arabic leave out; others are letters themselves."""


def same_name(text: str) -> str:
    """A name without accents, case, punctuation, a leading article, and with "St." written out."""
    text = text.replace("&", " and ")
    plain = _SIGNS_OVER_LETTERS.sub("", unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS)))
    plain = re.sub(r"['’`.]", "", unicodedata.normalize("NFKC", plain))
    words = "".join(" " if unicodedata.category(c)[0] in "PSZC" else c for c in plain).split()
    words = words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words
    return " ".join("saint" if word == "st" else word for word in words)


def accepted_names(expected: str, relation: str = "") -> tuple[str, ...]:
    """The expected value and its other names. The table is not read backwards: Canton in Ohio is not Guangzhou."""
    return (expected, *_by_plain_name(relation).get(same_name(expected), ()))


@cache
def other_names(relation: str, both_ways: bool = False) -> dict[str, tuple[str, ...]]:
    """Other names of each value of a relation. Names that only differ in accents or case need no entry.

    With `both_ways`, only those for which the value can stand as well: not those of a part of it, or of a state of
    another time (marked with < in the table), and of occupations, most of which are kinds of others, those marked =.
    """
    text = resources.files("qkv.knowledge.datasets").joinpath("data/other_names.tsv").read_text("utf-8")
    table = (line.split("\t") for line in text.splitlines())
    rows = [(value, names.split("|")) for own, value, names in table if own == relation]
    if both_ways:
        kept = {"occupation": lambda name: name[0] == "="}.get(relation, lambda name: name[0] != "<")
        rows = [(value, [name for name in names if kept(name)]) for value, names in rows]
    return {value: tuple(name.lstrip("<=") for name in names) for value, names in rows}


@cache
def _by_plain_name(relation: str) -> dict[str, tuple[str, ...]]:
    """The table of a relation, by values without accents and case."""
    return {same_name(value): others for value, others in other_names(relation).items()}


@cache
def values_of(relation: str) -> frozenset[str]:
    """The plain values of a relation in the shipped table."""
    return frozenset(same_name(str(getattr(person, relation, ""))) for person in pantheon()) - {""}


@cache
def value_of_other_name(relation: str) -> dict[str, str]:
    """The value that each other name may be read as, where it is no value itself and a name of one value only."""
    out: dict[str, set[str]] = {}
    for value, others in other_names(relation, both_ways=True).items():
        for other in others:
            out.setdefault(same_name(other), set()).add(value)
    return {name: next(iter(own)) for name, own in out.items() if len(own) == 1 and name not in values_of(relation)}


def forms_of_name(expected: str, relation: str = "") -> frozenset[str]:
    """The plain forms of a value and of its other names; of a city also with "ue" for "ü", as in Muenchen."""
    names = accepted_names(expected, relation)
    forms = {same_name(each) for each in names} - {""}
    if relation == "city":
        forms |= {same_name(unicodedata.normalize("NFC", each).casefold().translate(_UMLAUTS)) for each in names} - {""}
    return frozenset(forms | {f"{name} city" for name in forms & _WITH_CITY} if relation == "city" else forms)
