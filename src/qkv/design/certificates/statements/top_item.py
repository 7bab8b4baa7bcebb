"""Statement "each query's top key stays on top while no key moves as far as its radius"."""

# If every key moves by less than r, each score k·q changes by less than r‖q‖ (Cauchy-Schwarz), so a difference of two
# scores by less than 2r‖q‖: the top key stays on top for r = gap / (2‖q‖), where gap is the smallest difference between
# its score and another's. The bound is sharp: the top key moved by r against q, and the second by r along q, tie.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from qkv.core import rounding_bounds
from qkv.core.display import lower_bound
from qkv.design.certificates.ball_arithmetic import norm, products
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    matching,
    numbers,
    whole,
)

MAX_BALLS_FIRST = 16
"""Claims left open by float64 that balls decide in the first pass: one refuted claim is enough to refuse."""
ISSUE_SLACK = 4.0
"""Factor of the rounding error in an issued claim, so that any order of summation confirms it."""


def _parse(data: Data) -> dict[str, Any]:
    keys, queries = array(data, "keys", 2), array(data, "queries", 2)
    matching("the keys and the queries", keys.shape[1], queries.shape[1])
    places = {name: whole(name, numbers(data, name), len(keys) - 1) for name in ("items", "first", "last")}
    matching("queries, items, first and last", len(queries), *(len(p) for p in places.values()))
    if not ((places["first"] <= places["items"]) & (places["items"] <= places["last"])).all():
        raise InvalidCertificate("an item is not among the keys that its query reads, from first to last")
    if (places["first"] == places["last"]).any():
        raise InvalidCertificate("a query reads one key only, so that no other could be on top")
    if (~queries.any(axis=1)).any():
        raise InvalidCertificate("a query is zero, so that all keys score alike")
    return {"keys": keys, "queries": queries, **places}


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """The radius of every query: float64 with rounding bounds for all, balls for those it leaves open."""
    claimed = claims["radius"]
    low = radius_lower_bounds(
        p["keys"], p["queries"], p["items"], p["first"], p["last"], slack=1.0 if claimed else ISSUE_SLACK
    )
    balls = [arb(float(v)) for v in low]
    if not claimed:
        return {"radius": balls}
    if len(claimed) not in (1, len(low)):
        raise InvalidCertificate(f"{len(claimed)} radii for {len(low)} queries")
    # The true radius is at least `low`. Where that proves the claim, `low` stands for it; elsewhere NaN, which proves
    # nothing, until balls decide.
    undecided = np.flatnonzero(~(low >= np.asarray(claimed)))
    for r in undecided:
        balls[r] = arb.nan()
    for r in undecided[: MAX_BALLS_FIRST if in_float64 else None]:
        balls[r] = _radius(p, int(r))
    return {"radius": balls}


def radius_lower_bounds(keys: Any, queries: Any, items: Any, first: Any, last: Any, *, slack: float = 1.0) -> Any:
    """Rigorous lower bounds on the radius of each query; see `rounding_bounds.top_margin_lower_bounds`."""
    margins = rounding_bounds.top_margin_lower_bounds(keys, queries, items, first, last, slack=slack)
    halves = margins / 2
    return np.where(2 * halves == margins, halves, np.nextafter(halves, -np.inf))  # a subnormal half may round up


def _radius(p: dict[str, Any], r: int) -> Any:
    start, stop, item = int(p["first"][r]), int(p["last"][r]) + 1, int(p["items"][r])
    scores = products(p["keys"][start:stop], p["queries"][r])
    own = scores.pop(item - start)
    rival = scores[0]
    for s in scores[1:]:
        rival = rival.max(s)
    return (own - rival) / (2 * norm(arb(float(x)) for x in p["queries"][r]))


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    count = len(np.atleast_1d(data["items"]))
    radii = np.sort(np.broadcast_to(np.asarray(claims["radius"], dtype=float), (count,)))[::-1]
    least = lower_bound(float(radii[-1]), 3)
    if count == 1:
        item = name(int(np.atleast_1d(data["items"])[0]))
        return (
            f"the query scores key {item} highest of the keys that it reads, and still does if every key moves by less "
            f"than {least}"
        )
    half = lower_bound(float(radii[(count + 1) // 2 - 1]), 3)
    return (
        f"each of {count} queries scores its item's key highest of the keys that it reads, and still does if every key "
        f"moves by less than {least}; at least half of them do if every key moves by less than {half}"
    )


TOP_ITEM = Statement(
    fields=("keys", "queries", "items", "first", "last"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"radius": ">="},
    required=("radius",),
    positive=("radius",),
    claim_names={"radius": "how far every key may move, for each query"},
    float64_first=lambda data: True,
)
