"""The result of copyable: for every key, the query that selects it or the combination that excludes one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from qkv.design.certificates.results.base import Check, Family, Saved, Stated, labels, numbers, same, verdict


def _count(of: Sequence[float] | None) -> Check:
    """The check of a number of keys: of all, or of those that can or cannot be selected."""

    def check(saved: Saved, value: Any) -> str:
        possible = numbers(saved.first.data["possible"])
        return verdict(same(value, float(len(possible) if of is None else np.isin(possible, of).sum())))

    return check


def _answers(saved: Saved, value: Any) -> str:
    """The decisions about all keys, one for each row of the certificate, with the names of the items."""
    expected = list(_decisions(saved.first))
    if not isinstance(value, list) or len(value) != len(expected):
        return verdict(False)
    names = saved.result.get("labels")
    names = [answer["item"] for answer in value] if names is None else names
    return verdict(
        len(set(names)) == len(names) == len(value)
        and all(map(_is_decision, value, expected, names, [names] * len(value)))
    )


def _is_decision(given: dict[str, Any], row: dict[str, Any], label: Any, names: Sequence[Any]) -> bool:
    if set(given) != {"item", *row} or given["item"] != label or given["possible"] is not row["possible"]:
        return False
    members, combination = row["combination"], given["combination"]
    if members is None or combination is None:
        named = members is combination
    else:
        indices, weights = members
        named = list(combination) == [str(names[i]) for i in indices] and same(list(combination.values()), weights)
    return named and all(same(given[name], row[name]) for name in ("query", "margin", "margin_at_most"))


def _decisions(certificate: Stated) -> Iterator[dict[str, Any]]:
    data, claims = certificate.data, certificate.claims
    queries, margins = iter(data["queries"]), iter(np.atleast_1d(numbers(claims.get("margin", []))))
    offsets, weights = numbers(data["offsets"]).astype(int), numbers(data["weights"])
    indices = numbers(data["indices"]).astype(int)
    at_most, row = np.atleast_1d(numbers(claims.get("margin_at_most", []))), 0
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
                "possible": False, "query": None, "margin": None,
                "combination": (indices[span].tolist(), weights[span]), "margin_at_most": at_most[row],
            }  # fmt: skip
            row += 1


FAMILY = Family(
    kinds=frozenset({"copyable"}),
    fields={
        "labels": labels,
        "keys": _count(None),
        "possible": _count([1.0]),
        "impossible": _count([0.0]),
        "answers": _answers,
    },
)
