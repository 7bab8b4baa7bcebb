"""The independent judge of certificates, and their corruptions, from the folder of tests.

The judge shares no code with qkv's checker; see tests/design/certificates/oracle.py.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from types import ModuleType

from faults.processes import ROOT


@cache
def module_of_tests(path: str) -> ModuleType:
    """A module of the folder of tests, by its path in it."""
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(f"faults_{name}", ROOT / "tests" / path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def oracle() -> ModuleType:
    """`truth(kind, data, claims)`: whether a certificate says something, and that something is true."""
    return module_of_tests("design/certificates/oracle.py")


def corruptions() -> ModuleType:
    """SOURCES of genuine certificates, `saved`, `corrupt` and `pack`."""
    return module_of_tests("design/certificates/corruptions.py")
