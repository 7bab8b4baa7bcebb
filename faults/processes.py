"""Processes to harm: qkv commands as processes of their own, and as forks of this one, which start at once.

A fork has imported everything already, so that a signal after a random time finds it at work, not among imports. This
process must not have trained anything itself: torch refuses to run backward passes in forks of one that has.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from qkv.errors import QkvError

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = """
import os, sys
from qkv.__main__ import main
ready = int(sys.argv.pop(1))
def began(frame, event, argument):
    if frame.f_code is main.__code__:
        sys.setprofile(None)
        os.write(ready, b"!")
sys.setprofile(began)
main()
"""
"""Runs the words after the number of a file descriptor as a command, and says there when qkv's own code begins."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code, or minus the number of the signal that killed it; None if it hung."""

    code: int | None
    out: str
    err: str

    @property
    def traceback(self) -> bool:
        """Whether it shows a traceback; torchrun shows one of its own when a worker was killed."""
        blocks = self.err.split("Traceback (most recent call last)")[1:]
        own = [block for block in blocks if not ("torch/distributed/run.py" in block and "ChildFailedError" in block)]
        return bool(own) or "Exception ignored" in self.err


def environment(**more: str) -> dict[str, str]:
    """This process's environment, with one thread, and with the qkv that is imported here."""
    import qkv

    source = str(Path(qkv.__file__).parents[1])
    paths = [source, *(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != source)]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), **more}


def qkv(*words: object) -> list[str]:
    """The command line of a qkv command."""
    return [sys.executable, "-m", "qkv", *map(str, words)]


def run(words: Sequence[object], cwd: Path, seconds: float = 120.0) -> Ended:
    """Run a command to its end."""
    try:
        done = subprocess.run(
            qkv(*words), cwd=cwd, env=environment(), capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return Ended(None, "", "")
    return Ended(done.returncode, done.stdout, done.stderr)


def signalled(words: Sequence[object], cwd: Path, how: int, after: float, seconds: float = 60.0) -> Ended:
    """Start a command, send it a signal `after` seconds of its own code, and wait for its end."""
    reader, writer = os.pipe()
    command = [sys.executable, "-c", LAUNCHER, str(writer), *map(str, words)]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as out,
        tempfile.TemporaryFile("w+", errors="replace") as err,
        subprocess.Popen(
            command, cwd=cwd, env=environment(), stdout=out, stderr=err, stdin=subprocess.DEVNULL, pass_fds=(writer,)
        ) as process,
    ):
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
        if process.poll() is None:
            process.send_signal(how)
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read())


class Fork:
    """A fork of this process that runs a function; what it prints is kept."""

    def __init__(self, work: Callable[[], object], cwd: Path | None = None) -> None:
        # One process group each, so that worker processes of a command can be ended with it.
        self._out, self._err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._child(work, cwd)
        self.code: int | None = None

    def _child(self, work: Callable[[], object], cwd: Path | None) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(self._out.fileno(), 1)
            os.dup2(self._err.fileno(), 2)
            sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False, encoding="utf-8", buffering=1)  # noqa: SIM115
            if cwd is not None:
                os.chdir(cwd)
            work()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        except (QkvError, OSError) as refusal:  # as the command line tells it
            sys.stderr.write(f"qkv: {refusal}\n")
            code = 2
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def running(self) -> bool:
        """Whether it has not ended yet."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is None

    def send(self, how: int) -> bool:
        """Send it a signal; whether it was still running."""
        if not self.running():
            return False
        os.kill(self.pid, how)
        return True

    def wait(self, seconds: float = 60.0) -> Ended:
        """Wait for its end; it is killed if it takes longer."""
        until, hung = time.monotonic() + seconds, False
        while self.running():
            if time.monotonic() > until and not hung:
                hung = True
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.001)
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)  # worker processes that outlived it
        return Ended(None if hung else self.code, *texts)


def forked_command(words: Sequence[object], cwd: Path) -> Fork:
    """A qkv command in a fork, which has reached the command's first line when this returns.

    Before that line nothing of qkv runs, so that what a signal does there says nothing of it.
    """
    from qkv.__main__ import main

    reached, tells = os.pipe()

    def work() -> None:
        sys.argv = ["qkv", *map(str, words)]
        try:
            os.write(tells, b".")
            main()
        except KeyboardInterrupt as why:
            if not _passed_through(why.__traceback__, main.__code__.co_filename):
                os._exit(130)  # it came before the first line of the command, where there is nothing of qkv yet
            raise

    fork = Fork(work, cwd)
    os.close(tells)
    os.read(reached, 1)
    os.close(reached)
    return fork


def _passed_through(trace: TracebackType | None, file: str) -> bool:
    """Whether an exception came out of a function of this file."""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            return True
        trace = trace.tb_next
    return False


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder, in memory where there is such a place: thousands of small files are written to it."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="qkv-faults-", dir=place) as folder:
        yield Path(folder)


PRELOADED = (
    "torch.optim", "torch.distributed.fsdp", "torch.distributed.tensor", "torch.nn.parallel", "torch.utils.data",
    "rich.console", "rich.live", "rich.progress", "rich.spinner", "rich.status", "rich.table", "pydantic", "tokenizers",
    "safetensors.torch", "sympy", "lark", "flint", "clarabel", "scipy.optimize", "scipy.special", "matplotlib.pyplot",
    "matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg", "qkv.cli", "qkv.claims.pipeline",
    "qkv.claims.kernel.certify", "qkv.core.memory", "qkv.design.query", "qkv.design.wiring", "qkv.design.reachability",
    "qkv.design.projection", "qkv.design.hull.selectable", "qkv.design.sequences.text_wiring", "qkv.heads.table",
    "qkv.heads.allocation", "qkv.heads.rounding", "qkv.heads.name_lookup", "qkv.heads.certified_head",
    "qkv.knowledge.confidence.calibration", "qkv.knowledge.evaluation", "qkv.knowledge.answer",
    "qkv.knowledge.studies.extraction", "qkv.knowledge.studies.rare_facts", "qkv.knowledge.datasets.examples",
    "qkv.noise.sweep", "qkv.noise.layout_report", "qkv.noise.monte_carlo", "qkv.train.runs", "qkv.train.generation",
    "qkv.train.convert.importer", "qkv.train.convert.hf_export", "qkv.viz.html_report", "qkv.viz.plots.training",
    "qkv.viz.plots.knowledge", "qkv.viz.plots.studies", "qkv.tour",
)  # fmt: skip
"""What commands import; a module that is not there is left out."""


def preload() -> None:
    """Import what commands import, so that forks start at once; one thread, and no backward pass here."""
    import matplotlib
    import torch

    matplotlib.use("Agg")
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    torch.set_num_threads(1)
