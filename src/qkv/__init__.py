"""qkv tells what attention looks up, and when to trust it."""

from __future__ import annotations

import importlib
import os

from qkv._lazy import submodule

__version__ = "0.1.0"

# torch then asks for huge pages for large arrays, where Linux leaves that to programs: a tenth to a fifth less time
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

TYPE_CHECKING = False  # as in typing, whose import would take longer than all of this module
if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from typing import Any

    from qkv import claims as claims
    from qkv import core as core
    from qkv import design as design
    from qkv import knowledge as knowledge
    from qkv import model as model
    from qkv import noise as noise
    from qkv import train as train
    from qkv.claims.pipeline import check as check
    from qkv.claims.verdict import Verdict as Verdict
    from qkv.claims.verdict import Verdicts as Verdicts
    from qkv.core.attention import Reading as Reading
    from qkv.core.attention import attend as attend
    from qkv.core.attention import attend_heads as attend_heads
    from qkv.core.attention import self_attention as self_attention
    from qkv.core.memory import Memory as Memory
    from qkv.errors import QkvError as QkvError
else:
    _HOME = {
        "Memory": "qkv.core.memory",
        "Reading": "qkv.core.attention",
        "Verdict": "qkv.claims.verdict",
        "Verdicts": "qkv.claims.verdict",
        "check": "qkv.claims.pipeline",
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
        return submodule("qkv", name)

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
