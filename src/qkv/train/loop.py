"""The training loop: steps of the optimizer, validation, checkpoints and interruption, for every kind of run."""

from __future__ import annotations

import copy
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
from qkv.train.creation import remove_leftovers
from qkv.train.data.objectives import Example
from qkv.train.data.packing import BatchSource, count_targets, pack, shard
from qkv.train.distributed import ProcessGroup, process_group
from qkv.train.metrics_log import History, MetricsLog
from qkv.train.optimizers import Optimizers, make_optimizer
from qkv.train.run_lock import run_lock
from qkv.train.settings import TrainSettings

MAX_TIMING_SECONDS = 5.0  # to measure how long a step takes
StepCallback = Callable[[int, int, float, float], None]
"""Called after each step with its number, the number of all steps, the loss and tokens per second."""


@dataclass(frozen=True, eq=False)
class Job:
    """What `train` is to do: a run folder that has a checkpoint, a model, and the examples of each step.

    Attributes:
        folder: Folder of a run, as `pretrain` or `create_run` made it; checkpoints and the log are written there.
        model: Its model; its weights are replaced by those of the checkpoint, and then trained in place.
        source: Function from the number of a step (from 0) to its examples. It must depend on nothing else, so that
            a resumed run sees the same examples.
        settings: How to train; `objective` is not used, since the source has made the examples.
        held_out: Examples for the validation loss.
        callback: Called after each step with its number, the number of all steps, the loss and tokens per second.

    Example:
        >>> import tempfile, qkv
        >>> from qkv.train.data.objectives import Example
        >>> settings = qkv.train.TrainSettings(steps=4, batch_size=2)
        >>> folder = tempfile.mkdtemp()
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16)
        >>> _ = qkv.train.pretrain(["Ada was born in London."], folder, config, settings)
        >>> run = qkv.train.load(folder)
        >>> ids = run.tokenizer.encode("Ada was born in London.")
        >>> job = qkv.train.Job(run.folder, run.model, lambda step: [Example(ids)], settings)
        >>> qkv.train.train(job).step  # the run has taken its four steps already
        4
    """

    folder: Path
    model: GPT
    source: BatchSource
    settings: TrainSettings
    held_out: Sequence[Example] = ()
    callback: StepCallback | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TrainResult(Displayable):
    """Where a run was trained to.

    Attributes:
        folder: Folder of the run.
        step: Steps that it has taken in all.
        loss: Mean loss per token of the last step, in nats.
        val_loss: Last validation loss, or None if nothing is held out.
        parameters: Number of parameters of the model.
        tokens: Tokens that this call trained on.
        seconds: Time that this call took.

    Example:
        >>> import qkv
        >>> qkv.train.TrainResult("runs/base", 100, 1.5, None, 20_000, 64_000, 2.0).tokens_per_second
        32000.0
    """

    folder: str
    step: int
    loss: float
    val_loss: float | None
    parameters: int
    tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Training speed of this call."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def card(self) -> Card:
        val_loss = () if self.val_loss is None else (("validation loss", number(self.val_loss)),)
        return Card(
            title=f"Trained to step {self.step}",
            facts=(
                ("run", self.folder),
                ("parameters", f"{self.parameters:,}"),
                ("loss", number(self.loss)),
                *val_loss,
                ("tokens", f"{self.tokens:,} in {self.seconds:.1f} s ({self.tokens_per_second:,.0f} per second)"),
            ),
        )


class Stopped(KeyboardInterrupt):
    """Training was interrupted after a checkpoint was saved."""


def train(job: Job) -> TrainResult:
    """Train a job from its last checkpoint to its last step.

    Most callers want `pretrain`, `finetune` or `resume`, which make the job; this is for examples of your own. The
    random state, the thread count and the signal handlers of the caller are restored. Ctrl-C or SIGTERM finishes the
    step, saves a checkpoint and raises `qkv.train.loop.Stopped`, a KeyboardInterrupt.

    Args:
        job: Folder, model, examples and settings.

    Returns:
        The step that was reached, with the last losses.

    Raises:
        QkvError: If another process is training the run, the batch is too small to be shared, the checkpoint is
            damaged, or the loss or a weight is no longer finite; the last good checkpoint is untouched then.

    Example:
        >>> import tempfile, qkv
        >>> from qkv.train.data.objectives import Example
        >>> from qkv.train.runs import create_run
        >>> folder, settings = tempfile.mkdtemp(), qkv.train.TrainSettings(steps=3)
        >>> tokenizer = qkv.train.Characters.train(["Ada"])
        >>> config = qkv.model.ModelConfig(n_layer=1, n_head=2, d_model=16, vocab_size=tokenizer.vocab_size)
        >>> create_run(folder, config, settings, {"kind": "own"}, tokenizer)
        >>> run = qkv.train.load(folder)
        >>> ids = tokenizer.encode("Ada")
        >>> qkv.train.train(qkv.train.Job(run.folder, run.model, lambda step: [Example(ids)] * 64, settings)).step
        3
    """
    with process_group() as group, run_lock(job.folder) if group.is_first else nullcontext():
        return train_locked(job)


def train_locked(job: Job) -> TrainResult:
    """`train` for callers that hold the lock of the run folder already."""
    devices = list(range(torch.cuda.device_count()))
    with (
        torch.random.fork_rng(devices),
        process_group() as group,
        stop_on_signal() as stop,
        torch_threads(job.settings.threads),
    ):
        reuse_memory(large_pages=True)
        return _Training(job, group, stop).run()


class _Training:
    """State of one call of `train`."""

    def __init__(self, job: Job, group: ProcessGroup, stop: threading.Event) -> None:
        s = job.settings
        check_batch_size(s, group.size)
        self.job, self.group, self.stop = job, group, stop
        self.place = job.folder.stat()
        if group.is_first:
            remove_leftovers(job.folder)
        self.step, weights, moments = checkpoint.load(job.folder)
        if group.is_first:
            checkpoint.remove_other_states(job.folder, self.step)
        self.saved_step = self.step
        checkpoint.load_weights(job.model, weights, job.folder)
        self.model = job.model.to(group.device).train()
        self.wrapped = group.wrap(self.model, s.parallel)
        self.names: dict[Tensor, str] = {p: name for name, p in self.model.named_parameters()}
        self.optimizer = make_optimizer(self.names, s)
        checkpoint.load_optimizer_state(self.optimizer, self.names, moments, job.folder)
        if s.compile:
            compile_parts(self.model)
        self.log = MetricsLog(job.folder, self.step, s.tensorboard) if group.is_first else None
        self.loss = self.val_loss = math.nan
        self.tokens = self.tokens_since_log = 0
        self.began = self.last_log = time.perf_counter()

    def run(self) -> TrainResult:
        """Take all steps that are left."""
        s, folder = self.job.settings, self.job.folder
        while self.step < s.steps:
            examples = self.job.source(self.step)
            self.loss = one_step(self.wrapped, self.optimizer, examples, self.step, s, self.group)
            if not math.isfinite(self.loss):
                raise self._not_finite(f"the loss became {self.loss} at step {self.step + 1}", self.step)
            self.step += 1
            count = sum(len(e.ids) - 1 for e in examples)
            self.tokens, self.tokens_since_log = self.tokens + count, self.tokens_since_log + count
            self._report()
            stopped = self.group.any(self.stop.is_set())
            if self.step % s.checkpoint_every == 0 or self.step == s.steps or stopped:
                self._save()
            if stopped and self.step < s.steps:
                raise Stopped(
                    f"stopped at step {self.step} of {s.steps}, and saved; continue with --resume and --out {folder}"
                )
        if self.log is not None:
            self.log.close()
        parameters = sum(p.numel() for p in self.job.model.parameters())
        self._recall_last_losses()
        val_loss = None if math.isnan(self.val_loss) else self.val_loss
        seconds = time.perf_counter() - self.began
        return TrainResult(str(folder), self.step, self.loss, val_loss, parameters, self.tokens, seconds)

    def _recall_last_losses(self) -> None:
        """Take the losses of the last step from the log, if there was no step left to take."""
        history = History.of(self.job.folder)
        if math.isnan(self.loss) and history.steps:
            self.loss = history.losses[-1]
        if math.isnan(self.val_loss) and history.validated:
            self.val_loss = history.val_losses[-1]

    def _report(self) -> None:
        """Validate, log and call back, where the step is one at which that is due."""
        s, step, last = self.job.settings, self.step, self.step == self.job.settings.steps
        metrics: dict[str, float] = {}
        if step % s.log_every == 0 or last:
            now = time.perf_counter()
            speed = self.tokens_since_log / (now - self.last_log)
            metrics |= {"loss": self.loss, "lr": s.learning_rate(step - 1), "tokens_per_second": speed}
            self.tokens_since_log, self.last_log = 0, now
        if self.job.held_out and (step % s.validate_every == 0 or last):
            metrics["val_loss"] = self.val_loss = validation_loss(self.model, self.job.held_out, s, self.group)
        if metrics and self.log is not None:
            self._check_place()
            self.log.write(step=step, **metrics)
        if self.group.is_first and self.job.callback is not None:
            self.job.callback(step, s.steps, self.loss, self.tokens / (time.perf_counter() - self.began))

    def _save(self) -> None:
        state = checkpoint.weights_of(self.model), checkpoint.optimizer_state(self.optimizer, self.names)
        wrong = [name for tensors in state for name, value in tensors.items() if not bool(value.isfinite().all())]
        if wrong:
            raise self._not_finite(f"{wrong[0]} is no longer finite after step {self.step}", self.step - 1)
        if self.group.is_first:
            self._check_place()
            checkpoint.save(self.job.folder, self.step, *state)
        self.group.barrier()
        self.saved_step = self.step

    def _check_place(self) -> None:
        """Refuse to write to the run's path once another folder has taken its place: its files may be another run's."""
        folder = self.job.folder
        try:
            same = os.path.samestat(self.place, folder.stat())
        except OSError:
            same = False
        if not same:
            hint = "Move it back, and continue from its last checkpoint"
            raise QkvError(f"training {folder}", "the folder was moved or replaced meanwhile", hint)

    def _not_finite(self, problem: str, step: int) -> QkvError:
        rate = self.job.settings.learning_rate(step)
        kept = f"; the checkpoint of step {self.saved_step} is untouched" if self.step else ""
        hint = f"Lower the learning rate (it was {rate:.3g}){kept}"
        return QkvError(f"training {self.job.folder}", problem, hint)


def check_batch_size(settings: TrainSettings, processes: int) -> None:
    """Refuse a batch that leaves a process, or a part of its share, without an example."""
    if settings.batch_size < processes * settings.grad_accum:
        raise QkvError(
            "training",
            f"a batch of {settings.batch_size} cannot be shared by "
            f"{processes} processes in {settings.grad_accum} parts",
            "Raise batch_size, or lower grad_accum",
        )


def one_step(
    forward: nn.Module,
    optimizer: Optimizers,
    examples: Sequence[Example],
    step: int,
    settings: TrainSettings,
    group: ProcessGroup,
) -> float:
    """One step of the optimizer on this process's share of the examples; the mean loss over all of them.

    The random state of dropout is set from seed, step and rank, so that there is none to be saved.
    """
    torch.manual_seed(((settings.seed * 1_000_003 + step) * 4099 + group.rank) % 2**63)
    for param_group in optimizer.param_groups:
        param_group["lr"] = settings.learning_rate(step)
    optimizer.zero_grad()
    count = count_targets(examples)
    mine = shard(examples, group.rank, group.size)
    total = 0.0
    for part in range(settings.grad_accum):
        loss = total_loss(forward, shard(mine, part, settings.grad_accum), settings, group)
        # DDP and FSDP average gradients over processes; the mean over all tokens needs their sum.
        (loss * (group.size / count)).backward()
        total += float(loss.detach())
    mean = group.sum(total) / count
    if math.isfinite(mean):
        if settings.grad_clip:
            nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], settings.grad_clip)
        optimizer.step()
    return mean


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Temporarily set torch's thread count; 0 leaves it as it is."""
    before = torch.get_num_threads()
    try:
        if count:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def seconds_per_step(job: Job, tries: int = 24) -> float:
    """How long a step of a job takes on this machine, measured on a copy of its model."""
    alone = ProcessGroup(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    model = copy.deepcopy(job.model).to(alone.device).train()
    optimizer = make_optimizer({p: name for name, p in model.named_parameters()}, job.settings)
    taken = []
    with torch.random.fork_rng(devices=[]):
        reuse_memory(large_pages=True)
        for step in range(tries):
            began = time.perf_counter()
            one_step(model, optimizer, job.source(step), step, job.settings, alone)
            taken.append(time.perf_counter() - began)
            if sum(taken) > MAX_TIMING_SECONDS and step >= 3:
                break
    after_warm_up = taken[len(taken) // 3 :]
    return sum(after_warm_up) / len(after_warm_up)


@torch.no_grad()
def validation_loss(
    model: nn.Module, held_out: Sequence[Example], settings: TrainSettings, group: ProcessGroup
) -> float:
    """Mean loss per token on examples that are never trained on."""
    model.eval()
    # Under FSDP every forward pass gathers weights from all processes, so that each has to run as many as the others.
    alone = group.size == 1 or settings.parallel == "fsdp"
    mine = held_out if alone else shard(held_out, group.rank, group.size)
    total, size = 0.0, max(1, settings.batch_size // group.size)
    for first in range(0, len(mine), size):
        total += float(total_loss(model, mine[first : first + size], settings, group))
    model.train()
    return (total if alone else group.sum(total)) / count_targets(held_out)


def total_loss(forward: nn.Module, examples: Sequence[Example], settings: TrainSettings, group: ProcessGroup) -> Tensor:
    """Sum of the losses of all target tokens of the examples."""
    model: Any = getattr(forward, "module", forward)  # what DDP wraps
    batch = pack(examples, exact=model.packs_any_lengths).to(group.device)
    with torch.autocast(group.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
        return forward(batch.tokens, batch.layout, batch.keep, batch.targets)


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal raises KeyboardInterrupt at once.

    Only the main thread can handle signals; in another one the event is never set.
    """
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
