"""Keep the memory that tensors free: asking the system for it again at every step costs as much as the arithmetic."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

LARGEST = 1 << 30
TRIM, MMAP = -1, -3  # mallopt's names for the two thresholds


@cache
def reuse_memory() -> bool:
    """Let glibc serve large tensors from memory that the process already has; whether that worked.

    By default every tensor above some 32 MB is mapped and unmapped, page by page, each time it is made.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None)
        return bool(libc.mallopt(MMAP, LARGEST) and libc.mallopt(TRIM, 2 * LARGEST - 1))
    except (OSError, AttributeError):
        return False
