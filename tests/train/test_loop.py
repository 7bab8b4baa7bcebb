"""The training loop: every kind of model learns, and a run that is interrupted ends with the same bits."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.model.config import ATTENTIONS
from qkv.train import loop, runs
from qkv.train.metrics_log import History, read_log

ONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def command(text, out, *more):
    return [sys.executable, "-m", "qkv", "pretrain", "--text", str(text), "--out", str(out), "--resume", *more]


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("objective", ["span", "next", "salient"])
def test_every_kind_learns_from_every_objective(attention, objective, text, config, settings, tmp_path):
    config = replace(config, attention=attention, dropout=0.0)
    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, steps=25, lr=5e-3, log_every=1, objective=objective))
    history = History.of(out)
    assert sum(history.losses[-5:]) < 0.85 * sum(history.losses[:5])
    assert len(history.steps) == 25 and history.validated[-1] == 25


def test_the_randomness_of_the_caller_is_left_alone(text, config, settings, tmp_path):
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    runs.pretrain(text, tmp_path / "run", config, settings)
    assert torch.equal(torch.rand(3), want)


def test_accumulating_over_parts_gives_the_same_step(text, config, settings, tmp_path):
    config = replace(config, dropout=0.0)
    runs.pretrain(text, tmp_path / "one", config, settings)
    runs.pretrain(text, tmp_path / "two", config, replace(settings, grad_accum=2))
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=0, atol=2e-5)


def kills(text, out, whole, count, seed):
    """Start the run again and again, killing it after a random time, until it has ended."""
    chance = random.Random(seed)
    killed = 0
    while True:
        process = subprocess.Popen(command(text, out, *whole), env=ONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if killed < count:
            began = len(read_log(out))
            # At any moment from the first step that this process has taken; half of the time in the midst of saving.
            while len(read_log(out)) <= began and process.poll() is None:
                time.sleep(0.002)
            time.sleep(chance.random() * 0.25)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
        _, err = process.communicate()
        if process.returncode == 0:
            return killed
        assert process.returncode == -signal.SIGKILL, err.decode()


OPTIONS = "--batch-size 8 --checkpoint-every 3 --log-every 1 --d-model 32 --n-head 2 --dropout 0.1 --lr 0.005"


@pytest.mark.parametrize("count", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_at_random_ends_with_the_same_bits(count, text, tmp_path):
    options = [*OPTIONS.split(), "--steps", "60" if count == 3 else "400"]
    subprocess.run(command(text, tmp_path / "whole", *options), env=ONE, check=True, capture_output=True)
    assert kills(text, tmp_path / "killed", options, count, seed=count) == count
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    steps = [line["step"] for line in read_log(tmp_path / "killed")]
    assert steps == [line["step"] for line in read_log(tmp_path / "whole")]
    losses = [[line.get("loss") for line in read_log(tmp_path / name)] for name in ("whole", "killed")]
    assert losses[0] == losses[1]


def test_ctrl_c_saves_and_says_how_to_go_on(text, config, settings, tmp_path):
    runs.pretrain(text, tmp_path / "whole", config, settings)

    def watch(step, *rest):
        if step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(loop.Stopped, match="stopped at step 7 of 12, and saved; go on with --resume"):
        runs.pretrain(text, tmp_path / "run", config, settings, callback=watch)
    assert runs.load(tmp_path / "run").step == 7
    runs.resume(tmp_path / "run")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "run"))


def test_a_loss_that_is_no_number_stops_the_run_before_it_spoils_anything(
    text, config, settings, tmp_path, monkeypatch
):
    real = loop.total_loss

    def spoiled(forward, examples, s, group):
        loss = real(forward, examples, s, group)
        count["n"] += 1
        return loss * math.nan if count["n"] == 7 else loss

    count = {"n": 0}
    monkeypatch.setattr(loop, "total_loss", spoiled)
    with pytest.raises(QkvError, match=r"nan at step [67].*checkpoint of step 4 is untouched"):
        runs.pretrain(text, tmp_path / "run", config, settings)
    assert runs.load(tmp_path / "run").step == 4


def test_weights_that_are_no_numbers_are_never_saved(text, config, settings, tmp_path, monkeypatch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * math.inf

    real, count = loop.total_loss, {"n": 0}

    def spoiled(forward, examples, s, group):
        loss = real(forward, examples, s, group)
        count["n"] += loss.requires_grad
        return Bad.apply(loss) if count["n"] == 8 and loss.requires_grad else loss

    monkeypatch.setattr(loop, "total_loss", spoiled)
    # The loss of step 8 is fine, but its gradient is not, and after step 8 a checkpoint is due.
    with pytest.raises(QkvError, match=r"no longer finite after step 8.*checkpoint of step 4 is untouched"):
        runs.pretrain(text, tmp_path / "run", config, settings)
    assert runs.load(tmp_path / "run").step == 4


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_compiled_model_trains_to_the_same_loss(attention, text, config, settings, tmp_path):
    config = replace(config, attention=attention, dropout=0.0)
    done = runs.pretrain(text, tmp_path / "compiled", config, replace(settings, compile=True))
    whole = runs.pretrain(text, tmp_path / "whole", config, settings)
    assert done.loss == pytest.approx(whole.loss, abs=1e-4)


def test_half_precision_trains_too(text, config, settings, tmp_path):
    config = replace(config, attention="rope")
    done = runs.pretrain(text, tmp_path / "half", config, replace(settings, precision="bfloat16"))
    whole = runs.pretrain(text, tmp_path / "whole", config, settings)
    assert done.loss == pytest.approx(whole.loss, abs=0.1)
