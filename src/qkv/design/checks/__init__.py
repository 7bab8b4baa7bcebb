"""The kinds of statement that a certificate can make, in one table."""

from __future__ import annotations

from qkv.design.checks.hull import COPYABLE, INSIDE, SELECTS
from qkv.design.checks.kind import Kind, Refused
from qkv.design.checks.projection import INTERSECTION, PROJECTION
from qkv.design.checks.reach import UNREACHABLE
from qkv.design.checks.weights import NO_QUERY, WEIGHTS
from qkv.design.checks.wiring import NO_WIRING, WIRING

KINDS: dict[str, Kind] = {
    "weights": WEIGHTS,
    "no query": NO_QUERY,
    "selects": SELECTS,
    "inside": INSIDE,
    "copyable": COPYABLE,
    "projection": PROJECTION,
    "intersection": INTERSECTION,
    "wiring": WIRING,
    "no wiring": NO_WIRING,
    "unreachable": UNREACHABLE,
}

__all__ = ["KINDS", "Kind", "Refused"]
