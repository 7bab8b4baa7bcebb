"""Run folders: created once, finetuned, loaded and resumed on their own data only."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.train import runs
from qkv.train.generation import generate
from qkv.train.metrics_log import read_log
from qkv.train.settings import TrainSettings


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_is_a_folder_and_opens_as_what_was_trained(text, config, settings, tmp_path):
    out = tmp_path / "run"
    done = runs.pretrain(text, out, config, settings)
    names = {path.name for path in out.iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors", "optimizer-12.safetensors", "log.jsonl"}
    run = runs.load(out)
    assert run.step == done.step == 12 and run.config.vocab_size == run.tokenizer.vocab_size
    assert done.validation is not None and done.to_json()["folder"] == str(out)
    assert read_log(out)[-1]["loss"] == done.loss
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
