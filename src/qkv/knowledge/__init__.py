"""Facts, texts made of them, questions, scores, and which answers to trust."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Facts": "facts",
    "Person": "facts",
    "Questions": "facts",
    "Texts": "facts",
    "load_facts": "facts",
    "load_questions": "facts",
    "load_texts": "facts",
    "pantheon": "shipped",
    "biographies": "texts",
    "questions": "texts",
    "learn": "learning",
    "ask": "asking",
    "Answer": "asking",
    "Badge": "badge",
    "evaluate": "scoring",
    "Scores": "scoring",
    "trust": "trusting",
    "Trust": "trusting",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module behind a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'qkv.knowledge' has no attribute {name!r}")
    return getattr(importlib.import_module(f"qkv.knowledge.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
