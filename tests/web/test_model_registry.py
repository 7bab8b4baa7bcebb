"""The model registry: named and trained models, and unknown names."""

import pytest

from qkv.errors import QkvError
from qkv.knowledge import ask
from qkv.model.config import ModelConfig
from qkv.train import load, pretrain
from qkv.train.settings import TrainSettings
from qkv.web import limits, model_registry
from qkv.web.model_registry import ModelRegistry


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two steps."""
    folder = tmp_path_factory.mktemp("run") / "run"
    config = ModelConfig(n_layer=1, n_head=2, d_model=16, context_length=32, dropout=0.0)
    texts = [f"Person {i} was born in Oslo." for i in range(8)]
    pretrain(texts, folder, config, TrainSettings(steps=2, batch_size=4, val_fraction=0.0))
    return folder


def test_a_named_model_is_described_and_answers_as_the_library_does(folder, run_code):
    registry = ModelRegistry({"names": folder})
    (found,) = registry.descriptions()
    parameters = sum(p.numel() for p in load(folder).model.parameters())
    assert found == {
        "name": "names", "source": "named at start", "attention": load(folder).config.attention, "n_layer": 1,
        "n_head": 2, "d_model": 16, "parameters": parameters,
    }  # fmt: skip
    question = "Where was Person 1 born?"
    answer = registry.ask("names", question)
    assert answer["answer"] == ask(load(folder), question).answer
    assert run_code(answer["python"])["answer"].answer == answer["answer"]


def test_only_the_latest_trained_models_are_kept_and_named_ones_stay(folder, monkeypatch):
    monkeypatch.setattr(model_registry, "MAX_TRAINED_MODELS", 2)
    registry = ModelRegistry({"names": folder})
    for name in ("one", "two", "three"):
        registry.add(name, folder)
    assert [m["name"] for m in registry.descriptions()] == ["names", "two", "three"]


def test_an_unknown_name_is_refused_with_those_that_exist(folder):
    with pytest.raises(limits.HttpRefusal, match="Ask one of: names") as refused:
        ModelRegistry({"names": folder}).ask("../names", "?")
    assert refused.value.status == 404
    with pytest.raises(limits.HttpRefusal, match="--model NAME=FOLDER"):
        ModelRegistry({}).ask("names", "?")


def test_a_folder_without_a_run_is_refused_at_start(tmp_path):
    with pytest.raises(QkvError):
        ModelRegistry({"names": tmp_path})
