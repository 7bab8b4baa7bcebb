"""The result of wire: matrices and how near each rule comes, or from which norm on there may be some."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkv.design.certificates.results.base import (
    NOT_SHOWN,
    UNCOVERED,
    Check,
    Family,
    Saved,
    are_numbers,
    labels,
    norm_at_least,
    numbers,
    of_claim,
    of_data,
    same,
    tolerance,
    verdict,
)

FOUND = "wiring"
NONE = ("no wiring", "no wiring within tol")


def _possible(saved: Saved, value: Any) -> str:
    if saved.first.kind in NONE:
        return verdict(value is False)
    within = bool(np.max(numbers(saved.first.claims["distance"])) <= saved.tol)
    return verdict(value is True and within, NOT_SHOWN)


def _head_size(saved: Saved, value: Any) -> str:
    """The rows of Q, or 0 where there is none."""
    return verdict(same(value, float(len(saved.first.data["Q"]) if saved.first.kind == FOUND else 0)))


def _rules(saved: Saved, value: Any) -> str:
    """The reading tokens; where some of the rules cannot be followed, all of them cannot."""
    held = saved.first.data.get("rules")
    if held is None:
        return UNCOVERED
    if saved.first.kind == FOUND or not are_numbers(value) or not isinstance(value, list):
        return verdict(same(value, held))
    tokens = set(range(len(saved.first.data["X"])))
    whole = len(set(value)) == len(value) and set(value) <= tokens
    return verdict(whole and set(numbers(held).tolist()) <= set(value))


def _each_rule(name: str) -> Check:
    """The check of a bound for each rule, of which there is none where no matrices were found."""

    def check(saved: Saved, value: Any) -> str:
        if saved.first.kind in NONE:
            return verdict(value == [], UNCOVERED)
        if name not in saved.first.claims:
            return UNCOVERED
        rules = saved.first.data.get("rules", saved.first.data.get("reads"))
        whole = isinstance(value, list) and rules is not None and len(value) == len(rules)
        return verdict(whole and same(value, saved.first.claims[name]))

    return check


FAMILY = Family(
    kinds=frozenset({FOUND, *NONE}),
    fields={
        "labels": labels,
        "possible": _possible,
        "Q": of_data("Q"),
        "K": of_data("K"),
        "V": of_data("V"),
        "head_size": _head_size,
        "rules": _rules,
        "distances": _each_rule("distance"),
        "output_distances": _each_rule("output"),
        "residual": of_claim("residual"),
        "tol": lambda saved, value: tolerance(saved, value, (FOUND, *NONE)),
        "least_norm": norm_at_least(FOUND, *NONE),
    },
    unsaved=frozenset({"status", "reasons", "says"}),
)
