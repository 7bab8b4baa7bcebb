"""Features of answers against forward passes of the torch model, one question at a time."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from qkv.knowledge import biographies, questions
from qkv.knowledge.answering.beam_search import Candidate
from qkv.knowledge.confidence.features import (
    FEATURES,
    MAX_BATCH_TOKENS,
    _batches,
    _distinct_texts,
    _sample_agreement,
    answer_features,
)
from qkv.knowledge.confidence.metrics import auroc
from qkv.knowledge.datasets.templates import with_invented_names
from qkv.knowledge.studies.setup import StudySetup, pretrain_cloze, sample_people
from qkv.model.packed_sequences import PackedLayout
from qkv.train.tokenizers import MASK_ID


def token_logs(run, prompt, continuation):
    """Log-probabilities of the tokens of a continuation, from the torch model."""
    ids = torch.tensor([[*prompt, *continuation[:-1]]])
    logs = run.model(ids).detach()[0].double().log_softmax(-1)[len(prompt) - 1 :]
    return [float(logs[j, t]) for j, t in enumerate(continuation)], logs


def test_features_are_those_of_forward_passes(run, people):
    asked = [q for q, _ in questions(people)][:6]
    found = answer_features(run, asked, n_samples=4)
    for i, question in enumerate(asked):
        ids = [*run.tokenizer.encode(question), MASK_ID]
        answer = [*found.candidates[i][0].tokens, MASK_ID]
        each, steps = token_logs(run, ids, answer)
        assert found.column("log_probability")[i] == pytest.approx(sum(each), abs=0.02)  # two tokenizations may be one
        assert found.column("entropy")[i] == pytest.approx(float(-(steps.exp() * steps).sum()), rel=1e-3)
        first, last = found.questions[i].name
        name = ids[first:last]
        each, _ = token_logs(run, [*name, MASK_ID], answer)
        assert found.column("name_only_log_probability")[i] == pytest.approx(sum(each), abs=1e-3)
        each, _ = token_logs(run, name[:1], [*name[1:], MASK_ID])
        assert found.column("name_mean_log_probability")[i] == pytest.approx(sum(each) / len(each), abs=1e-3)
        assert found.column("name_min_log_probability")[i] == pytest.approx(min(each), abs=1e-3)
        each, steps = token_logs(run, name[:1], [*name[1:], MASK_ID])
        excess = [-log - float(-(step.exp() * step).sum()) for log, step in zip(each, steps, strict=True)]
        assert found.column("name_mean_excess_surprise")[i] == pytest.approx(sum(excess) / len(excess), abs=1e-3)
        assert found.column("name_max_excess_surprise")[i] == pytest.approx(max(excess), abs=1e-3)
        each, _ = token_logs(run, [*ids[:first], *ids[last:]], answer)
        assert found.column("question_only_log_probability")[i] == pytest.approx(sum(each), abs=1e-3)
        each, _ = token_logs(run, [MASK_ID], answer)
        assert found.column("no_name_log_probability")[i] == pytest.approx(sum(each), abs=1e-3)
        assert run.tokenizer.decode(name).strip() == question.removeprefix("Where was ").removesuffix(" born?")
        state = run.model.hidden(torch.tensor(ids[:last]), PackedLayout([(1, last)]))
        assert np.allclose(found.hidden[i], state[-1].detach(), atol=1e-4)
        assert 0 <= found.column("agreement")[i] <= 1 and found.column("margin")[i] >= 0
        best, second = found.candidates[i][:2]
        assert found.column("margin")[i] == pytest.approx(best.log_probability - second.log_probability)
    assert found.values.shape == (6, len(FEATURES)) and found.answers == tuple(each[0] for each in found.texts)


def test_the_features_of_a_question_do_not_depend_on_the_other_questions(run, people):
    asked = [q for q, _ in questions(people, ["city", "occupation"])][:8]
    together = answer_features(run, asked, n_samples=0)
    for i, question in enumerate(asked):
        alone = answer_features(run, [question], n_samples=0)
        assert np.allclose(alone.values[0], together.values[i], atol=1e-4) and alone.texts[0] == together.texts[i]


def test_a_name_in_the_text_is_more_likely_than_an_invented_one(run, people):
    feature = "name_mean_log_probability"
    known = answer_features(run, [q for q, _ in questions(people)], n_samples=0).column(feature)
    invented = [f"Where was {name} born?" for name in people.invented_names(30)]
    assert known.mean() > answer_features(run, invented, n_samples=0).column(feature).mean() + 0.5


def test_samples_agree_as_often_as_the_answer_is_likely():
    token_logs = [np.log([0.9, 0.8]), np.log([0.5]), np.log([0.99, 0.2, 0.7])]
    assert _sample_agreement(token_logs, 20000, 3) == pytest.approx([0.72, 0.5, 0.1386], abs=0.015)
    assert _sample_agreement(token_logs, 0, 3) == pytest.approx([0.72, 0.5, 0.1386])


def test_tokenizations_of_one_text_are_one_answer_with_the_sum_of_their_probabilities():
    texts = {(7,): "Oslo", (5,): " Rome", (3, 4): "Rome"}
    run = SimpleNamespace(tokenizer=SimpleNamespace(special=True, decode=lambda ids: texts[tuple(ids)]))
    found = [Candidate(ids, float(np.log(p)), True) for ids, p in (((7,), 0.4), ((5,), 0.3), ((3, 4), 0.2))]
    (first, rome), (second, oslo) = _distinct_texts(run, found)
    assert (first, second) == ("Rome", "Oslo") and rome.tokens == (5,)
    assert np.exp([rome.log_probability, oslo.log_probability]) == pytest.approx([0.5, 0.4])


def test_batches_hold_every_row_once_sorted_by_length_within_the_limit():
    random = np.random.default_rng(0)
    rows = [[0] * int(n) for n in random.integers(1, 90, size=300)]
    found = _batches(rows)
    assert sorted(i for batch in found for i in batch) == list(range(300)) and len(found) > 3
    assert max(sum(len(rows[i]) for i in batch) for batch in found) <= MAX_BATCH_TOKENS
    lengths = [len(rows[i]) for batch in found for i in batch]
    assert lengths == sorted(lengths)


@pytest.mark.slow
def test_training_to_predict_titles_separates_known_from_invented_names(tmp_path):
    facts, _ = sample_people(60, seed=3)
    texts, asked = biographies(facts, 1, title=True).texts, list(questions(facts))
    separation = {}
    for fraction in (0.0, 0.5):
        setup = StudySetup(people=60, exposures=70, d_model=64, vocab_size=900, predict_title_fraction=fraction)
        run = pretrain_cloze(tmp_path / f"{fraction}", texts, asked[:30], setup, seed=0)
        known = [question for question, _ in asked]
        found = answer_features(run, [*known, *with_invented_names(known)], n_samples=0)
        separation[fraction] = auroc(found.column("name_min_log_probability"), np.arange(120) < 60)
    assert separation[0.5] > 0.95 and separation[0.5] > separation[0.0] + 0.1
