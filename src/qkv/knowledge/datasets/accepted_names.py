"""Whether an answer names the expected place, year or occupation: other names, spellings and accents are accepted.

The table is small and written by hand. A name is accepted if people use it for the same place today or did so in the
past. A region is not accepted for a city in it, nor a city for its region, except where the expected value is itself an
area that is named after its city. What stands behind a comma must fit: "Paris, Texas" is not Paris.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from importlib import resources

from qkv.knowledge.datasets.pantheon import pantheon

OTHER_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "city": {
        "A Coruña": ("La Coruña", "Corunna"),
        "Aachen": ("Aix-la-Chapelle",),
        "Alexandria": ("Iskandariya",),
        "Ankara": ("Angora",),
        "Antwerp": ("Antwerpen", "Anvers"),
        "Ashgabat": ("Ashkhabad",),
        "Athens": ("Athina",),
        "Basel": ("Basle", "Bâle"),
        "Beijing": ("Peking", "Peiping"),
        "Belgrade": ("Beograd",),
        "Bern": ("Berne",),
        "Bratislava": ("Pressburg", "Pozsony"),
        "Braunschweig": ("Brunswick",),
        "Bruges": ("Brugge",),
        "Brussels": ("Bruxelles", "Brussel"),
        "Bucharest": ("București",),
        "Budapest": ("Buda", "Pest"),
        "Cairo": ("Al Qahirah",),
        "Chennai": ("Madras",),
        "Chernivtsi": ("Czernowitz", "Cernăuți"),
        "Cluj-Napoca": ("Cluj", "Kolozsvár", "Klausenburg"),
        "Cologne": ("Köln",),
        "Copenhagen": ("København",),
        "Córdoba": ("Cordova",),
        "Dnipropetrovsk": ("Dnipro", "Yekaterinoslav", "Ekaterinoslav"),
        "Donetsk": ("Stalino", "Yuzovka"),
        "Dushanbe": ("Stalinabad",),
        "Florence": ("Firenze",),
        "Frankfurt": ("Frankfurt am Main",),
        "Gdańsk": ("Danzig",),
        "Geneva": ("Genève", "Genf"),
        "Genoa": ("Genova",),
        "Ghent": ("Gent", "Gand"),
        "Gothenburg": ("Göteborg",),
        "Guangzhou": ("Canton",),
        "Hanover": ("Hannover",),
        "Harare": ("Salisbury",),
        "Helsinki": ("Helsingfors",),
        "Ho Chi Minh City": ("Saigon",),
        "Istanbul": ("Constantinople", "Byzantium"),
        "İzmir": ("Smyrna",),
        "Jerusalem": ("Al-Quds",),
        "Kaliningrad": ("Königsberg", "Koenigsberg"),
        "Katowice": ("Kattowitz",),
        "Kharkiv": ("Kharkov",),
        "Kiev": ("Kyiv",),
        "Königsberg": ("Kaliningrad", "Koenigsberg"),
        "Kolkata": ("Calcutta",),
        "Kraków": ("Cracow", "Krakau"),
        "Leuven": ("Louvain",),
        "Liège": ("Luik",),
        "Lima District": ("Lima",),
        "Lima Region": ("Lima",),
        "Lisbon District": ("Lisbon", "Lisboa"),
        "Porto District": ("Porto", "Oporto"),
        "Lisbon": ("Lisboa",),
        "Livorno": ("Leghorn",),
        "Ljubljana": ("Laibach",),
        "Los Angeles": ("Hollywood", "LA"),
        "Lviv": ("Lvov", "Lwów", "Lemberg"),
        "Lyon": ("Lyons",),
        "Mainz": ("Mayence",),
        "Mantua": ("Mantova",),
        "Marseille": ("Marseilles",),
        "Mexico City": ("Ciudad de México",),
        "Milan": ("Milano",),
        "Moscow": ("Moskva",),
        "Mumbai": ("Bombay",),
        "Munich": ("München",),
        "Naples": ("Napoli",),
        "New York": ("New York City", "NYC", "Manhattan", "Brooklyn", "The Bronx", "Bronx", "Queens", "Staten Island"),
        "Nizhny Novgorod": ("Gorky",),
        "Nuremberg": ("Nürnberg",),
        "Oslo": ("Christiania", "Kristiania"),
        "Padua": ("Padova",),
        "Poznań": ("Posen",),
        "Prague": ("Praha",),
        "Regensburg": ("Ratisbon",),
        "Rijeka": ("Fiume",),
        "Rome": ("Roma",),
        "Saint Petersburg": ("Leningrad", "Petrograd", "Petersburg"),
        "San Francisco-Bay Area": ("San Francisco", "San Francisco Bay Area"),
        "Seville": ("Sevilla",),
        "Sofia": ("Sofiya",),
        "Strasbourg": ("Strassburg", "Straßburg"),
        "Syracuse": ("Siracusa",),
        "Szczecin": ("Stettin",),
        "Tallinn": ("Reval",),
        "Tbilisi": ("Tiflis",),
        "The Hague": ("Den Haag",),
        "Thessaloniki": ("Salonica", "Salonika"),
        "Tirana": ("Tiranë",),
        "Toruń": ("Thorn",),
        "Trier": ("Treves", "Trèves"),
        "Turin": ("Torino",),
        "Venice": ("Venezia",),
        "Vienna": ("Wien",),
        "Vilnius": ("Wilno", "Vilna"),
        "Volgograd": ("Stalingrad", "Tsaritsyn"),
        "Warsaw": ("Warszawa",),
        "Washington, D.C.": ("Washington", "Washington DC"),
        "Wrocław": ("Breslau",),
        "Yangon": ("Rangoon",),
        "Yekaterinburg": ("Ekaterinburg", "Sverdlovsk"),
        "Zagreb": ("Agram",),
        "Zaragoza": ("Saragossa",),
        "Zürich": ("Zurich",),
    },
    "country": {
        "Bosnia and Herzegovina": ("Bosnia", "Bosnia-Herzegovina"),
        "Brunei Darussalam": ("Brunei",),
        "Cape Verde": ("Cabo Verde",),
        "China": ("People's Republic of China",),
        "Congo": ("Republic of the Congo", "Republic of Congo"),
        "Czech Republic": ("Czechia", "Czechoslovakia", "Bohemia"),
        "Democratic Republic of Congo": ("Democratic Republic of the Congo", "Zaire", "DR Congo", "DRC"),
        "Germany": ("West Germany", "East Germany"),
        "Iran": ("Persia",),
        "Ireland": ("Republic of Ireland",),
        "Ivory Coast": ("Côte d'Ivoire",),
        "Myanmar": ("Burma",),
        "Netherlands": ("The Netherlands", "Holland"),
        "North Korea": ("Democratic People's Republic of Korea", "DPRK", "DPR Korea"),
        "Palestine": ("Palestinian Territories", "State of Palestine"),
        "Republic of Macedonia": ("North Macedonia", "Macedonia"),
        "Russia": ("Soviet Union", "USSR", "Russian Empire", "Russian Federation"),
        "South Korea": ("Korea", "Republic of Korea"),
        "Sri Lanka": ("Ceylon",),
        "Swaziland": ("Eswatini",),
        "Timor-Leste": ("East Timor",),
        "Turkey": ("Türkiye", "Ottoman Empire"),
        "United Arab Emirates": ("UAE",),
        "United Kingdom": ("UK", "England", "Scotland", "Wales", "Northern Ireland", "Britain", "Great Britain"),
        "United States": ("USA", "US", "United States of America", "America"),
    },
    "occupation": {
        "actor": ("actress", "film actor", "movie actor"),
        "american football player": ("football player", "american footballer"),
        "artist": ("visual artist",),
        "astronaut": ("cosmonaut",),
        "athlete": ("track and field athlete", "sprinter", "runner"),
        "businessperson": ("businessman", "businesswoman", "entrepreneur"),
        "chess master": ("chess player", "chess grandmaster"),
        "coach": ("football coach", "soccer coach", "manager", "football manager"),
        "comic artist": ("cartoonist", "comics artist"),
        "film director": ("director", "filmmaker", "movie director"),
        "model": ("fashion model", "supermodel"),
        "nobleman": ("noblewoman", "aristocrat"),
        "painter": ("artist",),
        "physician": ("doctor", "medical doctor"),
        "politician": ("statesman", "stateswoman", "political leader", "political figure"),
        "presenter": ("television presenter", "tv presenter", "host", "television host"),
        "racing driver": ("race car driver", "race driver", "racecar driver", "formula one driver"),
        "religious figure": ("religious leader", "saint", "clergyman"),
        "social activist": ("activist",),
        "soccer player": ("footballer", "football player", "soccer"),
        "soldier": ("military officer", "general", "military leader"),
        "writer": ("author", "novelist", "poet", "playwright"),
    },
}  # fmt: skip
"""For each relation, other names of a value. Names that only differ in accents or case need no entry."""

_WITH_CITY = frozenset(["belize", "guatemala", "kuwait", "luxembourg", "new york", "panama", "quebec", "vatican"])
"""Cities that are also called "… City"; Kansas City is not a city called Kansas."""
_CONTINENTS = frozenset(["africa", "asia", "europe", "north america", "south america", "central america", "oceania"])
_STATES = (  # with the ways in which they are abbreviated
    "alabama al ala|alaska ak|arizona az ariz|arkansas ar ark|california ca calif|colorado co colo|"
    "connecticut ct conn|delaware de del|florida fl fla|georgia ga|hawaii hi|idaho id|illinois il ill|"
    "indiana in ind|iowa ia|kansas ks kans|kentucky ky|louisiana la|maine me|maryland md|massachusetts ma mass|"
    "michigan mi mich|minnesota mn minn|mississippi ms miss|missouri mo|montana mt mont|nebraska ne nebr|"
    "nevada nv nev|new_hampshire nh|new_jersey nj|new_mexico nm|new_york ny|north_carolina nc|north_dakota nd|"
    "ohio oh|oklahoma ok okla|oregon or ore|pennsylvania pa penn|rhode_island ri|south_carolina sc|"
    "south_dakota sd|tennessee tn tenn|texas tx tex|utah ut|vermont vt|virginia va|washington wa wash|"
    "west_virginia wv|wisconsin wi wis|wyoming wy|district_of_columbia dc"
)
_PROVINCES = frozenset(
    [
        "alberta",
        "british columbia",
        "manitoba",
        "new brunswick",
        "newfoundland",
        "nova scotia",
        "ontario",
        "quebec",
        "saskatchewan",
        "alta",
        "bc",
        "mb",
        "nb",
        "ns",
        "ont",
        "on",
        "qc",
        "que",
        "sask",
        "sk",
    ]
)
_FORMERLY = {
    "Armenia": "Russia Turkey", "Azerbaijan": "Russia", "Belarus": "Russia Poland",
    "Bosnia and Herzegovina": "Austria Turkey", "Bulgaria": "Turkey", "Croatia": "Austria Hungary Italy",
    "Czech Republic": "Austria Germany", "Egypt": "Turkey", "Estonia": "Russia", "Finland": "Russia Sweden",
    "France": "Germany", "Georgia": "Russia", "Greece": "Turkey", "Hungary": "Austria", "Iraq": "Turkey",
    "Ireland": "United_Kingdom", "Israel": "Turkey United_Kingdom Palestine", "Italy": "Austria",
    "Kazakhstan": "Russia", "Latvia": "Russia", "Lebanon": "Turkey Syria", "Lithuania": "Russia Poland",
    "Moldova": "Russia Romania", "Pakistan": "India United_Kingdom", "Poland": "Germany Russia Austria",
    "Republic of Macedonia": "Turkey", "Romania": "Hungary Austria", "Russia": "Germany",
    "Serbia": "Austria Hungary Turkey", "Slovakia": "Hungary Austria", "Slovenia": "Austria", "Syria": "Turkey",
    "Turkey": "Greece", "Ukraine": "Russia Poland Austria Romania", "Uzbekistan": "Russia",
}  # fmt: skip
"""Countries that places of another country belonged to: Breslau, Germany, is in Poland today."""
_NAMES_CHANGED = frozenset(("France", "Russia", "Turkey"))  # of what they took over, cities have other names today
_ELSEWHERE = {"frankfurt": ("oder", "brandenburg")}
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
MANY_PEOPLE = 5  # from a city, so that two such names are two cities, and not a part of a city and the city
MIN_SHARE = 0.2  # of the people from a city of a name, for a country in which a city is meant by it
_PARTS_OF_BRITAIN = frozenset(("england", "scotland", "wales", "northern ireland"))
_DENIAL = re.compile(
    r"\b(?:not|never|wrong|no|false|neither|nor|unknown|(?-i:or)|maybe|perhaps|possibly|probably|actually|though|but|died|"
    r"death|calendar)\b|n['’]t\b",
    re.IGNORECASE,
)
_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_SIGNS_OVER_LETTERS = re.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
"""Accents of European letters, and the vowel signs that Hebrew and Arabic leave out; others are letters themselves."""
_MONTH = r"(?:jan|febr?|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:{_DAY} (?:of )?{_MONTH}|{_MONTH} {_DAY}),? (?=\d)|\b{_MONTH},? (?=\d{{3}})|\b\d\d?\.\d\d?\.(?=\d{{4}})"
)
_ISO_DATE = re.compile(r"(\d{4})-\d\d-\d\d")
_ERA = r"b\.?\s?c\.?(?:\s?e\.?)?|before christ|before the common era|v\. ?chr\.?|a\.\s?c\.|a\.?d\.?|c\.?e\.?"
_LEAD = r"on|in|the|year|he|she|it|they|was|were|is|born|b\.?|about|around|approximately|of"
_YEAR = re.compile(
    rf"(?:(?:{_LEAD})\s+)*(?:(?:c\.?|ca\.?|circa)\s*)?"
    r"(?P<first>a\.?d\.?\s*|bce?\s+|[-−–]\s*)?(?P<year>\d{1,3}(?:,\d{3}){1,2}|\d{1,6})"
    rf"(?P<last>,?\s?(?:{_ERA}))?"
    rf"(?:\s*[.;]?|(?:,\s*|,?\s+in\s+)(?!(?:{_ERA})\b)[^\d]+)"
)
"""A year with what may stand around it. "1810s", "before 1815" and "4th century" are no years."""


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
def _by_plain_name(relation: str) -> dict[str, tuple[str, ...]]:
    """The table of a relation, by values without accents and case."""
    return {same_name(value): others for value, others in OTHER_NAMES.get(relation, {}).items()}


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
    if relation != "city" or not re.search(r"[,(]", answer) or same_name(answer) in accepted_forms(expected, relation):
        return bool(forms_of_answer(answer, relation) & accepted_forms(expected, relation))
    first, _, rest = _without_brackets(answer).partition(",")
    if same_name(first) not in accepted_forms(expected, relation) or _DENIAL.search(rest):
        return False
    by_another_name = same_name(first) != same_name(expected)
    return all(_lies_in(expected, part, by_another_name) for part in re.split(r"[,;/]", rest) if same_name(part))


def accepted_forms(expected: str, relation: str = "") -> frozenset[str]:
    """The plain forms in which a value is accepted; an answer is accepted if it has one of them."""
    if relation == "year":
        return _year(expected)
    forms = {same_name(each) for each in accepted_names(expected, relation)} - {""}
    return frozenset(forms | {f"{name} city" for name in forms & _WITH_CITY} if relation == "city" else forms)


def forms_of_answer(answer: str, relation: str = "") -> frozenset[str]:
    """The plain forms of an answer: the whole, of a city its part before a comma, of a country also the last part."""
    if relation == "year":
        return _year(answer)
    if relation in ("city", "country"):
        answer = _without_brackets(answer)
    first, _, rest = answer.partition(",")
    if relation not in ("city", "country") or not rest:
        return frozenset({same_name(answer)}) - {""}
    if _DENIAL.search(answer):
        return frozenset()
    parts = {answer, first} if relation == "city" else {answer, *_names_of_country(first, rest)}
    return frozenset(same_name(part) for part in parts) - {""}


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
    states = [_states_of_cities().get(same_name(part)) for part in before]
    if any(own and _states().get(same_name(last)) in own for own in states):
        return out | {"United States"}  # Atlanta, Georgia
    american = same_name(last) in accepted_forms("United States", "country")
    others = [
        part
        for part in before
        if same_name(part) in _country_forms() and not (american and same_name(part) in _states())
    ]
    if all(_countries()[same_name(part)] == _countries().get(same_name(last)) for part in others):
        out.add(last)
    return out


@cache
def _country_forms() -> frozenset[str]:
    """Names of countries of the shipped table, without parts of one."""
    return frozenset(_countries()) - _PARTS_OF_BRITAIN


def _written_out(before: str) -> str:
    """What stands behind a comma and belongs before the name, in full: "Dem. Rep." is "Democratic Republic of"."""
    words = [
        {"dem": "democratic", "rep": "republic", "dr": "democratic republic"}.get(w, w)
        for w in same_name(before).split()
    ]
    return " ".join([*words, "of"] if words and words[-1].endswith("republic") else words)


def _lies_in(city: str, region: str, by_another_name: bool) -> bool:
    """Whether a city may lie in what follows a comma: only what is known to be elsewhere is refused."""
    own, where = same_name(city), _countries_of_cities().get(same_name(city), frozenset())
    named = re.sub(r"(?<=\w) (?:usa|us|united states(?: of america)?|canada|\d+)$", "", same_name(region))
    state = _states().get(named)
    if named in accepted_forms(city, "city"):
        return True
    if state and "United States" in where and own in _states_of_cities():
        return state in _states_of_cities()[own]
    if by_another_name and own in _states_of_cities():
        return named in accepted_forms("United States", "country")
    found = set(_countries().get(named, ())) | ({"United States"} if state else set())
    found |= {"Canada"} if named in _PROVINCES else set()
    if named in _PARTS_OF_BRITAIN:
        return not where or "United Kingdom" in where
    if named in _ELSEWHERE.get(own, ()):
        return False
    if not found and named in _countries_of_cities() and where:  # another city, or a region that is called like one
        is_near = bool(where & _countries_of_cities()[named]) or not by_another_name
        return is_near and not _are_both_large(own, named)
    late = where if by_another_name else where - _NAMES_CHANGED
    former = {each.replace("_", " ") for country in late for each in _FORMERLY.get(country, "").split()}
    return not where or not found or bool(found & (where | former))


def _are_both_large(one: str, two: str) -> bool:
    return min(_people_of_cities()[one].total(), _people_of_cities()[two].total()) >= MANY_PEOPLE


@cache
def _states() -> dict[str, str]:
    """The states of the USA, by their names and abbreviations; not "de", which is Germany as well."""
    rows = [[word.replace("_", " ") for word in row.split(" ")] for row in _STATES.split("|")]
    return {form: name for name, *short in rows for form in (name, *short) if form != "de"}


@cache
def _states_of_cities() -> dict[str, frozenset[str]]:
    """The states in which the people of Pantheon from an American city were born."""
    text = resources.files("qkv.knowledge.datasets").joinpath("data/us_states.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    states = {short.upper(): name for short, name in _states().items() if len(short) == 2} | {"DE": "delaware"}
    found = {
        same_name(city): frozenset(states[each] for each in own.split(",") if each in states) for city, own in rows
    }
    return found | {same_name("Washington, D.C."): frozenset({"district of columbia"})}


@cache
def _countries() -> dict[str, tuple[str, ...]]:
    """The countries of the shipped table, by their names."""
    values = {person.country for person in pantheon() if person.country}
    return {form: (value,) for value in sorted(values) for form in accepted_forms(value, "country")}


@cache
def _countries_of_cities() -> dict[str, frozenset[str]]:
    """The countries in which the shipped table has a city of a name, without those of few of the people there."""
    return {
        city: frozenset(country for country, n in own.items() if n >= MIN_SHARE * own.total())
        for city, own in _people_of_cities().items()
    }


@cache
def _people_of_cities() -> dict[str, Counter[str]]:
    """How many people of the shipped table come from a city of a name, by country."""
    out: dict[str, Counter[str]] = {}
    for person in pantheon():
        if person.city and person.country:
            out.setdefault(same_name(person.city), Counter())[person.country] += 1
    return out


def _year(text: str) -> frozenset[str]:
    """The year that a text states, and whether it is before Christ; nothing if it states none, several or a denial."""
    plain = re.sub(r"^\((.*)\)$", r"\1", text.strip().lower())
    found = _YEAR.fullmatch(_DATE.sub("", _ISO_DATE.sub(r"\1", plain)))
    if not found or _DENIAL.search(text):
        return frozenset()
    number = str(int(found["year"].replace(",", "")))
    first, last = (re.sub(r"[\s.,]", "", found[part] or "") for part in ("first", "last"))
    after = last in ("ad", "ce") or first == "ad"
    before = last not in ("", "ad", "ce") or first in ("bc", "bce", "-", "−", "–")
    return frozenset() if before and after else frozenset({f"{number} BC" if before else number})
