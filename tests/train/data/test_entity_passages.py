"""Titles and spans of texts about one entity, and which title a question names."""

import pytest

from qkv.train.data.entity_passages import Passage, TitleIndex, find_title, find_titles, parse_passage


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tall moss. The food of tall moss is rain .", "tall moss"),
        ("the red door: it leads to the garden. A door .", "the red door"),
        ("What Is Life? A book. It was written in 1944 .", "What Is Life? A book"),
        ("J. K. R. Born in Rome .", "J. K. R"),
        ("Malcolm X. Born in Omaha .", "Malcolm X"),
        ("Ada lovelace. She was born in London .", "Ada lovelace"),
    ],
)
def test_what_a_question_names_is_the_title_whatever_it_looks_like(text: str, wanted: str) -> None:
    others = ["grey fox. The food of grey fox is mice .", "low hill. The food of low hill is rain ."]
    asked = [f"Where was {wanted} seen?", "Where was grey fox seen?"]
    assert find_titles([text, *others], asked) == [wanted, "grey fox", "low hill"]  # the last one is asked by nobody


def test_titles_that_rules_find_stay_if_questions_confirm_them() -> None:
    texts = ["Ann Lee. Born in Rome .", "It rained. Bo Roy came home .", "J. N. Will. Will was born in Oslo ."]
    assert find_titles(texts, ["Where was Ann Lee born?", "Where was J. Cole born?"])[::2] == ["Ann Lee", "J. N. Will"]
    assert find_titles(texts, []) == [find_title(text) for text in texts]


@pytest.mark.parametrize(
    ("question", "frame"),
    [
        ("Who wrote What Is Life??", "Who wrote …?"),
        ("Who wrote “What Is Life?”", "Who wrote “…”"),
        ("What Is Life?'s author?", "…'s author?"),
        ('Who wrote "Dune"?', 'Who wrote "…"?'),
        ("Tell me: Dune, who wrote it?", "Tell me: …, who wrote it?"),
    ],
)
def test_marks_around_a_title_are_no_part_of_it(question: str, frame: str) -> None:
    titles = TitleIndex([Passage("What Is Life?", "", ()), Passage("Dune", "", ())])
    assert titles.frame(question)[1] == frame
