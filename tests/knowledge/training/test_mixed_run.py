"""Texts and questions in one run."""

from dataclasses import replace

import pytest
import torch

from qkv.errors import QkvError
from qkv.knowledge.evaluation import evaluate
from qkv.knowledge.training.mixed_run import mixed_batches, train_mixed
from qkv.model.config import ModelConfig
from qkv.train.runs import load
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import END_ID, MASK_ID, Characters

TEXTS = [f"Person {i} was born in {('Rome', 'Oslo')[i % 2]}." for i in range(12)]
QUESTIONS = [(f"Where was person {i} born?", ("Rome", "Oslo")[i % 2]) for i in range(6)]
TOKENIZER = Characters.train([*TEXTS, *(question for question, _ in QUESTIONS)])
CONFIG = ModelConfig(n_layer=1, n_head=2, d_model=16, context_length=48)
SETTINGS = TrainSettings(steps=6, batch_size=8, objective="next", val_fraction=0.0, checkpoint_every=2)
OPTIONS = {"config": CONFIG, "settings": SETTINGS, "tokenizer": TOKENIZER}


def test_each_batch_holds_the_share_of_questions_and_every_text_comes_once_per_epoch(tmp_path):
    run = train_mixed(tmp_path / "run", TEXTS, QUESTIONS, 0.25, **OPTIONS)
    source = mixed_batches(run, TEXTS, QUESTIONS, 0.25)
    read, asked = [], []
    for step in range(2):
        batch = source(step)
        assert [e.start > 1 for e in batch] == [False] * 6 + [True] * 2
        read += [TOKENIZER.decode(e.ids[1:-1]) for e in batch[:6]]
        asked += [TOKENIZER.decode(e.ids).split("⁇") for e in batch[6:]]
        assert all(e.ids[0] == e.ids[-1] == END_ID for e in batch[:6]) and batch[7].ids[-1] == MASK_ID
    assert sorted(read) == sorted(TEXTS)
    assert {(question, answer) for question, answer, _ in asked} <= set(QUESTIONS)


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path):
    def stop(step, *rest):
        if step == 3:
            raise KeyboardInterrupt

    whole = train_mixed(tmp_path / "whole", TEXTS, QUESTIONS, 0.25, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        train_mixed(tmp_path / "cut", TEXTS, QUESTIONS, 0.25, callback=stop, **OPTIONS)
    assert load(tmp_path / "cut").step == 2
    cut = train_mixed(tmp_path / "cut", TEXTS, QUESTIONS, 0.25, **OPTIONS)
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), cut.model.parameters(), strict=True))


@pytest.mark.parametrize(("questions", "share"), [((), 0.5), (QUESTIONS, 0.0), (QUESTIONS, 1.0)])
def test_a_share_without_questions_and_questions_without_a_share_are_refused(questions, share, tmp_path):
    with pytest.raises(QkvError, match="question_fraction is"):
        train_mixed(tmp_path / "run", TEXTS, questions, share, **OPTIONS)


def test_another_run_in_the_folder_is_refused(tmp_path):
    train_mixed(tmp_path / "run", TEXTS, **OPTIONS)
    for texts, changed in ((TEXTS[1:], {}), (TEXTS, {"settings": replace(SETTINGS, lr=0.5)})):
        with pytest.raises(QkvError, match="other data or settings"):
            train_mixed(tmp_path / "run", texts, **{**OPTIONS, **changed})


def test_a_run_and_its_folder_are_evaluated_alike(tmp_path):
    run = train_mixed(tmp_path / "run", TEXTS, QUESTIONS, 0.25, **OPTIONS)
    found = evaluate(run, QUESTIONS, unpretrained=run.folder)
    assert found == evaluate(run.folder, QUESTIONS, unpretrained=run)
    assert found.answers == evaluate([str(run.folder), run], QUESTIONS).answers[:1]
