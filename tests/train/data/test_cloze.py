"""Passages, what questions are interested in, and drills made of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from qkv.errors import QkvError
from qkv.train.data.cloze import ClozeSource
from qkv.train.data.entity_passages import Titles, passage, title
from qkv.train.data.span_relevance import interests
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import MASK_ID, Characters

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
    assert title(text) == wanted


def test_a_passage_says_nothing_that_only_repeats_its_title() -> None:
    found = passage("Jan Jacob Kieft. Born in Amsterdam, Kieft won in 1908 .")
    assert [span.text for span in found.spans] == ["Amsterdam", "1908"]
    assert found.spans[0].before[-2:] == ("Born", "in") and found.spans[0].after[:1] == (",",)


def test_a_question_names_the_longest_title_in_it() -> None:
    titles = Titles([passage(f"{name}. He was born in Rome .") for name in ("Ann Lee", "Ann Lee Roy", "Bo Lee")])
    assert titles.frame("Where was Ann Lee Roy born?") == ([1], "Where was … born?")
    assert titles.frame("What is Bo Lee's town?") == ([2], "What is …'s town?")
    assert titles.frame("Where was Cy Lee born?") == ([], "Where was Cy Lee born?")


def test_interest_learned_from_half_of_the_people_finds_the_birthplaces_of_the_others() -> None:
    texts, questions, _ = people(160)
    passages = [passage(text) for text in texts]
    found = interests(passages, questions[:80])
    assert found.frames == ("Where was … born?",) and found.learned_from == 80
    best = [p.spans[int(s.argmax())].text for p, s in zip(passages, found.shares, strict=True)]
    assert best[80:] == [place for _, place in questions[80:]]
    assert all(s.sum() == pytest.approx(1) for s in found.shares)


def test_interest_follows_what_is_asked() -> None:
    texts, questions, others = people(120)
    asked = [(q.replace("born", "at home"), home) for (q, _), home in zip(questions, others, strict=True)]
    passages = [passage(text) for text in texts]
    found = interests(passages, asked[:60])
    best = [p.spans[int(s.argmax())].text for p, s in zip(passages, found.shares, strict=True)]
    assert best[60:] == others[60:]


def test_a_kind_of_question_needs_many_questions_and_not_only_many_texts() -> None:
    texts, questions, _ = people(60)
    odd = [(q.replace("Where was", "In what city was"), a) for q, a in questions[50:52]]
    found = interests([passage(text) for text in [*texts, *20 * texts[50:52]]], [*questions[:50], *odd])
    assert found.frames == ("Where was … born?",)


def test_without_questions_all_spans_are_as_likely() -> None:
    found = interests([passage(text) for text in people(4)[0]], [])
    assert not found.any and all(np.allclose(s, 1 / len(s)) for s in found.shares)


def test_drills_keep_the_title_and_ask_for_what_the_text_says() -> None:
    texts, questions, _ = people(60)
    tokenizer = Characters.train(texts + [q for q, _ in questions])
    deck = ClozeSource(texts, questions[:30], tokenizer, 96)
    settings = TrainSettings(batch_size=20, question_fraction=0.1, relevant_span_fraction=0.8, no_context_fraction=0.5)
    source = deck.source(settings)
    kinds: Counter[str] = Counter()
    places = dict(questions)
    said = {p.title: {span.text for span in p.spans} for p in map(passage, texts)}
    for step in range(60):
        examples = source(step)
        assert len(examples) == 20 and examples == deck.source(settings)(step)
        for ids, start, _ in examples:
            assert ids[-1] == MASK_ID and ids[start - 1] == MASK_ID and len(ids) <= 97
            prompt, answer = tokenizer.decode(ids[: start - 1]), tokenizer.decode(ids[start:-1])
            if prompt in places:
                assert prompt in dict(questions[:30]) and answer == places[prompt]
                kinds["question"] += 1
                continue
            name = " ".join(prompt.replace("⁇", " ").split()[:2])
            assert answer in said[name]
            kinds["bare" if prompt == " " + name else "context"] += 1
            kinds["asked for"] += answer == places[f"Where was {name} born?"]
    drills = kinds["bare"] + kinds["context"]
    assert kinds["question"] == 120  # a tenth of each batch
    assert kinds["bare"] / drills == pytest.approx(0.4, abs=0.06)  # half of the four fifths that are tilted
    assert kinds["asked for"] / drills == pytest.approx(0.8 + 0.2 / 3, abs=0.06)


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_titles_are_asked_for_too_as_often_as_is_said(frames: int) -> None:
    texts, questions, _ = people(60)
    asked = [*questions[:30], *((q.replace("Where was", "In what city was"), a) for q, a in questions[30:])]
    asked = asked[: 30 * frames]
    tokenizer = Characters.train(texts + [q for q, _ in asked])
    deck, kinds = ClozeSource(texts, asked, tokenizer, 96), Counter[str]()
    settings = TrainSettings(batch_size=20, question_fraction=0.0, relevant_span_fraction=0.8, no_context_fraction=0.5)
    for step in range(100):
        assert all(head == 1 for *_, head in deck.source(settings)(step))
        for ids, start, head in deck.source(replace(settings, predict_title_fraction=0.3))(step):
            kinds["drill"] += 1
            if head > 1:  # the name is asked for, and its end if what follows it is ⁇
                text = tokenizer.decode(ids[:head])
                assert text.rstrip("⁇") == " " + " ".join(text.rstrip("⁇").split()[:2]) and head <= start
                assert (text[-1] == "⁇") == (ids[head - 1] == MASK_ID) and (text[-1] == "⁇" or ids[head] != MASK_ID)
                kinds["named"] += 1
    assert kinds["named"] / kinds["drill"] == pytest.approx(0.3, abs=0.04)


def test_every_passage_has_its_turn_once_an_epoch() -> None:
    texts, _, _ = people(30)
    tokenizer = Characters.train(texts)
    source = ClozeSource(texts, [], tokenizer, 96).source(TrainSettings(batch_size=10))
    names = Counter(tokenizer.decode(ids)[1:12] for step in range(6) for ids, *_ in source(step))
    assert len(names) == 30 and set(names.values()) == {2}


def test_texts_that_say_nothing_are_refused() -> None:
    texts = ["nothing is said here", "nor here"]
    with pytest.raises(QkvError, match="making drills"):
        ClozeSource(texts, [], Characters.train(texts), 64)
