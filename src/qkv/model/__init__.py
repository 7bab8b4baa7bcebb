"""A GPT with a slot for the attention kind."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Config": "config",
    "preset": "config",
    "GPT": "gpt",
    "Layout": "layout",
    "Choice": "decoding",
    "decode": "decoding",
    "Decoded": "decoding",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module behind a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'qkv.model' has no attribute {name!r}")
    return getattr(importlib.import_module(f"qkv.model.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
