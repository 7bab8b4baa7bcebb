"""Keep the memory that tensors free, in large pages: asking for it anew at every step costs as much as arithmetic."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

LARGEST = 1 << 30
TRIM, MMAP = -1, -3  # mallopt's names for the two thresholds
PAGE = 1 << 21  # a large page, in bytes
HUGE = 14  # madvise's name for "in large pages, please"


@cache
def reuse_memory(large_pages: bool = False) -> bool:
    """Let glibc serve large tensors from memory that the process already has; whether that worked.

    By default every tensor above some 32 MB is mapped and unmapped, page by page, each time it is made. Large pages are
    slow to get (milliseconds each) and then faster to use by some per cent: for work that takes minutes.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None)
        kept = bool(libc.mallopt(MMAP, LARGEST) and libc.mallopt(TRIM, 2 * LARGEST - 1))
        if kept and large_pages:
            _in_large_pages(libc, LARGEST - 2 * PAGE)
        return kept
    except (OSError, AttributeError):
        return False


def _in_large_pages(libc: Any, size: int) -> None:
    """Ask that the next `size` bytes of the heap come in large pages; none is taken before it is written to."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = libc.malloc(size)
    if start is None:
        return
    first, last = -(-start // PAGE) * PAGE, (start + size) // PAGE * PAGE
    libc.madvise(first, last - first, HUGE)
    libc.free(start)
