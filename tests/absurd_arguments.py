"""Calls of every public function with absurd arguments; prints the raw errors by function as JSON.

Run as a program: the tests' own type checks would refuse the arguments first.
"""

import inspect
import json
import math
import os
import sys
import tempfile

import numpy as np

import qkv
from qkv.errors import QkvError

PACKAGES = ("core", "design", "noise", "claims", "model", "train", "knowledge")
UNCHECKED = {("core", "softmax")}  # on tensors, documented as unchecked
LONG = {("knowledge", "trust"), ("knowledge", "study"), ("knowledge", "train_mixed"), ("train", "pretrain"),
        ("train", "finetune")}  # fmt: skip
"""They may train for long where an argument is allowed; only their first argument is made absurd."""
FUNCTIONS = [
    (package, name)
    for package in PACKAGES
    for name in getattr(qkv, package).__all__
    if not inspect.isclass(getattr(getattr(qkv, package), name)) and (package, name) not in UNCHECKED
]
MEMORY = qkv.Memory(np.eye(3), labels=["a", "b", "c"])
GOOD = {
    "memory": MEMORY,
    "keys": np.eye(3),
    "values": np.eye(3),
    "query": [1.0, 0.0, 0.0],
    "queries": np.eye(3)[:2],
    "X": np.eye(3),
    "A": np.eye(3)[:, :1],
    "B": np.eye(3)[:, 1:],
    "item": "a",
    "wanted": {"a": 1.0},
    "weights": {"a": 1.0},
    "noise": qkv.noise.Gaussian(isotropic=0.01),
    "layouts": {"one": [1.0, 0.0, 0.0]},
    "reads": {0: 1},
    "writes": {0: [1.0, 0.0, 0.0]},
    "token": 0,
    "along": [1.0, 0.0, 0.0],
    "target": [1.0, 0.0, 0.0],
    "radius": 0.1,
    "Q": np.eye(3),
    "K": np.eye(3),
    "V": np.eye(3),
    "tol": 0.01,
    "output_tol": 1.0,
    "text": "nothing",
    "name": "tiny",
    "n_draws": 10,
    "heads": 1,
    "run": "nowhere",
    "out": "nowhere/x",
}


def absurd():
    values = [
        None,
        "a",
        object(),
        [],
        math.nan,
        10**20,
        -1,
        True,
        {},
        np.ma.MaskedArray([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    ]
    try:
        import pandas as pd
    except ImportError:
        return values
    return [*values, pd.Series([1.0, 2.0], index=["a", "z"]), pd.DataFrame({"x": ["a", "b"]})]


def calls(pair):
    """(name of the argument, arguments) of each call with one absurd argument among usable ones."""
    parameters = inspect.signature(getattr(getattr(qkv, pair[0]), pair[1])).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    usable = {p.name: GOOD.get(p.name, "nowhere") for p in named if p.default is p.empty}
    for parameter in named[:1] if pair in LONG else named:
        for value in absurd():
            yield parameter.name, {**usable, parameter.name: value}


def raw_errors(pair):
    """Outcomes that are neither a result nor a refusal of one line."""
    function, raw = getattr(getattr(qkv, pair[0]), pair[1]), []
    for name, arguments in calls(pair):
        shown = f"{name} = a {type(arguments[name]).__name__}"
        try:
            function(**arguments)
        except QkvError as refusal:
            raw += [f"{shown}: several lines"] * ("\n" in str(refusal))
        except Exception as error:
            raw.append(f"{shown}: {type(error).__name__}: {str(error)[:80]}")
    return raw


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    packages = sys.argv[1:] or PACKAGES
    found = {".".join(pair): raw_errors(pair) for pair in FUNCTIONS if pair[0] in packages}
    sys.stdout.write(json.dumps(found) + "\n")
