"""Time limit for one claim: by a signal in the main thread, by a profiler hook in any other."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

MIN_SECONDS = 1e-3  # a timer of 0 seconds would be switched off
REPEAT_SECONDS = 0.25


class TimedOut(BaseException):
    """The time limit was reached. Not an Exception, so that no library's `except Exception` catches it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimedOut in the body after `seconds`, even if it never checks the time.

    Limits may be nested: an outer one goes on while an inner one runs, and applies again when that has ended.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        yield from _by_signal(seconds)
    else:
        yield from _by_profiler(seconds)


def _by_signal(seconds: float) -> Iterator[None]:
    """By SIGALRM, which Python handles between two bytecodes of the main thread."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimedOut

    start = time.monotonic()
    outer, repeat = signal.getitimer(signal.ITIMER_REAL)
    limit = max(min(seconds, outer) if outer else seconds, MIN_SECONDS)
    old = signal.signal(signal.SIGALRM, stop)
    # Repeated: an exception that is raised inside a destructor or a callback is lost, the next one is not.
    signal.setitimer(signal.ITIMER_REAL, limit, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        if outer:
            left = outer - (time.monotonic() - start)
            signal.setitimer(signal.ITIMER_REAL, max(left, MIN_SECONDS), repeat)


def _by_profiler(seconds: float) -> Iterator[None]:
    """By a hook at every call and return of this thread, which costs less than one at every line."""
    end = time.monotonic() + seconds

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        if time.monotonic() > end:
            raise TimedOut
        return None

    old = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(old)
