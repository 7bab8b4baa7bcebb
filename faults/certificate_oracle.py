"""The independent judge of certificates, and their corruptions, from the folder of tests.

The judge shares no code with qkv's checker; see tests/design/certificates/oracle.py.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from faults.processes import ROOT


@cache
def module_of_tests(path: str) -> ModuleType:
    """A module of the folder of tests, by its path in it."""
    folder, name = str((ROOT / "tests" / path).parent), Path(path).stem
    if folder not in sys.path:
        sys.path.insert(0, folder)  # such modules import each other by name
    return importlib.import_module(name)


def oracle() -> ModuleType:
    """`truth(kind, data, claims)`: whether a certificate says something, and that something is true."""
    return module_of_tests("design/certificates/oracle.py")


def oracle_of_texts() -> ModuleType:
    """The same for every kind; of statements about texts, it reads every text."""
    return module_of_tests("design/certificates/oracle_texts.py")


def corruptions() -> ModuleType:
    """SOURCES of genuine certificates, `saved`, `corrupt` and `pack`."""
    return module_of_tests("design/certificates/corruptions.py")
