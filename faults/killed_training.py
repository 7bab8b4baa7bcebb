"""Training killed with SIGKILL at random moments, again and again: the run must end with the same bits as one that was
never killed. In one process and in two, with both optimizers, with DDP and FSDP."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import Ended, Fork, environment, scratch
from faults.samples import samples
from qkv.train.run_lock import LOCK_FILE

STEPS, CHECKPOINT_EVERY = 40, 2
SHAPE = "--n-layer 1 --d-model 16 --n-head 2"
OPTIONS = f"--steps {STEPS} --batch-size 4 --checkpoint-every {CHECKPOINT_EVERY} --log-every 1 {SHAPE}"
SECONDS_TO_END = 60.0
"""After a kill, the other process of a group must have ended by then."""


@dataclass(frozen=True)
class Setting:
    """How a run is trained.

    Attributes:
        name: For the page.
        options: More options of `qkv pretrain`.
        workers: Processes.
        torchrun: Whether torchrun starts them; otherwise they are forks with its environment variables.
    """

    name: str
    options: str
    workers: int = 1
    torchrun: bool = False


SETTINGS = (
    Setting("AdamW, one process", "--optimizer adamw"),
    Setting("Muon, one process", "--optimizer muon"),
    Setting("AdamW, two processes, DDP", "--optimizer adamw --parallel ddp", 2),
    Setting("Muon, two processes, DDP", "--optimizer muon --parallel ddp", 2),
    Setting("AdamW, two processes, FSDP", "--optimizer adamw --parallel fsdp", 2),
    Setting("AdamW, torchrun, FSDP", "--optimizer adamw --parallel fsdp", 2, torchrun=True),
)


def run(setting: Setting, count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Kill the training of one setting `count` times; a run that has ended is compared and begun anew."""
    tally, draw = Tally(f"training killed: {setting.name}", count, progress), random.Random(seed)
    with scratch() as folder:
        whole, began = folder / "whole", time.monotonic()
        ended = _Group(setting, whole).wait()
        if any(e.code != 0 for e in ended):
            raise RuntimeError("training does not work here: " + " | ".join(e.err[-4000:] for e in ended))
        duration = time.monotonic() - began
        while sum(tally.counts.values()) < count:
            _one_run(setting, whole, folder / "killed", duration, count, draw, tally)
    how = "torchrun's processes" if setting.torchrun else "forks of a process that has imported everything"
    how += "; both are killed while they look for each other" if setting.workers > 1 and not setting.torchrun else ""
    return tally.result(f"{STEPS} steps with a checkpoint every {CHECKPOINT_EVERY}; {how}.")


def _one_run(
    setting: Setting, whole: Path, out: Path, duration: float, count: int, draw: random.Random, tally: Tally
) -> None:
    """Kill one run until it is complete or there were enough kills, let it end, and compare its bits."""
    shutil.rmtree(out, ignore_errors=True)
    pending, before = 0, -1
    while sum(tally.counts.values()) + pending < count:
        group = _Group(setting, out)
        time.sleep(draw.random() * duration * 0.7)
        killed = group.kill(draw)
        ended = group.wait()
        if any(e.code is None for e in ended):
            tally.add("hangs", f"after a kill: {ended}")
        elif any(e.traceback for e in ended):
            tally.add("tracebacks", "\n".join(e.err[-1000:] for e in ended))
        elif not killed:
            break
        else:
            step = _stored_step(out)
            if step is None or step < before:
                tally.add("lost", f"step {before} before the kill, {step} after it")
                break
            before = step
            pending += 1
    ended = _Group(setting, out).wait()
    intact = all(e.code == 0 for e in ended) and _same_bits(whole, out)
    for _ in range(pending):
        said = " | ".join(f"exit code {e.code}: {e.err[-1500:]}" for e in ended)
        tally.add("unchanged" if intact else "lost", f"the run ended differently: {said}")


def _stored_step(out: Path) -> int | None:
    """The step of the stored checkpoint, -1 if there is no run yet, None if it cannot be read."""
    from qkv.errors import QkvError
    from qkv.train import checkpoint
    from qkv.train.run_files import is_run

    if not is_run(out):
        return -1
    try:
        return checkpoint.load(out)[0]
    except QkvError:
        return None


def _same_bits(one: Path, other: Path) -> bool:
    """Whether two runs have the same weights, the same optimizer state and the same log, and nothing half-written."""
    from qkv.train.metrics_log import read_log

    names = sorted(p.name for p in one.iterdir())
    if sorted(p.name for p in other.iterdir()) != names:
        return False
    files = [name for name in names if name.endswith(".safetensors") or name == "tokenizer.json"]
    losses = [[(line["step"], line.get("loss")) for line in read_log(folder)] for folder in (one, other)]
    return all((one / f).read_bytes() == (other / f).read_bytes() for f in files) and losses[0] == losses[1]


class _Group:
    """The processes of a training run, started."""

    def __init__(self, setting: Setting, out: Path) -> None:
        text = samples() / "text.txt"
        words = ["pretrain", "--text", text, "--out", out, "--resume", *OPTIONS.split(), *setting.options.split()]
        self._out = out
        self._torchrun: subprocess.Popen[str] | None = None
        self._forks: list[Fork] = []
        if setting.torchrun:
            start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(setting.workers)]
            command = [sys.executable, *start, "-m", "qkv", *map(str, words)]
            self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
            self._torchrun = subprocess.Popen(
                command, env=environment(), stdout=self._said, stderr=self._said, start_new_session=True, text=True
            )
            return
        port = _free_port()
        for rank in range(setting.workers):
            self._forks.append(Fork(partial(_worker, words, rank, setting.workers, port)))

    def kill(self, draw: random.Random) -> bool:
        """Kill one process of the group, or all of them; whether one was still running."""
        if self._torchrun is not None:
            if self._torchrun.poll() is not None:
                return False
            workers, one = _workers_of(self._torchrun.pid), draw.random() < 0.5
            if not one or not workers:  # the workers are in sessions of their own, and would look for each other on
                workers = [*workers, self._torchrun.pid]
            for pid in [draw.choice(workers)] if one else workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return True
        chosen = [draw.choice(self._forks)] if draw.random() < 0.5 and self._have_met() else self._forks
        sent = [fork.send(signal.SIGKILL) for fork in chosen]
        return any(sent)

    def _have_met(self) -> bool:
        """Whether the processes have found each other: the first one then holds the lock of the run.

        Before that, one waits for the other for half an hour, as torch does, and torchrun ends it when the other dies.
        """
        try:
            return f"process {self._forks[0].pid} " in (self._out / LOCK_FILE).read_text("utf-8")
        except OSError:
            return False

    def wait(self) -> list[Ended]:
        """How the processes ended."""
        if self._torchrun is None:
            return [fork.wait(SECONDS_TO_END) for fork in self._forks]
        try:
            code: int | None = self._torchrun.wait(2 * SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._torchrun.pid, signal.SIGKILL)
        self._torchrun.wait()
        self._said.seek(0)
        said = self._said.read()
        self._said.close()
        return [Ended(code, "", said)]


def _worker(words: list[object], rank: int, size: int, port: int) -> None:
    if size > 1:
        places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": size, "RANK": rank, "LOCAL_RANK": rank}
        os.environ.update({name: str(value) for name, value in places.items()})
    sys.argv = ["qkv", *map(str, words)]
    from qkv.cli import main

    main()


def _workers_of(pid: int) -> list[int]:
    import psutil

    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):  # one that has just ended
            if "qkv" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def settings() -> list[tuple[str, Callable[[int, int, Progress], FaultCount]]]:
    """Each setting with the function that runs it."""
    return [(setting.name, partial(run, setting)) for setting in SETTINGS]
