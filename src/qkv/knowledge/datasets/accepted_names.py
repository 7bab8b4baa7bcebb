"""Whether an answer names the expected place, year or occupation: other names, spellings and accents are accepted.

What stands behind a comma must fit: "Paris, Texas" is not Paris, and what an answer denies is not accepted.
"""

from __future__ import annotations

import re
import unicodedata

from qkv.knowledge.datasets.city_regions import (
    are_of_one_place,
    countries_by_name,
    countries_of_city,
    country_of_region,
    is_district,
    lies_in,
    names_of_countries,
    states_by_name,
    states_of_cities,
)
from qkv.knowledge.datasets.other_names import forms_of_name, same_name, value_of_other_name, values_of
from qkv.knowledge.datasets.stated_occupation import stated_occupations
from qkv.knowledge.datasets.stated_year import stated_year

_CONTINENTS = frozenset(["africa", "asia", "europe", "north america", "south america", "central america", "oceania"])
_FORMER_STATES = frozenset(
    [
        "soviet union",
        "ussr",
        "russian empire",
        "ottoman empire",
        "austria hungary",
        "yugoslavia",
        "czechoslovakia",
        "british empire",
    ]
)
_DENIAL = re.compile(
    r"\b(?:not|never|wrong|no|false|neither|nor|unknown|(?-i:or)|maybe|perhaps|possibly|probably|actually|though|but|died|"
    r"death|calendar)\b|n['’]t\b",
    re.IGNORECASE,
)
_FORM_OF_STATE = re.compile(
    r"(?:(?:federal|federative|democratic|peoples|socialist|islamic|united|arab|bolivarian|plurinational|oriental|"
    r"cooperative|independent) )*(?P<form>republic|kingdom|state|commonwealth|principality|grand duchy|sultanate|union|"
    r"emirate|empire|federation) of (?:the )?(?P<name>.+)"
)
_NOW = re.compile(
    r"^\s*(?:(?:in )?(?:the )?(?:country|nation) of |"
    r"(?:what is now )?(?:present|modern|current)[- ](?:day )?|what is now )(?=\w)",
    re.IGNORECASE,
)
"""What people put before the name of a country: "present-day Turkey"."""
_TOLD_APART_BY_FORM = frozenset(["china", "congo", "korea"])
_CALLED_STATE = frozenset(["israel", "japan", "kuwait", "libya", "palestine", "qatar"])
"""States of which people say "State of …"; others are states of the USA."""


def is_accepted(answer: str, expected: str, relation: str = "") -> bool:
    """Whether an answer names the expected value.

    Args:
        answer: The answer, such as "New York City" or "Königsberg, Prussia".
        expected: The expected value.
        relation: "city", "country", "year" or "occupation"; any other has no table.

    Returns:
        True if the answer is the value or another name of it, up to accents, case and punctuation. Of a city, a region
        or country may follow behind a comma, unless it is known that the city lies elsewhere ("Paris, Texas"). Of a
        country, "Korea, North" is North Korea, and what stands behind the last comma counts ("London, England"). Of a
        year, the digits and BC count (or a minus sign); a decade, a century and "before 1815" are no years. What an
        answer denies is not accepted.

    Example:
        >>> from qkv.knowledge.datasets.accepted_names import is_accepted
        >>> is_accepted("Königsberg, Prussia", "Kaliningrad", "city"), is_accepted("Malaga", "Málaga", "city")
        (True, True)
        >>> is_accepted("Mexico", "Mexico City", "city"), is_accepted("England", "United Kingdom", "country")
        (False, True)
    """
    if relation == "city" and _is_same_town(answer, expected):
        return True
    expected, region = _city_and_region(expected) if relation == "city" else (expected, "")
    if relation == "occupation" and same_name(expected) in stated_occupations(answer, same_name(expected)):
        return not _is_denied(answer)
    if relation == "country" and _names_a_part(answer, expected):
        return True
    if relation == "city" and same_name(answer) not in accepted_forms(expected, relation):
        answer = re.sub(r"^\s*(?:the )?(?:city|town) of (?=\w)", "", answer, flags=re.IGNORECASE)
    if relation == "city" and is_district(answer.partition(",")[0], expected):  # Chelsea, London
        answer = ",".join([expected, *answer.split(",")[1:]])
    if relation != "city" or not re.search(r"[,(]", answer) or same_name(answer) in accepted_forms(expected, relation):
        return bool(forms_of_answer(answer, relation) & accepted_forms(expected, relation))
    first, _, rest = _without_brackets(answer).partition(",")
    if same_name(first) not in accepted_forms(expected, relation) or _is_denied(rest):
        return False
    if region and same_name(rest) and not are_of_one_place(region, rest):
        return False
    by_another_name = same_name(first) != same_name(expected)
    return all(lies_in(expected, part, by_another_name) for part in re.split(r"[,;/]", rest) if same_name(part))


def accepted_forms(expected: str, relation: str = "") -> frozenset[str]:
    """The plain forms in which a value is accepted; an answer is accepted if it has one of them.

    A value that is no value of the shipped table, but another name of one of its values, has the forms of that value:
    of "USA", those of "United States".
    """
    if relation == "year":
        return stated_year(re.sub(r"\.0+$", "", expected))
    if not relation:
        return frozenset({_with_signs(expected)}) - {""}
    if relation == "city":
        expected, _ = _city_and_region(expected)
    own = forms_of_name(expected, relation)
    value = value_of_other_name(relation).get(same_name(expected))
    return own | forms_of_name(value, relation) if value else own


def _with_signs(text: str) -> str:
    """A plain form of any value: with digits or signs (-5, 3.5, C++) as it is written, but for case and spaces."""
    written = " ".join(unicodedata.normalize("NFC", text).casefold().split()).rstrip(".,;")
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", written) if re.search(r"[\d+#*=<>%°$€£]", written) else same_name(text)


def _city_and_region(expected: str) -> tuple[str, str]:
    """A city as people write it with its region: "London, England" is London; what does not fit is one name."""
    first, _, rest = _without_brackets(expected).partition(",")
    if same_name(expected) in values_of("city"):
        return expected, ""
    value = value_of_other_name("city").get(same_name(first), first.strip())
    fits = all(lies_in(value, part, value != first) for part in rest.split(",") if same_name(part))
    return (value, rest) if fits else (expected, "")


def _is_same_town(answer: str, expected: str) -> bool:
    """Whether both are a town with the same region, whatever else is called so: "Springfield, IL" and "…, Illinois"."""
    (town, _, region), (other, _, where) = (_without_brackets(text).partition(",") for text in (answer, expected))
    both = bool(same_name(region)) and bool(same_name(where)) and not _is_denied(region)
    return both and same_name(town) == same_name(other) and are_of_one_place(region, where)


def _names_a_part(answer: str, expected: str) -> bool:
    """Whether an answer names the value and, behind a comma, the country that it is a part of: "England, UK"."""
    first, comma, rest = answer.partition(",")
    if not comma or same_name(first) not in accepted_forms(expected, "country"):
        return False
    own, whole = (countries_by_name().get(same_name(part)) for part in (first, rest))
    return bool(own) and own == whole


def forms_of_answer(answer: str, relation: str = "") -> frozenset[str]:
    """The plain forms of an answer: the whole, and what it names.

    Of a city that is the part before a comma, of a country also the last part, of occupations each of the first three.
    """
    if relation == "year":
        return frozenset() if _is_denied(answer) else stated_year(re.sub(r"(?<=\d)\.0+$", "", answer))
    if not relation:
        return frozenset({_with_signs(answer)}) - {""}
    if relation in ("city", "country"):
        answer = _without_brackets(answer)
    if relation == "country":
        answer = _NOW.sub("", answer)
    if relation == "occupation" and not _is_denied(answer):
        return (stated_occupations(answer) | {same_name(answer)}) - {""}
    first, _, rest = answer.partition(",")
    if relation == "country" and not rest:
        return frozenset({same_name(answer), _without_form_of_state(answer)}) - {""}
    if relation not in ("city", "country") or not rest:
        return frozenset({same_name(answer)}) - {""}
    if _is_denied(answer):
        return frozenset()
    parts = {answer, first} if relation == "city" else {answer, *_names_of_country(first, rest)}
    return frozenset(same_name(part) for part in parts) - {""}


def _is_denied(text: str) -> bool:
    """Whether a text denies or doubts what it names: "not Paris", "Paris or London"."""
    return bool(_DENIAL.search(text))


def _without_form_of_state(text: str) -> str:
    """The country of "Federal Republic of Germany"; "" where the form tells two countries apart, or there is none."""
    found = _FORM_OF_STATE.fullmatch(same_name(text))
    if not found or found["name"] in _TOLD_APART_BY_FORM:
        return ""
    return "" if found["form"] == "state" and found["name"] not in _CALLED_STATE else found["name"]


def _without_brackets(text: str) -> str:
    """A text with commas for round brackets."""
    return re.sub(r"\s*\(([^()]*)\)", r", \1", text).strip(" ,")


def _names_of_country(first: str, rest: str) -> set[str]:
    """What "Korea, North", "Iran, Islamic Republic of", "Georgia, USSR" and "London, England" name."""
    whole, last = f"{_written_out(rest)} {first}", rest.rpartition(",")[2]
    out = {whole}
    titled = re.fullmatch(
        r"(?:islamic |united |arab |bolivarian |federal )?(?:republic|states?|kingdom) of(?: the)?", _written_out(rest)
    )
    alone = same_name(rest) in _CONTINENTS | _FORMER_STATES
    if alone or (titled and same_name(first) not in ("korea", "congo", "china")):
        out.add(first)
    before = [first, *rest.split(",")[:-1]]
    own_states = [states_of_cities().get(same_name(part)) for part in before]
    if any(own and states_by_name().get(same_name(last)) in own for own in own_states):
        return out | {"United States"}  # Atlanta, Georgia
    if same_name(last) == "georgia" and not any("Georgia" in countries_of_city(part) for part in before):
        return out | ({"United States"} if any(own_states) else set())  # Columbus, Georgia
    if country := next((found for part in before if (found := country_of_region(last, part))), ""):
        return out | {country}  # Toronto, Ontario
    american = same_name(last) in accepted_forms("United States", "country")
    others = [
        part
        for part in before
        if same_name(part) in names_of_countries() and not (american and same_name(part) in states_by_name())
    ]
    if all(countries_by_name()[same_name(part)] == countries_by_name().get(same_name(last)) for part in others):
        out.add(last)
    return out


def _written_out(before: str) -> str:
    """What stands behind a comma and belongs before the name, in full: "Dem. Rep." is "Democratic Republic of"."""
    words = [
        {"dem": "democratic", "rep": "republic", "dr": "democratic republic"}.get(w, w)
        for w in same_name(before).split()
    ]
    return " ".join([*words, "of"] if words and words[-1].endswith("republic") else words)
