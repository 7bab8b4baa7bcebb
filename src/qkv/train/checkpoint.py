"""Checkpoints that appear whole or not at all: weights and optimizer in safetensors, never pickled."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from qkv.core.files import replacing
from qkv.errors import QkvError
from qkv.train.distributed import like, whole
from qkv.train.optimizers import Optimizers
from qkv.train.run_files import FORMAT as FORMAT
from qkv.train.run_files import WEIGHTS as WEIGHTS
from qkv.train.run_files import checksum, stored


def save(folder: Path, step: int, weights: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
    """Write the state after `step` steps.

    The optimizer's file carries the step in its name. Renaming the weights' file into place is the one moment at
    which the new checkpoint replaces the old: until then the old pair is untouched, and only then is it removed.
    The order of data, the corruption and dropout are functions of seed and step, so the step is their state.
    """
    state = folder / _optimizer(step)
    write(state, optimizer, {"step": str(step)})
    write(folder / WEIGHTS, weights, {"step": str(step)})
    for old in folder.glob("optimizer-*.safetensors"):
        if old != state:
            old.unlink(missing_ok=True)


def load(folder: Path) -> tuple[int, dict[str, Tensor], dict[str, Tensor]]:
    """(step, weights, optimizer's state) of the last good checkpoint."""
    weights, step = read(folder / WEIGHTS)
    path = folder / _optimizer(step)
    if not path.is_file():
        raise QkvError(
            f"going on with {folder}", f"{path.name}, the optimizer's state at step {step}, is missing",
            "Put it back, or start a new run from the weights with finetune",
        )  # fmt: skip
    return step, weights, read(path)[0]


def exists(folder: Path) -> bool:
    """Whether there is a checkpoint to go on from."""
    return (folder / WEIGHTS).is_file()


def tidy(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    for leftover in folder.glob(".*.safetensors"):
        leftover.unlink(missing_ok=True)


def write(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> None:
    """Tensors with facts about them, on the disk for certain before they bear the name."""
    flat = {name: t.detach().contiguous().cpu() for name, t in tensors.items()}
    meta = {"format": FORMAT, "crc": checksum(flat, _raw), **facts}
    try:
        with replacing(path) as temporary:
            save_file(flat, temporary, metadata=meta)
            with temporary.open("rb") as handle:
                os.fsync(handle.fileno())
    except (OSError, SafetensorError) as why:
        raise QkvError(
            f"writing {path}", str(why), "Free some space, and go on from the last good checkpoint, which is untouched"
        ) from None


def read(path: Path) -> tuple[dict[str, Tensor], int]:
    """The tensors of a file that qkv wrote, and their step; damaged and foreign files are refused."""
    return stored(path, "pt", _raw)


def fill(model: torch.nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Put weights into a model that must have exactly these."""
    own = {name: p.detach() for name, p in model.named_parameters()}
    wrong = [f"it lacks {name}" for name in own if name not in weights]
    wrong += [f"it has {name}" for name in weights if name not in own]
    wrong += [
        f"{name} has shape {tuple(weights[name].shape)}, not {tuple(t.shape)}"
        for name, t in own.items()
        if name in weights and weights[name].shape != t.shape
    ]
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise QkvError(
            f"loading weights from {source}", "; ".join(wrong[:3]) + more, "Give a checkpoint of the same configuration"
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def state_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """The weights by name, tied ones once."""
    return {name: whole(p.detach()) for name, p in model.named_parameters()}


def optimizer_state(optimizer: Optimizers, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """Moments and counts by the name of the weight that they belong to."""
    return {f"{names[p]}/{key}": whole(value) for p in names for key, value in optimizer.state.get(p, {}).items()}


def fill_optimizer(
    optimizer: Optimizers, names: Mapping[Tensor, str], state: Mapping[str, Tensor], source: object
) -> None:
    """Put moments and counts back; before the first step there are none."""
    if not state:
        return
    found: dict[str, dict[str, Tensor]] = {}
    for label, value in state.items():
        name, _, key = label.rpartition("/")
        found.setdefault(name, {})[key] = value
    if set(found) != set(names.values()):
        raise QkvError(
            f"loading the optimizer's state from {source}", "it belongs to another model", "Give the run's own folder"
        )
    for p, name in names.items():
        optimizer.state[p] = {key: like(value.to(p.device), p) for key, value in found[name].items()}


def write_json(path: Path, data: Any) -> None:
    """JSON for people to read, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _optimizer(step: int) -> str:
    return f"optimizer-{step}.safetensors"


def _raw(tensor: Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
