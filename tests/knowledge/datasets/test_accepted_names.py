"""Accepted other names: which answers count as the expected value, and which do not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from qkv.knowledge import pantheon
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.datasets.facts import RELATIONS
from qkv.knowledge.datasets.other_names import other_names, same_name


@pytest.mark.parametrize(
    ("answer", "expected", "relation"),
    [
        ("Königsberg", "Kaliningrad", "city"),
        ("Kaliningrad", "Königsberg", "city"),
        ("Malaga", "Málaga", "city"),
        ("malaga, Spain", "Málaga", "city"),
        ("New York City", "New York", "city"),
        ("Saint Louis", "St. Louis", "city"),
        ("St Petersburg", "Saint Petersburg", "city"),
        ("Leningrad", "Saint Petersburg", "city"),
        ("Washington, D.C.", "Washington, D.C.", "city"),
        ("Washington", "Washington, D.C.", "city"),
        ("Lodz", "Łódź", "city"),
        ("the Hague", "The Hague", "city"),
        ("Constantinople", "Istanbul", "city"),
        ("The United States", "United States", "country"),
        ("U.S.", "United States", "country"),
        ("England", "United Kingdom", "country"),
        ("c. 1879", "1879", "year"),
        ("384 BCE", "384 BC", "year"),
        ("footballer", "soccer player", "occupation"),
        ("Actress", "actor", "occupation"),
    ],
)
def test_accepted(answer: str, expected: str, relation: str) -> None:
    assert is_accepted(answer, expected, relation)


@pytest.mark.parametrize(
    ("answer", "expected", "relation"),
    [
        ("Mexico", "Mexico City", "city"),
        ("York", "New York", "city"),
        ("Spain", "Málaga", "city"),
        ("Guangzhou", "Canton", "city"),
        ("London, Paris", "Paris", "city"),
        ("", "Paris", "city"),
        (".", "Paris", "city"),
        ("Paris", "", "city"),
        ("United", "United Kingdom", "country"),
        ("United Kingdom", "United States", "country"),
        ("384", "384 BC", "year"),
        ("1879 or 1880", "1879", "year"),
        ("no year", "1879", "year"),
        ("actor", "soccer player", "occupation"),
    ],
)
def test_not_accepted(answer: str, expected: str, relation: str) -> None:
    assert not is_accepted(answer, expected, relation)


def test_every_value_of_the_shipped_table_is_accepted_for_itself_and_without_accents() -> None:
    values = {(getattr(person, relation), relation) for person in pantheon() for relation in RELATIONS}
    assert all(is_accepted(value, value, relation) for value, relation in values)
    assert all(is_accepted(same_name(value), value, relation) for value, relation in values if relation == "country")


def test_no_value_of_the_shipped_table_is_accepted_for_another_country() -> None:
    countries = sorted({person.country for person in pantheon()})
    confused = {(a, b) for a in countries for b in countries if a != b and is_accepted(a, b, "country")}
    assert confused == set()


def test_the_table_is_about_values_that_are_asked_for() -> None:
    for relation in ("city", "country", "occupation"):
        known, table = {getattr(person, relation) for person in pantheon()}, other_names(relation)
        assert len(table) > 20 and len([name for name in table if name in known]) > 0.9 * len(table)


# Shares of right answers that are refused at most; the second list has many states of other times ("Papal States").
FIRST_LIST = {"year": 0.0, "occupation": 0.01, "country": 0.02, "city": 0.05}
SECOND_LIST = {"year": 0.02, "occupation": 0.03, "country": 0.27, "city": 0.13}


@pytest.mark.parametrize(("file", "limits"), [("judged_answers", FIRST_LIST), ("judged_answers_2", SECOND_LIST)])
def test_labelled_lists_of_phrasings_are_judged_as_people_judge_them(file: str, limits: dict[str, float]) -> None:
    """Written and labelled before they were run, by people who did not build the rules (three years are of nobody)."""
    rows = [line.split("\t") for line in Path(__file__).with_name(f"{file}.tsv").read_text("utf-8").splitlines()]
    assert len(rows) > 1400
    refused, n_right = Counter[str](), Counter[str]()
    for relation, expected, answer, label in rows:
        accepted = is_accepted(answer, expected, relation)
        assert label == "right" or not accepted, (relation, expected, answer)
        n_right[relation] += label == "right"
        refused[relation] += label == "right" and not accepted
    shares = {relation: refused[relation] / n for relation, n in n_right.items()}
    assert all(share <= limits[relation] for relation, share in shares.items()), shares


@pytest.mark.parametrize(
    ("relation", "expected", "answer", "accepted"),
    [
        ("country", "USA", "United States", True), ("country", "U.S.", "the United States", True),
        ("country", "UK", "England", True), ("country", "England", "Scotland", False),
        ("country", "Deutschland", "Germany", True), ("country", "West Germany", "East Germany", False),
        ("city", "New York City", "New York", True), ("city", "Manhattan", "Brooklyn", False),
        ("city", "London, England", "London", True), ("city", "London, England", "London, Ontario", False),
        ("city", "Mumbai, India", "Bombay", True), ("city", "Paris, Texas", "Paris", False),
        ("city", "Paris, Texas", "Paris, Texas", True), ("city", "Smallville, Kansas", "Smallville, Ohio", False),
        ("city", "Smallville, Kansas", "Smallville", True), ("year", "1990.0", "1990", True),
        ("occupation", "footballer", "soccer player", True), ("occupation", "author", "a British writer", True),
        ("occupation", "doctor", "physician", True), ("occupation", "king", "politician", False),
        ("country", "Holland", "the Netherlands", True), ("occupation", "king", "queen", False),
        ("occupation", "zoologist", "botanist", False), ("occupation", "zoologist", "a zoologist", True),
        ("city", "Portland, OR", "Portland, Maine", False), ("city", "Portland, OR", "Portland, Oregon", True),
        ("city", "Birmingham, England", "Birmingham, Alabama", False),
        ("city", "Frankfurt am Main", "Frankfurt", True),
        ("city", "Kansas City, MO", "Kansas City, Kansas", False),
        ("city", "Frankfurt am Main", "Frankfurt (Oder)", False),
        ("city", "Córdoba, Spain", "Cordoba, Argentina", False),
        ("city", "Halifax, Nova Scotia", "Halifax, Canada", True),
        ("city", "Springfield, IL", "Springfield, Illinois", True), ("city", "Paris, Texas", "Paris, TX", True),
        ("city", "San Jose, CA", "San Jose, California", True), ("city", "Reno, Nevada", "Reno, NV, USA", True),
        ("occupation", "scientist", "British scientist", True), ("occupation", "farmer", "a farmer and activist", True),
        ("occupation", "dentist", "not a dentist", False), ("country", "England", "England, UK", True),
        ("country", "Georgia", "Georgia, USA", False), ("", "79", "7.9", False), ("", "-5", "5", False),
        ("", "C++", "C", False), ("", "C#", "C++", False), ("", "1,000", "1000", True), ("", "Málaga", "malaga.", True),
        ("city", "London", "Chelsea, London", True), ("city", "St. Louis", "East St. Louis, Illinois", False),
        ("city", "London", "East London, South Africa", False), ("city", "New York", "Buffalo, New York", False),
    ],
)  # fmt: skip
def test_values_of_a_file_are_read_as_the_table_reads_them(
    relation: str, expected: str, answer: str, accepted: bool
) -> None:
    assert is_accepted(answer, expected, relation) is accepted


@pytest.mark.parametrize(
    ("expected", "answer", "accepted"),
    [
        ("politician", "politician and lawyer", True), ("politician", "lawyer and politician", True),
        ("politician", "German politician of the Social Democratic Party", True),
        ("physicist", "a theoretical physicist who worked on gravity", True),
        ("religious figure", "Pope", True),
        ("soldier", "British military officer and the first Earl of Uxbridge", True),
        ("actor", "film actress", True), ("writer", "poet, playwright/novelist", True),
        ("computer scientist", "American computer scientist", True),
        ("political scientist", "computer scientist", False),
        ("artist", "martial artist", False), ("artist", "recording artist", False),
        ("tennis player", "table tennis player", False),
        ("soccer player", "American football player", False), ("soldier", "attorney general", False),
        ("soldier", "Governor-General", False), ("film director", "managing director", False),
        ("politician", "politician's wife", False), ("politician", "son of a politician", False),
        ("politician", "not a politician", False), ("politician", "politician or lawyer", False),
        ("politician", "fictional politician", False), ("model", "role model", False),
        ("singer", "writer, actor, politician and singer", False),  # the fourth of a list
        ("physicist", "physics", False), ("writer", "", False), ("writer", "and", False),
    ],
)  # fmt: skip
def test_an_occupation_is_read_from_a_phrase(expected: str, answer: str, accepted: bool) -> None:
    assert is_accepted(answer, expected, "occupation") is accepted


@pytest.mark.parametrize(
    ("expected", "answer", "accepted"),
    [
        ("Germany", "Federal Republic of Germany", True), ("Poland", "the Republic of Poland", True),
        ("Iran", "Islamic Republic of Iran", True), ("France", "Kingdom of France", True),
        ("India", "British India", True), ("Pakistan", "British India", True), ("Canada", "Toronto, Ontario", True),
        ("South Korea", "Democratic People's Republic of Korea", False), ("China", "Republic of China", False),
        ("Congo", "Democratic Republic of the Congo", False), ("Georgia", "State of Georgia", False),
        ("England", "the country of England", True), ("Turkey", "present-day Turkey", True),
        ("Ukraine", "what is now Ukraine", True), ("Italy", "modern Italy", True),
        ("Italy", "present-day Spain", False),
        ("Israel", "State of Israel", True), ("Germany", "Kingdom of Prussia", False),
        ("Canada", "Paris, Ontario", False), ("Ukraine", "Russian SFSR", False),
    ],
)  # fmt: skip
def test_a_country_may_be_named_with_its_form_of_state(expected: str, answer: str, accepted: bool) -> None:
    assert is_accepted(answer, expected, "country") is accepted


@pytest.mark.parametrize(
    ("relation", "expected", "answer", "accepted"),
    [
        ("country", "South Korea", "Korea, North", False), ("country", "South Korea", "Korea, South", True),
        ("country", "North Korea", "Korea, North", True), ("country", "South Korea", "Korea, Republic of", True),
        ("country", "Democratic Republic of Congo", "Congo, Democratic Republic of the", True),
        ("country", "Congo", "Congo, Democratic Republic of the", False),
        ("city", "St. Petersburg", "Leningrad", True), ("city", "saint petersburg", "Petrograd", True),
        ("occupation", "Actor", "Actress", True), ("occupation", "Soccer Player", "footballer", True),
        ("year", "1879", "not 1879", False), ("year", "1879", "1879 is wrong", False),
        ("year", "1879", "in 1879", True),
        ("year", "1879", "-1879", False), ("year", "384 BC", "384 bc", True), ("year", "384 BC", "384BC", True),
        ("year", "384 BC", "-384", True), ("year", "-384", "384 B.C.", True), ("year", "-384", "384", False),
        ("year", "384 BC", "384 BCE", True), ("year", "384 BC", "384 AD", False), ("year", "100", "-100", False),
    ],
)  # fmt: skip
def test_what_an_attack_found(relation, expected, answer, accepted):
    assert is_accepted(answer, expected, relation) == accepted


YEARS = (
    "{y}s|the {y}s|before {y}|after {y}|isn't {y}|wasn't in {y}|{y} before Christ|{y} a.C.|{y} v. Chr.|{y} years ago|"
    "{y}th century|aged {y}|neither {y}|other than {y}|unknown (page {y})|not {y}|never {y}|{y}-{z}|{y} or {z}|"
    "{y}0|1{y}|{z}|{y} BC|-{y}|{y} B.C.E.|born before {y}|{y}, not {z}|until {y}|{y}, no|"
    "{y}, AH|{y}, Hijri|{y}, Islamic era|{y} in the Islamic era|{y} in the BC era|{y}, in the era before Christ|"
    "{y}, ante Christum|{y}, at the latest|{y}, at the earliest|{y}, earlier than that|{y}, when he was married|"
    "deceased {y}|married {y}|decade {y}|{y}, in which he graduated|{y}, minus ten|{y} in twenty years"
)


@pytest.mark.parametrize("form", YEARS.split("|"))
def test_what_is_not_the_year_is_not_accepted_for_it(form: str) -> None:
    assert not any(is_accepted(form.format(y=y, z=y + 1), str(y), "year") for y in range(1, 2020, 37))


@pytest.mark.parametrize(
    "form",
    ["{y}", "in {y}", "the year {y}", "c. {y}", "circa {y}", "b. c. {y}", "{y} AD", "AD {y}", "{y} CE",
     "14 March {y}", "on March 14, {y}", "14/03/{y:04}", "14.3.{y:04}", "({y})", "A.D. {y}", "c.{y}",
     "March 14, {y}", "the 3rd of May {y}", "{y}.", "{y} in Ulm", "{y}, in Ulm, Germany", "b. {y}"],
)  # fmt: skip
def test_a_year_is_accepted_as_people_write_it(form: str) -> None:
    assert all(is_accepted(form.format(y=y), str(y), "year") for y in range(32, 2020, 37))
    assert not any(is_accepted(form.format(y=y), f"{y} BC", "year") for y in range(32, 2020, 37))


def test_years_before_christ_and_with_a_separator() -> None:
    for form in (
        "{y} BC",
        "{y}BC",
        "{y} B.C.",
        "{y} BCE",
        "-{y}",
        "BC {y}",
        "{y} before Christ",
        "{y} v. Chr.",
        "in {y} bc",
    ):
        assert all(is_accepted(form.format(y=y), f"{y} BC", "year") for y in (1, 44, 384, 1200)), form
    for form in ("{y}, BC", "{y}, B.C.", "{y}, before Christ", "{y} in BC"):
        assert not any(is_accepted(form.format(y=y), str(y), "year") for y in (44, 100, 384, 470)), form
    assert not is_accepted("May 15", "15", "year") and is_accepted("May 1815", "1815", "year")
    assert not is_accepted("1879, the year of his death", "1879", "year")
    assert not is_accepted("1" * 5000, "1815", "year") and is_accepted("Portland, OR", "Portland", "city")
    assert is_accepted("1815-12-10", "1815", "year") and is_accepted("10.12.1815", "1815", "year")
    assert is_accepted("1,815", "1815", "year") and not is_accepted("4th century BC", "4 BC", "year")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Korea, Dem. People's Rep.", "South Korea"), ("Korea, Dem. Rep.", "South Korea"),
        ("Korea, DPR", "South Korea"),
        ("Korea, Democratic People's Republic", "South Korea"), ("Congo, Dem. Rep.", "Congo"),
        ("Congo, DR", "Congo"),
        ("Congo, Democratic Republic", "Congo"), ("Congo, The Democratic Republic of the", "Congo"),
        ("Congo, Rep.", "Democratic Republic of Congo"), ("Congo", "Democratic Republic of Congo"),
        ("Congo, Republic of the", "Democratic Republic of Congo"), ("Ireland, Northern", "Ireland"),
        ("Guinea, Equatorial", "Guinea"), ("Georgia, United States", "Georgia"), ("Georgia, USA", "Georgia"),
        ("Sudan, South", "Sudan"), ("North Korea", "South Korea"), ("Jordan, Montana", "Jordan"),
        ("Peru, Indiana", "Peru"),
        ("Lebanon, Pennsylvania, USA", "Lebanon"), ("Cuba, New York", "Cuba"), ("Poland, Ohio", "Poland"),
        ("Kiev, Ukraine, Soviet Union", "Russia"), ("Minsk, Belarus, USSR", "Russia"),
        ("Atlanta, Georgia", "Georgia"),
        ("Riga, Latvia, Russian Empire", "Russia"), ("Sofia, Bulgaria, Ottoman Empire", "Turkey"),
        ("Bratislava, Slovakia, Czechoslovakia", "Czech Republic"), ("Algiers, Algeria, France", "France"),
        ("Calcutta, India, Great Britain", "United Kingdom"), ("Mexico City, Mexico, America", "United States"),
        ("Wroclaw, Poland, Germany", "Germany"), ("Georgia, Soviet Union", "Russia"), ("Georgia, USSR", "Russia"),
        ("Georgia (Soviet Union)", "Russia"), ("Savannah, Georgia", "Georgia"),
        ("England, France", "France"), ("England, Ireland", "Ireland"), ("Scotland, USA", "United States"),
        ("Northern Ireland, Ireland", "Ireland"),
        *[(f"{town}, Georgia", "Georgia") for town in (
            "Columbus", "Cleveland", "Jackson", "Madison", "Covington", "Roswell", "Dublin", "Valdosta",
            "Warner Robins", "Gainesville", "Statesboro", "Washington", "Cairo", "Rome", "Athens", "Augusta", "Macon")],
        ("Ukraine, Soviet Union", "Russia"), ("Egypt, Ottoman Empire", "Turkey"), ("China, Republic of", "China"),
        ("Ireland, no, France", "Ireland"), ("Ireland, no, France", "France"),
        ("Wales, New South", "United Kingdom"),
        ("America, Latin", "United States"), ("America, South", "United States"),
        ("Britain, New", "United Kingdom"),
    ],
)  # fmt: skip
def test_another_country_is_not_accepted(answer: str, expected: str) -> None:
    assert not is_accepted(answer, expected, "country")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Korea, Rep.", "South Korea"), ("Korea, Dem. People's Rep.", "North Korea"), ("Congo, Rep.", "Congo"),
        ("Congo, Dem. Rep.", "Democratic Republic of Congo"), ("Congo, DR", "Democratic Republic of Congo"),
        ("London, England", "United Kingdom"), ("Georgia, USA", "United States"), ("Paris, France", "France"),
        ("Atlanta, Georgia", "United States"), ("Tbilisi, Georgia", "Georgia"), ("Batumi, Georgia", "Georgia"),
        ("Columbus, Georgia", "United States"), ("Kiev, Ukraine", "Ukraine"),
        ("Ukraine, Soviet Union", "Ukraine"), ("Georgia, USSR", "Georgia"), ("Iran, Islamic Republic of", "Iran"),
        ("Moldova, Republic of", "Moldova"), ("Egypt, Arab Rep.", "Egypt"), ("Korea (South)", "South Korea"),
        ("Germany, Europe", "Germany"), ("England, United Kingdom", "United Kingdom"),
        ("Netherlands, The", "Netherlands"),
    ],
)  # fmt: skip
def test_a_country_is_accepted_as_lists_and_people_write_it(answer: str, expected: str) -> None:
    assert is_accepted(answer, expected, "country")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris, Texas", "Paris"), ("London, Ontario", "London"), ("Athens, Georgia", "Athens"),
        ("Rome, NY", "Rome"),
        ("Moscow, Idaho", "Moscow"), ("Valencia, Venezuela", "Valencia"), ("Cairo, Illinois, USA", "Cairo"),
        ("Washington, Pennsylvania", "Washington, D.C."), ("Washington, Tyne and Wear", "Washington, D.C."),
        ("Hollywood, Florida", "Los Angeles"), ("Jersey City", "Jersey"), ("Kansas City", "Kansas"),
        ("Manhattan, Kansas, USA", "New York"), ("Brooklyn, Ohio, USA", "New York"), ("Salisbury, UK", "Harare"),
        ("Hollywood, Florida, United States", "Los Angeles"), ("Washington, Utah, USA", "Washington, D.C."),
        ("Boston, UK", "Boston"), ("Christchurch, UK", "Christchurch"), ("Alexandria, Romania", "Alexandria"),
        ("Tokyo, Germany", "Tokyo"), ("Paris, Texas USA", "Paris"), ("Paris, Texas (USA)", "Paris"),
        ("Paris (Texas)", "Paris"), ("London, Ontario (Canada)", "London"), ("Paris, TX 75460", "Paris"),
        ("Paris, Tex.", "Paris"), ("Cairo, Ill.", "Cairo"), ("London, Ont.", "London"), ("Naples, Fla.", "Naples"),
        ("Las Vegas, New Mexico", "Las Vegas"), ("Miami, Ohio", "Miami"), ("Chicago, Alaska", "Chicago"),
        ("Philadelphia, Mississippi", "Philadelphia"), ("Paris, London", "Paris"),
        ("Berlin, or maybe Munich", "Berlin"),
        ("Frankfurt (Oder)", "Frankfurt"), ("Frankfurt, Brandenburg", "Frankfurt"),
        ("London, Manchester", "London"),
        ("Manchester, Liverpool", "Manchester"), ("Toronto, Montreal", "Toronto"), ("Chicago, Houston", "Chicago"),
        ("Berlin, Cologne", "Berlin"), ("Paris, Marseille", "Paris"), ("Paris, Germany", "Paris"),
        ("Moscow, Germany", "Moscow"), ("Paris, actually Lyon", "Paris"),
        ("London, though some say Paris", "London"),
        ("London, no, Paris", "London"), ("London, I don't think so", "London"), ("Salisbury, England", "Harare"),
        ("Canton, Ohio", "Guangzhou"), ("Brunswick, Georgia", "Braunschweig"), ("Madras, Oregon", "Chennai"),
        ("Christiania, Copenhagen", "Oslo"), ("Smyrna, Tennessee", "İzmir"), ("Brooklyn, Wisconsin", "New York"),
        ("Manhattan, Kansas", "New York"), ("Queens, no", "New York"), ("Thorn, Netherlands", "Toruń"),
        ("バリ", "パリ"), ("माले", "माली"), ("जीरा", "जौरा"), ("London, Paris", "Paris"),
        ("Alexandria, in Virginia", "Alexandria"), ("London, southwestern Ontario", "London"),
        ("Paris, in Texas", "Paris"), ("London, in the United States", "London"),
        ("Paris, state of Texas", "Paris"),
        ("Athens, in Georgia", "Athens"),
        ("Paris, Texas in the United States", "Paris"), ("Cambridge, in Massachusetts", "Cambridge"),
        ("Canton, in Ohio", "Guangzhou"), ("Salisbury, in England", "Harare"), ("Boston, England UK", "Boston"),
        ("Petersburg, in Virginia", "Saint Petersburg"), ("Boston, Lincolnshire England", "Boston"),
        ("Rome, N. Y.", "Rome"), ("Manchester, N. H.", "Manchester"), ("Paris, W. Va.", "Paris"),
        ("Paris, U. S. A.", "Paris"), ("Berlin, Wisc.", "Berlin"), ("Moscow, Ida.", "Moscow"),
        ("Frankfurt (an der Oder)", "Frankfurt"), ("Richmond, London", "Richmond"),
        ("Brighton, Boston", "Brighton"),
        ("Chelsea, Manhattan", "Chelsea"), ("Ulm, London", "Ulm"), ("London, Paris and Berlin", "London"),
        ("New York, Chicago and Los Angeles", "New York"), ("New York (state)", "New York"),
        ("Buenos Aires (province)", "Buenos Aires"), ("Milton, England", "Milton"), ("Łagów, Russia", "Łagów"),
        ("Odessa, Poland", "Odessa"), ("Corfu, Ottoman Empire", "Corfu"), ("Lyons, Germany", "Lyon"),
        ("Leningrad, Germany", "Saint Petersburg"),
        ("Rome, Austria", "Rome"), ("Naples, Austria", "Naples"), ("Palermo, Austria", "Palermo"),
        ("Bucharest, Hungary", "Bucharest"), ("Kiev, Austria", "Kiev"), ("Warsaw, Austria", "Warsaw"),
        ("Gdańsk, Russia", "Gdańsk"), ("Belgrade, Austria", "Belgrade"), ("Boston, Lincolnshire", "Boston"),
        ("Glasgow, England", "Glasgow"), ("Cardiff, Scotland", "Cardiff"), ("London, Wales", "London"),
        ("Belfast, England", "Belfast"), ("Perth, Wales", "Perth"), ("Vancouver, Victoria", "Vancouver"),
        ("Melbourne, Queensland, Canada", "Melbourne"), ("Munchken", "Munich"),
    ],
)  # fmt: skip
def test_another_city_is_not_accepted(answer: str, expected: str) -> None:
    assert not is_accepted(answer, expected, "city")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris, France", "Paris"), ("Paris, Île-de-France", "Paris"), ("Königsberg, Prussia", "Kaliningrad"),
        ("Königsberg, Germany", "Kaliningrad"), ("Breslau, Germany", "Wrocław"), ("Canton, China", "Guangzhou"),
        ("Smyrna, Ottoman Empire", "İzmir"), ("Brooklyn, New York", "New York"), ("Manhattan, NY", "New York"),
        ("Brooklyn, New York City", "New York"), ("The Bronx, USA", "New York"), ("New York, New York", "New York"),
        ("Hollywood, California", "Los Angeles"), ("Dublin, United Kingdom", "Dublin"),
        ("London, England", "London"),
        ("Edinburgh, Scotland", "Edinburgh"), ("Quebec City", "Québec"), ("Pest, Hungary", "Budapest"),
        ("Washington, DC", "Washington, D.C."), ("Springfield, Massachusetts", "Springfield"),
        ("Paris, in 1822", "Paris"), ("London, England, in 1564", "London"), ("Islington, London", "Islington"),
        ("Boston, Massachusetts, in 1706.", "Boston"), ("Hammersmith, London, England", "Hammersmith"),
        ("Etterbeek, Brussels, Belgium", "Etterbeek"), ("the town of Ulm, Germany", "Ulm"),
        ("the city of Rome", "Rome"),
        ("Prague, Austria-Hungary", "Prague"), ("Sarajevo, Yugoslavia", "Sarajevo"), ("Paris, in France", "Paris"),
        ("Dhaka, British India", "Dhaka"), ("Strassburg, Germany", "Strasbourg"), ("Milton, Scotland", "Milton"),
        ("Łagów, Germany", "Łagów"), ("Athens, Ottoman Empire", "Athens"), ("Rome, in Italy", "Rome"),
        ("Boston, in the state of Massachusetts", "Boston"), ("Brooklyn, N. Y.", "New York"),
        ("Newcastle upon Tyne, Tyne and Wear", "Newcastle upon Tyne"), ("Kaliningrad, Soviet Union", "Kaliningrad"),
        ("Trieste, Austria", "Trieste"), ("Milan, Austria", "Milan"), ("Lviv, Austria", "Lviv"),
        ("Kraków, Austria", "Kraków"), ("Warsaw, Russia", "Warsaw"), ("Danzig, Germany", "Gdańsk"),
        ("Cluj, Hungary", "Cluj-Napoca"), ("Florence, Tuscany", "Florence"), ("Boston, Massachusetts", "Boston"),
        ("München, Bavaria", "Munich"), ("Muenchen", "Munich"), ("Zuerich, Switzerland", "Zürich"),
        ("Melbourne, Victoria", "Melbourne"), ("Perth, Western Australia", "Perth"), ("Perth, Scotland", "Perth"),
        ("Bangor, Wales", "Bangor"), ("Belfast, Northern Ireland", "Belfast"), ("Newport, England", "Newport"),
    ],
)  # fmt: skip
def test_a_city_is_accepted_with_where_it_lies(answer: str, expected: str) -> None:
    assert is_accepted(answer, expected, "city")
