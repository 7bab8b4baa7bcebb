"""A small text, and runs of a few steps on it."""

import pytest

from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings

PLACES = ("Paris", "Rome", "Oslo", "Łódź")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(f"Person {i} was born in {PLACES[i % 4]} in {1800 + i}." for i in range(60)), "utf-8")
    return path


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.tsv"
    path.write_text("\n".join(f"Where was person {i} born?\t{PLACES[i % 4]}" for i in range(40)), "utf-8")
    return path


@pytest.fixture
def config():
    return ModelConfig(n_layer=2, n_head=2, d_model=32, context_length=48, dropout=0.1)


@pytest.fixture
def settings():
    return TrainSettings(steps=12, batch_size=8, log_every=2, validate_every=5, checkpoint_every=4, val_fraction=0.1)
