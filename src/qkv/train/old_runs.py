"""Old run formats: field names and values of config.json as earlier versions wrote them, converted to today's."""

from __future__ import annotations

from typing import Any

from qkv.train.settings import CLOZE

OLD_FORMAT = "qkv-1"
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


def _renamed(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items()}
