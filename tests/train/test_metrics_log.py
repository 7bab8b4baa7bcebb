"""The log of a run, as JSON lines and for TensorBoard."""

import json
from dataclasses import replace

import pytest

from qkv.train import runs
from qkv.train.metrics_log import read_log


def test_the_log_for_tensorboard_holds_the_same_losses(text, config, settings, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, tensorboard=True))
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    losses = [(e.step, e.value) for e in events.Scalars("loss")]
    assert losses == [(line["step"], pytest.approx(line["loss"])) for line in read_log(out) if "loss" in line]
    assert json.loads((out / "config.json").read_text())["settings"]["tensorboard"] is True
