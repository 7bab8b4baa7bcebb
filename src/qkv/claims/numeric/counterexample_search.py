"""Search for counterexamples (stub)."""

from __future__ import annotations
from collections.abc import Iterator
from qkv.claims.numeric.evaluator import Instance
from qkv.claims.semantics.quantifiers import QuantifierCase


def likely_counterexamples(case: QuantifierCase, seed: int = 0) -> Iterator[Instance]:
    yield from ()
