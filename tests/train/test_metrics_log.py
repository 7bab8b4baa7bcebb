"""The log of a run, as JSON lines and for TensorBoard."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest

from qkv.errors import QkvWarning
from qkv.train import runs
from qkv.train.metrics_log import LOG_FILE, History, MetricsLog, read_log


def test_the_log_for_tensorboard_holds_the_same_losses(text, config, settings, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    runs.pretrain(text, out, config, replace(settings, tensorboard=True))
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    losses = [(e.step, e.value) for e in events.Scalars("loss")]
    assert losses == [(line["step"], pytest.approx(line["loss"])) for line in read_log(out) if "loss" in line]
    assert json.loads((out / "config.json").read_text())["settings"]["tensorboard"] is True


def test_a_log_that_continues_drops_later_lines_and_a_truncated_one(tmp_path):
    log = MetricsLog(tmp_path, 0)
    for step in (1, 2, 3):
        log.write(step=step, loss=1.0 / step)
    log.close()
    with (tmp_path / "log.jsonl").open("a") as handle:
        handle.write('{"step": 4, "lo')
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3]
    MetricsLog(tmp_path, 2).write(step=3, loss=0.25, val_loss=0.5)
    assert History.of(tmp_path) == History((1, 2, 3), (1.0, 0.5, 0.25), (3,), (0.5,))


@pytest.mark.parametrize(
    ("order", "read"),
    [((0, 2, 1, 3, 4), [1, 3, 4, 5]), ((0, 1, 1, 2, 3, 4), [1, 2, 3, 4, 5]), ((4, 0, 1, 2, 3), [5])],
    ids=["moved", "doubled", "the last one first"],
)
def test_lines_that_were_moved_or_doubled_are_left_out_and_told(order, read, tmp_path):
    log = MetricsLog(tmp_path, 0)
    for step in range(1, 6):
        log.write(step=step, loss=1.0 / step)
    path = tmp_path / "log.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[i] for i in order))
    with pytest.warns(QkvWarning, match="lines are damaged, doubled or out of order"):
        assert [line["step"] for line in read_log(tmp_path)] == read


def test_a_training_and_a_validation_loss_of_one_step_may_be_two_lines(tmp_path):
    log = MetricsLog(tmp_path, 0)
    log.write(step=1, loss=2.0)
    log.write(step=1, val_loss=2.0)
    assert [sorted(line) for line in read_log(tmp_path)] == [["loss", "step"], ["step", "val_loss"]]


def test_a_run_without_a_log_has_an_empty_history(tmp_path):
    assert read_log(tmp_path) == [] and History.of(tmp_path) == History((), (), (), ())
    assert History.of(tmp_path).card().rows == ()


def test_a_log_of_an_earlier_version_names_the_validation_loss_otherwise(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 2, "loss": 1.0, "validation": 0.75}\n')
    assert History.of(tmp_path).val_losses == (0.75,)


def test_the_history_of_a_run_is_that_of_its_folder(tmp_path):
    @dataclasses.dataclass
    class Run:
        folder: Path

    (tmp_path / "log.jsonl").write_text('{"step": 2, "loss": 1.0}\n')
    assert History.of(Run(tmp_path)) == History.of(str(tmp_path)) == History((2,), (1.0,), (), ())


def test_a_copy_of_a_damaged_log_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / LOG_FILE).write_text('{"step": 1, "loss": 2.0}\n{"step":\n')
    before = (tmp_path / LOG_FILE).read_bytes()

    def full(path, content):
        with path.open("wb") as handle:
            handle.write(content[:5])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            MetricsLog(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == [LOG_FILE] and (tmp_path / LOG_FILE).read_bytes() == before
