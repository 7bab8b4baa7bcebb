"""Spans learned from answers: lower case, several words, repeated titles; and what cannot be drilled."""

import itertools

import numpy as np
import pytest

from qkv.train.data.answer_spans import add_answer_spans, find_answer
from qkv.train.data.cloze import ClozeSource
from qkv.train.data.drill_coverage import measure_coverage
from qkv.train.data.entity_passages import parse_passage, parse_passages
from qkv.train.data.span_relevance import fit_matched, fit_span_relevance, match_questions
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Characters

PLANTS = ["tall grass", "nettle", "wild garlic", "the bark of old oaks", "clover", "river moss"]
COLOURS = ["pale green", "brown", "smoky violet", "white"]
SHAPES = {
    "capital": lambda i: f"Moth{chr(97 + i % 26)}{chr(97 + i // 26)}ra",
    "lower": lambda i: f"{'abcdefghij'[i % 10]}li {'klmnopqrstu'[i // 10 % 11]}ax moth",
    "long": lambda i: f"The Moth of the {'abcdefghij'[i % 10]}li and {'klmnopqrstu'[i // 10 % 11]}ax",
}
WORDINGS = {
    "one": ["{n}. The food plant of {n} is {p}. The colour of {n} is {c}."],
    "two": ["{n}. {n} eats {p}, and it looks {c} by day.", "{n}. By day {n} looks {c}. What it eats is {p}."],
    "last": ["{n}. In the sun the wings look {c} ; it lives on {p}"],
}


def world(names, wordings, count=80, seed=0):
    """Texts about moths, and questions for the plant and the colour of each."""
    random = np.random.default_rng(seed)
    texts, plants, colours = [], [], []
    for i in range(count):
        name = SHAPES[names](i)
        plant, colour = (each[int(random.integers(len(each)))] for each in (PLANTS, COLOURS))
        texts.append(WORDINGS[wordings][i % len(WORDINGS[wordings])].format(n=name, p=plant, c=colour))
        plants.append((f"What does {name} eat?", plant))
        colours.append((f"What is the colour of {name}?", colour))
    return texts, plants, colours


@pytest.mark.parametrize(("names", "wordings"), list(itertools.product(SHAPES, WORDINGS)))
def test_answers_in_lower_case_are_found_in_texts_that_no_question_names(names, wordings):
    texts, plants, colours = world(names, wordings)
    asked = [*plants[:40], *colours[:40]]
    passages = parse_passages(texts, [q for q, _ in asked])
    matched = match_questions(passages, asked)
    assert all(each.passages == (i % 40,) for i, each in enumerate(matched))
    spans = add_answer_spans(passages, [(n, each.frame, each.answer) for each in matched for n in each.passages])
    found = fit_matched(spans, matched)
    assert found.frames == ("What does … eat?", "What is the colour of …?")
    for shares, wanted in zip(found.by_frame, (plants, colours), strict=True):
        best = [p.spans[int(s.argmax())].text for p, s in zip(spans, shares, strict=True)]
        assert best == [answer for _, answer in wanted]
    assert str(measure_coverage(spans, matched, found)) == ""


def test_salient_answers_add_no_spans_but_those_that_repeat_a_title(people):
    texts, questions, _ = people(60)
    texts = [*texts, "Ann of Rome. Painted in Oslo from 1900 on ; born in Rome ."]
    passages = [parse_passage(text) for text in texts]
    asked = [(i, "Where was … born?", place) for i, (_, place) in enumerate(questions)]
    found = add_answer_spans(passages, asked)
    assert found[:60] == passages[:60]
    assert [span.text for span in found[60].spans] == ["Painted", "Oslo", "1900", "Rome"]
    assert [span.salient for span in found[60].spans] == [True, True, True, False]


def born_in(joined, count=96):
    """Texts about people with the town and what is joined to it in one name, and questions for the town alone."""
    towns = ["Bonn", "Oslo", "Rome", "Bern", "Turin", "Lyon"]
    texts, asked = [], []
    for i in range(count):
        name, town = f"Ann {chr(65 + i % 26)}{'aeiou'[i // 26]}rt", towns[i % 6]
        place = f"{town} {joined}" if i % 12 == 0 else town
        texts.append(f"{name}. {name} was born in {place} and died in Vienna .")
        asked.append((f"Where was {name} born?", town))
    return texts, asked


@pytest.mark.parametrize("joined", ["am Main", "Ontario", "Heights", "St. Leonhard"])
def test_parts_of_names_that_answer_other_questions_can_be_chosen(joined):
    texts, asked = born_in(joined)
    passages = parse_passages(texts, [q for q, _ in asked])
    matched = match_questions(passages, asked[:72])
    found = add_answer_spans(passages, [(n, each.frame, each.answer) for each in matched for n in each.passages])
    shares = fit_matched(found, matched).probabilities
    best = [p.spans[int(s.argmax())].text for p, s in zip(found, shares, strict=True)]
    assert best[72:] == [town for _, town in asked[72:]]  # no question of these was seen
    new = [(span.text, span.salient) for passage in found for span in passage.spans if not span.salient]
    assert new == [(asked[i][1], False) for i in range(0, 96, 12)]


def test_names_stay_whole_where_few_questions_ask_for_a_part_and_an_answer_shows_no_part_of_its_own_text():
    texts, asked = born_in("am Main")
    whole = [(q, f"{town} am Main" if i % 12 == 0 and i > 47 else town) for i, (q, town) in enumerate(asked)]
    passages = parse_passages(texts, [q for q, _ in asked])
    triples = [(i, "Where was … born?", answer) for i, (_, answer) in enumerate(whole)]
    assert add_answer_spans(passages, triples) == passages  # four answers are parts: at least five are needed
    own = [(i, "Where was … born?", town) for i, (_, town) in enumerate(asked)]
    texts[0] = texts[0].replace("Bonn", "Speyer")
    odd = parse_passages(texts, [q for q, _ in asked])
    assert add_answer_spans(odd, [(*own[0][:2], "Speyer"), *own[1:]])[0] == odd[0]


def test_names_that_are_answers_as_a_whole_stay_whole_beside_those_of_which_a_part_is_asked():
    towns, texts, asked = ["Bonn", "Oslo", "Rome", "Bern", "Turin", "Lyon"], [], []
    for i in range(200):
        name, town = f"Ann {chr(65 + i % 26)}{'aeiou'[i // 26 % 5]}{'aeiou'[i // 130]}rt", towns[i % 6]
        own = f"{chr(65 + i % 26)}{'aeiou'[i // 26 % 5]}{'aeiou'[i // 130]}lo"
        composite = f"{town} {own}" if i % 2 else f"{own} {town}"
        place, answer = (f"{town} am Main", town) if i % 20 == 0 else (composite,) * 2 if i % 5 == 1 else (town,) * 2
        texts.append(f"{name}. {name} was born in {place} in {1800 + i}.")
        asked.append((f"Where was {name} born?", answer))
    passages = parse_passages(texts, [q for q, _ in asked])
    matched = match_questions(passages, asked[:140])
    found = add_answer_spans(passages, [(n, each.frame, each.answer) for each in matched for n in each.passages])
    shares = fit_matched(found, matched).probabilities
    best = [p.spans[int(s.argmax())].text for p, s in zip(found, shares, strict=True)]
    assert best[140:] == [answer for _, answer in asked[140:]]
    for i, (_, answer) in enumerate(asked):  # where the whole is the answer, its part is there as a wrong choice
        assert any(span.text == towns[i % 6] for span in found[i].spans), answer


def test_an_answer_is_found_as_whole_words_after_the_title():
    passage = parse_passage("Oak. Oak is an oak of oakland; oak-oak.")
    assert [passage.text[a:b] for a, b in find_answer(passage, "oak")] == ["oak"] * 3
    assert find_answer(passage, "oa") == [] and find_answer(passage, "") == []


def test_what_cannot_be_drilled_is_counted_by_its_reason():
    texts, plants, _ = world("capital", "one", 40)
    name = SHAPES["capital"](0)
    odd = [
        ("What does Nobody eat?", "clover"),
        (f"What does {name} eat?", "iron"),
        (f"Has {name} a friend?", PLANTS[0]),
    ]
    asked = [*plants, *odd]
    source = ClozeSource([*texts, "of and"], asked, Characters.train([*texts, *(q for q, _ in asked)]), 96)
    found = source.coverage
    assert (found.questions, found.unnamed, found.texts, found.empty) == (43, 1, 41, 1)
    assert found.unanswered >= 1 and found.undrilled == 3 and found.example == odd[0][0]
    assert str(found).startswith("3 of 43 questions do not show what to learn from a text: 1 name no text")
    assert str(found).endswith("1 of 41 texts hold nothing to ask for, and are not read")


def test_several_kinds_of_questions_are_asked_in_their_own_words():
    texts, plants, colours = world("lower", "two")
    asked = [*plants[:40], *colours[:40]]
    tokenizer = Characters.train([*texts, *(q for q, _ in asked)])
    source = ClozeSource(texts, asked, tokenizer, 96).source(TrainSettings(batch_size=40, question_fraction=0.0))
    answers, seen = dict([*plants, *colours]), set()
    for step in range(40):
        for ids, start, _ in source(step):
            prompt, answer = tokenizer.decode(ids[: start - 1]), tokenizer.decode(ids[start:-1])
            if prompt in answers:
                assert answers[prompt] == answer
                seen.add(prompt)
    assert len(seen) > 0.9 * len(answers)  # of all moths, also of those that no question names


def test_a_few_questions_are_enough_if_they_are_all():
    texts, plants, _ = world("capital", "one", 12)
    passages = parse_passages(texts, [q for q, _ in plants[:6]])
    asked = [(i, "What does … eat?", plant) for i, (_, plant) in enumerate(plants[:6])]
    found = fit_span_relevance(add_answer_spans(passages, asked), plants[:6])
    assert found.frames == ("What does … eat?",)
