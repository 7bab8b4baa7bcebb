"""Cloze examples: title, context, span, and questions mixed in."""

from collections import Counter
from dataclasses import replace

import pytest

from qkv.errors import QkvError
from qkv.train.data.cloze import ClozeSource
from qkv.train.data.entity_passages import parse_passage
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import MASK_ID, Characters


def test_cloze_examples_keep_the_title_and_ask_for_what_the_text_says(people) -> None:
    texts, questions, _ = people(60)
    tokenizer = Characters.train(texts + [q for q, _ in questions])
    cloze = ClozeSource(texts, questions[:30], tokenizer, 96)
    settings = TrainSettings(batch_size=20, question_fraction=0.1, relevant_span_fraction=0.8, no_context_fraction=0.5)
    source = cloze.source(settings)
    kinds: Counter[str] = Counter()
    places = dict(questions)
    said = {p.title: {span.text for span in p.spans} for p in map(parse_passage, texts)}
    for step in range(60):
        examples = source(step)
        assert len(examples) == 20 and examples == cloze.source(settings)(step)
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
    total = kinds["bare"] + kinds["context"]
    assert kinds["question"] == 120  # a tenth of each batch
    assert kinds["bare"] / total == pytest.approx(0.4, abs=0.06)  # half of the four fifths that ask for a relevant span
    assert kinds["asked for"] / total == pytest.approx(0.8 + 0.2 / 3, abs=0.06)


def test_titles_of_texts_that_do_not_say_what_is_asked_are_hardly_drilled_alone(silent_people) -> None:
    """A model that is made to answer from such a text is sure of what is wrong."""
    texts, questions, silent = silent_people(120)
    tokenizer = Characters.train(texts + [q for q, _ in questions])
    source = ClozeSource(texts, questions[:60], tokenizer, 96).source(TrainSettings(batch_size=30))
    titles = {f" {text.split('.')[0]}": each for text, each in zip(texts, silent, strict=True)}
    alone, turns = Counter[bool](), Counter[bool]()
    for step in range(80):
        for ids, start, _ in source(step):
            prompt = tokenizer.decode(ids[: start - 1])
            title = next((each for each in titles if prompt.startswith(each)), None)
            if title is not None:
                turns[titles[title]] += 1
                alone[titles[title]] += prompt == title
    assert turns[True] > 300 and alone[True] / turns[True] < 0.1
    assert alone[False] / turns[False] == pytest.approx(0.425, abs=0.05)  # half of the 85 % with a relevant span


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_titles_are_asked_for_too_as_often_as_is_said(frames: int, people) -> None:
    texts, questions, _ = people(60)
    asked = [*questions[:30], *((q.replace("Where was", "In what city was"), a) for q, a in questions[30:])]
    asked = asked[: 30 * frames]
    tokenizer = Characters.train(texts + [q for q, _ in asked])
    cloze, kinds = ClozeSource(texts, asked, tokenizer, 96), Counter[str]()
    settings = TrainSettings(batch_size=20, question_fraction=0.0, relevant_span_fraction=0.8, no_context_fraction=0.5)
    for step in range(100):
        assert all(head == 1 for *_, head in cloze.source(settings)(step))
        for ids, start, head in cloze.source(replace(settings, predict_title_fraction=0.3))(step):
            kinds["cloze"] += 1
            if head > 1:  # the name is asked for, and its end if what follows it is ⁇
                text = tokenizer.decode(ids[:head])
                assert text.rstrip("⁇") == " " + " ".join(text.rstrip("⁇").split()[:2]) and head <= start
                assert (text[-1] == "⁇") == (ids[head - 1] == MASK_ID) and (text[-1] == "⁇" or ids[head] != MASK_ID)
                kinds["named"] += 1
    assert kinds["named"] / kinds["cloze"] == pytest.approx(0.3, abs=0.04)


def test_every_passage_has_its_turn_once_an_epoch(people) -> None:
    texts, _, _ = people(30)
    tokenizer = Characters.train(texts)
    source = ClozeSource(texts, [], tokenizer, 96).source(TrainSettings(batch_size=10))
    names = Counter(tokenizer.decode(ids)[1:12] for step in range(6) for ids, *_ in source(step))
    assert len(names) == 30 and set(names.values()) == {2}


def test_texts_that_say_nothing_are_refused() -> None:
    texts = ["nothing is said here", "nor here"]
    with pytest.raises(QkvError, match="making cloze examples"):
        ClozeSource(texts, [], Characters.train(texts), 64)
