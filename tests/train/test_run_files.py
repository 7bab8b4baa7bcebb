"""Files of a run folder, of today's format and of the old one."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train import old_runs, run_files, runs, tokenizers
from qkv.train.convert.importer import import_model
from qkv.train.generation import generate
from qkv.train.settings import TrainSettings

OLD_RUN = Path(__file__).parent / "old_run"
PLACES = ("Rome", "Oslo", "Lima", "Kyiv")
NAMES = [f"{a}{b} {c}en" for a in ("Al", "Bo", "Cy") for b in ("da", "ri") for c in ("Ros", "Mor", "Hol", "Bak")]
TEXTS = [f"{name}. {name} (born {1900 + i} in {PLACES[i % 4]}) is a baker ." for i, name in enumerate(NAMES)]
QUESTIONS = [(f"Where was {name} born?", PLACES[i % 4]) for i, name in enumerate(NAMES)]


def test_a_config_of_another_world_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model": {"n_layer": 2}}))
    with pytest.raises(QkvError, match="damaged or not a run"):
        runs.load(tmp_path)
    assert ModelConfig().context_length == 64


def test_an_old_run_is_read_under_todays_names():
    found = run_files.read_description(OLD_RUN)
    assert found.config == ModelConfig(
        attention="rope", n_layer=1, n_head=2, n_kv_head=1, d_model=8, d_ff=16, context_length=64, vocab_size=296,
        rope_theta=5000.0, norm_eps=1e-6,
    )  # fmt: skip
    assert found.settings == TrainSettings(
        steps=8, batch_size=4, objective="cloze", lr=1e-2, warmup_ratio=0.1, min_warmup_steps=2, min_lr_ratio=0.5,
        weight_decay=0.05, grad_clip=0.5, val_fraction=0.0, question_fraction=0.25, relevant_span_fraction=0.9,
        no_context_fraction=0.4, predict_title_fraction=0.2, checkpoint_every=4, log_every=1, seed=3,
    )  # fmt: skip
    assert found.data["kind"] == "cloze" and found.recipe == "cloze"


def test_an_old_run_generates_and_is_resumed_to_its_end(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD_RUN, folder)
    run = runs.load(folder)
    assert run.step == 4 and generate(run, ["Where was Alda Rosen born?"], max_new_tokens=6, ask=True).texts == (
        "OOOOOO",
    )
    done = runs.resume(folder, TEXTS, QUESTIONS)
    assert done.step == 8 and done.loss == pytest.approx(5.3190460205078125, abs=1e-4)  # of the version that made it
    assert runs.load(folder).step == 8
    tuned = runs.finetune(folder, QUESTIONS, tmp_path / "tuned", text=TEXTS, steps=2, batch_size=4)
    assert tuned.step == 2 and runs.load(tmp_path / "tuned").recipe == "cloze"


def test_an_old_time_budget_is_converted_and_stored_in_todays_format(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD_RUN, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "minutes": 0.005}))
    done = runs.pretrain(TEXTS, folder, questions=QUESTIONS, resume=True)
    stored = json.loads((folder / "config.json").read_text())
    assert stored["format"] == "qkv-3" and "minutes" not in stored and stored["model"]["d_model"] == 8
    assert done.step == stored["settings"]["steps"] >= 10


def test_a_description_is_read_as_it_was_written(tmp_path):
    one = run_files.RunDescription(ModelConfig(vocab_size=300), TrainSettings(seed=4), {"kind": "text"}, "course", 2.5)
    for description in (one, dataclasses.replace(one, minutes=None)):
        run_files.write_description(tmp_path, description)
        assert run_files.read_description(tmp_path) == description
    assert run_files.is_run(tmp_path) and not run_files.is_run(tmp_path / "none")


def test_a_format_of_the_future_is_refused(tmp_path):
    run_files.write_json(tmp_path / "config.json", {"format": "qkv-4"})
    with pytest.raises(QkvError, match="its format is 'qkv-4'"):
        run_files.read_description(tmp_path)


def test_weights_are_those_that_safetensors_reads(tmp_path):
    ours, theirs = run_files.read_weights(OLD_RUN), load_file(OLD_RUN / "model.safetensors")
    assert ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    raw = b"".join(name.encode() + theirs[name].tobytes() for name in sorted(theirs))
    assert old_runs.tensor_checksum(theirs, lambda array: array.tobytes()) == f"{zlib.crc32(raw):08x}"


def test_reading_a_run_folder_takes_no_torch():
    code = f"""
import sys
from pathlib import Path
from qkv.train import run_files, tokenizers
run_files.read_description(Path({str(OLD_RUN)!r}))
run_files.read_weights(Path({str(OLD_RUN)!r}))
tokenizers.load({str(OLD_RUN)!r})
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_of_hugging_face_and_a_file_are_told_from_a_run(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 1}))
    with pytest.raises(QkvError, match=rf"a Hugging Face model, not a run.*qkv import {tmp_path} --out RUN"):
        run_files.read_description(tmp_path)
    with pytest.raises(QkvError, match="it is a file"):
        run_files.read_description(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "optimizer-1.safetensors"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(name, tmp_path):
    config = ModelConfig(n_layer=1, n_head=2, d_model=8, context_length=16)
    runs.pretrain(["Ada was born in London."], tmp_path / "run", config, steps=1, batch_size=2)
    (tmp_path / "run" / name).unlink()
    os.mkfifo(tmp_path / "run" / name)

    def read():
        assert run_files.steps_taken(tmp_path / "run") is None
        for call in (runs.resume, tokenizers.load, import_model):
            with contextlib.suppress(QkvError):
                call(tmp_path / "run", *[tmp_path / "imported"] * (call is import_model))
        os._exit(7)

    reader = multiprocessing.get_context("fork").Process(target=read)
    reader.start()
    reader.join(30)
    reader.kill()
    assert reader.exitcode == 7
