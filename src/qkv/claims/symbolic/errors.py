"""Exceptions of the symbolic part: Unsupported, WrongShape, TooLarge, NeedSign."""

from __future__ import annotations

from typing import Any

from qkv.claims.syntax import nodes as L


class Unsupported(Exception):
    """A statement that the symbolic part cannot reason about; numerical instances may still decide it."""


class TooLarge(Exception):
    """An expression above the size limit."""


class WrongShape(Exception):
    """Operands whose shapes do not fit; `hard` if a number and a vector were combined, wrong in every dimension."""

    def __init__(self, at: L.At, message: str, hard: bool, expected: str = "") -> None:
        super().__init__(message)
        self.at, self.hard, self.expected = at, hard, expected


class NeedSign(Exception):
    """The proof could go on if the sign of `expr` were known: the range of a number may be split there."""

    def __init__(self, expr: Any) -> None:
        super().__init__(str(expr))
        self.expr = expr
