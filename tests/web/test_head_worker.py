"""The process for heads: limits, refusals, and that it comes back."""

import os
import time

import pytest

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.head_worker import HeadWorker


def refuse():
    raise QkvError("a", "b", "c")


@pytest.mark.slow
def test_it_keeps_its_process_and_comes_back_after_a_death_and_a_slow_request(run_coroutine):
    worker = HeadWorker(seconds=60)

    async def requests():
        first = await worker.run("x", os.getpid)
        assert await worker.run("x", os.getpid) == first != str(os.getpid()).encode()
        with pytest.raises(QkvError, match="a: b"):
            await worker.run("x", refuse)
        with pytest.raises(limits.HttpRefusal, match="ended early"):
            await worker.run("x", os._exit, 3)
        assert await worker.run("x", os.getpid) != first
        worker._seconds = 0.2
        with pytest.raises(limits.HttpRefusal, match=r"longer than 0\.2 s"):
            await worker.run("x", time.sleep, 30)
        worker._seconds = 60
        assert await worker.run("x", max, 1, 2) == b"2"

    try:
        run_coroutine(requests())
    finally:
        worker.close()


def test_the_queue_is_bounded(run_coroutine):
    worker = HeadWorker()
    worker._queued = limits.MAX_QUEUED_HEADS
    with pytest.raises(limits.HttpRefusal, match="waiting"):
        run_coroutine(worker.run("x", max, 1, 2))
    worker.close()
