"""The model registry: named and trained models, and unknown names."""

import dataclasses
import shutil

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
        "name": "names", "source": "named at start", "folder": str(folder), "n_layer": 1,
        "attention": load(folder).config.attention, "n_head": 2, "d_model": 16, "parameters": parameters,
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


def test_a_kept_model_survives_its_server(folder, tmp_path, run_code):
    trained, runs = tmp_path / "trained", tmp_path / "kept" / "models"
    shutil.copytree(folder, trained)
    registry = ModelRegistry({}, runs)
    registry.add("train-1", trained)
    assert registry.descriptions()[0]["folder"] is None
    before = registry.ask("train-1", "Where was Person 1 born?")
    assert before["python"].startswith("# This folder is removed when the server stops")
    kept = registry.keep("train-1")
    assert kept["source"] == "kept" and kept["folder"] == str(runs / "train-1")
    shutil.rmtree(trained)  # as when the server stops
    after = registry.ask("train-1", "Where was Person 1 born?")
    assert after["answer"] == before["answer"] and "removed" not in after["python"]
    assert run_code(after["python"])["answer"].answer == before["answer"]
    (again,) = ModelRegistry({}, runs).descriptions()
    assert again == kept == registry.keep("train-1")
    assert [p.name for p in runs.iterdir()] == ["train-1"]


def test_models_that_cannot_be_kept_are_refused_with_a_sentence(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    registry = ModelRegistry({"names": folder}, tmp_path / "file" / "runs")
    registry.add("train-1", folder)
    with pytest.raises(limits.HttpRefusal, match="--runs") as refused:
        registry.keep("train-1")
    assert refused.value.status == 503 and registry.descriptions()[1]["source"] == "trained here"
    with pytest.raises(limits.HttpRefusal, match="Ask one of"):
        registry.keep("../names")
    assert registry.keep("names")["source"] == "named at start"  # it stays where it is
    monkeypatch.setattr(model_registry, "MAX_KEPT_MODELS", 0)
    with pytest.raises(limits.HttpRefusal, match="holds 0 models"):
        registry.keep("train-1")


def test_a_full_disk_is_told_in_a_sentence_and_nothing_of_the_copy_stays(folder, tmp_path, monkeypatch):
    registry = ModelRegistry({}, tmp_path / "runs")
    registry.add("train-1", folder)
    whole = shutil.copy2

    def full(source, target):
        if source.endswith(".safetensors"):
            raise OSError(28, "No space left on device", str(target))
        return whole(source, target)

    monkeypatch.setattr("shutil.copy2", full)
    with pytest.raises(limits.HttpRefusal) as refused:
        registry.keep("train-1")
    assert refused.value.problem == f"No space left on device: {tmp_path / 'runs' / 'train-1'}"
    assert list((tmp_path / "runs").iterdir()) == []


def test_damaged_and_interrupted_copies_are_left_out(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "whole")
    shutil.copytree(folder, tmp_path / ".half-1")
    shutil.copytree(folder, tmp_path / "damaged")
    (tmp_path / "damaged" / "config.json").write_text("{")
    shutil.copytree(folder, tmp_path / "deep")
    (tmp_path / "deep" / "config.json").write_text('{"model_type":' * 100_000)
    assert [m["name"] for m in ModelRegistry({}, tmp_path).descriptions()] == ["whole"]


@pytest.mark.parametrize("badge", ["remembered", None])
def test_every_answer_is_as_its_schema_says_with_all_of_its_fields(folder, badge, monkeypatch):
    from qkv.web.routes.knowledge import AskReply

    registry = ModelRegistry({"names": folder})
    found = ask(load(folder), "Who is it?")
    changed = {"badge": badge, "guarantee": "right at least 95 % of the time (95 % confidence)" if badge else None}
    monkeypatch.setattr("qkv.knowledge.answer.ask", lambda *_: dataclasses.replace(found, **changed))
    reply = registry.ask("names", "Who is it?")
    described = AskReply.model_validate(reply).model_dump()
    assert described.keys() == reply.keys() and described["guarantee"] == changed["guarantee"]
