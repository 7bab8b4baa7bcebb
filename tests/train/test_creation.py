"""A creation that is killed between any two file operations can be begun again, and replaces nothing of others."""

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from qkv.errors import QkvError
from qkv.train import creation, runs
from qkv.train.convert.hf_export import EXPORTED_FILES, export_model
from qkv.train.convert.importer import import_model
from qkv.train.run_files import write_json
from qkv.train.settings import TrainSettings
from qkv.train.tokenizers import Characters

FILES = {"config.json", "tokenizer.json", "model.safetensors", "optimizer-0.safetensors"}
RECORD = ".qkv-creating"


@pytest.fixture
def create(config):
    tokenizer = Characters.train(["abc"])
    small = replace(config, d_model=16, n_layer=1, vocab_size=tokenizer.vocab_size)
    return lambda out: runs.create_run(out, small, TrainSettings(), {"kind": "imported"}, tokenizer)


def own(path):
    """The files of a folder without those that a kill may leave beside them."""
    return {each.name for each in path.iterdir() if not each.name.startswith(".qkv-")}


def test_a_run_whose_creation_was_killed_anywhere_is_created_again(create, tmp_path, killed, contents):
    create(tmp_path / "whole")
    at, met = 1, set()
    while killed(at, out := tmp_path / f"run-{at}", lambda out=out: create(out)):
        met |= {path.name for path in out.iterdir()} if out.exists() else set()
        if (out / "config.json").exists():  # it is a run, which whoever goes on with it tidies
            with pytest.raises(QkvError, match="it was imported"):
                runs.resume(out)
        else:
            create(out)
        assert contents(out) == contents(tmp_path / "whole")
        at += 1
    assert at > 20 and {*FILES, RECORD} <= met


def test_files_that_are_put_into_the_folder_of_a_killed_creation_are_never_replaced(create, tmp_path, killed, contents):
    at = 1
    while killed(at, out := tmp_path / f"run-{at}", lambda out=out: create(out)):
        at += 1
        if not out.exists() or (out / "config.json").exists():
            continue
        before = contents(out)
        for name in sorted({*FILES, "log.jsonl", "tensorboard", "optimizer-7.safetensors"} - {"config.json"}):
            (out / name).unlink(missing_ok=True)
            (out / name).write_text("mine")
            with pytest.raises(QkvError, match=rf"{name} is there already"):
                create(out)
            kept = contents(out)
            assert kept.pop(name) == b"mine" and kept.items() <= before.items()
            (out / name).unlink()
            if name in before:
                (out / name).write_bytes(before[name])
        create(out)
        assert own(out) == FILES
    assert at > 20


def test_the_record_of_an_earlier_version_which_has_no_checksums_allows_no_removal(create, tmp_path):
    write_json(tmp_path / RECORD, creation.with_checksum({"format": "qkv-creating-1", "files": sorted(FILES)}))
    (tmp_path / "tokenizer.json").write_text("perhaps mine")
    with pytest.raises(QkvError, match=r"tokenizer\.json is there already"):
        create(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    create(tmp_path)
    assert own(tmp_path) == FILES and not (tmp_path / RECORD).exists()


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_appears_while_a_run_is_created_is_kept(name, create, tmp_path, monkeypatch, contents):
    appear(monkeypatch, tmp_path / "run" / name)
    with pytest.raises(QkvError, match=rf"{name}: it is there already"):
        create(tmp_path / "run")
    assert contents(tmp_path / "run") == {name: b"mine"}


@pytest.mark.parametrize("name", EXPORTED_FILES)
def test_a_file_that_appears_while_a_model_is_exported_is_kept(
    name, text, config, settings, tmp_path, monkeypatch, contents
):
    runs.pretrain(text, tmp_path / "run", config, replace(settings, steps=1))
    appear(monkeypatch, tmp_path / "hf" / name)
    with pytest.raises(QkvError, match=rf"{name}: it is there already"):
        export_model(tmp_path / "run", tmp_path / "hf")
    assert contents(tmp_path / "hf") == {name: b"mine"}


def appear(monkeypatch, path):
    """Put a file at a path once the names in its folder were checked, and a creation in it has begun."""
    link, rename, done = os.link, Path.replace, []

    def begin(target):
        if target.name == RECORD and not done:
            done.append(path.write_text("mine"))

    monkeypatch.setattr(os, "link", lambda source, target: (link(source, target), begin(target)))
    monkeypatch.setattr(Path, "replace", lambda source, target: (rename(source, target), begin(target)))


def test_an_export_that_was_killed_anywhere_is_made_again_or_was_complete(
    text, config, settings, tmp_path, killed, contents
):
    run = tmp_path / "run"
    runs.pretrain(text, run, replace(config, d_model=16, n_layer=1), replace(settings, steps=1))
    export_model(run, tmp_path / "whole")
    at = 1
    while killed(at, out := tmp_path / f"hf-{at}", lambda out=out: export_model(run, out)):
        with pytest.raises(QkvError, match="a model already") if own_config(out) else contextlib.nullcontext():
            export_model(run, out)
        assert contents(out) == contents(tmp_path / "whole")  # a complete one is tidied by the call that is refused
        at += 1
    assert at > 25


def own_config(folder):
    return (folder / "config.json").exists()


def test_what_a_kill_after_the_last_file_of_an_import_leaves_is_removed_by_the_next_call(
    text, config, settings, tmp_path, monkeypatch, contents
):
    runs.pretrain(text, tmp_path / "run", config, replace(settings, steps=1))
    export_model(tmp_path / "run", tmp_path / "hf")
    with monkeypatch.context() as patched:
        patched.setattr(creation, "_forget", lambda folder: None)
        import_model(tmp_path / "hf", tmp_path / "out")
    assert (tmp_path / "out" / RECORD).exists()
    with pytest.raises(QkvError, match="there is one already"):
        import_model(tmp_path / "hf", tmp_path / "out")
    assert set(contents(tmp_path / "out")) == FILES
    (tmp_path / "out" / RECORD).write_text("mine")
    with pytest.raises(QkvError, match="there is one already"):
        import_model(tmp_path / "hf", tmp_path / "out")
    assert (tmp_path / "out" / RECORD).read_text() == "mine"


@pytest.mark.parametrize("verb", ["pretrain", "finetune"])
def test_a_log_of_another_run_that_appears_while_a_run_is_created_is_kept(
    verb, text, questions, config, settings, tmp_path, monkeypatch, contents
):
    short, out = replace(settings, steps=2, log_every=1), tmp_path / "out"
    runs.pretrain(text, tmp_path / "base", config, short)
    log = (tmp_path / "base" / "log.jsonl").read_bytes()
    assert log
    calls = {
        "pretrain": lambda: runs.pretrain(text, out, config, short),
        "finetune": lambda: runs.finetune(tmp_path / "base", questions, out, short),
    }
    moments = [(runs.creation, "check_names_free"), (runs.checkpoint, "save"), (runs, "write_description")]
    for module, function in [*moments, (runs, "train_locked")]:
        whole, placed = getattr(module, function), []

        def then_appears(*args, whole=whole, placed=placed, function=function, **options):
            found = None if function == "train_locked" else whole(*args, **options)
            if out.exists() and not (out / "log.jsonl").exists():
                (out / "log.jsonl").write_bytes(log)
                placed.append(True)
            return whole(*args, **options) if function == "train_locked" else found

        with monkeypatch.context() as patch, contextlib.suppress(QkvError):
            patch.setattr(module, function, then_appears)
            calls[verb]()
        if placed:
            assert contents(out) == {"log.jsonl": log}
        else:
            assert (out / "log.jsonl").read_bytes() != log
        shutil.rmtree(out)
