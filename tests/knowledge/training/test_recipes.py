"""Recipes: a text and questions, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import qkv
from qkv.cli import app
from qkv.errors import QkvError
from qkv.knowledge.training.recipes import RECIPES, drop_texts_about, memorise, tune
from qkv.train.runs import load
from qkv.viz.plots.knowledge import curve

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
    first = memorise(TEXTS, tmp_path / "base", QUESTIONS[:20], steps=3, pieces=400, **SMALL)
    assert first.step == 3 and load(tmp_path / "base").config.attention == "rope"
    second = tune(tmp_path / "base", QUESTIONS[:20], tmp_path / "tuned", text=TEXTS, steps=3, batch_size=8)
    assert second.step == 3 and load(tmp_path / "tuned").data["kind"] == "drills"


def test_minutes_become_steps_that_a_resumed_run_keeps(tmp_path: Path) -> None:
    done = memorise(TEXTS, tmp_path / "base", QUESTIONS[:20], minutes=0.01, pieces=400, **SMALL)
    run = load(tmp_path / "base")
    assert done.step == run.settings.steps >= 10
    again = qkv.train.resume(tmp_path / "base", TEXTS, QUESTIONS[:20])
    assert again.step == done.step


def test_the_course_recipe_is_the_courses(tmp_path: Path) -> None:
    course = RECIPES["course"]
    c = course.config
    assert (c.n_layer, c.n_head, c.d_model, c.context_length, c.attention) == (4, 8, 256, 128, "causal")
    assert course.tokenizer == "characters" and course.first.objective == "span" and course.epochs == (650, 10)
    memorise(TEXTS, tmp_path / "base", by="course", steps=2, batch_size=2)
    assert load(tmp_path / "base").data["kind"] == "text"
    tune(tmp_path / "base", QUESTIONS, tmp_path / "tuned", steps=2, batch_size=2)
    assert load(tmp_path / "tuned").data["kind"] == "questions"


def test_a_model_from_scratch_has_read_nothing(tmp_path: Path) -> None:
    memorise(TEXTS, tmp_path / "base", steps=2, pieces=400, **SMALL)
    tune(tmp_path / "base", QUESTIONS, tmp_path / "none", steps=1, batch_size=4, lr=1e-9, from_scratch=True)
    base, none = load(tmp_path / "base"), load(tmp_path / "none")
    assert none.data["kind"] == "questions" and none.config == base.config
    assert not base.model.embedding.weight.equal(none.model.embedding.weight)


def test_people_are_left_out_of_a_text() -> None:
    kept = drop_texts_about(TEXTS, QUESTIONS[20:])
    assert kept == TEXTS[:20]
    with pytest.raises(QkvError, match="leaving people out"):
        drop_texts_about(TEXTS, [("Where was Nobody born?", "Rome")])


def test_unknown_recipes_and_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QkvError, match="choosing a recipe"):
        memorise(TEXTS, tmp_path / "a", by="cake")
    with pytest.raises(QkvError, match="changing a recipe"):
        memorise(TEXTS, tmp_path / "a", stepz=3)
    with pytest.raises(QkvError, match="no place for questions"):
        memorise(TEXTS, tmp_path / "a", QUESTIONS, by="course")
    with pytest.raises(QkvError, match="minutes"):
        memorise(TEXTS, tmp_path / "a", minutes=-1)


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
        "qkv",
        "--steps",
        "2",
    )
    text, train, dev = (str(files / name) for name in ("text.txt", "train.tsv", "dev.tsv"))
    base, tuned = str(files / "base"), str(files / "tuned")
    run("pretrain", "--text", text, "--questions", train, "--out", base, "--seeds", "2", "--pieces", "400", *small)
    run("finetune", base, "--questions", train, "--out", tuned, "--seeds", "2", "--steps", "2", "--batch-size", "8")
    scores = json.loads(run("evaluate", tuned, "--questions", dev, "--seeds", "2", "--json"))
    assert scores["n"] == 4 and 0 <= scores["low"] <= scores["accuracy"] <= scores["high"] <= 1
    assert "always Rome" in scores["baselines"]
    run("pretrain", "--text", text, "--without", dev, "--out", base + "x", "--pieces", "400", *small)
    assert (files / "basex" / "text.txt").read_text("utf-8").splitlines() == TEXTS[:20]


def test_a_run_that_was_stopped_before_its_time_was_measured_measures_it_when_it_goes_on(tmp_path: Path) -> None:
    memorise(TEXTS, tmp_path / "base", minutes=0.01, pieces=400, **SMALL)
    path = tmp_path / "base" / "config.json"
    config = json.loads(path.read_text("utf-8"))
    assert "minutes" not in config
    fresh = tmp_path / "fresh"
    memorise(TEXTS, fresh, steps=10, pieces=400, **SMALL)
    (fresh / "config.json").write_text(json.dumps({**config, "minutes": 0.01}), "utf-8")
    done = memorise(TEXTS, fresh, minutes=0.01, pieces=400, resume=True, **SMALL)
    assert done.step == load(fresh).settings.steps and "minutes" not in json.loads((fresh / "config.json").read_text())


def test_the_curve_shows_every_point_with_its_interval_and_what_was_published():
    points = [{"minutes": m, "accuracy": a, "low": a - 0.05, "high": a + 0.04} for m, a in ((1, 0.5), (4, 0.9))]
    (axes,) = curve(points, {"best": 0.38}).axes
    shown = [text.get_text() for text in axes.texts]
    assert shown == ["published, best: 38 %", "50.0 %", "90.0 %"] and "90 %" in axes.get_title(loc="left")
    heights = [line.get_ydata() for line in axes.lines]
    assert any(np.allclose(y, [0.85, 0.94]) for y in heights) and any(np.allclose(y, [0.5, 0.9]) for y in heights)
