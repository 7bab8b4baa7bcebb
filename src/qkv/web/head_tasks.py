"""What the process for heads does: open a model once, run it on a text, and take one head or one token out of that."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qkv.web import code_snippets, limits
from qkv.web.schemas import encoded, json_bytes

if TYPE_CHECKING:
    from qkv.heads.attention_model import AttentionModel
    from qkv.heads.text_survey import Survey

MODELS_KEPT, TEXTS_KEPT = 2, 4
"""Opened models and surveyed texts that are kept."""


def in_process(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """The result of a function, encoded in the process: bytes are cheap to pass on."""
    return json_bytes(function(*arguments))


def survey_reply(name: str, folder: str | None, text: str) -> dict[str, Any]:
    """Tokens, kinds and firmness of all heads, and a small picture of each."""
    found = _survey(name, folder, text)
    layers, heads, size, _ = found.pictures.shape
    return {
        "model": name,
        "tokens": found.tokens,
        "layers": layers,
        "heads": heads,
        "causal": found.causal,
        "repeated": found.repeated,
        "rows": [{**asdict(row), "judged_on": found.judged_on(row.kind)} for row in found.heads],
        "picture_size": size,
        "pictures": base64.b64encode(found.pictures.numpy().tobytes()).decode("ascii"),
        "python": code_snippets.head_survey(folder, text),
    }


def weights_reply(name: str, folder: str | None, text: str, layer: int, head: int) -> dict[str, Any]:
    """What every token looks at, in one head."""
    found = _survey(name, folder, text)
    return {
        "layer": layer,
        "head": head,
        "weights": encoded(found.weights(layer, head)),
        "python": code_snippets.head_weights(folder, text, layer, head),
    }


def rounding_reply(name: str, folder: str | None, text: str, layer: int, head: int) -> dict[str, Any]:
    """One head, over all tokens, with keys of 8 to 2 bits."""
    from qkv.heads.token_view import BITS, rounding_text

    found = _survey(name, folder, text).rounding(layer, head, BITS)
    return {
        "layer": layer,
        "head": head,
        "rows": [{**asdict(row), "says": rounding_text(row)} for row in found],
        "python": code_snippets.head_rounding(folder, text, layer, head, BITS),
    }


def token_reply(
    name: str, folder: str | None, text: str, layer: int, head: int, token: int, bits: int, harden: bool
) -> dict[str, Any]:
    """What one token looks at, in one head, with its spread under rounding."""
    from qkv.heads.token_view import firmness_text, hardened_text, head_view

    view = head_view(
        None, layer, head, token=token, bits=bits, harden=harden, rounding=False, surveyed=_survey(name, folder, text)
    )
    firm = "" if view.margin is None else firmness_text(view.margin, view.radius or 0.0)
    hardened = None
    if view.hardened is not None:
        hardened = {**asdict(view.hardened), "says": hardened_text(view.hardened)}
    return {
        "layer": layer,
        "head": head,
        "token": view.token,
        "bits": bits,
        "margin": view.margin,
        "radius": view.radius,
        "firmly": firm,
        "looked_up": [asdict(one) for one in view.looked_up],
        "spread": [asdict(one) for one in view.spread],
        "hardened": hardened,
        "note": view.note,
        "python": code_snippets.head_view(folder, text, layer, head, view.token, bits, harden),
    }


@lru_cache(MODELS_KEPT)
def _model(name: str, folder: str | None) -> AttentionModel:
    """The model of a folder under the name that its owner gave it; the built-in example if there is no folder."""
    if folder is None:
        from qkv.heads.example_model import example

        return replace(example(), name=name)
    from qkv.heads.attention_model import open as open_model

    return replace(open_model(folder), name=name)


@lru_cache(TEXTS_KEPT)
def _survey(name: str, folder: str | None, text: str) -> Survey:
    from qkv.heads.text_survey import survey

    return survey(_model(name, folder), text, max_tokens=limits.MAX_HEADS_TOKENS)
