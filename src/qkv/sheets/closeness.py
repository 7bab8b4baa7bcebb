"""CLOSE: how near two numbers must be for ≈ where nothing grows or vanishes; formulas and answers use the same."""

from __future__ import annotations

from fractions import Fraction

CLOSE = Fraction(1, 20)
