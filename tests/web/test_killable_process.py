"""A killable process: answers, is killed at a deadline, and is started again."""

import os
import signal
import time

import pytest

from qkv.web.killable_process import KillableProcess


def echo(pipe, word):
    """Answers with the word; sleeps first if it is asked to."""
    while True:
        asked = pipe.recv()
        time.sleep(asked if isinstance(asked, float) else 0)
        pipe.send((word, asked, os.getpid()))


@pytest.fixture
def process():
    made = KillableProcess(echo, "yes")
    yield made
    made.stop()


def ask(process, what, seconds=60.0):
    pipe = process.start()
    pipe.send(what)
    return process.receive(pipe, time.monotonic() + seconds)


def test_it_stays_the_same_process_until_a_deadline_kills_it(process):
    word, asked, first = ask(process, "a")
    assert (word, asked) == ("yes", "a") and ask(process, "b")[2] == first
    start = time.monotonic()
    assert ask(process, 60.0, seconds=0.3) is None
    assert time.monotonic() - start < 20
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert ask(process, "c")[2] != first


def test_one_that_was_killed_from_outside_is_started_again(process):
    first = ask(process, "a")[2]
    os.kill(first, signal.SIGKILL)
    process._process.join(10)
    assert ask(process, "b")[2] != first
