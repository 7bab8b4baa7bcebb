"""From a specification to a query or matrices, with a certificate.

Reading order: specs (validated requests); query, projection, wiring, reachability and leakage (one question each);
sequences (heads for many texts); solvers (the programs behind them) and hull (which keys can be selected);
certificates (what was found, checked again from the raw inputs, without any solver).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkv._lazy import lazily

if TYPE_CHECKING:  # what editors and mypy see; at run time the same names are imported when they are first used
    from qkv.design.certificates.certificate import Certificate as Certificate
    from qkv.design.certificates.certificate import Verification as Verification
    from qkv.design.hull.selectable import Copyable as Copyable
    from qkv.design.hull.selectable import copyable as copyable
    from qkv.design.leakage import Leak as Leak
    from qkv.design.leakage import leak as leak
    from qkv.design.projection import Projection as Projection
    from qkv.design.projection import project as project
    from qkv.design.query import Design as Design
    from qkv.design.query import blend as blend
    from qkv.design.query import copy as copy
    from qkv.design.reachability import Reachability as Reachability
    from qkv.design.reachability import reach as reach
    from qkv.design.sequences.circuit import Circuit as Circuit
    from qkv.design.sequences.gpt2 import to_gpt2 as to_gpt2
    from qkv.design.sequences.rules import ReadRule as ReadRule
    from qkv.design.sequences.rules import duplicate as duplicate
    from qkv.design.sequences.rules import induction as induction
    from qkv.design.sequences.rules import previous as previous
    from qkv.design.sequences.text_wiring import wire_texts as wire_texts
    from qkv.design.sequences.texts import Sequences as Sequences
    from qkv.design.sequences.texts import Vocabulary as Vocabulary
    from qkv.design.wiring import Wiring as Wiring
    from qkv.design.wiring import check_wiring as check_wiring
    from qkv.design.wiring import wire as wire
else:
    _HOME = {
        "copy": "query",
        "blend": "query",
        "Design": "query",
        "project": "projection",
        "Projection": "projection",
        "wire": "wiring",
        "Wiring": "wiring",
        "check_wiring": "wiring",
        "reach": "reachability",
        "Reachability": "reachability",
        "copyable": "hull.selectable",
        "Copyable": "hull.selectable",
        "leak": "leakage",
        "Leak": "leakage",
        "Vocabulary": "sequences.texts",
        "Sequences": "sequences.texts",
        "ReadRule": "sequences.rules",
        "previous": "sequences.rules",
        "duplicate": "sequences.rules",
        "induction": "sequences.rules",
        "wire_texts": "sequences.text_wiring",
        "Circuit": "sequences.circuit",
        "to_gpt2": "sequences.gpt2",
        "Certificate": "certificates.certificate",
        "Verification": "certificates.certificate",
    }
    __getattr__, __dir__, __all__ = lazily(__name__, _HOME)
