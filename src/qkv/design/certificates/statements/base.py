"""Statement: what a kind of certificate provides; parsing and validation of raw data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qkv.core.display import number
from qkv.core.types import FloatArray, IntArray

Data = Mapping[str, Any]
"""Raw data of a certificate, as given."""
Name = Callable[[int], str]
"""Label of a key or item, from its number."""
Bounds = Mapping[str, list[float]]
"""Claimed bounds by name."""
Measured = dict[str, Any]
"""Balls by the name of the claim they decide; a list of balls where a claim has one bound per item."""


class InvalidCertificate(Exception):
    """The data of a certificate is malformed, so it states nothing."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """How statements of one kind are parsed, measured and described.

    Attributes:
        fields: Names that data may hold; other names are refused, since they would not be checked.
        parse: From raw data to validated arrays; raises InvalidCertificate.
        measure: `measure(parsed, in_float64, claims)` recomputes every quantity in ball arithmetic at the working
            precision; with `in_float64` it may use float64 with rigorous rounding bounds instead. The claims only say
            which quantities are needed.
        describe: From data, claims and a labelling of keys or items, the statement in words.
        senses: "<=" or ">=" for each claim.
        required: Claims that must be made.
        claim_names: The claims in words.
        float64_first: Whether the data is so large that float64 is tried before balls.
        positive: Claims that state nothing unless they are above 0.
        exact: Claims that a count of exceptions is 0; no other bound on it states anything.
    """

    fields: tuple[str, ...]
    parse: Callable[[Data], Any]
    measure: Callable[[Any, bool, Bounds], Measured]
    describe: Callable[[Data, Mapping[str, Any], Name], str]
    senses: Mapping[str, str]
    required: tuple[str, ...]
    claim_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    float64_first: Callable[[Data], bool] = lambda data: False
    positive: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


def numbers(data: Data, name: str) -> FloatArray:
    """An entry of the data as float64; strings, complex numbers, ragged lists and what float64 rounds are refused."""
    if np.ma.is_masked(data[name]):
        raise InvalidCertificate(f"{name} is a masked array with hidden entries")
    value = np.asarray(data[name])
    if value.size and value.dtype.kind not in "biuf":
        raise InvalidCertificate(f"{name} holds something that is no real number")
    out = np.asarray(value, dtype=np.float64)
    large = np.abs(out) >= 2.0**53
    if large.any() and (value.dtype.kind in "iu" or not isinstance(data[name], np.ndarray)):
        given = np.asarray(data[name], dtype=object)[large]  # a list of whole numbers and others is rounded by numpy
        if any(isinstance(v, int | np.integer) and int(f) != int(v) for f, v in zip(out[large], given, strict=True)):
            raise InvalidCertificate(f"{name} holds whole numbers that float64 rounds")
    if value.dtype.itemsize > 8 and not (out.astype(value.dtype) == value).all():
        raise InvalidCertificate(f"{name} holds numbers that float64 rounds")
    return out


def array(data: Data, name: str, dims: int) -> FloatArray:
    """A finite float64 array with that many axes."""
    value = numbers(data, name)
    if value.ndim != dims or value.size == 0:
        raise InvalidCertificate(f"{name} has shape {value.shape}, not {dims} nonempty axes")
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


def whole(name: str, raw: FloatArray, most: int) -> IntArray:
    """A list of whole numbers from 0 to `most`."""
    if raw.ndim != 1 or not ((raw >= 0) & (raw <= most) & (raw == np.floor(raw))).all():
        raise InvalidCertificate(f"{name} must be whole numbers from 0 to {most}, not {raw.tolist()[:6]}")
    return raw.astype(np.int64)


def scalar(data: Data, name: str) -> float:
    """One number."""
    value = numbers(data, name)
    if value.ndim:
        raise InvalidCertificate(f"{name} has shape {value.shape}, not that of one number")
    return float(value)


def tolerance(data: Data) -> float:
    """The leak allowed, between 0 and 1."""
    tol = scalar(data, "tol")
    if not 0 < tol < 1:
        raise InvalidCertificate(f"tol is {tol}, not between 0 and 1")
    return tol


def matching(what: str, *sizes: int) -> None:
    """Refuse sizes that differ."""
    if len(set(sizes)) != 1:
        raise InvalidCertificate(f"{what} do not fit each other: sizes {sizes}")


def distribution(data: Data, name: str, size: int) -> FloatArray:
    """Positive weights that sum to 1 within rounding."""
    w = array(data, name, 1)
    matching(f"{name} and its items", w.shape[0], size)
    if (w <= 0).any() or abs(float(w.sum()) - 1) > 1e-9:
        raise InvalidCertificate(f"{name} must be positive and sum to 1, but the sum is {float(w.sum()):.12g}")
    return w


def blend_text(data: Data, name: Name) -> str:
    """The wanted blend in words; a weight that four digits do not give exactly is marked as rounded."""
    pairs = zip(np.atleast_1d(data["items"]), np.atleast_1d(data["wanted"]), strict=False)
    parts = [f"{_weight_text(float(w))} of item {name(int(i))}" for i, w in pairs]
    return " + ".join(parts[:6]) + (f" + … {len(parts) - 6} more" if len(parts) > 6 else "")


def _weight_text(w: float) -> str:
    text = number(w)
    return text if float(text) == w else f"≈{text}"
