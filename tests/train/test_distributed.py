"""Two processes train what one trains."""

import contextlib
import json
import os
import socket
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from qkv.errors import QkvError
from qkv.train.distributed import full_tensor, process_group, shard_like
from qkv.train.metrics_log import read_log

OPTIONS = (
    "--steps 20 --batch-size 8 --log-every 1 --checkpoint-every 20 --d-model 32 --n-head 2 --validate-every 10 --json"
)
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


SETTINGS = [("ddp", "adamw"), ("fsdp", "adamw"), ("ddp", "muon")]
IN_TURN = """
import json, os, sys
from qkv.cli import run
for words, port in zip(json.loads(sys.argv[1]), sys.argv[2:], strict=True):
    os.environ |= {"MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": "False"}
    assert run(words) == 0, words
"""
"""Runs commands one after another, each with a port of its own: starting processes takes longer than training here."""


def free_ports(count):
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]


def started(*command):
    """What two processes of torchrun print."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", *free_ports(1)]
    return subprocess.run([*torchrun, *command], env=ENV, capture_output=True, text=True, timeout=300)


def words(text, out, *more):
    return ["pretrain", "--text", str(text), "--out", str(out), *OPTIONS.split(), *more]


def ends_of(printed):
    """The result of each of the commands that were run in turn."""
    return [run for line in printed.splitlines() if line.startswith("{") for run in json.loads(line)["runs"]]


@pytest.fixture(scope="module")
def runs(shared_text, tmp_path_factory):
    """Each run with its folder, by optimizer for one process and by setting for two."""
    here = tmp_path_factory.mktemp("runs")
    alone = {kind: words(shared_text, here / kind, "--optimizer", kind) for kind in ("adamw", "muon")}
    shared = {
        (spread, kind): words(shared_text, here / f"{spread}-{kind}", "--parallel", spread, "--optimizer", kind)
        for spread, kind in SETTINGS
    }
    script = here / "in_turn.py"
    script.write_text(IN_TURN)
    one = subprocess.run(
        [sys.executable, script, json.dumps(list(alone.values())), *free_ports(2)],
        env=ENV,
        capture_output=True,
        text=True,
    )
    two = started(str(script), json.dumps(list(shared.values())), *free_ports(3))
    found = {}
    for commands, done in ((alone, one), (shared, two)):
        assert done.returncode == 0, done.stderr
        found |= dict(zip(commands, ends_of(done.stdout), strict=True))
    return here, found


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "optimizer"), SETTINGS)
def test_two_processes_reach_the_loss_of_one(spread, optimizer, runs):
    here, found = runs
    one, two = found[optimizer], found[spread, optimizer]
    assert two["loss"] == pytest.approx(one["loss"], abs=1e-5)
    assert two["val_loss"] == pytest.approx(one["val_loss"], abs=1e-5)
    single, double = (load_file(here / name / "model.safetensors") for name in (optimizer, f"{spread}-{optimizer}"))
    for name in single:
        torch.testing.assert_close(single[name], double[name], rtol=0, atol=1e-4)
    assert [line["step"] for line in read_log(here / f"{spread}-{optimizer}")] == list(range(1, 21))


@pytest.mark.slow
def test_a_batch_too_small_to_share_is_refused(text, tmp_path):
    done = started("-m", "qkv", *words(text, tmp_path / "two", "--grad-accum", "5"))
    assert done.returncode != 0 and "cannot be shared by 2 processes" in done.stderr


def test_a_single_process_is_its_own_group():
    before = torch.distributed.is_initialized()
    with process_group() as group:
        model = torch.nn.Linear(2, 2)
        assert (group.rank, group.size, group.is_first) == (0, 1, True)
        assert group.sum(2.5) == 2.5 and group.any(True) and not group.any(False) and group.wrap(model, "ddp") is model
        group.barrier()
        assert torch.distributed.is_initialized() is before
    assert full_tensor(model.weight) is model.weight and shard_like(model.weight, model.bias) is model.weight


def test_processes_that_torchrun_did_not_start_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(QkvError, match=r"joining 2 processes.*Start them with torchrun"), process_group():
        pass


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"WORLD_SIZE": "x"}, "the environment variable WORLD_SIZE is 'x'"),
        ({"WORLD_SIZE": "0"}, "the environment variable WORLD_SIZE is '0'"),
        ({"WORLD_SIZE": "2", "RANK": "-1"}, "the environment variable RANK is '-1'"),
        ({"WORLD_SIZE": "2", "LOCAL_RANK": ""}, "the environment variable LOCAL_RANK is ''"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK is 2 and LOCAL_RANK is 0"),
    ],
)
def test_variables_that_torchrun_would_never_set_are_refused(variables, why, monkeypatch):
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(QkvError, match=why), process_group():
        pass
