"""Titles and spans of texts about one entity, and which title a question names."""

import pytest

from qkv.train.data.entity_passages import TitleIndex, find_title, parse_passage


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Jan Kieft. Born in Amsterdam, Kieft was a gymnast .", "Jan Kieft"),
        ("John F. Kennedy. John F. Kennedy was a president .", "John F. Kennedy"),
        ("Ludwig van Beethoven. He was born in Bonn .", "Ludwig van Beethoven"),
        ("Ada Lovelace was born in London. She wrote a program.", "Ada Lovelace"),
        ("a text without names", "a text without"),
        ("Malcolm X. Malcolm X was born in Omaha .", "Malcolm X"),
        ("J.J. Abrams. J.J. Abrams worked as a film director .", "J.J. Abrams"),
        ("Ed Wood, Jr.. Ed Wood, Jr. was born in 1924 .", "Ed Wood, Jr."),
        ("Bashar al-Assad. Bashar al-Assad was born in 1965 .", "Bashar al-Assad"),
        ("J. J. Stevenson. John James Stevenson was an architect .", "J. J. Stevenson"),
        ("Ann Lee. Ann Leech was her sister .", "Ann Lee"),
    ],
)
def test_a_title_is_the_name_that_a_text_begins_with(text: str, wanted: str) -> None:
    assert find_title(text) == wanted


def test_a_passage_says_nothing_that_only_repeats_its_title() -> None:
    found = parse_passage("Jan Jacob Kieft. Born in Amsterdam, Kieft won in 1908 .")
    assert [span.text for span in found.spans] == ["Amsterdam", "1908"]
    assert found.spans[0].before[-2:] == ("Born", "in") and found.spans[0].after[:1] == (",",)


def test_a_question_names_the_longest_title_in_it() -> None:
    names = ("Ann Lee", "Ann Lee Roy", "Bo Lee")
    titles = TitleIndex([parse_passage(f"{name}. He was born in Rome .") for name in names])
    assert titles.frame("Where was Ann Lee Roy born?") == ([1], "Where was … born?")
    assert titles.frame("What is Bo Lee's town?") == ([2], "What is …'s town?")
    assert titles.frame("Where was Cy Lee born?") == ([], "Where was Cy Lee born?")
