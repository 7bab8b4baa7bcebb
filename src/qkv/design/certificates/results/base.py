"""What the checks of all results share: the result with its certificates, and comparisons of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from qkv.core.types import FloatArray


class Stated(Protocol):
    """A certificate, or its record in a file."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
    @property
    def claims(self) -> Mapping[str, Any]: ...


UNCOVERED = "no certificate covers it"
NOT_SHOWN = "its certificate does not show it"
DIFFERENT = "it is not what the certificate holds"
NEAR = 1e-8
"""Relative error of what a result has in float64: a vector in two spans, the output of a token."""
PRECISION = 512
"""Bits of what is computed again."""


@dataclasses.dataclass(frozen=True)
class Saved:
    """A result and the certificates beside it.

    Attributes:
        result: The fields of the result, as JSON holds them.
        certificates: The certificates of the same file, at least one.
    """

    result: Mapping[str, Any]
    certificates: Sequence[Stated]

    @property
    def first(self) -> Stated:
        return self.certificates[0]

    @property
    def tol(self) -> float:
        """The tolerance of the result.

        Raises:
            ValueError: It is not a number between 0 and 1.
        """
        tol = self.result["tol"]
        if not is_number(tol) or not 0 < tol < 1:
            raise ValueError("tol is not a number between 0 and 1")
        return float(tol)

    def claiming(self, name: str, *kinds: str) -> list[Stated]:
        """The certificates of these kinds that make a claim."""
        return [each for each in self.certificates if each.kind in kinds and name in each.claims]


Check = Callable[[Saved, Any], str]
"""From a result and the value of one of its fields, which is not null, to what is wrong with it, or ""."""


@dataclasses.dataclass(frozen=True)
class Family:
    """The fields that results of one kind have in a file.

    Attributes:
        kinds: Kinds of their first certificate.
        fields: The check of each field that is saved.
        unsaved: Fields that are printed, but not saved, since no certificate shows them.
        beside: Kinds of further certificates.
    """

    kinds: frozenset[str]
    fields: Mapping[str, Check]
    unsaved: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()


def verdict(holds: bool, why: str = DIFFERENT) -> str:
    return "" if holds else why


def of_data(name: str) -> Check:
    """The check that a field is an array of the first certificate."""
    return lambda saved, value: verdict(same(value, saved.first.data[name])) if name in saved.first.data else UNCOVERED


def of_claim(name: str) -> Check:
    """The check that a field is a claim of the first certificate, or the largest of its numbers."""

    def check(saved: Saved, value: Any) -> str:
        if name not in saved.first.claims:
            return UNCOVERED
        return verdict(is_number(value) and same(value, numbers(saved.first.claims[name]).max()))

    return check


def norm_at_least(*kinds: str) -> Check:
    """The check that a field is a bound on norms, which certificates of some kinds state for the result's tol."""

    def check(saved: Saved, value: Any) -> str:
        held = saved.claiming("norm_at_least", *kinds)
        if not held:
            return UNCOVERED
        bounds = [each.claims["norm_at_least"] for each in held if same(saved.tol, each.data["tol"])]
        return verdict(any(same(value, bound) for bound in bounds))

    return check


def tolerance(saved: Saved, value: Any, kinds: Iterable[str]) -> str:
    """Check that the tolerance of a result is that of its certificates of some kinds, where these have one."""
    try:
        tol = saved.tol
    except ValueError:
        return "it is not between 0 and 1"
    return verdict(all(same(tol, each.data.get("tol", tol)) for each in saved.certificates if each.kind in kinds))


def labels(saved: Saved, value: Any) -> str:
    """Check labels: nothing certifies a name, but each item must have its own."""
    items = next((saved.first.data[name] for name in ("keys", "X") if name in saved.first.data), None)
    plain = isinstance(value, list) and all(
        isinstance(each, str | int) and not isinstance(each, bool) for each in value
    )
    if not plain or len(set(map(str, value))) != len(value):
        return "it is no list of different names"
    if items is None:
        return UNCOVERED
    return verdict(len(items) == len(value), f"it names {len(value)} items, and there are {len(items)}")


def numbers(value: Any) -> FloatArray:
    return np.asarray(value, dtype=np.float64)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same numbers in the same shape, or both null."""
    if one is None or other is None:
        return one is None and other is None
    return are_numbers(one) and np.array_equal(numbers(one), numbers(other))


def is_number(value: Any) -> bool:
    """Whether a value of JSON is one number that float64 holds: no truth value, nor a text that looks like a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= 2**53 or (abs(value) < 2**1024 and int(float(value)) == value)
    return isinstance(value, np.number | float)


def are_numbers(value: Any) -> bool:
    """Whether JSON holds numbers alone, at any depth."""
    if isinstance(value, list):
        return all(map(are_numbers, value))
    return isinstance(value, np.ndarray) or is_number(value)
