"""Ctrl-C while a library in another language works is delivered afterwards, and is never called damage."""

import os
import signal
import threading

import pytest

from qkv.core.interrupts import interrupts_delayed
from qkv.train import run_files


def press():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_at_the_end_of_the_block_and_the_handler_is_restored():
    done, before = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupts_delayed():
        press()
        done.append("the rest of the block")
    assert done and signal.getsignal(signal.SIGINT) is before
    with interrupts_delayed():
        pass


def test_an_interrupt_replaces_the_error_that_a_library_made_of_it():
    with pytest.raises(KeyboardInterrupt), interrupts_delayed():
        press()
        raise TypeError("could not determine the shape of the object")
    with pytest.raises(TypeError), interrupts_delayed():
        raise TypeError("an error of its own")


def test_a_handler_of_the_caller_gets_it():
    got = []
    before = signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    try:
        with interrupts_delayed():
            press()
            assert got == []
        assert got == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_and_ignored_interrupts_are_left_alone():
    seen = []

    def work():
        with interrupts_delayed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_delayed():
            press()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_checkpoint_that_is_being_read_is_not_called_damaged(tmp_path, monkeypatch):
    """As safetensors does when it is interrupted: the KeyboardInterrupt is gone, and another error comes out."""

    class Interrupted:
        def __init__(self, *_):
            press()
            raise TypeError("could not determine the shape of object type 'torch.storage.UntypedStorage'")

    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.setattr(run_files, "safe_open", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_files.read_weights(tmp_path)
