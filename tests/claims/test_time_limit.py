"""The time limit stops code that never checks the time, in the main thread and in others, and leaves nothing behind."""

import signal
import sys
import threading
import time

import pytest

from qkv.claims import time_limit


def test_the_clock_leaves_no_alarm_behind():
    with time_limit.time_limit(5):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def spin(seconds):
    """Run until stopped, catching every Exception."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            sum(map(abs, range(100)))
        except Exception:
            continue


def test_the_main_thread_is_stopped_by_a_signal():
    start = time.monotonic()
    with pytest.raises(time_limit.TimedOut), time_limit.time_limit(0.1):
        spin(20)
    assert time.monotonic() - start < 10
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_another_thread_is_stopped_by_its_profiler_hook():
    found = []

    def run():
        try:
            with time_limit.time_limit(0.1):
                spin(20)
        except time_limit.TimedOut:
            found.append(sys.getprofile())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(15)
    assert found == [None]


def test_what_is_done_in_time_goes_on():
    with time_limit.time_limit(30):
        value = sum(range(10))
    assert value == 45


def test_an_earlier_signal_handler_is_restored():
    def own(signum, frame):
        raise AssertionError("the handler of the test was called")

    before = signal.signal(signal.SIGALRM, own)
    try:
        with pytest.raises(time_limit.TimedOut), time_limit.time_limit(0.05):
            spin(20)
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


def test_it_is_no_exception_that_a_library_may_catch():
    assert not issubclass(time_limit.TimedOut, Exception)


def test_limits_nest_and_the_outer_one_goes_on():
    start = time.monotonic()
    with pytest.raises(time_limit.TimedOut), time_limit.time_limit(0.4):
        for _ in range(100):
            with time_limit.time_limit(30):  # each ends in time; the outer limit must still be there afterwards
                time.sleep(0.01)
            spin(0.05)
    assert 0.3 < time.monotonic() - start < 10
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_inner_limit_never_outlasts_the_outer_one():
    start = time.monotonic()
    with pytest.raises(time_limit.TimedOut), time_limit.time_limit(0.2), time_limit.time_limit(30):
        spin(20)
    assert time.monotonic() - start < 10
