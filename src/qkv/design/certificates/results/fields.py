"""Which fields of a result are saved beside its certificates, and whether each is what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qkv.design.certificates.results import circuit, copyable, projection, query, reachability, wiring
from qkv.design.certificates.results.base import DIFFERENT, Family, Saved, Stated, numbers

FAMILIES = tuple(module.FAMILY for module in (query, copyable, projection, wiring, reachability, circuit))
UNCHECKED = "nothing checks a field of this name"
EVIDENCE = {"tol", "multipliers", "mix", "others", "indices", "weights", "normal", "range"}
"""Data that prove a statement. Other data say what it is about: where two certificates hold one, it is the same."""
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, ArithmeticError)
"""What reading a certificate raises that is none."""


class Difference(NamedTuple):
    """A field of a result that is not what the certificates say."""

    field: str
    why: str


def kept(result: Mapping[str, Any], certificates: Sequence[Stated]) -> dict[str, Any]:
    """The fields of a result that are saved: all but those that no certificate shows, such as sentences.

    Args:
        result: The fields of a result.
        certificates: Its certificates.

    Returns:
        The fields, in their order.

    Raises:
        ValueError: If a field is neither checked nor one that is left out; the message names it.
    """
    family = _family(certificates)
    foreign = [name for name in result if name not in family.fields and name not in family.unsaved]
    if foreign:
        raise ValueError(", ".join(map(repr, foreign)))
    return {name: value for name, value in result.items() if name in family.fields}


def differences(result: Mapping[str, Any], certificates: Sequence[Stated]) -> Iterator[Difference]:
    """Fields of a result that are not what the certificates show; fields that nothing checks are among them.

    Of names of items it is checked that they differ and stand in the right places. A field that is null says nothing.

    Args:
        result: The fields of the result, as JSON holds them.
        certificates: The certificates of the same file, which hold.

    Yields:
        One `Difference` for each such field.
    """
    if not result:
        return
    family, saved = _family(certificates), Saved(result, certificates)
    try:
        apart = _apart(saved, family)
    except BROKEN:
        apart = "certificates"
    if apart:
        yield Difference(apart, "the certificates of the file are not about the same")
    for field, value in result.items():
        if field not in family.fields:
            yield Difference(field, UNCHECKED)
        elif value is not None:
            try:
                why = family.fields[field](saved, value)
            except BROKEN:
                why = DIFFERENT
            if why:
                yield Difference(field, why)


def _family(certificates: Sequence[Stated]) -> Family:
    """The kind of result whose first certificate this is; of others there is none, and it has no fields."""
    kind = certificates[0].kind if certificates else None
    return next((family for family in FAMILIES if kind in family.kinds), Family(frozenset(), {}))


def _apart(saved: Saved, family: Family) -> str:
    """What certificates of one result disagree about: keys, wanted weights, a query; "" if they are about the same."""
    if not {each.kind for each in saved.certificates[1:]} <= family.beside:
        return "certificates"
    held: dict[str, Any] = {}
    for each in saved.certificates:
        for name, value in each.data.items():
            if name in held and name not in EVIDENCE and not _alike(held[name], value):
                return name
            held.setdefault(name, value)
    if "item" in held and "items" in held and numbers(held["item"]) not in numbers(held["items"]):
        return "item"
    return ""


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(np.array_equal(numbers(one), numbers(other)))
