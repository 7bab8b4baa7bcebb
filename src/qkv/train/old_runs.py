"""Old run formats: config.json, checkpoints and log lines as earlier versions wrote them, converted to today's."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from qkv.train.settings import CLOZE

OLD_FORMAT = "qkv-1"  # of config.json, with other field names; of checkpoints, with a checksum of names and bytes only
UNCHECKED_FORMATS = (OLD_FORMAT, "qkv-2")
"""Formats of config.json that had no checksum."""
UNCHECKED_METRICS = frozenset({"step", "loss", "lr", "tokens_per_second", "validation"})
"""All names that occur in log lines of the versions whose lines had no checksum."""
OLD_METRICS = {"validation": "val_loss"}
MODEL_FIELDS = {
    "layers": "n_layer",
    "heads": "n_head",
    "kv_heads": "n_kv_head",
    "width": "d_model",
    "hidden": "d_ff",
    "block": "context_length",
    "vocab": "vocab_size",
    "base": "rope_theta",
    "epsilon": "norm_eps",
    "tied": "tie_embeddings",
}
SETTINGS_FIELDS = {
    "batch": "batch_size",
    "accumulate": "grad_accum",
    "warmup": "warmup_ratio",
    "rise": "min_warmup_steps",
    "floor": "min_lr_ratio",
    "decay": "weight_decay",
    "clip": "grad_clip",
    "validation": "val_fraction",
    "mixed": "question_fraction",
    "tilt": "relevant_span_fraction",
    "bare": "no_context_fraction",
    "named": "predict_title_fraction",
    "spread": "parallel",
}
OBJECTIVES = {"drill": CLOZE}
DATA_KINDS = {"drills": "cloze"}


def converted(description: dict[str, Any]) -> dict[str, Any]:
    """The contents of a config.json of format qkv-1 under today's names.

    That format did not record the recipe. Only the cloze recipe made runs of the data kind `drills` without further
    options, and its runs were finetuned by it; every other run is taken as trained by its own settings.
    """
    settings = _renamed(description["settings"], SETTINGS_FIELDS)
    if "objective" in settings:
        settings["objective"] = OBJECTIVES.get(settings["objective"], settings["objective"])
    data = dict(description["data"])
    data["kind"] = DATA_KINDS.get(data["kind"], data["kind"])
    recipe = "cloze" if data["kind"] == "cloze" else "custom"
    model = _renamed(description["model"], MODEL_FIELDS)
    return {**description, "model": model, "settings": settings, "data": data, "recipe": recipe}


def tensor_checksum(tensors: Mapping[str, Any], raw: Callable[[Any], Any]) -> str:
    """The checksum in checkpoints of format qkv-1: CRC-32 of names and bytes, in the order of the names."""
    value = 0
    for name in sorted(tensors):
        value = zlib.crc32(raw(tensors[name]), zlib.crc32(name.encode(), value))
    return f"{value:08x}"


def _renamed(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items()}
