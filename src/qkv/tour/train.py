"""The tour's chapter on training: a tiny model learns a toy text in seconds, is interrupted, resumed and asked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from qkv.core.display import number
from qkv.model.config import ModelConfig
from qkv.train.generation import generate
from qkv.train.loop import Stopped
from qkv.train.metrics_log import History
from qkv.train.run_files import read_weights
from qkv.train.runs import load, pretrain, resume
from qkv.train.settings import TrainSettings
from qkv.viz.html_report import Chapter, Picture
from qkv.viz.plots.training import losses
from qkv.viz.theme import figure_svg

NAMES = tuple("Ada Bo Cleo Dana Emil Finn Gia Hugo Ines Jon Kim Lea Max Nia Otto Pia".split())  # noqa: SIM905 (to read)
PLACES = ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Paris")
LIVES = {name: PLACES[(5 * i + i // 3) % len(PLACES)] for i, name in enumerate(NAMES)}


def learning() -> Chapter:
    """Pretrain on sixteen facts; interrupt a second run, resume it and compare; ask for every fact."""
    texts = [f"{name} lives in {place}." for name, place in LIVES.items()]
    config = ModelConfig(attention="rope", n_layer=2, n_head=2, d_model=64, context_length=32)
    settings = TrainSettings(
        steps=120, batch_size=32, lr=5e-3, objective="next", val_fraction=0.0, log_every=2, checkpoint_every=60
    )
    with tempfile.TemporaryDirectory() as folder:
        whole, resumed = Path(folder, "whole"), Path(folder, "resumed")
        done = pretrain(texts, whole, config, settings)
        _pretrain_until(texts, resumed, config, settings, at=60)
        resume(resumed, texts)
        same = _same_weights(whole, resumed)
        history = History.of(whole)
        run = load(whole)
        asked = generate(run, [f"{name} lives in" for name in NAMES], max_new_tokens=8, log_probabilities=True)
        stranger = generate(run, ["Zoe lives in"], max_new_tokens=8, log_probabilities=True)
    known = [sum(each) for each in asked.log_probabilities or ()]
    unknown = sum((stranger.log_probabilities or ((),))[0])
    right = sum(text.strip(" .") == place for text, place in zip(asked.texts, LIVES.values(), strict=True))
    return Chapter(
        "Training that can be interrupted",
        (
            f"A model of {done.parameters:,} parameters with rotary attention reads sixteen sentences such as “{texts[0]}”, "
            f"character by character, for {settings.steps} steps.",
            Picture(
                figure_svg(losses(history)),
                "The loss that is left at the end is mostly that of the name, which cannot be predicted.",
                "qkv pretrain --text text.txt --objective next --attention rope --steps 120 --plot loss.svg",
            ),
            f"A second run was stopped at step 60 and resumed. Its weights are "
            f"{'the same to the last bit' if same else 'DIFFERENT'}: data order, dropout and optimizer are restored exactly.",
            f"Asked where each of the sixteen lives, it answers {right} right.",
            asked,
            f"Asked about a name that is not in the text, it answers just as fluently, with a log-probability of {number(unknown)}, "
            f"beside {number(min(known))} to {number(max(known))} for the facts it read: a confident answer need not be a remembered one.",
            stranger,
        ),
    )


def _same_weights(one: Path, other: Path) -> bool:
    """Whether two runs have weights of the same names, shapes and bits."""
    first, second = read_weights(one), read_weights(other)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def _pretrain_until(texts: list[str], out: Path, config: ModelConfig, settings: TrainSettings, at: int) -> None:
    """Pretrain, and send SIGINT after a step."""
    import os
    import signal

    def interrupt(step: int, steps: int, loss: float, speed: float) -> None:
        if step == at:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        pretrain(texts, out, config, settings, callback=interrupt)
    except Stopped:
        return
