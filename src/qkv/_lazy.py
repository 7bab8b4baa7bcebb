"""Public names of a package that are imported when they are first used: `import qkv` stays instant."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any


def submodule(package: str, name: str) -> ModuleType:
    """The module of this name in a package: type checkers allow it after `import qkv`, so Python must too."""
    if name.startswith("__") or importlib.util.find_spec(f"{package}.{name}") is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = importlib.import_module(f"{package}.{name}")
    if hasattr(found, "__path__") and "__getattr__" not in vars(found):  # a package: its modules are found the same way
        vars(found)["__getattr__"] = partial(submodule, f"{package}.{name}")
    return found


def lazily(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """A package's __getattr__, __dir__ and __all__, for public names and the module below it that each lives in."""
    every = sorted(home)

    def find(name: str) -> Any:
        if name not in home:
            return submodule(package, name)
        return getattr(importlib.import_module(f"{package}.{home[name]}"), name)

    return find, lambda: every, every
