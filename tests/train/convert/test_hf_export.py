"""Exports: transformers loads them and computes the same logits."""

import os
from dataclasses import replace

import pytest
import torch
import transformers

from qkv.errors import QkvError
from qkv.model.decoding import decode
from qkv.train import runs
from qkv.train.convert import hf_export
from qkv.train.convert.hf_export import EXPORTED_FILES, export_model
from qkv.train.run_lock import run_lock


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_transformers_loads_an_export_and_says_the_same(exported, dtype, atol):
    run, folder = exported
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    x = torch.randint(
        0, run.config.vocab_size, (3, run.config.context_length), generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        ours = run.model.to(dtype)(x)
        torch.testing.assert_close(theirs(x).logits, ours, rtol=0, atol=atol)
    assert ours.abs().max() > 0.5


def test_the_tokenizer_of_an_export_is_the_same_to_transformers(exported):
    run, folder = exported
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert theirs.encode("Person Ω 7") == run.tokenizer.encode("Person Ω 7")


def test_both_decode_the_same_texts(exported):
    run, folder = exported
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = run.tokenizer.encode("Person 12")
    got = theirs.generate(torch.tensor([prompt]), max_new_tokens=10, min_new_tokens=10, do_sample=False)
    banned = int(got[0, len(prompt)])  # their generation forbids the end token before min_new_tokens
    assert banned is not None
    ours = decode(run.model, [prompt], 10).tokens[0]
    assert ours == got[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", EXPORTED_FILES)
def test_files_that_no_export_wrote_are_not_replaced(name, text, config, settings, tmp_path):
    runs.pretrain(text, tmp_path / "run", config, replace(settings, steps=1))
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / name).write_text("mine")
    with pytest.raises(QkvError, match="there is a model already" if name == "config.json" else f"{name} is there"):
        export_model(tmp_path / "run", tmp_path / "hf")
    assert [path.name for path in (tmp_path / "hf").iterdir()] == [name]
    assert (tmp_path / "hf" / name).read_text() == "mine"


def test_an_export_that_failed_or_was_killed_can_be_repeated(text, config, settings, tmp_path, monkeypatch):
    run, out = tmp_path / "run", tmp_path / "hf"
    runs.pretrain(text, run, config, replace(settings, steps=1))

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(hf_export, "write_text", full)
        with pytest.raises(QkvError, match="No space left"):
            export_model(run, out)
    assert not out.exists()
    with run_lock(out), pytest.raises(QkvError, match="is writing to it"):
        export_model(run, out)
    if not (child := os.fork()):
        hf_export.write_text = lambda *args: os._exit(9)
        export_model(run, out)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9 and (out / "tokenizer.json").exists()
    export_model(run, out)
    assert {path.name for path in out.iterdir()} == set(EXPORTED_FILES)
    with pytest.raises(QkvError, match="there is a model already"):
        export_model(run, out)
