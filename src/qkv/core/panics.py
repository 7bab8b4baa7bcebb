"""Panics of libraries written in Rust, which are no Exception in Python, as errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PANIC = "PanicException"  # of pyo3; each library has a class of its own, which cannot be imported


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise ValueError for a panic inside the block; everything else passes.

    A damaged tokenizer.json can make the library tokenizers panic, and its exception is a BaseException, so that no
    `except Exception` sees it.

    Example:
        >>> from qkv.core.panics import panics_as_errors
        >>> class PanicException(BaseException):
        ...     pass
        >>> try:
        ...     with panics_as_errors():
        ...         raise PanicException("range end index 11 out of range")
        ... except ValueError as why:
        ...     print(why)
        range end index 11 out of range
    """
    try:
        yield
    except BaseException as why:
        if type(why).__name__ != PANIC:
            raise
        raise ValueError(str(why)) from None
