"""Tokens, objectives, one step loop, checkpoints: training that does not lose work."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Settings": "settings",
    "pretrain": "runs",
    "finetune": "runs",
    "resume_run": "runs",
    "load": "runs",
    "Run": "runs",
    "Trained": "loop",
    "Job": "loop",
    "train": "loop",
    "History": "log",
    "Characters": "tokens",
    "BytePairs": "tokens",
    "generate": "generation",
    "Generated": "generation",
    "export": "outgoing",
    "bring": "incoming",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module behind a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'qkv.train' has no attribute {name!r}")
    return getattr(importlib.import_module(f"qkv.train.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
