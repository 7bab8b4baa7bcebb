"""Proof: the outcome of a symbolic argument, with its reason and the steps that a person can follow."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.claims.semantics.ranges import Range
from qkv.claims.symbolic.factors import Scalar
from qkv.claims.syntax import nodes as L
from qkv.claims.verdict import Step

PROVED, REFUTED, CONDITIONAL, UNKNOWN = "proved", "refuted", "conditional", "unknown"


Region = tuple[Scalar, list[Range]]
"""A number, and the intervals in which it lies."""


@dataclass(frozen=True)
class Condition:
    """When a statement is true: as text, as one comparison of the language if it is one, and as intervals of a number.

    `law` is the mean and the variance of that number if it is a normal one.
    """

    text: str
    relation: L.Relation | None = None
    region: Region | None = None
    law: tuple[Scalar, Scalar] | None = None


@dataclass(frozen=True)
class Witness:
    """What makes a statement true that was said to be impossible: a number, or a query as text.

    `beside` are the values of other numbers for which it does so.
    """

    name: str
    value: Scalar | str
    beside: tuple[tuple[str, Scalar], ...] = ()

    @property
    def number(self) -> float | None:
        """The value as a number; None for a query, or for an expression in other numbers."""
        return None if isinstance(self.value, str) or not self.value.is_number else float(self.value)

    def assignment(self) -> str:
        """The witness as assignments that Python accepts."""
        if isinstance(self.value, str) or not self.value.is_number:
            return f"{self.name} = {str(self.value)!r}"
        every = (*self.beside, (self.name, self.value))
        return "\n".join(f"{name} = {v if v.is_Rational else repr(float(v))}" for name, v in every)


@dataclass(frozen=True)
class Proof:
    """The outcome of a symbolic argument.

    Attributes:
        kind: PROVED, REFUTED, CONDITIONAL or UNKNOWN.
        because: The reason, in one sentence.
        steps: The derivation.
        probability: With which a limit holds, where that depends on the random keys.
        sure: Whether a refutation shows the contrary for all values, so that it needs no counterexample.
        condition: When the statement is true, of a conditional one.
        place: Values of numbers, as equations, at which an order fails.
        witness: The number or query that does what was said to be impossible.
    """

    kind: str
    because: str
    steps: tuple[Step, ...] = ()
    probability: float | None = None
    sure: bool = False
    condition: Condition | None = None
    place: tuple[L.Relation, ...] = ()
    witness: Witness | None = None
