"""Other names of cities, countries and occupations: a small table, written by hand.

A name is accepted if people use it for the same place today or did so in the past. A region is not accepted for a city
in it, nor a city for its region, except where the expected value is itself an area that is named after its city.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

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
def _by_plain_name(relation: str) -> dict[str, tuple[str, ...]]:
    """The table of a relation, by values without accents and case."""
    return {same_name(value): others for value, others in OTHER_NAMES.get(relation, {}).items()}


def forms_of_name(expected: str, relation: str = "") -> frozenset[str]:
    """The plain forms of a value and of its other names; of a city also with "ue" for "ü", as in Muenchen."""
    names = accepted_names(expected, relation)
    forms = {same_name(each) for each in names} - {""}
    if relation == "city":
        forms |= {same_name(unicodedata.normalize("NFC", each).casefold().translate(_UMLAUTS)) for each in names} - {""}
    return frozenset(forms | {f"{name} city" for name in forms & _WITH_CITY} if relation == "city" else forms)
