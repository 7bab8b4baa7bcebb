"""Which spans questions ask for, fitted to some people and right for others."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from qkv.train.data.entity_passages import parse_passage
from qkv.train.data.span_relevance import RIDGE, _features, _fit, _group_logsumexp, fit_span_relevance


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


def test_texts_that_do_not_say_it_are_told_from_those_that_do(silent_people) -> None:
    texts, questions, silent = silent_people(240)
    passages = [parse_passage(text) for text in texts]
    found = fit_span_relevance(passages, questions[:120])
    assert found.fitted_pairs == sum(not each for each in silent[:120])
    none = np.array([1 - shares.sum() for shares in found.probabilities])
    assert (none >= -1e-12).all() and all(
        len(s) == len(p.spans) for s, p in zip(found.probabilities, passages, strict=True)
    )
    other = np.array(silent[120:])  # nobody asked about these
    assert none[120:][other].min() > 0.5 > 0.1 > none[120:][~other].max()


def test_there_is_no_such_choice_where_every_question_is_answered(silent_people) -> None:
    texts, questions, silent = silent_people(120)
    answered = [pair for pair, each in zip(questions, silent, strict=True) if not each]
    found = fit_span_relevance([parse_passage(text) for text in texts], answered)
    assert all(s.sum() == pytest.approx(1) for s in found.probabilities)


def test_group_logsumexp_is_scipys_group_by_group() -> None:
    random = np.random.default_rng(0)
    scores = torch.tensor(random.normal(0, 300, 40))  # far apart: exponentials alone would overflow
    owners = torch.tensor(np.sort(random.integers(0, 6, 40)))
    found = _group_logsumexp(scores, owners, 6)
    for group in range(6):
        assert float(found[group]) == pytest.approx(logsumexp(scores[owners == group].numpy()), rel=1e-12)


@pytest.mark.parametrize("unanswered", [(), (24, 25, 26, 30)])
def test_the_fit_is_the_minimum_that_another_optimiser_finds(unanswered, people) -> None:
    texts, questions, _ = people(40)
    passages = [parse_passage(text) for text in texts]
    pairs = [(i, answer) for i, (_, answer) in enumerate(questions[:24])]
    found = _fit(passages, pairs, unanswered)
    # The same penalised likelihood, with dense features and SciPy's optimiser.
    own, answers = dict(pairs), Counter(answer for _, answer in pairs)
    spare = [answers - Counter([own[i]] if i in own else []) for i in range(len(passages))]
    features = [[list(_features(p, k, spare[i])) for k in range(len(p.spans))] for i, p in enumerate(passages)]
    columns = {name: j for j, name in enumerate(sorted({f for each in features for some in each for f in some}))}
    rows = []
    for each in features:
        rows.append(np.zeros((len(each), len(columns))))
        for k, some in enumerate(each):
            for f in some:
                rows[-1][k, columns[f]] += 1
    right = [np.array([span.text == own.get(i) for span in p.spans]) for i, p in enumerate(passages)]
    if unanswered:  # one more row in each passage, with a column of its own
        rows = [np.block([[each, np.zeros((len(each), 1))], [np.zeros((1, len(columns))), 1.0]]) for each in rows]
        right = [np.append(each, i in unanswered) for i, each in enumerate(right)]
    known = [*own, *unanswered]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.0, np.zeros_like(weights)
        for i in known:
            scores = rows[i] @ weights
            value += logsumexp(scores) - logsumexp(scores[right[i]])
            chosen = np.where(right[i], softmax(np.where(right[i], scores, -np.inf)), 0.0)
            slope += rows[i].T @ (softmax(scores) - chosen)
        penalty = RIDGE * len(known) ** 0.5
        return value + penalty * weights @ weights, slope + 2 * penalty * weights

    best = minimize(loss, np.zeros(rows[0].shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    for i in range(len(passages)):
        assert found[i] == pytest.approx(softmax(rows[i] @ best)[: len(passages[i].spans)], abs=5e-3)
