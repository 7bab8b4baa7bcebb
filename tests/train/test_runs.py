"""A run learns, stops, goes on to the bit, and says clearly what went wrong."""

import json
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
from safetensors.torch import load_file, save_file

from qkv.errors import QkvError
from qkv.model.config import ATTENTIONS, ModelConfig
from qkv.train import checkpoint, loop, runs
from qkv.train.generation import generate
from qkv.train.metrics_log import History, lines
from qkv.train.settings import TrainSettings

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


def test_a_run_is_a_folder_and_opens_as_what_was_trained(text, config, settings, tmp_path):
    out = tmp_path / "run"
    done = runs.pretrain(text, out, config, settings)
    names = {path.name for path in out.iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "optimizer-12.safetensors", "log.jsonl"}
    run = runs.load(out)
    assert run.step == done.step == 12 and run.config.vocab_size == run.tokenizer.vocab_size
    assert done.validation is not None and done.to_json()["folder"] == str(out)
    assert lines(out)[-1]["loss"] == done.loss
    assert not run.model.training


def test_finetuning_teaches_answers_and_leaves_the_pretrained_run_alone(text, questions, config, tmp_path):
    quick = TrainSettings(steps=150, batch_size=16, lr=1e-2, val_fraction=0.0)
    runs.pretrain(text, tmp_path / "base", config, replace(quick, steps=5))
    before = weights(tmp_path / "base")
    few = [("Where was Ada born?", "Rome"), ("Where was Bo born?", "Łódź")] * 8
    runs.finetune(tmp_path / "base", few, tmp_path / "tuned", replace(quick, steps=60))
    assert same(before, weights(tmp_path / "base"))
    tuned = runs.load(tmp_path / "tuned")
    got = generate(tuned, [q for q, _ in few[:2]], new=10, ask=True, log_probabilities=True)
    assert got.texts == ("Rome", "Łódź")
    assert all(-0.5 < sum(each) <= 0 for each in got.log_probabilities)


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


def test_the_learning_rate_rises_and_follows_a_cosine():
    s = TrainSettings(steps=100, lr=1.0, warmup_ratio=0.1, min_lr_ratio=0.1)
    assert [s.rate(i) for i in (0, 4, 9)] == pytest.approx([0.1, 0.5, 1.0])
    assert s.rate(55) == pytest.approx(0.1 + 0.9 * 0.5)
    assert s.rate(99) == pytest.approx(0.1, abs=1e-3)


def kills(text, out, whole, count, seed):
    """Start the run again and again, killing it after a random time, until it has ended."""
    chance = random.Random(seed)
    killed = 0
    while True:
        process = subprocess.Popen(command(text, out, *whole), env=ONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if killed < count:
            began = len(lines(out))
            # At any moment from the first step that this process has taken; half of the time in the midst of saving.
            while len(lines(out)) <= began and process.poll() is None:
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
    steps = [line["step"] for line in lines(tmp_path / "killed")]
    assert steps == [line["step"] for line in lines(tmp_path / "whole")]
    losses = [[line.get("loss") for line in lines(tmp_path / name)] for name in ("whole", "killed")]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("moment", ["optimizer", "weights", "clean-up"])
def test_a_checkpoint_that_is_cut_short_leaves_the_last_good_one(moment, text, config, settings, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    runs.pretrain(text, whole, config, settings)
    count = {"n": 0}
    real_write, real_unlink = checkpoint.write, type(cut).unlink

    def write(path, *rest):
        if path.name == ("optimizer-8.safetensors" if moment == "optimizer" else "model.safetensors"):
            count["n"] += 1
            if moment == "optimizer" or (moment == "weights" and count["n"] == 3):
                path.with_name(".half.safetensors").write_bytes(b"half")
                raise KeyboardInterrupt
        real_write(path, *rest)

    def unlink(self, missing_ok=False):
        if moment == "clean-up" and self.name == "optimizer-4.safetensors":
            raise KeyboardInterrupt
        real_unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", write)
        patched.setattr(type(cut), "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            runs.pretrain(text, cut, config, settings)
    assert runs.load(cut).step == (8 if moment == "clean-up" else 4)
    runs.resume(cut)
    assert same(weights(whole), weights(cut))
    assert not list(cut.glob(".*"))
    assert len(list(cut.glob("optimizer-*"))) == 1


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


def test_a_full_disk_is_said_and_the_last_good_checkpoint_stays(text, config, settings, tmp_path, monkeypatch):
    real = checkpoint.save_file

    def full(tensors, path, metadata):
        if metadata["step"] == "8":
            raise OSError(28, "No space left on device")
        real(tensors, path, metadata=metadata)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(QkvError, match=r"No space left.*last good checkpoint, which is untouched"):
        runs.pretrain(text, tmp_path / "run", config, settings)
    assert runs.load(tmp_path / "run").step == 4
    assert not list((tmp_path / "run").glob(".*"))


def test_a_loss_that_is_no_number_stops_the_run_before_it_spoils_anything(
    text, config, settings, tmp_path, monkeypatch
):
    real = loop.summed

    def spoiled(forward, examples, s, crew):
        loss = real(forward, examples, s, crew)
        count["n"] += 1
        return loss * math.nan if count["n"] == 7 else loss

    count = {"n": 0}
    monkeypatch.setattr(loop, "summed", spoiled)
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

    real, count = loop.summed, {"n": 0}

    def spoiled(forward, examples, s, crew):
        loss = real(forward, examples, s, crew)
        count["n"] += loss.requires_grad
        return Bad.apply(loss) if count["n"] == 8 and loss.requires_grad else loss

    monkeypatch.setattr(loop, "summed", spoiled)
    # The loss of step 8 is fine, but its gradient is not, and after step 8 a checkpoint is due.
    with pytest.raises(QkvError, match=r"no longer finite after step 8.*checkpoint of step 4 is untouched"):
        runs.pretrain(text, tmp_path / "run", config, settings)
    assert runs.load(tmp_path / "run").step == 4


def test_damaged_foreign_and_missing_checkpoints_are_refused(text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, steps=4))
    path, good = out / "model.safetensors", (out / "model.safetensors").read_bytes()
    cases = {
        good[: len(good) // 2]: "damaged",
        good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]: "its checksum is wrong",
        b"": "damaged",
    }
    for data, why in cases.items():
        path.write_bytes(data)
        with pytest.raises(QkvError, match=why):
            runs.load(out)
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(QkvError, match="qkv did not write it"):
        runs.load(out)
    checkpoint.write(path, {"x": torch.zeros(2)}, {"step": "4"})
    with pytest.raises(QkvError, match="it lacks embedding"):
        runs.load(out)
    path.write_bytes(good)
    (out / "optimizer-4.safetensors").unlink()
    with pytest.raises(QkvError, match="optimizer-4"):
        runs.resume(out)
    with pytest.raises(QkvError, match="no config"):
        runs.load(tmp_path)


def test_a_run_is_not_written_over_nor_continued_on_other_data(text, config, settings, tmp_path):
    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, steps=2))
    with pytest.raises(QkvError, match="there is one already"):
        runs.pretrain(text, out, config, settings)
    text.write_text("something else\n")
    with pytest.raises(QkvError, match="not what it began with"):
        runs.resume(out)


def test_bad_data_is_refused_with_its_lines(config, settings, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("what?\tthis\nno tab\n\nanother?\t\n")
    runs.pretrain(["some text that is long enough"], tmp_path / "run", config, replace(settings, steps=1))
    with pytest.raises(QkvError, match="line 2, 4 is not question<TAB>answer"):
        runs.finetune(tmp_path / "run", path, tmp_path / "tuned", settings)
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(QkvError, match="not UTF-8"):
        runs.pretrain(path, tmp_path / "other", config, settings)
    with pytest.raises(QkvError, match="there are none"):
        runs.pretrain(["", " "], tmp_path / "other", config, settings)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(QkvError, match="steps is 0; batch_size is -1"):
        TrainSettings(steps=0, batch_size=-1)
    with pytest.raises(QkvError, match="precision is 'int8'"):
        TrainSettings(precision="int8")
    with pytest.raises(QkvError, match="no field 'learning_rate'"):
        TrainSettings.from_json({"learning_rate": 1})


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


def test_the_log_for_tensorboard_holds_the_same_losses(text, config, settings, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, tensorboard=True))
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    losses = [(e.step, e.value) for e in events.Scalars("loss")]
    assert losses == [(line["step"], pytest.approx(line["loss"])) for line in lines(out) if "loss" in line]
    assert json.loads((out / "config.json").read_text())["settings"]["tensorboard"] is True


def test_a_config_of_another_world_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model": {"n_layer": 2}}))
    with pytest.raises(QkvError, match="damaged or not a run"):
        runs.load(tmp_path)
    assert ModelConfig().context_length == 64
