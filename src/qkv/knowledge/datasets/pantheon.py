"""The shipped table: 10,768 people of Pantheon 1.0 with city, country and year of birth and occupation."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources

from qkv.knowledge.datasets.facts import Facts, Person


def pantheon() -> Facts:
    """The shipped table of people, Pantheon 1.0 (Yu et al. 2016, doi 10.7910/DVN/28201, CC0).

    Returns:
        10,768 people with city, country and year of birth and occupation, most viewed first.

    Example:
        >>> from qkv.knowledge import pantheon
        >>> people = pantheon()
        >>> len(people)
        10768
        >>> next(person.facts() for person in people if person.name == "Albert Einstein")
        {'city': 'Ulm', 'country': 'Germany', 'year': '1879', 'occupation': 'physicist'}
    """
    return _table()


@cache
def _table() -> Facts:
    packed = resources.files("qkv.knowledge.datasets").joinpath("data/pantheon.tsv.gz").read_bytes()
    rows = gzip.decompress(packed).decode().splitlines()
    return Facts(tuple(_person(*row.split("\t")) for row in rows))


def _person(name: str, city: str, country: str, year: str, occupation: str) -> Person:
    return Person(name, city, country, f"{year[1:]} BC" if year.startswith("-") else year, occupation)
