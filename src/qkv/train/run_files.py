"""Files of a run folder, read without torch: configuration, settings, data, recipe and weights."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from qkv.core.files import replacing
from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train.old_runs import OLD_FORMAT, converted
from qkv.train.settings import TrainSettings

CONFIG_FILE = "config.json"
CONFIG_FORMAT = "qkv-2"
WEIGHTS_FILE = "model.safetensors"
TENSOR_FORMAT = "qkv-1"  # of the safetensors files, which have not changed since the first version
TensorBytes = Callable[[Any], Any]
"""The memory of a tensor as a flat array of bytes."""


@dataclass(frozen=True)
class RunDescription:
    """Contents of a run's config.json.

    Attributes:
        config: Shape of the model.
        settings: How it is trained.
        data: What it is trained on: `kind` (text, cloze, questions or imported), `path` of a file, `sha256`, the same
            for `questions` in a cloze run, and the `parent` of a finetuned one.
        recipe: Name of the recipe it is trained by.
        minutes: Time budget that has not been converted to a number of steps yet.
    """

    config: ModelConfig
    settings: TrainSettings
    data: dict[str, Any]
    recipe: str
    minutes: float | None = None


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run: config.json is the last file to be written when a run is created."""
    return (folder / CONFIG_FILE).is_file()


def read_description(folder: Path) -> RunDescription:
    """Read a run's config.json, of this format or of an older one."""
    request, path = f"opening the run {folder}", folder / CONFIG_FILE
    if not path.is_file():
        raise QkvError(request, f"there is no {CONFIG_FILE} in it", "Give the folder of a run that qkv made")
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        version = stored.get("format", OLD_FORMAT)
        if version not in (OLD_FORMAT, CONFIG_FORMAT):
            raise QkvError(
                request, f"its format is {version!r}", f"This version reads {OLD_FORMAT} and {CONFIG_FORMAT}"
            )
        if version == OLD_FORMAT:
            stored = converted(stored)
        return RunDescription(
            ModelConfig.from_json(stored["model"]),
            TrainSettings.from_json(stored["settings"]),
            dict(stored["data"]),
            str(stored["recipe"]),
            stored.get("minutes"),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        if isinstance(why, QkvError):
            raise
        raise QkvError(request, f"{path} is damaged or not a run's ({why!r})", "Restore it from a copy") from None


def write_description(folder: Path, run: RunDescription) -> None:
    """Write a run's config.json atomically, in today's format."""
    stored = {
        "format": CONFIG_FORMAT,
        "recipe": run.recipe,
        "model": run.config.to_json(),
        "settings": run.settings.to_json(),
        "data": run.data,
    }
    write_json(folder / CONFIG_FILE, stored if run.minutes is None else {**stored, "minutes": run.minutes})


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """A run's weights as NumPy arrays, by name."""
    return read_tensors(folder / WEIGHTS_FILE, "np", lambda a: np.ascontiguousarray(a).reshape(-1).view(np.uint8))[0]


def read_tensors(path: Path, framework: str, raw: TensorBytes) -> tuple[dict[str, Any], int]:
    """(tensors by name, step) of a checkpoint file; files that are damaged or that qkv did not write are refused."""
    request = f"reading the checkpoint {path}"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Give the folder of a run that has been trained")
    try:
        with safe_open(path, framework) as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (OSError, SafetensorError, ValueError) as why:
        raise QkvError(request, f"it is damaged ({why})", "Restore it, or start the run again") from None
    if metadata.get("format") != TENSOR_FORMAT:
        raise QkvError(request, "qkv did not write it", "Import models of other libraries with: qkv import")
    if metadata.get("crc") != checksum(tensors, raw):
        raise QkvError(request, "it is damaged: its checksum is wrong", "Restore it, or start the run again")
    return tensors, int(metadata["step"])


def checksum(tensors: Mapping[str, Any], raw: TensorBytes) -> str:
    """CRC-32 of names and bytes, in the order of the names."""
    value = 0
    for name in sorted(tensors):
        value = zlib.crc32(raw(tensors[name]), zlib.crc32(name.encode(), value))
    return f"{value:08x}"
