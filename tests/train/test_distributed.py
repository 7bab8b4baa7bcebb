"""Two processes train what one trains."""

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


def pretrain(text, out, processes, *more):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--master-port", str(port)]
    start = [sys.executable, *(torchrun if processes > 1 else []), "-m", "qkv", "pretrain"]
    options = OPTIONS.split()
    done = subprocess.run(
        [*start, "--text", str(text), "--out", str(out), *options, *more], env=ENV, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout.splitlines()[-1])["runs"]
    return run


@pytest.mark.parametrize(("spread", "optimizer"), [("ddp", "adamw"), ("fsdp", "adamw"), ("ddp", "muon")])
def test_two_processes_reach_the_loss_of_one(spread, optimizer, text, tmp_path):
    one = pretrain(text, tmp_path / "one", 1, "--optimizer", optimizer)
    two = pretrain(text, tmp_path / "two", 2, "--parallel", spread, "--optimizer", optimizer)
    assert two["loss"] == pytest.approx(one["loss"], abs=1e-5)
    assert two["val_loss"] == pytest.approx(one["val_loss"], abs=1e-5)
    single, double = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in single:
        torch.testing.assert_close(single[name], double[name], rtol=0, atol=1e-4)
    assert [line["step"] for line in read_log(tmp_path / "two")] == list(range(1, 21))


def test_a_batch_too_small_to_share_is_refused(text, tmp_path):
    with pytest.raises(AssertionError, match="cannot be shared by 2 processes"):
        pretrain(text, tmp_path / "two", 2, "--grad-accum", "5")


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
