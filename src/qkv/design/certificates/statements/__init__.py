"""Registry of the kinds of statement that a certificate can make."""

from __future__ import annotations

from qkv.design.certificates.statements.base import InvalidCertificate as InvalidCertificate
from qkv.design.certificates.statements.base import Statement as Statement
from qkv.design.certificates.statements.every_text import EVERY_TEXT
from qkv.design.certificates.statements.given_texts import GIVEN_TEXTS, NO_HEAD_FOR_TEXTS
from qkv.design.certificates.statements.hull import COPYABLE, INSIDE, SELECTS
from qkv.design.certificates.statements.no_wiring import NO_WIRING, NO_WIRING_WITHIN
from qkv.design.certificates.statements.projection import INTERSECTION, PROJECTION
from qkv.design.certificates.statements.reachability import UNREACHABLE
from qkv.design.certificates.statements.top_item import TOP_ITEM
from qkv.design.certificates.statements.total_variation import NO_QUERY_WITHIN
from qkv.design.certificates.statements.weights import NO_QUERY, WEIGHTS
from qkv.design.certificates.statements.wiring import WIRING

KINDS: dict[str, Statement] = {
    "weights": WEIGHTS,
    "no query": NO_QUERY,
    "no query within tol": NO_QUERY_WITHIN,
    "selects": SELECTS,
    "top item": TOP_ITEM,
    "inside": INSIDE,
    "copyable": COPYABLE,
    "projection": PROJECTION,
    "intersection": INTERSECTION,
    "wiring": WIRING,
    "no wiring": NO_WIRING,
    "no wiring within tol": NO_WIRING_WITHIN,
    "unreachable": UNREACHABLE,
    "every text": EVERY_TEXT,
    "given texts": GIVEN_TEXTS,
    "no head for given texts": NO_HEAD_FOR_TEXTS,
}

__all__ = ["KINDS", "InvalidCertificate", "Statement"]
