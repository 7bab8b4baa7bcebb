"""The training loop: every kind of model learns, and a run that is interrupted ends with the same bits."""

import copy
import math
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from marks import some
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.model.config import ATTENTIONS
from qkv.model.gpt import GPT
from qkv.train import loop, runs
from qkv.train.data.objectives import Example
from qkv.train.data.packing import count_targets
from qkv.train.distributed import ProcessGroup
from qkv.train.metrics_log import History, read_log
from qkv.train.optimizers import make_optimizer
from qkv.train.settings import TrainSettings

ONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def command(text, out, *more):
    return [sys.executable, "-m", "qkv", "pretrain", "--text", str(text), "--out", str(out), "--resume", *more]


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("objective", some(["span", "next", "salient"], ["span"]))
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


@pytest.mark.slow  # a short part of it is in faults/
@pytest.mark.parametrize("count", [1, 20])
def test_a_run_that_is_killed_at_random_ends_with_the_same_bits(count, text, tmp_path):
    options = [*OPTIONS.split(), "--steps", "60" if count == 1 else "400"]
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

    with pytest.raises(loop.Stopped, match="stopped at step 7 of 12, and saved; continue with --resume"):
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


def test_the_thread_count_and_the_signal_handlers_of_the_caller_are_restored(text, config, settings, tmp_path):
    before = torch.get_num_threads(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    seen = []
    other = 2 if before[0] == 1 else 1
    done = runs.pretrain(
        text, tmp_path / "run", config, replace(settings, threads=other), minutes=0.002,
        callback=lambda *_: seen.append(torch.get_num_threads()),
    )  # fmt: skip
    assert (torch.get_num_threads(), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert set(seen) == {runs.load(tmp_path / "run").settings.threads} and done.step >= 10
    with pytest.raises(ZeroDivisionError), loop.torch_threads(other):
        assert torch.get_num_threads() == other
        _ = 1 / 0
    assert torch.get_num_threads() == before[0]
    with loop.torch_threads(0):
        assert torch.get_num_threads() == before[0]


def examples_of(tokens, count):
    """Examples of random tokens and lengths, of which some have a second stretch of targets."""
    chance = np.random.default_rng(0)
    made = []
    for _ in range(count):
        ids = chance.integers(3, tokens, size=int(chance.integers(4, 30))).tolist()
        start = int(chance.integers(1, len(ids)))
        made.append(Example(ids, start, int(chance.integers(1, start + 1))))
    return made


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_losses_are_the_cross_entropy_of_each_example_alone(attention, config):
    torch.manual_seed(0)
    model = GPT(replace(config, attention=attention, vocab_size=50, dropout=0.0)).eval()
    examples = examples_of(50, 12)
    total, count = 0.0, 0
    for ids, start, head in examples:
        logits = model(torch.tensor([ids[:-1]]))[0]
        losses = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")
        places = [*range(head - 1), *range(start - 1, len(ids) - 1)]
        total, count = total + losses[places].sum().item(), count + len(places)
    assert count_targets(examples) == count
    group = ProcessGroup()
    with torch.no_grad():
        assert float(loop.total_loss(model, examples, TrainSettings(), group)) == pytest.approx(total, rel=1e-5)
    found = loop.validation_loss(model, examples, TrainSettings(batch_size=5), group)
    assert found == pytest.approx(total / count, rel=1e-5) and model.training


def test_a_step_is_torchs_adamw_on_the_clipped_gradient_of_the_mean_loss(config):
    torch.manual_seed(0)
    ours = GPT(replace(config, vocab_size=50, dropout=0.0)).train()
    theirs = copy.deepcopy(ours)
    s = TrainSettings(steps=10, lr=1e-2, warmup_ratio=0.3, weight_decay=0.0, grad_clip=0.1)
    optimizer = make_optimizer({p: name for name, p in ours.named_parameters()}, s)
    reference = torch.optim.AdamW(theirs.parameters(), betas=(0.9, s.beta2), weight_decay=0.0)
    for step in range(3):
        examples = examples_of(50, 6 + step)
        loop.one_step(ours, optimizer, examples, step, s, ProcessGroup())
        reference.zero_grad()
        total = sum(
            torch.nn.functional.cross_entropy(
                theirs(torch.tensor([ids[:-1]]))[0][[*range(head - 1), *range(start - 1, len(ids) - 1)]],
                torch.tensor([*ids[1:head], *ids[start:]]), reduction="sum",
            )
            for ids, start, head in examples
        )  # fmt: skip
        (total / count_targets(examples)).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), s.grad_clip)
        for param_group in reference.param_groups:
            param_group["lr"] = (step + 1) * 1e-2 / 3
        reference.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)


def test_timing_a_job_leaves_its_model_alone(config, tmp_path):
    model = GPT(replace(config, vocab_size=50)).eval()
    before = copy.deepcopy(model.state_dict())
    job = loop.Job(tmp_path, model, lambda step: examples_of(50, 4), TrainSettings(batch_size=4))
    torch.manual_seed(1)
    want = torch.rand(1)
    torch.manual_seed(1)
    assert 0 < loop.seconds_per_step(job, tries=4) < 60
    assert torch.equal(torch.rand(1), want) and not model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
