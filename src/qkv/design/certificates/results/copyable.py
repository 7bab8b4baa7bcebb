"""The result of copyable: for every key, the query that selects it or the combination that excludes one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from qkv.core.types import FloatArray
from qkv.design.certificates.results.base import Check, Family, Saved, Stated, labels, numbers, same, verdict

NEGLIGIBLE = 1e-9
"""A key counts as one that no query selects if no margin is above this fraction of the radius of the keys."""

WHOLE = 1e-9
"""Weights of a combination sum to 1 to within this."""


def negligible_margin(keys: FloatArray) -> float:
    """The margin up to which a key counts as one that no query selects.

    Args:
        keys: Keys as rows.

    Returns:
        NEGLIGIBLE times the largest distance of a key from their mean.
    """
    half = np.abs(keys).max() > 2.0**1000  # differences of larger ones may overflow
    from_first = keys * 0.5 - keys[0] * 0.5 if half else keys - keys[0]  # without a common part, which only rounds
    exponent = int(np.frexp(np.abs(from_first).max())[1])  # squares of scaled vectors neither overflow nor underflow
    scaled = np.ldexp(from_first, -exponent)
    radius = float(np.linalg.norm(scaled - scaled.mean(axis=0), axis=1).max())
    return math.nextafter(math.ldexp(NEGLIGIBLE * radius, exponent + int(half)), 0.0)


def _count(of: bool | None) -> Check:
    """The check of a number of keys: of those with a decision, or of those that are undecided."""
    return lambda saved, value: verdict(same(value, float([row["possible"] for row in _rows(saved)].count(of))))


def _keys(saved: Saved, value: Any) -> str:
    return verdict(same(value, float(len(saved.first.data["keys"]))))


def _answers(saved: Saved, value: Any) -> str:
    """The decisions about all keys, one for each row of the certificate, with the names of the items."""
    expected = _rows(saved)
    if not isinstance(value, list) or len(value) != len(expected):
        return verdict(False)
    names = saved.result.get("labels")
    names = [answer["item"] for answer in value] if names is None else names
    plain = all(isinstance(name, str | int) and not isinstance(name, bool) for name in names)
    return verdict(
        plain
        and len(set(map(str, names))) == len(names) == len(value)
        and all(map(_is_decision, value, expected, names, [names] * len(value)))
    )


def _is_decision(given: dict[str, Any], row: dict[str, Any], label: Any, names: Sequence[Any]) -> bool:
    if set(given) != {"item", *row} or given["possible"] is not row["possible"]:
        return False
    if type(given["item"]) is not type(label) or given["item"] != label:  # True is not 1
        return False
    members, combination = row["combination"], given["combination"]
    if members is None or combination is None:
        named = members is combination
    else:
        indices, weights = members
        named = list(combination) == [str(names[i]) for i in indices] and same(list(combination.values()), weights)
        named = named and abs(float(np.sum(weights)) - 1) <= WHOLE
    return named and all(same(given[name], row[name]) for name in ("query", "margin", "margin_at_most"))


def _rows(saved: Saved) -> list[dict[str, Any]]:
    return list(_decisions(saved.first))


def _decisions(certificate: Stated) -> Iterator[dict[str, Any]]:
    """For each key whether a query selects it: yes, no, or, where the bound on margins is not negligible, unknown."""
    data, claims = certificate.data, certificate.claims
    queries, margins = iter(data["queries"]), iter(np.atleast_1d(numbers(claims.get("margin", []))))
    offsets, weights = numbers(data["offsets"]).astype(int), numbers(data["weights"])
    indices = numbers(data["indices"]).astype(int)
    at_most, row = np.atleast_1d(numbers(claims.get("margin_at_most", []))), 0
    negligible = negligible_margin(numbers(data["keys"]))
    for possible in numbers(data["possible"]):
        if possible:
            margin = float(next(margins))
            yield {
                "possible": True, "query": next(queries), "margin": margin if math.isfinite(margin) else None,
                "combination": None, "margin_at_most": None,
            }  # fmt: skip
        else:
            span = slice(offsets[row], offsets[row + 1])
            yield {
                "possible": False if at_most[row] <= negligible else None, "query": None, "margin": None,
                "combination": (indices[span].tolist(), weights[span]), "margin_at_most": at_most[row],
            }  # fmt: skip
            row += 1


FAMILY = Family(
    kinds=frozenset({"copyable"}),
    fields={
        "labels": labels,
        "keys": _keys,
        "possible": _count(True),
        "impossible": _count(False),
        "undecided": _count(None),
        "answers": _answers,
    },
)
