"""Public names of a package that are imported when they are first used: `import qkv` stays instant."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's __getattr__, __dir__ and __all__, for public names and the module below it that each lives in."""
    every = sorted(home)

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home[name]}"), name)

    return find, lambda: every, every
