"""Exceptions of claims about arrays."""

from __future__ import annotations


class Unsupported(Exception):
    """A form that cannot be reasoned about; exact instances may still decide the claim."""


class NoValue(Exception):
    """An expression without a value on an instance, or one that the precision does not show."""
