"""Delay Ctrl-C while a library in another language works, which would make an error of its own of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Deliver a Ctrl-C that arrives inside the block at its end, instead of any exception of the block.

    Without it, an interrupt inside safetensors or tokenizers can come out as an error about the file, and an intact
    file would be called damaged. Outside of the main thread, which alone gets KeyboardInterrupt, it does nothing.

    Example:
        >>> import os, signal
        >>> from qkv.core.interrupts import interrupts_delayed
        >>> try:
        ...     with interrupts_delayed():
        ...         os.kill(os.getpid(), signal.SIGINT)
        ...         print("the block goes on")
        ... except KeyboardInterrupt:
        ...     print("and then it is interrupted")
        the block goes on
        and then it is interrupted
    """
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived and callable(before):
            before(*arrived[0])
