"""One process at a time writes to a run folder, and the lock of a process ends with it."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from qkv.errors import QkvError
from qkv.train import run_lock as module
from qkv.train import runs
from qkv.train.loop import train
from qkv.train.metrics_log import read_log
from qkv.train.run_lock import LOCK_FILE, run_lock
from qkv.train.tokenizers import Characters

OPTIONS = "--steps 150 --batch-size 4 --log-every 1 --checkpoint-every 20 --d-model 16 --n-head 2 --resume"
HOLD = """
import sys, time
from pathlib import Path
from qkv.train.run_lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def holder(folder):
    """Another process that holds the lock of a folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_second_process_is_told_who_holds_the_lock_and_a_kill_releases_it(tmp_path):
    with holder(tmp_path) as process:
        with pytest.raises(QkvError, match=rf"process {process.pid} on .* is writing to it"), run_lock(tmp_path):
            pass
        process.kill()
    with run_lock(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text().startswith(f"process {os.getpid()} on ")
    assert not list(tmp_path.iterdir())


def test_every_way_to_write_a_run_is_refused_while_another_process_holds_the_lock(text, questions, config, tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    runs.pretrain(text, run, config, steps=2, batch_size=4)
    job = runs._job(run, (None, None), None)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    made = Characters.train(["Ada"])
    with holder(run) as process, holder(other) as second:
        for call in (
            lambda: runs.resume(run),
            lambda: train(job),
            lambda: runs.pretrain(text, run, resume=True),
            lambda: runs.pretrain(text, other, config, steps=2),
            lambda: runs.finetune(run, questions, other, steps=2),
            lambda: runs.create_run(other, runs.with_vocabulary(config, made), job.settings, {"kind": "text"}, made),
        ):
            with pytest.raises(QkvError, match="is writing to it"):
                call()
        assert runs.load(run).step == 2  # reading needs no lock
        process.kill()
        second.kill()
    (run / LOCK_FILE).unlink()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert [path.name for path in other.iterdir()] == [LOCK_FILE]


def test_threads_exclude_each_other_too(tmp_path):
    inside, most, refused = [0], [0], [0]
    guard = threading.Lock()

    def work():
        for _ in range(60):
            try:
                with run_lock(tmp_path / "run"):
                    with guard:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                    with guard:
                        inside[0] -= 1
            except QkvError:
                refused[0] += 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1


def count_up(folder, barrier):
    barrier.wait()
    done = 0
    while done < 40:
        try:
            with run_lock(folder):
                path = folder / "count"
                path.write_text(str(int(path.read_text()) + 1))
                done += 1
        except QkvError:
            time.sleep(0.0005)


def test_processes_that_compete_lose_no_update(tmp_path):
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    processes = [context.Process(target=count_up, args=(tmp_path, barrier)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert (tmp_path / "count").read_text() == "160" and [p.name for p in tmp_path.iterdir()] == ["count"]


def test_a_lock_file_that_is_removed_between_opening_and_locking_is_opened_again(tmp_path, monkeypatch):
    real, removed = module.fcntl.flock, []

    def flock(handle, how):
        if not removed:
            removed.append((tmp_path / LOCK_FILE).unlink())
        real(handle, how)

    monkeypatch.setattr(module.fcntl, "flock", flock)
    with run_lock(tmp_path):
        assert (tmp_path / LOCK_FILE).is_file()
        with pytest.raises(QkvError), run_lock(tmp_path):
            pass


def test_a_file_system_without_locks_can_be_trained_on(tmp_path, monkeypatch):
    def flock(handle, how):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module.fcntl, "flock", flock)
    with run_lock(tmp_path):
        pass
    monkeypatch.setattr(module, "fcntl", None)
    with run_lock(tmp_path):
        pass


def test_folders_that_were_made_for_nothing_are_removed(tmp_path, config):
    with pytest.raises(QkvError, match="no such file"):
        runs.pretrain(tmp_path / "none.txt", tmp_path / "runs" / "a", config, steps=1)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(QkvError, match="writing to"):
        runs.pretrain(["Ada."], tmp_path / "file", config, steps=1)


@pytest.mark.slow
def test_two_processes_that_train_one_run_leave_one_log(text, tmp_path):
    options = OPTIONS.split()
    command = [sys.executable, "-m", "qkv", "pretrain", "--text", str(text), "--out", str(tmp_path / "run"), *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    both = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 2], [0, 0])  # the second may have come after the first had ended
    if codes == [0, 2]:
        refusal = next(e for e, p in zip(errors, both, strict=True) if p.returncode)
        assert "is writing to it" in refusal and "Traceback" not in refusal
    steps = [line["step"] for line in read_log(tmp_path / "run")]
    assert steps == list(range(1, 151)) and not (tmp_path / "run" / LOCK_FILE).exists()


def test_an_interrupted_run_releases_its_lock(text, config, settings, tmp_path):
    def interrupt(step, steps, loss, speed):
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        runs.pretrain(text, tmp_path / "run", config, settings, callback=interrupt)
    assert not (tmp_path / "run" / LOCK_FILE).exists()
    assert json.loads((tmp_path / "run" / "config.json").read_text())["format"] == "qkv-3"
    assert runs.resume(tmp_path / "run").step == settings.steps


@pytest.mark.slow
def test_only_the_first_process_of_torchrun_takes_the_lock_and_all_end_if_it_is_taken(text, tmp_path):
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "qkv"]
    options = "--steps 4 --batch-size 4 --d-model 16 --n-head 2".split()  # noqa: SIM905 (to read)
    command = [*start, "pretrain", "--text", str(text), "--out", str(tmp_path / "run"), *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with holder(tmp_path / "run") as process:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode != 0 and f"process {process.pid} on" in done.stderr
        process.kill()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert runs.load(tmp_path / "run").step == 4 and not (tmp_path / "run" / LOCK_FILE).exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    file = tmp_path / "run"
    file.write_text("")
    for folder in (file, file / "below"):
        with pytest.raises(QkvError, match=rf"{file} is a file\. Give a folder"), run_lock(folder):
            pass


@pytest.mark.parametrize("kind", ["text", "pipe", "almost the lock"])
def test_a_file_of_the_locks_name_that_is_no_lock_stays(kind, tmp_path):
    path = tmp_path / LOCK_FILE
    mine = "Ada was born in London.\n" if kind == "text" else "process 12 on a host\nand a line of mine\n"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text(mine)
    with pytest.raises(QkvError, match="there already, and qkv did not write it"), run_lock(tmp_path):
        pass
    assert path.is_fifo() if kind == "pipe" else path.read_text() == mine


@pytest.mark.parametrize("content", ["", "process 12 on a host\n"])
def test_a_lock_that_a_killed_process_left_is_taken(content, tmp_path):
    (tmp_path / LOCK_FILE).write_text(content)
    with run_lock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("written", [None, 3])
def test_a_full_disk_leaves_neither_a_lock_nor_a_new_folder(written, tmp_path, monkeypatch):
    def full(handle, *rest):
        if written is None:
            raise OSError(28, "No space left on device")
        return written

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(QkvError, match=r"writing to .*: No space left"), run_lock(tmp_path / "new" / "run"):
            pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_process_removes_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    real, removed = module._acquire, []

    def acquire(path):
        if not removed:
            removed.append(path.parent.rmdir())
        return real(path)

    monkeypatch.setattr(module, "_acquire", acquire)
    with run_lock(tmp_path / "run"):
        assert removed and (tmp_path / "run" / LOCK_FILE).is_file()
    monkeypatch.setattr(module, "_acquire", lambda path: path.with_name("none").read_text())
    with pytest.raises(QkvError, match="again and again"), run_lock(tmp_path / "run"):
        pass


def test_the_lock_of_a_folder_that_took_the_place_of_the_first_stays(tmp_path):
    folder = tmp_path / "run"
    with run_lock(folder):
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        (folder / LOCK_FILE).write_text("process 12 on a host\n")
    assert (folder / LOCK_FILE).exists()


def test_an_empty_file_with_another_name_is_not_written_to(tmp_path):
    (tmp_path / "mine.txt").write_text("")
    (tmp_path / LOCK_FILE).hardlink_to(tmp_path / "mine.txt")
    with pytest.raises(QkvError, match="qkv did not write it"), run_lock(tmp_path):
        pass
    assert (tmp_path / "mine.txt").read_text() == "" and (tmp_path / LOCK_FILE).exists()
