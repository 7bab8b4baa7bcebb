"""The result of wire_texts: for which texts a head reads by a rule, and how near."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkv.design.certificates.results.base import (
    NOT_SHOWN,
    UNCOVERED,
    Family,
    Saved,
    is_number,
    norm_at_least,
    of_claim,
    same,
    tolerance,
    verdict,
)
from qkv.design.certificates.statements import KINDS

EVERY, GIVEN, NONE = "every text", "given texts", "no head for given texts"


def _possible(saved: Saved, value: Any) -> str:
    if saved.first.kind == NONE:
        return verdict(value is False)
    return verdict(value is True and float(saved.first.claims["distance"]) <= saved.tol, NOT_SHOWN)


def _scope(saved: Saved, value: Any) -> str:
    return verdict(value == (EVERY if saved.first.kind == EVERY else GIVEN))


def _rule(saved: Saved, value: Any) -> str:
    """The name of the rule and its sink. A certificate about given texts numbers only the tokens that they hold, in
    order; the sink of the result has the number that it has among all, which nothing certifies."""
    if not isinstance(value, dict) or set(value) != {"name", "sink"} or value["name"] != saved.first.data["rule"]:
        return verdict(False)
    sink, held = value["sink"], saved.first.data.get("sink")
    if saved.first.kind == EVERY or sink is None or held is None:
        return verdict(same(sink, held))
    return verdict(is_number(sink) and float(sink).is_integer() and sink >= float(held))


def _rules(saved: Saved, value: Any) -> str:
    """How many rules the given texts hold."""
    if saved.first.kind == EVERY:
        return UNCOVERED
    return verdict(same(value, float(sum(map(len, KINDS[saved.first.kind].parse(saved.first.data)["rules"])))))


def _distance(saved: Saved, value: Any) -> str:
    """The certified one; or 1, which bounds every distance, where no head was found."""
    return verdict(same(value, 1.0)) if saved.first.kind == NONE else of_claim("distance")(saved, value)


def _excluded(saved: Saved, value: Any) -> str:
    return verdict(isinstance(value, list) and same(value, np.atleast_1d(saved.first.data.get("excluded", []))))


FAMILY = Family(
    kinds=frozenset({EVERY, GIVEN, NONE}),
    fields={
        "possible": _possible,
        "scope": _scope,
        "rule": _rule,
        "rules": _rules,
        "tol": lambda saved, value: tolerance(saved, value, (GIVEN, NONE)),
        "distance": _distance,
        "excluded": _excluded,
        "least_norm": norm_at_least(GIVEN, NONE),
    },
    unsaved=frozenset({"status", "norm", "reasons", "says"}),
)
