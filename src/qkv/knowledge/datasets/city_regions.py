"""Where a city may lie: whether the region or country that an answer puts behind a comma fits it.

Only what is known to be elsewhere is refused ("Paris, Texas"). What is known: the countries of the cities in the
shipped table, the states of its American ones, the parts of Britain, and countries that a place once belonged to (the
other tables in data/).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from functools import cache
from importlib import resources

from qkv.knowledge.datasets.other_names import forms_of_name, other_names, same_name
from qkv.knowledge.datasets.pantheon import pantheon

_STATES = (  # with the ways in which they are abbreviated
    "alabama al ala|alaska ak|arizona az ariz|arkansas ar ark|california ca calif|colorado co colo|"
    "connecticut ct conn|delaware de del|florida fl fla|georgia ga|hawaii hi|idaho id ida|illinois il ill|"
    "indiana in ind|iowa ia|kansas ks kans|kentucky ky|louisiana la|maine me|maryland md|massachusetts ma mass|"
    "michigan mi mich|minnesota mn minn|mississippi ms miss|missouri mo|montana mt mont|nebraska ne nebr|"
    "nevada nv nev|new_hampshire nh|new_jersey nj|new_mexico nm|new_york ny|north_carolina nc|north_dakota nd|"
    "ohio oh|oklahoma ok okla|oregon or ore|pennsylvania pa penn|rhode_island ri|south_carolina sc|"
    "south_dakota sd|tennessee tn tenn|texas tx tex|utah ut|vermont vt|virginia va|washington wa wash|"
    "west_virginia wv wva|wisconsin wi wis wisc|wyoming wy|district_of_columbia dc"
)
_REGIONS = {
    "United Kingdom": "bedfordshire|berkshire|buckinghamshire|cambridgeshire|cheshire|cornwall|cumbria|derbyshire|"
    "devon|dorset|essex|gloucestershire|hampshire|herefordshire|hertfordshire|kent|lancashire|leicestershire|"
    "lincolnshire|merseyside|norfolk|northamptonshire|northumberland|nottinghamshire|oxfordshire|shropshire|somerset|"
    "staffordshire|suffolk|surrey|sussex|tyne and wear|warwickshire|wiltshire|worcestershire|yorkshire",
    "Italy": "calabria|emilia romagna|lazio|liguria|lombardy|marche|piedmont|puglia|sardinia|sicily|tuscany|umbria|"
    "veneto",
    "Canada": "alberta|british columbia|manitoba|new brunswick|newfoundland|nova scotia|ontario|quebec|saskatchewan|"
    "alta|bc|mb|nb|ns|ont|on|qc|que|sask|sk",
    "Australia": "new south wales|northern territory|queensland|south australia|tasmania|victoria|western australia|"
    "nsw|qld|tas|vic",
}
"""Regions by which people say where a city is, and their abbreviations, beside the states of the USA."""
_NAMES_CHANGED = frozenset(("France", "Russia", "Turkey"))  # of what they took over, cities have other names today
_ELSEWHERE = {
    "frankfurt": frozenset(["oder", "brandenburg"]),
    "kaliningrad": frozenset(["bavaria", "franconia"]),
    "konigsberg": frozenset(["bavaria", "franconia"]),
}
_FORMER_STATES = {
    "austria hungary": "Austria|Hungary",
    "czechoslovakia": "Czech Republic|Slovakia",
    "yugoslavia": "Bosnia and Herzegovina|Croatia|Kosovo|Montenegro|Republic of Macedonia|Serbia|Slovenia",
}
"""States that are no more, and the countries that their places are in, or were before."""
_DISTRICTS = {
    "london": frozenset(
        [
            "croydon",
            "greenwich",
            "hammersmith",
            "hampstead",
            "islington",
            "lambeth",
            "marylebone",
            "kensington",
            "chelsea",
            "westminster",
            "hackney",
            "camden",
            "camberwell",
            "soho",
            "mayfair",
            "southwark",
            "battersea",
            "wimbledon",
            "tottenham",
            "paddington",
            "bloomsbury",
            "notting hill",
        ]
    ),
    "brussels": frozenset(["etterbeek", "ixelles", "schaerbeek", "uccle"]),
    "paris": frozenset(["montmartre", "passy", "belleville", "montparnasse"]),
    "berlin": frozenset(["charlottenburg", "kreuzberg", "schoneberg", "spandau", "neukolln", "wilmersdorf"]),
    "boston": frozenset(["dorchester", "roxbury", "jamaica plain"]),
    "chicago": frozenset(["hyde park", "south side"]),
}
"""Parts of a city that people say they come from."""
_KINDS_OF_REGION = frozenset(["county", "department", "district", "oblast", "province", "region", "state", "territory"])
MIN_LETTERS = 4  # of the name of a region that is found among other words
MANY_PEOPLE = 5  # from a city, so that two such names are two cities, and not a part of a city and the city
MIN_SHARE = 0.2  # of the people from a city of a name, for a country in which a city is meant by it
_PARTS_OF_BRITAIN = frozenset(("england", "scotland", "wales", "northern ireland"))
_IN_SEVERAL = frozenset(
    ["blackburn", "kingdom of great britain", "newport", "newtown", "parliament square", "thornton", "united kingdom"]
)  # of these parts


def lies_in(city: str, region: str, by_another_name: bool) -> bool:
    """Whether a city may lie in what follows a comma: only what is known to be elsewhere is refused."""
    named = _plain(region)
    if named in forms_of_name(city, "city"):
        return True
    if named in _KINDS_OF_REGION or _ELSEWHERE.get(same_name(city), frozenset()) & set(named.split()):
        return False  # "New York (state)", "Frankfurt (Oder)"
    return all(_fits(city, each, by_another_name) for each in _names_in(named))


def _plain(region: str) -> str:
    """A region without the country behind it and without zip codes, and "N. Y." as one word."""
    joined = re.sub(r"\b(\w) (?=\w\w?\b)", r"\1", re.sub(r"^(?:in|at|on) (?=\w)", "", same_name(region)))
    short = re.sub(r"(?<=\w) (?:usa|us|united states(?: of america)?|canada|\d+)$", "", joined)
    return short if _is_known(short) else joined


def _names_in(text: str) -> list[str]:
    """The text if it is a known name, else the known names of regions in it: "in Texas", "Paris and Rome"."""
    if _is_known(text):
        return [text]
    words, out = text.split(), []
    while words:
        for n in range(len(words), 0, -1):
            name = " ".join(words[:n])
            if len(name) >= MIN_LETTERS and (_is_region(name) or (" and " in f" {text} " and _is_known(name))):
                out.append(name)
                break
        words = words[n:]
    return out


def _is_region(name: str) -> bool:
    """Whether a plain name is that of a state, a country, a part of one, or of a state that is no more."""
    regions = {region for own in _REGIONS.values() for region in own.split("|")}
    return any(name in each for each in (states_by_name(), countries_by_name(), _FORMER_STATES, regions))


def _is_known(name: str) -> bool:
    return _is_region(name) or name in _countries_of_cities()


def _fits(city: str, named: str, by_another_name: bool) -> bool:
    """Whether a city may lie in a place that is known here."""
    own, where = same_name(city), countries_of_city(city)
    state = states_by_name().get(named)
    if state and "United States" in where and own in states_of_cities():
        return state in states_of_cities()[own]
    if by_another_name and own in states_of_cities():
        return named in forms_of_name("United States", "country")
    found = _countries_of(named)
    if named in _PARTS_OF_BRITAIN:
        return not where or ("United Kingdom" in where and named in _parts_of_britain(own))
    if not found and where and _are_both_large(own, named):
        return False  # another city, and no region that is called like one
    found = found or set(_countries_of_cities()[named])
    late = where if by_another_name else where - _NAMES_CHANGED
    former = {each for country in late for each in _former_countries(own, country)}
    return not where or bool(found & (where | former))


def countries_of_city(city: str) -> frozenset[str]:
    """The countries in which the shipped table has a city of this name; none if it has none."""
    return _countries_of_cities().get(same_name(city), frozenset())


def is_district(text: str, city: str) -> bool:
    """Whether a text names a known part of a city: Chelsea, central London. East St. Louis is another city."""
    named, own = same_name(text), same_name(city)
    return named in _DISTRICTS.get(own, ()) or named in (f"central {own}", f"downtown {own}")


def country_of_region(region: str, city: str) -> str:
    """The country that a region is in, if the shipped table has a city of this name there: Ontario, of Toronto."""
    named = same_name(region)
    found = {country for country, regions in _REGIONS.items() if named in regions.split("|")}
    return next(iter(found & countries_of_city(city)), "")


def are_of_one_place(one: str, two: str) -> bool:
    """Whether two regions behind a city may be the same place: "OR" and "Oregon, USA", "England" and "UK".

    Of two states of the USA they are not; what is not known here must be written alike.
    """
    parts = [[_plain(part) for part in text.split(",") if same_name(part)] for text in (one, two)]
    states = [{states_by_name()[part] for part in own if part in states_by_name()} for own in parts]
    if all(states):
        return bool(states[0] & states[1])
    countries = [{country for part in own for country in _countries_of(part)} for own in parts]
    if all(countries):
        return bool(countries[0] & countries[1])
    return bool({*parts[0]} & {*parts[1]})


def _countries_of(region: str) -> set[str]:
    """The countries that a plain name of a region may be in."""
    found = set(countries_by_name().get(region, ())) | ({"United States"} if region in states_by_name() else set())
    found |= {country for country, regions in _REGIONS.items() if region in regions.split("|")}
    return found | (set(_FORMER_STATES.get(region, "").split("|")) - {""})


def is_place(text: str) -> bool:
    """Whether a text names places that are known here, with commas between them: "Ulm, Germany"."""
    return all(_is_known(same_name(part)) or same_name(part) in states_of_cities() for part in text.split(","))


def _parts_of_britain(city: str) -> Set[str]:
    """The parts of the United Kingdom in which a city of the shipped table may lie: England, if no other is known."""
    if city in _IN_SEVERAL:
        return _PARTS_OF_BRITAIN
    return {part for part, towns in _rows("parts_of_britain") if city in towns.split("|")} or {"england"}


def _former_countries(city: str, country: str) -> set[str]:
    """Countries that a city, or the whole of its country, belonged to before: Breslau, Germany, is in Poland today."""
    return {
        former
        for own, former, places in _rows("former_countries")
        if own == country
        and (places == "*" or (city in map(same_name, places.lstrip("!").split("|"))) != places.startswith("!"))
    }


def _are_both_large(one: str, two: str) -> bool:
    people = _people_of_cities()
    return one not in _DISTRICTS.get(two, ()) and all(
        city in people and people[city].total() >= MANY_PEOPLE for city in (one, two)
    )


@cache
def states_by_name() -> dict[str, str]:
    """The states of the USA, by their names and abbreviations; not "de", which is Germany as well."""
    rows = [[word.replace("_", " ") for word in row.split(" ")] for row in _STATES.split("|")]
    return {form: name for name, *short in rows for form in (name, *short) if form != "de"}


@cache
def states_of_cities() -> dict[str, frozenset[str]]:
    """The states in which the people of Pantheon from an American city were born."""
    states = {short.upper(): name for short, name in states_by_name().items() if len(short) == 2} | {"DE": "delaware"}
    found = {
        same_name(city): frozenset(states[each] for each in own.split(",") if each in states)
        for city, own in _rows("us_states")
    }
    return found | {same_name("Washington, D.C."): frozenset({"district of columbia"})}


@cache
def countries_by_name() -> dict[str, tuple[str, ...]]:
    """The countries of the shipped table, by their names."""
    out: dict[str, tuple[str, ...]] = {}
    for value in sorted({person.country for person in pantheon() if person.country}):
        for form in forms_of_name(value, "country"):
            out[form] = (*out.get(form, ()), value)  # British India is in several
    return out


@cache
def _countries_of_cities() -> dict[str, frozenset[str]]:
    """The countries in which the shipped table has a city of a name, without those of few of the people there."""
    found = {
        city: frozenset(country for country, n in own.items() if n >= MIN_SHARE * own.total())
        for city, own in _people_of_cities().items()
    }
    others = {same_name(each): same_name(city) for city, own in other_names("city").items() for each in own}
    return {other: found[city] for other, city in others.items() if city in found} | found


@cache
def _people_of_cities() -> dict[str, Counter[str]]:
    """How many people of the shipped table come from a city of a name, by country."""
    out: dict[str, Counter[str]] = {}
    for person in pantheon():
        if person.city and person.country:
            out.setdefault(same_name(person.city), Counter())[person.country] += 1
    return out


@cache
def names_of_countries() -> frozenset[str]:
    """Names of countries of the shipped table, and of parts of one."""
    return frozenset(countries_by_name())


@cache
def _rows(name: str) -> list[list[str]]:
    """The rows of a shipped table."""
    text = resources.files("qkv.knowledge.datasets").joinpath(f"data/{name}.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()]
