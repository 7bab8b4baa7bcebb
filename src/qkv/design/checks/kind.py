"""What a kind of statement must offer to be checked, and how its raw data is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qkv.design.balls import Array

Data = Mapping[str, Any]
Bounds = Mapping[str, list[float]]
Measured = dict[str, Any]
"""Balls by the name of the claim they decide; a list of balls where a claim has one bound an item."""


class Refused(Exception):
    """The data of a certificate that does not even state something."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """How statements of one kind are read, measured and told.

    `measure(parsed, rough, claims)` recomputes every quantity in ball arithmetic at the working precision; with
    `rough` it may use float64 with an explicit rounding bound instead, which `large(data)` asks for. The claims
    only tell it what is worth computing.
    """

    parse: Callable[[Data], Any]
    measure: Callable[..., Measured]
    says: Callable[[Data, Mapping[str, Any]], str]
    senses: Mapping[str, str]
    required: tuple[str, ...]
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    large: Callable[[Data], bool] = lambda data: False
    positive: tuple[str, ...] = ()
    """Claims that say nothing unless they are above 0."""


def array(data: Data, name: str, dims: int) -> Array:
    """A finite float64 array with that many axes."""
    value = np.asarray(data[name], dtype=np.float64)
    if value.ndim != dims or value.size == 0:
        raise Refused(f"{name} has shape {value.shape}, not {dims} filled axes")
    if not np.isfinite(value).all():
        raise Refused(f"{name} has entries that are NaN or infinite")
    return value


def indices(data: Data, name: str, n: int) -> list[int]:
    """Distinct whole numbers from 0 to n-1."""
    raw = np.atleast_1d(np.asarray(data[name], dtype=np.float64))
    if raw.ndim != 1 or raw.size == 0 or not np.isfinite(raw).all():
        raise Refused(f"{name} is not a list of item numbers")
    found = [int(v) for v in raw]
    if any(i != v or not 0 <= i < n for i, v in zip(found, raw, strict=True)):
        raise Refused(f"{name} must be whole numbers from 0 to {n - 1}, not {raw.tolist()[:6]}")
    if len(set(found)) != len(found):
        raise Refused(f"{name} names an item twice")
    return found


def matching(what: str, *sizes: int) -> None:
    """Refuse sizes that differ."""
    if len(set(sizes)) != 1:
        raise Refused(f"{what} do not fit each other: sizes {sizes}")


def distribution(data: Data, name: str, size: int) -> Array:
    """Positive weights that sum to 1 within rounding."""
    w = array(data, name, 1)
    matching(f"{name} and its items", w.shape[0], size)
    if (w <= 0).any() or abs(float(w.sum()) - 1) > 1e-9:
        raise Refused(f"{name} must be positive and sum to 1, but the sum is {float(w.sum()):.12g}")
    return w
