"""A GPT with a slot for the attention kind."""

from __future__ import annotations

from qkv.lazy import lazily

_HOME = {
    "Config": "config",
    "preset": "config",
    "GPT": "gpt",
    "Layout": "layout",
    "Choice": "decoding",
    "decode": "decoding",
    "Decoded": "decoding",
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
