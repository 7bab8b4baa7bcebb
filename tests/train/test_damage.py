"""Every file of a run under random damage: its content is read unchanged, or refused with a sentence.

`damaged_copies` (tests/conftest.py) flips bits, replaces, inserts and removes bytes, and cuts.
"""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from qkv.errors import QkvError, QkvWarning
from qkv.model.config import ModelConfig
from qkv.train import checkpoint, run_files, runs, tokenizers
from qkv.train.metrics_log import MetricsLog, read_log
from qkv.train.settings import TrainSettings

OLD_RUN = Path(__file__).parent / "old_run"
TEXTS = [f"Person {i} was born in {place}." for i, place in enumerate(("Rome", "Oslo", "Łódź") * 4)]


@pytest.fixture(scope="module", params=["characters", pytest.param("bytepairs", marks=pytest.mark.slow)])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = ModelConfig(n_layer=1, n_head=2, d_model=8, context_length=16)
    settings = TrainSettings(steps=4, batch_size=2, log_every=1, checkpoint_every=2, val_fraction=0.2, validate_every=2)
    runs.pretrain(TEXTS, folder, config, settings, tokenizer=request.param)
    return folder


def outcomes(path, copies, read):
    """(how many damaged copies of a file are read as it is, how many are refused); anything else fails."""
    good = path.read_bytes()
    wanted = read()
    counts = [0, 0]
    try:
        for copy in copies:
            path.write_bytes(copy)
            try:
                same = read() == wanted
            except QkvError as refusal:
                assert len(str(refusal)) > 20
                counts[1] += 1
            else:
                assert same, f"silently different: {diff(good, copy)}"
                counts[0] += 1
    finally:
        path.write_bytes(good)
    return counts


def diff(good, copy):
    at = next((i for i, (a, b) in enumerate(zip(good, copy, strict=False)) if a != b), min(len(good), len(copy)))
    return f"{good[max(0, at - 20) : at + 20]!r} became {copy[max(0, at - 20) : at + 20]!r}"


def described(folder):
    return lambda: run_files.read_description(folder)


def test_config(run, damaged_copies):
    path = run / "config.json"
    same, refused = outcomes(path, damaged_copies(path.read_bytes(), 500), described(run))
    assert same + refused == 500 and refused > 450


def test_config_whose_checksum_was_switched_off_gives_no_traceback(run, tmp_path, damaged_copies):
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    edited = json.dumps({**json.loads(path.read_text("utf-8")), "checksum": "edited"}).encode()
    for copy in damaged_copies(edited, 200):
        path.write_bytes(copy)
        try:
            runs.load(tmp_path / "run")
        except QkvError:
            continue


@pytest.mark.parametrize("name", ["config.json", pytest.param("tokenizer.json", marks=pytest.mark.slow)])
def test_old_files_give_no_traceback(name, tmp_path, damaged_copies):
    shutil.copytree(OLD_RUN, tmp_path / "run")
    path = tmp_path / "run" / name
    for copy in damaged_copies(path.read_bytes(), 150):
        path.write_bytes(copy)
        try:
            runs.resume(tmp_path / "run")
        except QkvError:
            continue


def test_tokenizer(run, damaged_copies):
    path = run / "tokenizer.json"

    def read():
        found = tokenizers.load(run)
        return found.to_json(), found.encode("Person Ω [] □"), found.vocab_size

    assert outcomes(path, damaged_copies(path.read_bytes(), 400), read) == [0, 400]


def test_an_old_character_tokenizer_must_number_its_tokens_as_qkv_does(tmp_path, damaged_copies):
    shutil.copy(OLD_RUN / "tokenizer.json", tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    data["model"]["vocab"]["<0x41>"], data["model"]["vocab"]["<0x42>"] = 69, 68
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(QkvError, match="not numbered as qkv"):
        tokenizers.load(tmp_path)


@pytest.mark.parametrize("name", ["model", pytest.param("optimizer", marks=pytest.mark.slow)])
@pytest.mark.parametrize("header_only", [True, False])
def test_checkpoint(name, header_only, run, damaged_copies):
    path = run / ("model.safetensors" if name == "model" else "optimizer-4.safetensors")
    data = path.read_bytes()
    n = 8 + int.from_bytes(data[:8], "little") if header_only else len(data)
    copies = [part + data[n:] for part in damaged_copies(data[:n], 500)]

    def read():
        step, *state = checkpoint.load(run)
        return step, [{k: (v.dtype, v.shape, v.numpy().tobytes()) for k, v in each.items()} for each in state]

    refused = outcomes(path, copies, read)[1]
    assert refused > 450

    def read_without_torch():
        return {k: (v.dtype, v.shape, v.tobytes()) for k, v in run_files.read_weights(run).items()}

    if name == "model":
        assert outcomes(path, copies[:150], read_without_torch)[1] > 120


def test_the_checksum_covers_type_shape_and_step(tmp_path):
    path = tmp_path / "model.safetensors"
    for tensor, meta in ((torch.zeros(2, 3), {"step": "4"}), (torch.zeros(3, 2), {"step": "4"})):
        checkpoint.write(path, {"x": tensor}, meta)
        data = path.read_bytes()
        for old, new in ((b'"F32"', b'"I32"'), (b"[2,3]", b"[3,2]"), (b"[3,2]", b"[2,3]"), (b'"4"', b'"5"')):
            if old in data:
                path.write_bytes(data.replace(old, new))
                with pytest.raises(QkvError, match="checksum is wrong"):
                    checkpoint.read(path)


def test_an_optimizer_state_of_another_step_is_refused(tmp_path):
    checkpoint.save(tmp_path, 4, {"x": torch.zeros(2)}, {})
    checkpoint.write(tmp_path / "optimizer-4.safetensors", {}, {"step": "3"})
    with pytest.raises(QkvError, match="holds the state at step 3"):
        checkpoint.load(tmp_path)


def logged(folder):
    """The lines of a log, and whether something was reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lines = read_log(folder)
    return lines, any(issubclass(w.category, QkvWarning) for w in caught)


def test_log(run, damaged_copies):
    path = run / "log.jsonl"
    good, (wanted, reported) = path.read_bytes(), logged(run)
    assert len(wanted) == 4 and not reported
    changed = 0
    for copy in damaged_copies(good, 600):
        path.write_bytes(copy)
        lines, reported = logged(run)
        changed += lines != wanted
        # What is left of the log is lines of it, in their order; and if one is missing, that is said. Only a log that
        # was cut between two lines looks like a shorter one.
        assert [line for line in wanted if line in lines] == lines
        assert reported or lines == wanted or good.startswith(copy.rstrip(b"\n"))
    path.write_bytes(good)
    assert changed > 450


def test_a_damaged_log_is_kept_and_reported_when_the_run_goes_on(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    path = folder / "log.jsonl"
    for number in ("", "-2"):
        good = path.read_bytes()
        damaged = good.replace(b'"step": 2', b'"step": 3')
        path.write_bytes(damaged)
        with pytest.warns(
            QkvWarning,
            match=rf"1 of 4 lines are damaged, doubled or out of order \(line 2\); .* log\.jsonl\.damaged{number}$",
        ):
            MetricsLog(folder, 4)
        assert path.with_name(f"log.jsonl.damaged{number}").read_bytes() == damaged
        assert [line["step"] for line in read_log(folder)] == [1, 3, 4]
        path.write_bytes(good)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs.resume(folder, TEXTS)
    assert path.read_bytes() == good


@pytest.mark.parametrize(
    "line",
    ['{"step": "3"}', '{"step": true}', "[1]", '{"loss": 2.0}', '{"step": 1, "loss": "x"}', '{"step": 1, "lo": 2}'],
)
def test_lines_of_another_kind_are_damaged(line, tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n' + line + "\n")
    with pytest.warns(QkvWarning, match="1 of 2 lines"):
        assert read_log(tmp_path) == [{"step": 1, "loss": 2.0}]


def test_a_config_that_was_edited_by_hand_is_read_if_it_says_so(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    path = folder / "config.json"
    data = json.loads(path.read_text("utf-8"))
    data["settings"]["steps"] = 6
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(QkvError, match='if you edited it by hand, set "checksum" in it to "edited"'):
        runs.resume(folder, TEXTS)
    path.write_text(json.dumps({**data, "checksum": "edited"}), "utf-8")
    assert runs.resume(folder, TEXTS).step == 6
    del data["checksum"]
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(QkvError, match="its checksum is missing"):
        runs.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"data": []}, {"data": {}}, {"data": {"kind": 5}}, {"data": {"kind": "text", "path": 5, "sha256": ""}},
        {"data": {"kind": "cloze", "sha256": "", "questions": [1]}}, {"data": {"kind": "text"}}, {"recipe": 5},
        {"minutes": "x"}, {"minutes": True}, {"minutes": -1}, {"minutes": 10**400}, {"tokenizer_checksum": None},
        {"model": {"n_layer": 10**6}}, {"model": {"n_layer": 999, "n_head": 1, "d_model": 2**14}}, {"settings": 5},
        {"settings": {"lr": 10**400}}, {"settings": {"batch_size": 10**15}}, {"settings": {"seed": 2**80}},
        {"settings": {"objective": "spam"}}, {"format": 5}, {"format": []}, {"model": {"vocab_size": 9}},
    ],
)  # fmt: skip
def test_edits_of_wrong_types_and_sizes_are_refused_at_once(change, run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    data = json.loads(path.read_text("utf-8"))
    new = {k: {**data[k], **v} if isinstance(v, dict) and k in ("model", "settings") else v for k, v in change.items()}
    path.write_text(json.dumps({**data, **new, "checksum": "edited"}), "utf-8")
    with pytest.raises(QkvError):
        runs.resume(tmp_path / "run")


def test_a_deep_config_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"format": ' + "[" * 10**6)
    with pytest.raises(QkvError, match="nested 1000001 deep"):
        runs.resume(tmp_path)


def test_equal_runs_are_equal_bytes(run, tmp_path):
    found = run_files.read_description(run)
    name = tokenizers.load(run).name
    settings = found.settings
    runs.pretrain(TEXTS, tmp_path / "again", run_config(found.config), settings, tokenizer=name)
    for file in ("model.safetensors", "optimizer-4.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "again" / file).read_bytes() == (run / file).read_bytes()
    assert all(np.isfinite(array).all() for array in run_files.read_weights(run).values())


def run_config(config):
    return ModelConfig.from_json({**config.to_json(), "vocab_size": 0})
