"""Random keys in, the spread of the weights and of the output out."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Gaussian": "models",
    "Quantised": "models",
    "spread": "exact",
    "Spread": "exact",
    "sample": "sampling",
    "Sample": "sampling",
    "within": "chance",
    "Chance": "chance",
    "distribution": "laws",
    "Distribution": "laws",
    "compare": "heads",
    "Comparison": "heads",
    "harden": "hardening",
    "Hardened": "hardening",
    "steady": "steadying",
    "Steady": "steadying",
    "arms": "beside",
    "at_scale": "beside",
    "Arm": "beside",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module behind a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'qkv.noise' has no attribute {name!r}")
    return getattr(importlib.import_module(f"qkv.noise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
