"""A wanted behaviour in, a query or matrices out, with a certificate."""

from __future__ import annotations

from qkv.lazy import lazily

_HOME = {
    "copy": "query",
    "blend": "query",
    "Design": "query",
    "project": "subspace",
    "Projection": "subspace",
    "wire": "wiring",
    "Wire": "wiring",
    "check_wiring": "wiring",
    "reach": "steering",
    "Reach": "steering",
    "copyable": "vertices",
    "Copyable": "vertices",
    "leak": "leaks",
    "Leak": "leaks",
    "Certificate": "certificate",
    "Verification": "certificate",
}

__getattr__, __dir__, __all__ = lazily(__name__, _HOME)
