"""Checkpoints: atomic, checksummed, and refused where they are damaged or belong to another model."""

import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from qkv.errors import QkvError
from qkv.train import checkpoint, runs
from qkv.train.creation import remove_leftovers


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


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
                path.with_name(".qkv-tmp-0123456789ab.safetensors").write_bytes(b"half")
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


def test_a_full_disk_is_said_and_the_last_good_checkpoint_stays(text, config, settings, tmp_path, monkeypatch):
    real = checkpoint.write_tensors

    def full(path, content):
        if b'"step":"8"' in content:
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with pytest.raises(QkvError, match=r"No space left.*last good checkpoint, which is untouched"):
        runs.pretrain(text, tmp_path / "run", config, settings)
    assert runs.load(tmp_path / "run").step == 4
    assert not list((tmp_path / "run").glob(".*"))


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


def test_tensors_and_the_step_are_read_as_they_were_written(tmp_path):
    tensors = {"b": torch.randn(3, 2).T, "a": torch.tensor(7), "c": torch.zeros(0, 4), "d": torch.randn(5).bfloat16()}
    checkpoint.save(tmp_path, 12, tensors, {"m": torch.ones(2)})
    step, weights, optimizer = checkpoint.load(tmp_path)
    assert step == 12 and same(weights, tensors) and same(optimizer, {"m": torch.ones(2)})
    checkpoint.save(tmp_path, 13, tensors, {})
    assert [path.name for path in tmp_path.glob("optimizer-*")] == ["optimizer-13.safetensors"]


def test_weights_of_another_model_are_refused_and_change_nothing():
    model = torch.nn.Linear(2, 3)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for weights, why in (
        ({"weight": torch.zeros(3, 2)}, "it lacks bias"),
        ({"weight": torch.zeros(2, 2), "bias": torch.zeros(3)}, r"weight has shape \(2, 2\), not \(3, 2\)"),
        ({"weight": torch.zeros(3, 2), "bias": torch.zeros(3), "more": torch.zeros(1)}, "it has more"),
    ):
        with pytest.raises(QkvError, match=why):
            checkpoint.load_weights(model, weights, "a file")
        assert same(before, checkpoint.weights_of(model))


def test_files_whose_names_only_look_like_those_of_a_checkpoint_stay(text, config, settings, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in (".mine.safetensors", "optimizer-notes.safetensors"):
        (out / name).write_text("mine")
    runs.pretrain(text, out, config, replace(settings, steps=2))
    assert (out / ".mine.safetensors").read_text() == (out / "optimizer-notes.safetensors").read_text() == "mine"


def test_only_states_that_qkv_wrote_are_replaced_or_removed(text, config, settings, tmp_path):
    out, notes = tmp_path / "run", tmp_path / "notes.safetensors"
    save_file({"x": torch.zeros(1)}, notes)
    runs.pretrain(text, out, config, settings)
    mine = ["optimizer-700.safetensors", "optimizer-12 (copy).safetensors", "optimizer-9.safetensors"]
    (out / mine[0]).write_text("mine")
    (out / mine[1]).write_bytes((out / "optimizer-12.safetensors").read_bytes())
    (out / mine[2]).symlink_to(notes)
    before = {name: (out / name).read_bytes() for name in mine}
    checkpoint.save(out, 13, {"x": torch.zeros(1)}, {})
    assert {name: (out / name).read_bytes() for name in mine} == before and (out / mine[2]).is_symlink()
    assert not (out / "optimizer-12.safetensors").exists()
    (out / "optimizer-14.safetensors").write_text("mine")
    with pytest.raises(QkvError, match=r"optimizer-14\.safetensors is there already, and qkv did not write it"):
        checkpoint.save(out, 14, {"x": torch.zeros(1)}, {})
    assert (out / "optimizer-14.safetensors").read_text() == "mine"


def test_whatever_a_kill_inside_a_save_leaves_is_removed_when_the_run_goes_on(text, config, settings, tmp_path, killed):
    first, whole = tmp_path / "first", tmp_path / "whole"
    runs.pretrain(text, whole, config, settings)
    with pytest.raises(ZeroDivisionError):
        runs.pretrain(text, first, config, settings, callback=lambda step, *rest: 1 // (step < 10))
    step, values, state = checkpoint.load(first)
    at, left = 1, set()
    while True:
        out = shutil.copytree(first, tmp_path / f"run-{at}")
        if not killed(at, out, lambda out=out: checkpoint.save(out, step + 1, values, state)):
            break
        left |= {path.name for path in out.iterdir()} - {path.name for path in first.iterdir()}
        found = checkpoint.load(out)[0]
        if found == step:
            runs.resume(out)
            assert same(weights(out), weights(whole))
        else:
            checkpoint.remove_other_states(out, found)
            remove_leftovers(out)
        assert len(list(out.glob("optimizer-*"))) == 1 and not list(out.glob(".*"))
        at += 1
    assert at > 5 and "optimizer-9.safetensors" in left


def test_a_folder_that_takes_the_place_of_a_runs_is_not_written_to(text, config, settings, tmp_path):
    out, other = tmp_path / "run", tmp_path / "other"
    runs.pretrain(text, other, config, replace(settings, steps=2))
    before = {path.name: path.read_bytes() for path in other.iterdir()}

    def move(step, *rest):
        if step == 5:
            out.rename(tmp_path / "moved")
            other.rename(out)

    with pytest.raises(QkvError, match="the folder was moved or replaced meanwhile"):
        runs.pretrain(text, out, config, settings, callback=move)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert runs.load(tmp_path / "moved").step == 4
    assert runs.resume(tmp_path / "moved").step == settings.steps
