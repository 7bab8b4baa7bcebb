"""Texts about people, with questions."""

import numpy as np
import pytest

PLACES = ("Rome", "Oslo", "Lima", "Kyiv", "Bonn", "Quito", "Paris", "Delhi")


def people(count: int) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Texts with a birthplace, another place and a year, in two wordings; questions; and the other places."""
    random = np.random.default_rng(0)
    texts, questions, others = [], [], []
    for i in range(count):
        name = f"Per{chr(97 + i % 26)}{chr(97 + i // 26)} Son{chr(97 + i % 7)}a"
        born, lives = (PLACES[j] for j in random.choice(len(PLACES), 2, replace=False))
        year = random.integers(1800, 1990)
        texts.append(
            f"{name}. {name} (born {year} in {born}) is a painter who lives in {lives} ."
            if i % 2
            else f"{name}. Painted in {lives} from {year} on ; born in {born} ."
        )
        questions.append((f"Where was {name} born?", born))
        others.append(lives)
    return texts, questions, others


@pytest.fixture(name="people")
def people_fixture():
    """A function from a number of people to texts, questions and other places."""
    return people


@pytest.fixture
def silent_people():
    """A function from a number of people to texts, questions, and which of the texts do not say the birthplace."""

    def make(count: int) -> tuple[list[str], list[tuple[str, str]], list[bool]]:
        texts, questions, others = people(count)
        silent = [i % 5 == 3 for i in range(count)]
        for i in np.flatnonzero(silent):
            name = texts[i].split(".")[0]
            texts[i] = f"{name}. {name} is a painter who lives in {others[i]} ."
        return texts, questions, silent

    return make
