"""What a run's folder holds, read without torch: its configuration, settings and origin, and its weights."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from qkv.errors import QkvError
from qkv.model.config import ModelConfig
from qkv.train.settings import TrainSettings

FILE = "config.json"
WEIGHTS = "model.safetensors"
FORMAT = "qkv-1"
Raw = Callable[[Any], Any]
"""The bytes of a tensor, one after another."""


def described(folder: Path) -> tuple[ModelConfig, TrainSettings, dict[str, Any]]:
    """A run's model, how it is trained, and on what."""
    asked, path = f"opening the run {folder}", folder / FILE
    if not path.is_file():
        raise QkvError(asked, f"there is no {FILE} in it", "Give the folder of a run that qkv made")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return ModelConfig.from_json(data["model"]), TrainSettings.from_json(data["settings"]), dict(data["data"])
    except (ValueError, KeyError, TypeError) as why:
        if isinstance(why, QkvError):
            raise
        raise QkvError(asked, f"{path} is damaged or not a run's ({why!r})", "Restore it from a copy") from None


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """A run's weights."""
    return stored(folder / WEIGHTS, "np", lambda array: np.ascontiguousarray(array).reshape(-1).view(np.uint8))[0]


def stored(path: Path, framework: str, raw: Raw) -> tuple[dict[str, Any], int]:
    """The tensors of a file that qkv wrote, and their step; damaged and foreign files are refused."""
    asked = f"reading the checkpoint {path}"
    if not path.is_file():
        raise QkvError(asked, "there is no such file", "Give the folder of a run that has been trained")
    try:
        with safe_open(path, framework) as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (OSError, SafetensorError, ValueError) as why:
        raise QkvError(asked, f"it is damaged ({why})", "Restore it, or start the run again") from None
    if facts.get("format") != FORMAT:
        raise QkvError(asked, "qkv did not write it", "Bring other models in with: qkv import")
    if facts.get("crc") != checksum(tensors, raw):
        raise QkvError(asked, "it is damaged: its checksum is wrong", "Restore it, or start the run again")
    return tensors, int(facts["step"])


def checksum(tensors: Mapping[str, Any], raw: Raw) -> str:
    """Of names and bytes, in the order of the names."""
    value = 0
    for name in sorted(tensors):
        value = zlib.crc32(raw(tensors[name]), zlib.crc32(name.encode(), value))
    return f"{value:08x}"
