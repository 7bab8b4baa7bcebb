"""One process or many: who am I, how the model is wrapped, and what the first process alone may do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from qkv.errors import QkvError

CPU = torch.device("cpu")


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all have come here."""
        if self.size > 1:
            dist.barrier()

    def total(self, value: float) -> float:
        """The sum over all processes."""
        if self.size == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self.device if self.device.type == "cuda" else "cpu")
        dist.all_reduce(tensor)
        return float(tensor)

    def any(self, value: bool) -> bool:
        """Whether it is so in any process."""
        return self.total(float(value)) > 0

    def wrap(self, model: nn.Module, spread: str) -> nn.Module:
        """The model that trains with all processes: its gradients are averages over them."""
        if self.size == 1:
            return model
        if spread == "fsdp":
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh(self.device.type, (self.size,))
            for block in model.blocks:  # type: ignore[union-attr]
                fully_shard(block, mesh=mesh)
            fully_shard(model, mesh=mesh)
            return model
        return nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)


@contextmanager
def crew() -> Iterator[ProcessGroup]:
    """The processes that torchrun started, or this one alone; they stay joined until the outermost `with` ends."""
    cuda = torch.cuda.is_available()
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ProcessGroup(device=torch.device("cuda" if cuda else "cpu"))
        return
    local = int(os.environ.get("LOCAL_RANK", "0"))
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
    try:
        yield ProcessGroup(dist.get_rank(), size, device)
    finally:
        dist.destroy_process_group()


def whole(tensor: Tensor) -> Tensor:
    """A tensor that may be spread over processes, gathered; all of them must call it."""
    gather: Any = getattr(tensor, "full_tensor", None)
    return gather() if gather is not None else tensor


def like(value: Tensor, tensor: Tensor) -> Tensor:
    """A whole tensor, spread over processes as another one is."""
    mesh: Any = getattr(tensor, "device_mesh", None)
    if mesh is None or value.dim() == 0:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, mesh, tensor.placements)  # type: ignore[attr-defined]
