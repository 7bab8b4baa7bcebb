"""Recipes: a text and questions, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

import qkv
from qkv.cli import app
from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train.recipes import RECIPES, plan_finetuning, plan_pretraining
from qkv.train.runs import finetune, load, pretrain
from qkv.train.settings import TrainSettings

NAMES = [f"{a}{b} {c}en" for a in ("Al", "Bo", "Cy") for b in ("da", "ri") for c in ("Ros", "Mor", "Hol", "Bak")]
TEXTS = [f"{name}. {name} (born {1900 + i} in {('Rome', 'Oslo')[i % 2]}) is a baker ." for i, name in enumerate(NAMES)]
QUESTIONS = [(f"Where was {name} born?", ("Rome", "Oslo")[i % 2]) for i, name in enumerate(NAMES)]
SMALL = {"d_model": 32, "n_head": 2, "n_layer": 1, "batch_size": 8}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(TEXTS), "utf-8")
    for name, some in (("train", QUESTIONS[:20]), ("dev", QUESTIONS[20:])):
        (tmp_path / f"{name}.tsv").write_text("\n".join("\t".join(pair) for pair in some), "utf-8")
    return tmp_path


def test_the_two_stages_of_the_default_recipe(tmp_path: Path) -> None:
    options = {"recipe": "cloze", "steps": 3, "vocab_size": 400, **SMALL}
    first = pretrain(TEXTS, tmp_path / "base", questions=QUESTIONS[:20], **options)
    assert first.step == 3 and load(tmp_path / "base").config.attention == "rope"
    second = finetune(tmp_path / "base", QUESTIONS[:20], tmp_path / "tuned", text=TEXTS, steps=3, batch_size=8)
    assert second.step == 3 and load(tmp_path / "tuned").data["kind"] == "cloze"


def test_minutes_become_steps_that_a_resumed_run_keeps(tmp_path: Path) -> None:
    done = pretrain(TEXTS, tmp_path / "base", questions=QUESTIONS[:20], minutes=0.01, vocab_size=400, **SMALL)
    run = load(tmp_path / "base")
    assert done.step == run.settings.steps >= 10
    again = qkv.train.resume(tmp_path / "base", TEXTS, QUESTIONS[:20])
    assert again.step == done.step


def test_the_course_recipe_is_the_courses(tmp_path: Path) -> None:
    course = RECIPES["course"]
    c = course.config
    assert (c.n_layer, c.n_head, c.d_model, c.context_length, c.attention) == (4, 8, 256, 128, "causal")
    assert course.tokenizer == "characters" and course.pretraining.settings.objective == "span"
    assert (course.pretraining.epochs, course.finetuning.epochs) == (650, 10)
    pretrain(TEXTS, tmp_path / "base", recipe="course", steps=2, batch_size=2)
    assert load(tmp_path / "base").data["kind"] == "text"
    finetune(tmp_path / "base", QUESTIONS, tmp_path / "tuned", steps=2, batch_size=2)
    assert load(tmp_path / "tuned").data["kind"] == "questions"


def test_a_model_from_scratch_has_read_nothing(tmp_path: Path) -> None:
    pretrain(TEXTS, tmp_path / "base", recipe="cloze", steps=2, vocab_size=400, **SMALL)
    finetune(tmp_path / "base", QUESTIONS, tmp_path / "none", steps=1, batch_size=4, lr=1e-9, from_scratch=True)
    base, none = load(tmp_path / "base"), load(tmp_path / "none")
    assert none.data["kind"] == "questions" and none.config == base.config
    assert not base.model.embedding.weight.equal(none.model.embedding.weight)


def test_unknown_recipes_and_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QkvError, match="choosing a recipe"):
        pretrain(TEXTS, tmp_path / "a", recipe="cake")
    with pytest.raises(QkvError, match="changing a recipe"):
        pretrain(TEXTS, tmp_path / "a", stepz=3)
    with pytest.raises(QkvError, match="no place for questions"):
        pretrain(TEXTS, tmp_path / "a", questions=QUESTIONS, recipe="course")
    with pytest.raises(QkvError, match="minutes"):
        pretrain(TEXTS, tmp_path / "a", minutes=-1)


@pytest.mark.slow
def test_the_shell_trains_by_recipe_several_seeds_and_without_people(files: Path) -> None:
    shell = CliRunner()

    def run(*words: str) -> str:
        found = shell.invoke(app, list(words), catch_exceptions=False)
        assert found.exit_code == 0, found.output
        return found.output

    small = (
        "--d-model",
        "32",
        "--n-head",
        "2",
        "--n-layer",
        "1",
        "--batch-size",
        "8",
        "--recipe",
        "cloze",
        "--steps",
        "2",
    )
    text, train, dev = (str(files / name) for name in ("text.txt", "train.tsv", "dev.tsv"))
    base, tuned = str(files / "base"), str(files / "tuned")
    run("pretrain", "--text", text, "--questions", train, "--out", base, "--seeds", "2", "--vocab-size", "400", *small)
    run("finetune", base, "--questions", train, "--out", tuned, "--seeds", "2", "--steps", "2", "--batch-size", "8")
    scores = json.loads(run("evaluate", tuned, "--questions", dev, "--seeds", "2", "--json"))
    assert scores["n"] == 4 and 0 <= scores["low"] <= scores["accuracy"] <= scores["high"] <= 1
    assert "always Rome" in scores["baselines"]
    run("pretrain", "--text", text, "--without", dev, "--out", base + "x", "--vocab-size", "400", *small)
    assert (files / "basex" / "text.txt").read_text("utf-8").splitlines() == TEXTS[:20]


@pytest.mark.slow
def test_a_run_that_was_stopped_before_its_time_was_measured_measures_it_when_it_goes_on(tmp_path: Path) -> None:
    pretrain(TEXTS, tmp_path / "base", minutes=0.01, vocab_size=400, **SMALL)
    path = tmp_path / "base" / "config.json"
    config = json.loads(path.read_text("utf-8"))
    assert "minutes" not in config
    fresh = tmp_path / "fresh"
    pretrain(TEXTS, fresh, recipe="cloze", steps=10, vocab_size=400, **SMALL)
    (fresh / "config.json").write_text(json.dumps({**config, "minutes": 0.01, "checksum": "edited"}), "utf-8")
    done = pretrain(TEXTS, fresh, minutes=0.01, vocab_size=400, resume=True, **SMALL)
    assert done.step == load(fresh).settings.steps and "minutes" not in json.loads((fresh / "config.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, "cloze"),
        ({"changes": {"d_model": 64, "lr": 1e-3, "attention": "causal"}}, "cloze"),
        ({"minutes": 3.0}, "cloze"),
        ({"changes": {"objective": "cloze"}}, "cloze"),
        ({"changes": {"objective": "next"}}, "custom"),
        ({"changes": {"steps": 5}}, "custom"),
        ({"config": ModelConfig()}, "custom"),
        ({"config": "small"}, "custom"),
        ({"settings": TrainSettings()}, "custom"),
        ({"tokenizer": "characters"}, "custom"),
        ({"recipe": "cloze", "changes": {"steps": 5}, "tokenizer": "characters"}, "cloze"),
        ({"recipe": "course"}, "course"),
    ],
)
def test_one_rule_chooses_the_recipe_of_pretraining(arguments: dict[str, Any], wanted: str) -> None:
    empty = dict.fromkeys(("recipe", "config", "settings", "tokenizer", "minutes"))
    plan = plan_pretraining(**{**empty, "changes": {}, **arguments})
    assert plan.recipe == wanted
    recipe, changes = RECIPES[wanted], arguments.get("changes", {})
    if "config" not in arguments:
        assert plan.config == replace(recipe.config, **{n: v for n, v in changes.items() if hasattr(plan.config, n)})
    by_recipe = not {"minutes", "settings"} & set(arguments) and "steps" not in changes
    assert plan.epochs == (recipe.pretraining.epochs if by_recipe else None)
    assert plan.minutes == (recipe.pretraining.minutes if by_recipe else arguments.get("minutes"))
    assert plan.settings.steps == changes.get("steps", 1000)


def test_one_rule_chooses_the_recipe_of_finetuning() -> None:
    settings = TrainSettings(steps=7)
    for recipe, given, wanted in ((None, None, "cloze"), (None, settings, "custom"), ("course", settings, "course")):
        assert plan_finetuning(recipe, "cloze", given, None, False, {}).recipe == wanted
    assert plan_finetuning(None, "course", None, None, False, {}).settings_for(1000).steps == 40  # 10 epochs of 256
    assert plan_finetuning(None, "cloze", None, None, False, {}).settings.objective == "cloze"
    assert plan_finetuning(None, "cloze", None, None, True, {}).settings.objective == "span"
    with pytest.raises(QkvError, match="d_model is no field of TrainSettings"):
        plan_finetuning(None, "cloze", None, None, False, {"d_model": 3})


def test_epochs_become_steps() -> None:
    plan = plan_pretraining("course", None, None, None, None, {"batch_size": 8})
    assert plan.settings_for(24).steps == 650 * 24 // 8
    assert plan.settings_for(1).steps == -(-650 // 8)


def test_steps_and_minutes_together_and_values_of_a_wrong_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QkvError, match="both steps and minutes"):
        pretrain(TEXTS, tmp_path / "a", steps=3, minutes=1.0)
    with pytest.raises(QkvError, match="lr is '3'"):
        pretrain(TEXTS, tmp_path / "a", lr="3")
    assert not (tmp_path / "a").exists()


def test_python_and_the_shell_train_the_same_bits(files: Path) -> None:
    words = [
        "--recipe",
        "cloze",
        "--steps",
        "2",
        "--d-model",
        "32",
        "--n-head",
        "2",
        "--n-layer",
        "1",
        "--batch-size",
        "8",
        "--vocab-size",
        "400",
    ]
    data = ("--text", str(files / "text.txt"), "--questions", str(files / "train.tsv"), "--out", str(files / "shell"))
    found = CliRunner().invoke(app, ["pretrain", *data, *words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    pretrain(
        files / "text.txt", files / "python", questions=files / "train.tsv", recipe="cloze", steps=2, vocab_size=400,
        **SMALL,
    )  # fmt: skip
    one, two = (load_file(files / name / "model.safetensors") for name in ("shell", "python"))
    assert one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)
    assert load(files / "shell").settings == load(files / "python").settings


def test_a_finetuned_run_keeps_the_recipe_of_its_parent(tmp_path: Path) -> None:
    pretrain(TEXTS, tmp_path / "base", steps=1, **SMALL)
    base = load(tmp_path / "base")
    assert base.recipe == "custom" and base.config.attention == "causal"
    finetune(base, QUESTIONS, tmp_path / "tuned", steps=1, batch_size=2)
    tuned = load(tmp_path / "tuned")
    assert tuned.recipe == "custom" and tuned.data["kind"] == "questions" and tuned.data["parent"] == str(base.folder)


def test_the_help_shows_the_defaults_of_the_recipe_that_would_run() -> None:
    for recipe, d_model, length in (("cloze", 192, "as many as fit into 8 minutes"), ("course", 256, "650 epochs")):
        words = ["pretrain", "--recipe", recipe, "--help"]
        shown = " ".join(CliRunner(env={"COLUMNS": "200"}).invoke(app, words).output.split())
        assert f"Size of a token's vector. [default: {d_model}]" in shown
        assert f"Steps of the optimizer. [default: {length}]" in shown
