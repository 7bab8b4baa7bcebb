"""The year that an answer states, with or without a date, BC and the words around it."""

from __future__ import annotations

import re

from qkv.knowledge.datasets.city_regions import is_place

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:r|ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:{_DAY} (?:of )?{_MONTH}|{_MONTH} {_DAY}),? (?=\d)|\b{_MONTH},? (?=\d{{3}})|\b\d\d?([./])\d\d?\1(?=\d{{4}})"
)
_ISO_DATE = re.compile(r"(\d{4})-\d\d-\d\d")
_ERA = r"b\.?\s?c\.?(?:\s?e\.?)?|before christ|before the common era|v\. ?chr\.?|a\.\s?c\.|a\.?d\.?|c\.?e\.?"
_LEAD = r"on|in|the|year|he|she|it|they|was|were|is|born|b\.?|about|around|approximately|of"
_YEAR = re.compile(
    rf"(?:(?:{_LEAD})\s+)*(?:(?:c\.?|ca\.?|circa)\s*)?"
    r"(?P<first>a\.?d\.?\s*|bce?\s+|[-−–]\s*)?(?P<year>\d{1,3}(?:,\d{3}){1,2}|\d{1,6})"
    rf"(?P<last>,?\s?(?:{_ERA}))?"
    rf"(?:\s*[.;]?|(?:,\s*(?:in\s+)?|\s+in\s+)(?!(?:{_ERA})\b)(?P<place>[^\d]+))"
)
"""A year with what may stand around it. "1810s", "before 1815" and "4th century" are no years, nor is "1815, AH"."""


def stated_year(text: str) -> frozenset[str]:
    """The year that a text states, and whether it is before Christ; nothing if it states none or several."""
    plain = re.sub(r"^\((.*)\)$", r"\1", text.strip().lower())
    found = _YEAR.fullmatch(_DATE.sub("", _ISO_DATE.sub(r"\1", plain)))
    if not found or (found["place"] and not is_place(found["place"])):
        return frozenset()
    number = str(int(found["year"].replace(",", "")))
    first, last = (re.sub(r"[\s.,]", "", found[part] or "") for part in ("first", "last"))
    after = last in ("ad", "ce") or first == "ad"
    before = last not in ("", "ad", "ce") or first in ("bc", "bce", "-", "−", "–")
    return frozenset() if before and after else frozenset({f"{number} BC" if before else number})
