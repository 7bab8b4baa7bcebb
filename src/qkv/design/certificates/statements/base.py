"""What a kind of statement must offer to be checked, and how its raw data is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qkv.design.certificates.ball_arithmetic import Array

Data = Mapping[str, Any]
Name = Callable[[int], str]
Bounds = Mapping[str, list[float]]
Measured = dict[str, Any]
"""Balls by the name of the claim they decide; a list of balls where a claim has one bound an item."""


class InvalidCertificate(Exception):
    """The data of a certificate that does not even state something."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """How statements of one kind are read, measured and told.

    `measure(parsed, rough, claims)` recomputes every quantity in ball arithmetic at the working precision; with
    `rough` it may use float64 with an explicit rounding bound instead, which `large(data)` asks for. The claims
    only tell it what is worth computing.
    """

    fields: tuple[str, ...]
    """The names that data may hold: what is not checked must not stand in a certificate."""
    parse: Callable[[Data], Any]
    measure: Callable[..., Measured]
    says: Callable[..., str]
    """From data and claims, and perhaps a name for each key or item, else its number."""
    senses: Mapping[str, str]
    required: tuple[str, ...]
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    large: Callable[[Data], bool] = lambda data: False
    positive: tuple[str, ...] = ()
    """Claims that say nothing unless they are above 0."""
    exact: tuple[str, ...] = ()
    """Claims that a count of exceptions is 0; no other bound on it says anything."""


def numbers(data: Data, name: str) -> Array:
    """Numbers as float64; words, complex numbers and lists of unequal lengths are none."""
    value = np.asarray(data[name])
    if value.size and value.dtype.kind not in "biuf":
        raise InvalidCertificate(f"{name} holds something that is no real number")
    return np.asarray(value, dtype=np.float64)


def array(data: Data, name: str, dims: int) -> Array:
    """A finite float64 array with that many axes."""
    value = numbers(data, name)
    if value.ndim != dims or value.size == 0:
        raise InvalidCertificate(f"{name} has shape {value.shape}, not {dims} filled axes")
    if not np.isfinite(value).all():
        raise InvalidCertificate(f"{name} has entries that are NaN or infinite")
    return value


def indices(data: Data, name: str, n: int) -> list[int]:
    """Distinct whole numbers from 0 to n-1."""
    raw = np.atleast_1d(numbers(data, name))
    if raw.size == 0:
        raise InvalidCertificate(f"{name} is not a list of item numbers")
    found = whole(name, raw, n - 1).tolist()
    if len(set(found)) != len(found):
        raise InvalidCertificate(f"{name} names an item twice")
    return [int(i) for i in found]


def whole(name: str, raw: Array, most: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A list of whole numbers from 0 to `most`."""
    if raw.ndim != 1 or not ((raw >= 0) & (raw <= most) & (raw == np.floor(raw))).all():
        raise InvalidCertificate(f"{name} must be whole numbers from 0 to {most}, not {raw.tolist()[:6]}")
    return raw.astype(np.int64)


def scalar(data: Data, name: str) -> float:
    """One number."""
    value = numbers(data, name)
    if value.ndim:
        raise InvalidCertificate(f"{name} has shape {value.shape}, and one number is wanted")
    return float(value)


def tolerance(data: Data) -> float:
    """The leak that is allowed, between 0 and 1."""
    tol = scalar(data, "tol")
    if not 0 < tol < 1:
        raise InvalidCertificate(f"tol is {tol}, not between 0 and 1")
    return tol


def matching(what: str, *sizes: int) -> None:
    """Refuse sizes that differ."""
    if len(set(sizes)) != 1:
        raise InvalidCertificate(f"{what} do not fit each other: sizes {sizes}")


def distribution(data: Data, name: str, size: int) -> Array:
    """Positive weights that sum to 1 within rounding."""
    w = array(data, name, 1)
    matching(f"{name} and its items", w.shape[0], size)
    if (w <= 0).any() or abs(float(w.sum()) - 1) > 1e-9:
        raise InvalidCertificate(f"{name} must be positive and sum to 1, but the sum is {float(w.sum()):.12g}")
    return w
