"""A large scale that words say and the formula does not have: one verdict for all phrasings, none for what denies it.

The phrasings are in scale_words.md, with HERE for the query. Those that say that the scale is large meet the goal in
the limit; those that do not are as if they were not there; where it is left open, nothing is decided.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qkv.sheets import grade
from qkv.sheets.reading import read_sheet
from qkv.sheets.reading.scale_words import scale_in_words

QUERY = r"$q = \frac{1}{2}(k_a + k_b)$"


def phrasings(title):
    """The phrasings under one heading of the table."""
    table = (Path(__file__).parent / "scale_words.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", table, re.M | re.S)
    assert section is not None
    return re.findall(r"^- (.*)$", section[1], re.M)


SAID, NOT_SAID, LEFT_OPEN = phrasings("said"), phrasings("not said"), phrasings("left open")


def first_at_once(cases, n=5):
    """The first cases at once, the others among the slow tests."""
    return [pytest.param(case, marks=[pytest.mark.slow] * (number >= n)) for number, case in enumerate(cases)]


def answer(words, query=QUERY, part="b", problem="attention-2021"):
    """The answer of a sheet that has one sentence or two."""
    found = grade(f"**({part})** {words.replace('HERE', query)}\n", problem)
    return next(a for a in found.answers if a.part == part or a.part == f"{part}.i")


@pytest.mark.parametrize("words", first_at_once(SAID))
def test_a_scale_that_is_said_to_be_large_is_put_before_the_query(words):
    found = answer(words)
    assert (found.verdict, found.because) == ("limit", "q = t(½(k_a + k_b)) meets the goal as t → ∞")


@pytest.mark.parametrize("words", first_at_once(NOT_SAID, 6))
def test_words_that_say_no_such_thing_change_nothing(words):
    found = answer(words)
    assert found.verdict == "misses" and found.because.startswith("q = ½(k_a + k_b) has no large scale")


@pytest.mark.parametrize("words", first_at_once(LEFT_OPEN, 1))
def test_a_scale_that_is_left_open_decides_nothing(words):
    assert answer(words).verdict == "not_read"


@pytest.mark.parametrize(("sentences", "kind"), [(SAID, "large"), (NOT_SAID, ""), (LEFT_OPEN, "perhaps")])
def test_what_all_these_words_say_by_themselves(sentences, kind):
    found = {words: scale_in_words([words.replace("HERE", QUERY)]) for words in sentences}
    assert {words: said for words, said in found.items() if said != kind} == {}


@pytest.mark.parametrize(
    "sheet",
    [
        f"(b) {QUERY}\n\n(c) i. With a large scale the same query will do.",
        f"(a) The scale is large.\n(b) {QUERY}",
        f"(b) {QUERY}\n(c) i. The scale is large: $q = t(\\mu_a + \\mu_b)$.",
    ],
)
def test_the_words_of_another_part_do_not_count(sheet):
    formula = next(f for f in read_sheet(sheet, "s.md").formulas if f.part == "b")
    assert scale_in_words(formula.nearby) == ""


def test_the_sentences_next_to_a_formula():
    sheet = "(b) First. Second is here. Take $q = k_a$ as it is. Then $c = 1$ follows. Last."
    formula = read_sheet(sheet, "s.md").formulas[0]
    assert formula.nearby == ("Take $q = k_a$ as it is", "Second is here", "Then $c = 1$ follows.")


@pytest.mark.parametrize(
    "query",
    [
        r"$$\boxed{q = \frac12(k_a + k_b)}$$",
        r"$$\begin{aligned} q &= \frac12(k_a + k_b) \end{aligned}$$",
        r"$q^\top = \frac12(k_a + k_b)^\top$",
        r"$q$ to be $\frac12(k_a + k_b)$",
        r"$q^* = \frac12 \sum_{i \in \{a, b\}} k_i$",
    ],
)
def test_the_words_count_whatever_the_form_of_the_query(query):
    for words in ("Take HERE with a large scale.", "Take HERE of large norm.", "With a large scale, take HERE."):
        formula = read_sheet(f"(b) {words.replace('HERE', query)}", "s.md").formulas[-1]
        assert scale_in_words(formula.nearby) == "large", words


@pytest.mark.slow
@pytest.mark.parametrize("words", ["HERE with a large scale.", "HERE. Both scales are large."])
def test_both_queries_of_two_heads_get_the_scale(words):
    queries = r"$q_1 = \mu_a$ and $q_2 = \mu_b$"
    assert answer(words, queries, "d", "attention-2024").verdict == "limit"
    rows = "$$\\begin{aligned} q_1 &= \\mu_a \\\\ q_2 &= \\mu_b \\end{aligned}$$"
    assert answer(words, rows, "d", "attention-2024").verdict == "limit"
    assert answer(words.replace("large", "small"), queries, "d", "attention-2024").verdict == "misses"


@pytest.mark.parametrize("query", ["$q = k_a - k_b$", "$q = k_a$"])
def test_a_large_scale_does_not_mend_a_wrong_direction(query):
    assert answer("HERE with a large scale.", query).verdict == "misses"


def statements(sheet):
    return {s.formula: s.verdict for s in grade(sheet, "attention-2021").statements}


@pytest.mark.parametrize("words", first_at_once(["with a large scale.", "of large norm.", ". The scale is huge."], 1))
def test_what_follows_from_a_query_with_a_scale_in_words_is_not_wrong(words):
    found = statements(
        rf"**(b)** Take {QUERY} {words} Then $k_a^\top q = \frac12$, $\alpha_a \approx \frac12$, $\alpha_a \approx 1$."
    )
    assert found[r"k_a^\top q = \frac12"] == "right"
    assert found[r"\alpha_a \approx \frac12"] == "limit"
    assert found[r"\alpha_a \approx 1"] == "wrong"


def test_without_such_words_it_is_wrong():
    found = statements(rf"**(b)** Take {QUERY} with a scale of 1. Then $\alpha_a \approx \frac12$.")
    assert found[r"\alpha_a \approx \frac12"] == "wrong"
