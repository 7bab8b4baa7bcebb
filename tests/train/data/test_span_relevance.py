"""Which spans questions ask for, fitted to some people and right for others."""

import numpy as np
import pytest

from qkv.train.data.entity_passages import parse_passage
from qkv.train.data.span_relevance import fit_span_relevance


def test_interest_learned_from_half_of_the_people_finds_the_birthplaces_of_the_others(people) -> None:
    texts, questions, _ = people(160)
    passages = [parse_passage(text) for text in texts]
    found = fit_span_relevance(passages, questions[:80])
    assert found.frames == ("Where was … born?",) and found.fitted_pairs == 80
    best = [p.spans[int(s.argmax())].text for p, s in zip(passages, found.probabilities, strict=True)]
    assert best[80:] == [place for _, place in questions[80:]]
    assert all(s.sum() == pytest.approx(1) for s in found.probabilities)


def test_interest_follows_what_is_asked(people) -> None:
    texts, questions, others = people(120)
    asked = [(q.replace("born", "at home"), home) for (q, _), home in zip(questions, others, strict=True)]
    passages = [parse_passage(text) for text in texts]
    found = fit_span_relevance(passages, asked[:60])
    best = [p.spans[int(s.argmax())].text for p, s in zip(passages, found.probabilities, strict=True)]
    assert best[60:] == others[60:]


def test_a_kind_of_question_needs_many_questions_and_not_only_many_texts(people) -> None:
    texts, questions, _ = people(60)
    odd = [(q.replace("Where was", "In what city was"), a) for q, a in questions[50:52]]
    found = fit_span_relevance([parse_passage(text) for text in [*texts, *20 * texts[50:52]]], [*questions[:50], *odd])
    assert found.frames == ("Where was … born?",)


def test_without_questions_all_spans_are_as_likely(people) -> None:
    found = fit_span_relevance([parse_passage(text) for text in people(4)[0]], [])
    assert not found.fitted and all(np.allclose(s, 1 / len(s)) for s in found.probabilities)
