"""Atomic, checksummed checkpoints: weights and optimizer state in safetensors, never pickled."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as tensor_file
from torch import Tensor

from qkv.core.files import Writing, replacing, write_tensors
from qkv.core.interrupts import interrupts_delayed
from qkv.errors import QkvError
from qkv.train.distributed import full_tensor, shard_like
from qkv.train.old_runs import OLD_FORMAT
from qkv.train.optimizers import Optimizers
from qkv.train.run_files import TENSOR_FORMAT, WEIGHTS_FILE, checksum, checksum_of_weights, read_tensors

OPTIMIZER_FILES = "optimizer-[0-9]*.safetensors"
_OPTIMIZER_NAME = re.compile(r"optimizer-(\d+)\.safetensors")


def save(
    folder: Path,
    step: int,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    writing: Writing = replacing,
) -> None:
    """Write the state after `step` steps.

    The optimizer's file has the step in its name. Renaming the weights' file into place is the one moment at which
    the new checkpoint replaces the old: until then the old pair is untouched, and only then is it removed. Data order,
    corruption and dropout are functions of seed and step, so that the step is all of their state.
    """
    state = folder / optimizer_file(step)
    if writing is replacing and os.path.lexists(state) and not _is_own(state):
        problem = f"{state} is there already, and qkv did not write it"
        raise QkvError(f"saving step {step}", problem, "Move that file away, and continue from the last checkpoint")
    write(state, optimizer, {"step": str(step)}, writing)
    write(folder / WEIGHTS_FILE, weights, {"step": str(step)}, writing)
    remove_other_states(folder, step)


def remove_other_states(folder: Path, step: int) -> None:
    """Remove the optimizer's states of other steps, which a save replaces and a kill may leave; only qkv's own."""
    for old in folder.glob(OPTIMIZER_FILES):
        if old.name != optimizer_file(step) and _is_own(old):
            old.unlink(missing_ok=True)


def load(folder: Path) -> tuple[int, dict[str, Tensor], dict[str, Tensor]]:
    """(step, weights, optimizer state) of the last complete checkpoint."""
    weights, step = read(folder / WEIGHTS_FILE)
    path = folder / optimizer_file(step)
    if not path.is_file():
        raise QkvError(
            f"resuming {folder}", f"{path.name}, the optimizer's state at step {step}, is missing",
            "Put it back, or start a new run from the weights with finetune",
        )  # fmt: skip
    state, own_step = read(path)
    if own_step != step:
        problem = f"{path.name} holds the state at step {own_step}"
        raise QkvError(f"resuming {folder}", problem, "Restore it from a copy")
    return step, weights, state


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str], writing: Writing = replacing) -> None:
    """Write tensors and metadata; the file is flushed to the disk before it is renamed into place."""
    flat = {name: t.detach().contiguous().cpu() for name, t in tensors.items()}
    described = {"format": TENSOR_FORMAT, **metadata}
    try:
        with writing(path) as temporary:
            crc = checksum(flat, described, _raw_bytes)
            write_tensors(temporary, tensor_file(flat, metadata={**described, "crc": crc}))
            with temporary.open("rb") as handle:
                os.fsync(handle.fileno())
    except OSError as why:
        raise QkvError(
            f"writing {path}", str(why), "Free some space, and resume from the last good checkpoint, which is untouched"
        ) from None


def read(path: Path) -> tuple[dict[str, Tensor], int]:
    """(tensors by name, step) of a checkpoint file; files that are damaged or that qkv did not write are refused."""
    return read_tensors(path, "pt", _raw_bytes)


def check_shapes(expected: Mapping[str, tuple[int, ...]], weights: Mapping[str, Tensor], source: object) -> None:
    """Refuse weights of other names or shapes than expected."""
    wrong = [f"it lacks {name}" for name in expected if name not in weights]
    wrong += [f"it has {name}" for name in weights if name not in expected]
    wrong += [
        f"{name} has shape {tuple(weights[name].shape)}, not {shape}"
        for name, shape in expected.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise QkvError(
            f"loading weights from {source}", "; ".join(wrong[:3]) + more, "Give a checkpoint of the same configuration"
        )


def load_weights(model: torch.nn.Module, weights: Mapping[str, Tensor], source: object) -> None:
    """Copy weights into a model, which must have exactly these names and shapes."""
    own = {name: p.detach() for name, p in model.named_parameters()}
    check_shapes({name: tuple(t.shape) for name, t in own.items()}, weights, source)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """The weights by name, tied ones once; sharded ones are gathered."""
    return {name: full_tensor(p.detach()) for name, p in model.named_parameters()}


def weights_checksum(model: torch.nn.Module, step: int) -> str:
    """The checksum of a model's weights as they are in memory, at so many steps."""
    weights = {name: tensor.contiguous().cpu() for name, tensor in weights_of(model).items()}
    return checksum_of_weights(weights, step, _raw_bytes)


def optimizer_state(optimizer: Optimizers, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """Moments and step counts, as `weight/key`."""
    return {f"{names[p]}/{key}": full_tensor(value) for p in names for key, value in optimizer.state.get(p, {}).items()}


def load_optimizer_state(
    optimizer: Optimizers, names: Mapping[Tensor, str], state: Mapping[str, Tensor], source: object
) -> None:
    """Restore moments and step counts; before the first step there are none."""
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
        optimizer.state[p] = {key: shard_like(value.to(p.device), p) for key, value in found[name].items()}


def optimizer_file(step: int) -> str:
    """Name of the file with the optimizer's state after `step` steps."""
    return f"optimizer-{step}.safetensors"


def _is_own(path: Path) -> bool:
    """Whether a file is an optimizer's state that qkv wrote for the step in its name."""
    named = _OPTIMIZER_NAME.fullmatch(path.name)
    if named is None or path.is_symlink() or not path.is_file():
        return False
    try:
        with interrupts_delayed(), safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except Exception:  # it is no safetensors file
        return False
    known = metadata.get("format") in (OLD_FORMAT, TENSOR_FORMAT) and "crc" in metadata
    return known and metadata.get("step") == named[1]


def _raw_bytes(tensor: Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
