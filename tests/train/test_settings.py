"""TrainSettings: the learning-rate schedule, and which settings are refused."""

import pytest

from qkv.errors import QkvError
from qkv.train.settings import TrainSettings


def test_the_learning_rate_rises_and_follows_a_cosine():
    s = TrainSettings(steps=100, lr=1.0, warmup_ratio=0.1, min_lr_ratio=0.1)
    assert [s.learning_rate(i) for i in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert s.learning_rate(55) == pytest.approx(0.1 + 0.9 * 0.5)
    assert s.learning_rate(99) == pytest.approx(0.1, abs=1e-3)


def test_the_rate_rises_for_so_many_steps_at_the_least():
    rates = [
        TrainSettings(steps=900, warmup_ratio=0.01, min_warmup_steps=200, lr=1.0).learning_rate(step)
        for step in range(900)
    ]
    assert rates[0] == 1 / 200 and rates[199] == 1.0 == max(rates) and rates[300] < 1
    short = TrainSettings(steps=30, warmup_ratio=0.01, min_warmup_steps=200, lr=1.0)
    assert [short.learning_rate(step) for step in (0, 9)] == [0.1, 1.0]  # a third of a short run


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(QkvError, match="steps is 0, below 1; batch_size is -1, below 1"):
        TrainSettings(steps=0, batch_size=-1)
    with pytest.raises(QkvError, match="precision is 'int8'"):
        TrainSettings(precision="int8")
    with pytest.raises(QkvError, match="no field 'learning_rate'"):
        TrainSettings.from_json({"learning_rate": 1})


def test_optimizers_that_do_not_exist_or_need_whole_matrices_are_refused():
    with pytest.raises(QkvError, match="optimizer is 'sgd', not adamw or muon"):
        TrainSettings(optimizer="sgd")
    with pytest.raises(QkvError, match="muon needs whole matrices"):
        TrainSettings(optimizer="muon", parallel="fsdp")
