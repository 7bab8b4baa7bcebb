"""Salient spans: names, dates, numbers and places."""

import pytest

from qkv.train.data.salient_spans import find_salient_spans


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Jacob Henry Studer (26 February 1840 Columbus, Ohio - 2 August 1904 New York City) was a printer.",
            ["Jacob Henry Studer", "26 February 1840", "Columbus", "Ohio", "2 August 1904", "New York City"],
        ),
        ("He was born in Rio de Janeiro on July 4, 1776.", ["Rio de Janeiro", "July 4, 1776"]),
        ("The Isle of Man has 84,000 people.", ["Isle of Man", "84,000"]),
        ("Ludwig van Beethoven wrote in the 1820s.", ["Ludwig van Beethoven", "1820s"]),
        ("Émile Zola lived near Łódź .", ["Émile Zola", "Łódź"]),
        ("nothing here is salient.", []),
        ("He was born in St. Louis. The Hague came later.", ["St. Louis", "Hague"]),
        ("She left The Hague for Washington, D.C. in 1901", ["The Hague", "Washington, D.C.", "1901"]),
        ("Vila do Conde or Freiburg im Breisgau, not the U.S.", ["Vila do Conde", "Freiburg im Breisgau", "U.S."]),
    ],
)
def test_names_dates_numbers_and_places_are_salient(text, found):
    assert [text[a:b] for a, b in find_salient_spans(text)] == found
