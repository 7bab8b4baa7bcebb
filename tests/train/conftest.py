"""A small text, and runs of a few steps on it."""

import pytest

from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings

PLACES = ("Paris", "Rome", "Oslo", "Łódź")


def write_text(folder):
    """Sixty short documents, as a file in a folder."""
    path = folder / "text.txt"
    path.write_text("\n".join(f"Person {i} was born in {PLACES[i % 4]} in {1800 + i}." for i in range(60)), "utf-8")
    return path


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path)


@pytest.fixture(scope="module")
def shared_text(tmp_path_factory):
    """The same for the tests of a module that do not change it."""
    return write_text(tmp_path_factory.mktemp("text"))


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
