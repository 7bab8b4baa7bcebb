"""The one step loop: pretraining, finetuning and going on after a stop are all this."""

from __future__ import annotations

import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from qkv.core.display import Card, Displayable, number
from qkv.errors import QkvError
from qkv.model.gpt import GPT, compile_parts
from qkv.train import checkpoint
from qkv.train.allocator import reuse_memory
from qkv.train.data.objectives import Example
from qkv.train.data.packing import Source, asked, pack, shard
from qkv.train.distributed import ProcessGroup, crew
from qkv.train.metrics_log import Log
from qkv.train.optimizers import Optimizers, chosen
from qkv.train.settings import TrainSettings

TRYING = 5.0  # seconds at most to find out how long a step takes
Watch = Callable[[int, int, float, float], None]
"""Called with the step, the steps in all, the loss and tokens per second."""


@dataclass(frozen=True, eq=False)
class Job:
    """What is to be trained, on what, how, and where it is kept."""

    folder: Path
    model: GPT
    source: Source
    settings: TrainSettings
    held: Sequence[Example] = ()
    callback: Watch | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TrainResult(Displayable):
    """What came of a run."""

    folder: str
    step: int
    loss: float
    validation: float | None
    parameters: int
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """How fast it went."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def card(self) -> Card:
        held = () if self.validation is None else (("validation loss", number(self.validation)),)
        return Card(
            title=f"Trained to step {self.step}",
            facts=(
                ("run", self.folder),
                ("parameters", f"{self.parameters:,}"),
                ("loss", number(self.loss)),
                *held,
                ("tokens", f"{self.tokens:,} in {self.seconds:.1f} s ({self.tokens_per_second:,.0f} a second)"),
            ),
        )


class Stopped(KeyboardInterrupt):
    """Somebody asked the run to stop; everything is saved."""


def train(job: Job) -> TrainResult:
    """Run a job from its last checkpoint to its last step."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices), crew() as crew_, interruptible() as stop, threads(job.settings.threads):
        reuse_memory(large_pages=True)
        return _train(job, crew_, stop)


def _train(job: Job, crew: ProcessGroup, stop: threading.Event) -> TrainResult:
    s, folder = job.settings, job.folder
    if s.batch_size < crew.size * s.grad_accum:
        raise QkvError(
            "training", f"a batch of {s.batch_size} cannot be shared by {crew.size} processes in {s.grad_accum} parts",
            "Raise batch, or lower accumulate",
        )  # fmt: skip
    if crew.first:
        checkpoint.tidy(folder)
    step, weights, moments = checkpoint.load(folder)
    saved = step
    checkpoint.fill(job.model, weights, folder)
    model = job.model.to(crew.device).train()
    wrapped = crew.wrap(model, s.parallel)
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    optimizer = chosen(names, s)
    checkpoint.fill_optimizer(optimizer, names, moments, folder)
    if s.compile:
        compile_parts(model)
    log = Log(folder, step, s.tensorboard) if crew.first else None
    loss = validation = math.nan
    tokens = since = 0
    began = mark = time.perf_counter()

    def save() -> None:
        state = checkpoint.state_of(model), checkpoint.optimizer_state(optimizer, names)
        wrong = [name for some in state for name, value in some.items() if not bool(value.isfinite().all())]
        if wrong:
            raise _spoiled(folder, f"{wrong[0]} is no longer finite after step {step}", s.rate(step - 1), saved)
        if crew.first:
            checkpoint.save(folder, step, *state)
        crew.wait()

    while step < s.steps:
        examples = job.source(step)
        loss = one_step(wrapped, optimizer, examples, step, s, crew)
        if not math.isfinite(loss):
            raise _spoiled(folder, f"the loss became {loss} at step {step + 1}", s.rate(step), saved)
        step += 1
        count = sum(len(e.ids) - 1 for e in examples)
        tokens, since = tokens + count, since + count
        facts: dict[str, float] = {}
        if step % s.log_every == 0 or step == s.steps:
            facts |= {"loss": loss, "lr": s.rate(step - 1), "tokens_per_second": since / (time.perf_counter() - mark)}
            since, mark = 0, time.perf_counter()
        if job.held and (step % s.validate_every == 0 or step == s.steps):
            facts["validation"] = validation = evaluate(model, job.held, s, crew)
        if facts and log is not None:
            log.write(step=step, **facts)
        if crew.first and job.callback is not None:
            job.callback(step, s.steps, loss, tokens / (time.perf_counter() - began))
        stopped = crew.any(stop.is_set())
        if step % s.checkpoint_every == 0 or step == s.steps or stopped:
            save()
            saved = step
        if stopped and step < s.steps:
            raise Stopped(f"stopped at step {step} of {s.steps}, and saved; go on with --resume and --out {folder}")
    if log is not None:
        log.close()
    parameters = sum(p.numel() for p in job.model.parameters())
    held = None if math.isnan(validation) else validation
    return TrainResult(str(folder), step, loss, held, parameters, tokens, time.perf_counter() - began)


def _spoiled(folder: Path, what: str, rate: float, saved: int) -> QkvError:
    hint = f"Lower the learning rate (it was {rate:.3g}); the checkpoint of step {saved} is untouched"
    return QkvError(f"training {folder}", what, hint)


def one_step(
    forward: nn.Module,
    optimizer: Optimizers,
    examples: Sequence[Example],
    step: int,
    settings: TrainSettings,
    crew: ProcessGroup,
) -> float:
    """One step of the optimizer on this process's share of the examples; the mean loss over all of them.

    Dropout's randomness is set by seed, step and process: there is no state of it to lose.
    """
    torch.manual_seed(((settings.seed * 1_000_003 + step) * 4099 + crew.rank) % 2**63)
    for group in optimizer.param_groups:
        group["lr"] = settings.rate(step)
    optimizer.zero_grad()
    count = asked(examples)
    mine = shard(examples, crew.rank, crew.size)
    total = 0.0
    for part in range(settings.grad_accum):
        loss = summed(forward, shard(mine, part, settings.grad_accum), settings, crew)
        # Gradients are averaged over processes; the mean over all tokens wants their sum.
        (loss * (crew.size / count)).backward()
        total += float(loss.detach())
    mean = crew.total(total) / count
    if math.isfinite(mean):
        if settings.grad_clip:
            nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], settings.grad_clip)
        optimizer.step()
    return mean


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads inside, and as many as before afterwards; 0 changes nothing."""
    before = torch.get_num_threads()
    try:
        if count:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def seconds_a_step(job: Job, tries: int = 24) -> float:
    """How long a step of a job takes here, tried on a copy of its model."""
    alone = ProcessGroup(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    model = copy.deepcopy(job.model).to(alone.device).train()
    optimizer = chosen({p: name for name, p in model.named_parameters()}, job.settings)
    taken = []
    with torch.random.fork_rng(devices=[]):
        reuse_memory(large_pages=True)
        for step in range(tries):
            began = time.perf_counter()
            one_step(model, optimizer, job.source(step), step, job.settings, alone)
            taken.append(time.perf_counter() - began)
            if sum(taken) > TRYING and step >= 3:
                break
    return sum(taken[len(taken) // 3 :]) / len(taken[len(taken) // 3 :])  # the first ones warm up


@torch.no_grad()
def evaluate(model: nn.Module, held: Sequence[Example], settings: TrainSettings, crew: ProcessGroup) -> float:
    """The mean loss on examples that are never trained on."""
    model.eval()
    # Where the weights are spread, processes gather them together, so each has to run as often as the others.
    alone = crew.size == 1 or settings.parallel == "fsdp"
    mine = held if alone else shard(held, crew.rank, crew.size)
    total, size = 0.0, max(1, settings.batch_size // crew.size)
    for first in range(0, len(mine), size):
        total += float(summed(model, mine[first : first + size], settings, crew))
    model.train()
    return (total if alone else crew.total(total)) / asked(held)


def summed(forward: nn.Module, examples: Sequence[Example], settings: TrainSettings, crew: ProcessGroup) -> Tensor:
    """The sum of the losses of all tokens that the examples ask for."""
    model: Any = getattr(forward, "module", forward)  # what DDP wraps
    batch = pack(examples, exact=model.ragged).to(crew.device)
    with torch.autocast(crew.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
        return forward(batch.tokens, batch.layout, batch.keep, batch.targets)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C (or a polite kill) sets: the step is finished and saved. A second one stops at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
