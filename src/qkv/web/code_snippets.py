"""Python code that computes the numbers of a reply: what "Copy as Python" copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def lookup(
    keys: Any,
    values: Any,
    labels: Any,
    query: Any,
    scale: float,
    wanted: Any,
    curve: tuple[float | None, int] = (None, 0),
) -> str:
    """Code that reads a memory, and computes the leak against scale.

    `curve` is the last scale, or None where the library chooses the scales, and the number of points.
    """
    end, points = curve
    scales = "" if end is None else f", scales=np.linspace(0.0, {end!r}, {points})"
    return "\n".join(
        [
            *([] if end is None else ["import numpy as np", ""]),
            "from qkv import Memory",
            "from qkv.design import leak",
            "",
            *_memory(keys, values, labels),
            f"query = {_vector(query)}",
            f"reading = memory.read(query, scale={scale!r})",
            f"leaks = leak(memory, query, {list(wanted)!r}{scales})",
            "print(reading)",
            "print(leaks)",
            "",
        ]
    )


def design(verb: str, keys: Any, values: Any, labels: Any, wanted: Any, tol: float) -> str:
    """Code that designs a query by `verb`, copy or blend, for the wanted item or weights."""
    return "\n".join(
        [
            "from qkv import Memory",
            f"from qkv.design import {verb}",
            "",
            *_memory(keys, values, labels),
            f"design = {verb}(memory, {wanted!r}, tol={tol!r})",
            "reading = memory.read(design.query)",
            "print(design)",
            "",
        ]
    )


def noise(
    n: int, along: float, isotropic: float, scale: float, heads: int, radius: float, n_samples: int, seed: int
) -> str:
    """Code that computes the figures of the three layouts under noise."""
    return "\n".join(
        [
            "import numpy as np",
            "",
            "from qkv import Memory",
            "from qkv.noise import Gaussian, layout_reports, reference_layouts",
            "",
            f'memory = Memory(np.eye({n}), labels=[*"abcdefgh"[:{n}], *range(9, {n + 1})])',
            f'noise = Gaussian(isotropic={isotropic!r}, along={{"a": {along!r}}})',
            f'wanted = dict.fromkeys("{"abcdefgh"[:heads]}", 1 / {heads})',
            f"layouts = reference_layouts(memory, wanted, noise, {scale!r})",
            "reports = layout_reports(",
            f"    memory, layouts, noise, wanted, {radius!r}, n_samples={n_samples!r}, seed={seed!r}",
            ")",
            "for report in reports:",
            "    print(report)",
            "",
        ]
    )


def wiring(X: Any, reads: Mapping[int, Any], writes: Mapping[int, Any], tol: float, beta: float, possible: bool) -> str:
    """Code that designs Q, K and V, and applies them to vectors of length β."""
    return "\n".join(
        [
            "import numpy as np",
            "",
            "from qkv import self_attention",
            "from qkv.design import wire",
            "",
            *_matrix("X", X),
            f"wired = wire(X, {dict(reads)!r}, {dict(writes)!r}, tol={tol!r})",
            *([f"reading = self_attention({beta!r} * X, wired.Q, wired.K, wired.V)"] if possible else []),
            "print(wired)",
            "",
        ]
    )


def check(text: str, seconds: float) -> str:
    """Code that checks the claims of a text."""
    return "\n".join(
        [
            "from qkv import check",
            "",
            f"text = {text!r}",
            f"verdicts = check(text, seconds={seconds!r})",
            "print(verdicts)",
            "",
        ]
    )


def ask(folder: str, question: str, temporary: bool = False) -> str:
    """Code that asks a model; `temporary` says that its folder is removed when the server stops."""
    warning = "# This folder is removed when the server stops: keep the model on the page first."
    return "\n".join(
        [
            *([warning, ""] if temporary else []),
            "from qkv.knowledge import ask",
            "from qkv.train import load",
            "",
            f"run = load({folder!r})",
            f"answer = ask(run, {question!r})",
            "print(answer)",
            "",
        ]
    )


def _memory(keys: Any, values: Any, labels: Any) -> list[str]:
    return ["memory = Memory(", *_rows("keys", keys), *_rows("values", values), f"    labels={list(labels)!r},", ")"]


def _rows(name: str, rows: Sequence[Any]) -> list[str]:
    return [f"    {name}=[", *(f"        {_vector(row)}," for row in rows), "    ],"]


def _matrix(name: str, rows: Sequence[Any]) -> list[str]:
    return [f"{name} = np.array([", *(f"    {_vector(row)}," for row in rows), "])"]


def _vector(row: Sequence[Any]) -> str:
    return "[" + ", ".join(repr(float(x)) for x in row) + "]"
