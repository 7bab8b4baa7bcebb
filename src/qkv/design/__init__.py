"""A wanted behaviour in, a query or matrices out, with a certificate."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "copy": "query",
    "blend": "query",
    "Design": "query",
    "project": "subspace",
    "Projection": "subspace",
    "wire": "wiring",
    "Wire": "wiring",
    "check_wiring": "wiring",
    "reach": "steering",
    "Reach": "steering",
    "copyable": "vertices",
    "Copyable": "vertices",
    "leak": "leaks",
    "Leak": "leaks",
    "Certificate": "certificate",
    "Verification": "certificate",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import the module behind a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'qkv.design' has no attribute {name!r}")
    return getattr(importlib.import_module(f"qkv.design.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
