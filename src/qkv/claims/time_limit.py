"""A bound on the time of one claim that also stops code which never looks at a clock."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TimedOut(BaseException):
    """The time is up. Not an Exception, so that no library's `except Exception` swallows it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimedOut in the body after `seconds`: by a signal in the main thread, by tracing lines in any other."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        yield from _by_signal(seconds)
    else:
        yield from _by_trace(seconds)


def _by_signal(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimedOut

    old = signal.signal(signal.SIGALRM, stop)
    # Repeated: a first alarm that falls into a destructor or a callback is swallowed there, the next is not.
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), 0.25)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _by_trace(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if time.monotonic() > end:
            raise TimedOut
        return None

    old = sys.getprofile()
    sys.setprofile(look)  # called at every call and return: cheaper than at every line
    try:
        yield
    finally:
        sys.setprofile(old)
