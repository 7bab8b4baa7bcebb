"""Distributed training: rank and world size, DDP/FSDP wrapping, collectives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from qkv.errors import QkvError

CPU = torch.device("cpu")
REFUSAL_KEY = "qkv-refusal"
REFUSAL_TIMEOUT = timedelta(seconds=10)
"""How long a process that refuses waits for the first one, which tells it if it refuses too."""


@dataclass(frozen=True)
class ProcessGroup:
    """Rank, world size and device of this process."""

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait until all processes have called it."""
        if self.size > 1:
            dist.barrier()

    def sum(self, value: float) -> float:
        """Sum of a number over all processes."""
        if self.size == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device if self.device.type == "cuda" else "cpu")
        dist.all_reduce(tensor)
        return float(tensor)

    def any(self, value: bool) -> bool:
        """Whether a value is true in any process."""
        return self.sum(float(value)) > 0

    def wrap(self, model: nn.Module, parallel: str) -> nn.Module:
        """The model under DDP or FSDP2: its gradients are averages over all processes."""
        if self.size == 1:
            return model
        if parallel == "fsdp":
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh(self.device.type, (self.size,))
            for block in model.blocks:  # type: ignore[union-attr]
                fully_shard(block, mesh=mesh)
            fully_shard(model, mesh=mesh)
            return model
        return nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)


@contextmanager
def process_group() -> Iterator[ProcessGroup]:
    """The processes that torchrun started, or this one alone.

    Nested uses share one group, which is destroyed when the outermost `with` ends.
    """
    cuda = torch.cuda.is_available()
    size = _environment_number("WORLD_SIZE", 1)
    if size == 1:
        yield ProcessGroup(device=torch.device("cuda" if cuda else "cpu"))
        return
    local, rank = _environment_number("LOCAL_RANK", 0), _environment_number("RANK", 0)
    if max(local, rank) >= size:
        problem = f"RANK is {rank} and LOCAL_RANK is {local}"
        raise QkvError(f"joining {size} processes", problem, "Start them with torchrun")
    device = torch.device("cuda", local) if cuda else CPU
    if dist.is_initialized():
        yield ProcessGroup(dist.get_rank(), size, device)
        return
    if cuda:
        torch.cuda.set_device(local)
    try:
        dist.init_process_group("nccl" if cuda else "gloo")
    except (ValueError, RuntimeError) as why:
        raise QkvError(f"joining {size} processes", str(why), "Start them with torchrun") from None
    rank = dist.get_rank()
    try:
        yield ProcessGroup(rank, size, device)
    except QkvError as refusal:
        _tell_once(rank, refusal)
        raise
    except RuntimeError as why:
        if not _lost_a_peer(why):
            raise
        raise PeerFailed(size) from None
    finally:
        dist.destroy_process_group()


def _environment_number(name: str, least: int) -> int:
    """A whole number that torchrun puts into an environment variable; `least` if it is not set."""
    text = os.environ.get(name, str(least))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        problem = f"the environment variable {name} is {text[:40]!r}"
        raise QkvError("joining other processes", problem, "Start them with torchrun, or unset it")
    return int(text)


class PeerFailed(QkvError):
    """Another process of the group ended while this one waited for it; that one says why."""

    def __init__(self, size: int) -> None:
        super().__init__(f"training in {size} processes", "one of the others has ended", "Look at what it said")


def _lost_a_peer(error: RuntimeError) -> bool:
    """Whether a collective failed because another process has gone: its own messages differ between backends."""
    words = ("connection closed", "connection reset", "broken pipe", "connection refused")
    return isinstance(error, dist.DistError) or any(each in str(error).lower() for each in words)


def _tell_once(rank: int, refusal: QkvError) -> None:
    """Let the first process alone tell a refusal that all processes have: the others mark theirs as told."""
    store: Any = dist.distributed_c10d._get_default_store()
    try:
        if rank == 0:
            store.set(REFUSAL_KEY, str(refusal))
        else:
            store.wait([REFUSAL_KEY], REFUSAL_TIMEOUT)
            refusal.told = store.get(REFUSAL_KEY).decode() == str(refusal)  # type: ignore[attr-defined]
    except RuntimeError:  # the first process has no refusal, or the store has gone
        refusal.told = isinstance(refusal, PeerFailed)  # type: ignore[attr-defined]


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor that may be sharded, gathered; all processes must call it."""
    gather: Any = getattr(tensor, "full_tensor", None)
    return gather() if gather is not None else tensor


def shard_like(value: Tensor, tensor: Tensor) -> Tensor:
    """A full tensor, sharded over the processes as another one is."""
    mesh: Any = getattr(tensor, "device_mesh", None)
    if mesh is None or value.dim() == 0:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, mesh, tensor.placements)  # type: ignore[attr-defined]
