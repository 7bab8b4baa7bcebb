"""glibc malloc tuning: keep freed memory in the process, in huge pages, instead of mapping it anew at every step."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

MAX_HEAP_BLOCK = 1 << 30  # bytes; larger blocks are still mapped and unmapped
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # mallopt's parameters, from malloc.h
HUGE_PAGE = 1 << 21  # bytes
MADV_HUGEPAGE = 14  # madvise's advice, from sys/mman.h


@cache
def reuse_memory(large_pages: bool = False) -> bool:
    """Let glibc serve large tensors from memory that the process already has. Returns whether that worked.

    By default every tensor above some 32 MB is mapped when it is made and unmapped when it is freed, and touching fresh
    pages at every step costs as much as the arithmetic. Huge pages are slow to get (milliseconds each) and then some
    per cent faster to use: for work that takes minutes. It holds for the whole process, since glibc cannot report
    the previous values; it changes speed and memory use only, and calling it again does nothing.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None)
        done = bool(
            libc.mallopt(M_MMAP_THRESHOLD, MAX_HEAP_BLOCK) and libc.mallopt(M_TRIM_THRESHOLD, 2 * MAX_HEAP_BLOCK - 1)
        )
        if done and large_pages:
            _advise_huge_pages(libc, MAX_HEAP_BLOCK - 2 * HUGE_PAGE)
        return done
    except (OSError, AttributeError):
        return False


def _advise_huge_pages(libc: Any, size: int) -> None:
    """Ask that the next `size` bytes of the heap are huge pages; none is allocated before it is written to."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = libc.malloc(size)
    if start is None:
        return
    first, last = -(-start // HUGE_PAGE) * HUGE_PAGE, (start + size) // HUGE_PAGE * HUGE_PAGE
    libc.madvise(first, last - first, MADV_HUGEPAGE)
    libc.free(start)
