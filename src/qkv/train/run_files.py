"""Files of a run folder, read without torch: configuration, settings, data, recipe and weights."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from qkv.core.files import Writing, replacing
from qkv.core.hugging_face import is_hugging_face_folder
from qkv.core.interrupts import interrupts_delayed
from qkv.core.json_files import EDIT_HINT, read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.model.config import ModelConfig, shortened
from qkv.train.old_runs import OLD_FORMAT, UNCHECKED_FORMATS, converted, tensor_checksum
from qkv.train.settings import TrainSettings

CONFIG_FILE = "config.json"
CONFIG_FORMAT = "qkv-3"
WEIGHTS_FILE = "model.safetensors"
TENSOR_FORMAT = "qkv-2"  # of the safetensors files
MAX_MINUTES = 10**6
TEXT_FILE = "text.txt"
"""The text that a run keeps in its own folder."""
PARENT, PARENT_WEIGHTS, FROM_SCRATCH = "parent", "parent_weights", "from_scratch"
"""Fields of the data of a finetuned run: folder and checksum of the weights it began with, and whether it took them."""
TensorBytes = Callable[[Any], Any]
"""The memory of a tensor as a flat array of bytes."""


@dataclass(frozen=True)
class RunDescription:
    """Contents of a run's config.json.

    Attributes:
        config: Shape of the model.
        settings: How it is trained.
        data: What it is trained on: `kind` (text, cloze, questions or imported), `path` of a file, `sha256`, the same
            for `questions` in a cloze run, the `frames` of the questions, and of a finetuned run the `parent`, the
            checksum of its weights (`parent_weights`) and whether it began without them (`from_scratch`).
        recipe: Name of the recipe it is trained by.
        minutes: Time budget that has not been converted to a number of steps yet.
        tokenizer_checksum: `content_checksum` of tokenizer.json, which has no place for one in its own format;
            "edited" for no check, and "" for runs of formats that had none.
    """

    config: ModelConfig
    settings: TrainSettings
    data: dict[str, Any]
    recipe: str
    minutes: float | None = None
    tokenizer_checksum: str = ""


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run: config.json is the last file to be written when a run is created."""
    return (folder / CONFIG_FILE).is_file()


def read_description(folder: Path) -> RunDescription:
    """Read a run's config.json, of this format or of an older one; one that does not fit its checksum is refused."""
    request, path = f"opening the run {folder}", folder / CONFIG_FILE
    if not folder.exists():
        raise QkvError(request, "there is no such folder", "Give the folder of a run that qkv made")
    if not folder.is_dir():
        raise QkvError(request, "it is a file", "Give the folder of a run that qkv made")
    if not path.is_file():
        raise QkvError(request, f"there is no {CONFIG_FILE} in it", "Give the folder of a run that qkv made")
    try:
        stored = read_json(path)
        version = stored.get("format", OLD_FORMAT) if isinstance(stored, dict) else None
        if version not in (*UNCHECKED_FORMATS, CONFIG_FORMAT, None):
            known = ", ".join((*UNCHECKED_FORMATS, CONFIG_FORMAT))
            raise QkvError(request, f"its format is {shortened(version)}", f"This version reads {known}")
        stored = verified(stored, required=version not in UNCHECKED_FORMATS)
        return _description(converted(stored) if version == OLD_FORMAT else stored)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
        if isinstance(why, QkvError):
            raise
        if is_hugging_face_folder(folder):
            hint = f"Import it first, if it is a GPT-2 or a Llama: qkv import {folder} --out RUN"
            raise QkvError(request, "it is a Hugging Face model, not a run", hint) from None
        detail = f"{why} is missing" if isinstance(why, KeyError) else str(why)
        raise QkvError(request, f"{path} is damaged or not a run's ({detail})", EDIT_HINT) from None


def stored_tokenizer_checksum(folder: Path) -> str:
    """The checksum of tokenizer.json that a run in a folder recorded; "" if there is none, or no run."""
    try:
        stored = read_json(folder / CONFIG_FILE) if is_run(folder) else {}
    except (OSError, ValueError):
        stored = {}
    ours = isinstance(stored, dict) and str(stored.get("format")).startswith("qkv-")
    return read_description(folder).tokenizer_checksum if ours else ""


def _description(stored: dict[str, Any]) -> RunDescription:
    """A description from the fields of config.json; a field of a wrong type is a ValueError."""
    minutes, recipe, tokenizer = stored.get("minutes"), stored["recipe"], stored.get("tokenizer_checksum", "")
    number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if minutes is not None and not (number and 0 < minutes < MAX_MINUTES):
        raise ValueError(f"minutes is {shortened(minutes)}")
    data = stored["data"]
    for name, record in (("data", data), ("data.questions", data.get("questions", {}))):
        if not isinstance(record, dict):
            raise ValueError(f"{name} is {shortened(record)}")
        for key in ("kind", "path", "sha256", "parent"):
            if not isinstance(record.get(key, ""), str):
                raise ValueError(f"{name}.{key} is {shortened(record[key])}")
    frames = data.get("frames", [])
    if not isinstance(frames, list) or not all(isinstance(frame, str) for frame in frames):
        raise ValueError(f"data.frames is {shortened(frames)}")
    if not isinstance(recipe, str) or not isinstance(tokenizer, str) or "kind" not in data:
        raise ValueError("recipe, tokenizer_checksum or data.kind is not a text")
    model, settings = ModelConfig.from_json(stored["model"]), TrainSettings.from_json(stored["settings"])
    return RunDescription(model, settings, dict(data), recipe, minutes, tokenizer)


def write_description(folder: Path, run: RunDescription, writing: Writing = replacing) -> None:
    """Write a run's config.json atomically, in today's format."""
    stored = {
        "format": CONFIG_FORMAT,
        "recipe": run.recipe,
        "model": run.config.to_json(),
        "settings": run.settings.to_json(),
        "data": run.data,
        "tokenizer_checksum": run.tokenizer_checksum,
    }
    minutes = {} if run.minutes is None else {"minutes": run.minutes}
    write_json(folder / CONFIG_FILE, with_checksum({**stored, **minutes}), writing)


def write_json(path: Path, data: Any, writing: Writing = replacing) -> None:
    """Write indented JSON atomically."""
    with writing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_weights(folder: Path) -> dict[str, np.ndarray]:
    """A run's weights as NumPy arrays, by name."""
    return read_tensors(folder / WEIGHTS_FILE, "np", numpy_bytes)[0]


def recorded_path(record: Mapping[str, Any], folder: Path) -> Path | None:
    """Where a file that a run records is; a text that it keeps is looked for in its folder first."""
    if record.get("path") is None:
        return None
    path = Path(record["path"])
    kept = folder / TEXT_FILE
    if path.name == TEXT_FILE and kept.is_file():
        own = hashlib.sha256(kept.read_bytes()).hexdigest() == record.get("sha256")
        return kept if own else path
    return path


def read_recorded(record: Mapping[str, Any], folder: Path, reader: Callable[[Path], list[Any]]) -> list[Any] | None:
    """The contents of a file that a run records; None if it is not there, or has changed since training."""
    path = recorded_path(record, folder)
    try:
        if path is None or not path.is_file():
            return None
        same = hashlib.sha256(path.read_bytes()).hexdigest() == record.get("sha256")
        return reader(path) if same else None
    except (OSError, QkvError):
        return None


def parent_of(data: Mapping[str, Any]) -> Path | None:
    """The folder of the run that a run was finetuned from, if it still holds the weights that it began with.

    Runs of earlier versions did not record these weights: their parent is not looked for.
    """
    if not data.get(PARENT) or not data.get(PARENT_WEIGHTS):
        return None
    folder = Path(data[PARENT])
    try:
        return folder if weights_checksum(folder) == data[PARENT_WEIGHTS] else None
    except (OSError, ValueError, QkvError):
        return None


def steps_taken(folder: Path) -> tuple[int, int] | None:
    """(steps, steps in all) of a run whose training has stopped before its end; None for any other folder."""
    path = folder / WEIGHTS_FILE
    try:
        described = read_description(folder)
        if not path.is_file():  # opening a pipe would wait for ever
            return None
        with interrupts_delayed(), safe_open(path, "np") as file:
            step = int((file.metadata() or {}).get("step", ""))
    except Exception:  # whoever opens the run says what is wrong with it
        return None
    unfinished = described.data.get("kind") != "imported" and step < described.settings.steps
    return (step, described.settings.steps) if unfinished else None


def weights_checksum(folder: Path) -> str:
    """The `checksum_of_weights` of the weights in a run's folder; "" if there are none."""
    path = folder / WEIGHTS_FILE
    return checksum_of_weights(*read_tensors(path, "np", numpy_bytes), numpy_bytes) if path.is_file() else ""


def checksum_of_weights(weights: Mapping[str, Any], step: int, raw: TensorBytes) -> str:
    """A checksum of weights and their step, the same for NumPy arrays and for tensors."""
    return checksum(weights, {"format": TENSOR_FORMAT, "step": str(step)}, raw)


def numpy_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of an array as a flat array of bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def read_tensors(path: Path, framework: str, raw: TensorBytes) -> tuple[dict[str, Any], int]:
    """(tensors by name, step) of a checkpoint file; files that are damaged or that qkv did not write are refused."""
    request, hint = f"reading the checkpoint {path}", "Restore it, or start the run again"
    if not path.is_file():
        raise QkvError(request, "there is no such file", "Give the folder of a run that has been trained")
    try:
        with interrupts_delayed(), safe_open(path, framework) as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except Exception as why:  # whatever the parser raises means that the file is damaged
        detail = (str(why) or type(why).__name__).splitlines()[0]
        raise QkvError(request, f"it is damaged ({detail})", hint) from None
    version, stored, step = metadata.get("format"), metadata.pop("crc", None), metadata.get("step", "")
    if version not in (OLD_FORMAT, TENSOR_FORMAT):
        raise QkvError(request, "qkv did not write it", "Import models of other libraries with: qkv import")
    found = tensor_checksum(tensors, raw) if version == OLD_FORMAT else checksum(tensors, metadata, raw)
    if stored != found:
        raise QkvError(request, "it is damaged: its checksum is wrong", hint)
    if not (step.isascii() and step.isdigit() and len(step) < 19):
        raise QkvError(request, f"it is damaged: its step is {step[:40]!r}", hint)
    return tensors, int(step)


def checksum(tensors: Mapping[str, Any], metadata: Mapping[str, str], raw: TensorBytes) -> str:
    """CRC-32 of metadata and of names, types, shapes and bytes of tensors, in the order of the names."""
    value = zlib.crc32(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        header = [name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]
        value = zlib.crc32(raw(tensor), zlib.crc32(json.dumps(header).encode(), value))
    return f"{value:08x}"
