"""Refusals under torchrun: told once, by the first process, without tracebacks of the others."""

import os
import subprocess
import sys

import pytest

from qkv.errors import QkvError
from qkv.train import distributed


class Store:
    """A store of a process group, as far as refusals need it."""

    def __init__(self, **held):
        self.held = held

    def set(self, key, value):
        self.held[key] = value

    def wait(self, keys, timeout):
        if keys[0] not in self.held:
            raise RuntimeError("wait timeout")

    def get(self, key):
        return self.held[key].encode()


@pytest.mark.parametrize(
    ("rank", "first_said", "told"),
    [(0, None, None), (1, "a: b. c.", True), (1, "another", False), (1, None, False)],
)
def test_a_process_stays_silent_only_if_the_first_one_says_the_same(rank, first_said, told, monkeypatch):
    store = Store(**({distributed.REFUSAL_KEY: first_said} if first_said else {}))
    monkeypatch.setattr(distributed.dist.distributed_c10d, "_get_default_store", lambda: store)
    refusal = QkvError("a", "b", "c")
    distributed._tell_once(rank, refusal)
    assert getattr(refusal, "told", None) is told
    assert rank or store.held == {distributed.REFUSAL_KEY: "a: b. c."}


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1", True),
        ("Connection reset by peer", True),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_a_lost_peer_is_told_from_other_errors(text, lost):
    assert distributed._lost_a_peer(RuntimeError(text)) is lost


@pytest.mark.parametrize(("told", "rank", "said"), [(None, "0", 1), (None, "1", 0), (True, "1", 0), (False, "1", 1)])
def test_the_command_line_tells_a_refusal_once(told, rank, said, monkeypatch, capsys):
    from qkv.cli import _refuse

    monkeypatch.setenv("RANK", rank)
    refusal = QkvError("a", "b", "c")
    if told is not None:
        refusal.told = told
    assert _refuse(refusal) == 2 and capsys.readouterr().err.count("qkv: a: b. c.") == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--text", "none.txt"), "there is no such file"),
        (("--text", "none.txt", "--attention", "cake"), "attention is 'cake'"),
        (("--cake",), "No such option"),
    ],
)
def test_torchrun_shows_a_refusal_once_and_on_top(words, says, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "qkv", "pretrain", *words]
    done = subprocess.run([*command, "--steps", "2"], capture_output=True, text=True, cwd=tmp_path, env={**os.environ})
    ours = done.stderr.split("torch/distributed/")[0]
    assert done.returncode != 0 and done.stderr.count(says) == 1 and "Traceback" not in ours and "[rank1]" not in ours
