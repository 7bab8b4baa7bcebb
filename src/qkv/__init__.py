"""qkv tells what attention looks up, and when to trust it."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported until it is used: `import qkv` stays instant.
_HOME = {
    "Memory": "qkv.core.memory",
    "Reading": "qkv.core.attention",
    "Verdict": "qkv.claims.verdict",
    "Verdicts": "qkv.claims.verdict",
    "check": "qkv.claims.check",
    "attend": "qkv.core.attention",
    "attend_heads": "qkv.core.attention",
    "self_attention": "qkv.core.attention",
    "QkvError": "qkv.errors",
}
_PACKAGES = ("claims", "core", "design", "knowledge", "model", "noise", "train")

__all__ = sorted([*_HOME, *_PACKAGES])


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"qkv.{name}")
    raise AttributeError(f"module 'qkv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
