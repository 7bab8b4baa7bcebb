"""Heavy figures come from processes beside the server, and from its threads where there are none."""

import asyncio
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.compute_pool import ComputePool


def run(work):
    """In a thread of its own: this one may hold the loop of a browser."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def where():
    return {"pid": os.getpid()}


def refuse():
    raise QkvError("asked", "came", "remedy")


def test_work_goes_to_the_processes_once_they_are_up_and_to_threads_until_they_are_up_again():
    async def work():
        made = ComputePool(aside=1, calm=0.0)
        try:
            first = json.loads(await made.run_aside("where", where))["pid"]
            while not made._up:
                await asyncio.sleep(0.05)
            second = json.loads(await made.run_aside("where", where))["pid"]
            with pytest.raises(QkvError, match="came"):
                await made.run_aside("refusing", refuse)
            os.kill(second, signal.SIGKILL)
            third = json.loads(await made.run_aside("where", where))["pid"]
            while (fourth := json.loads(await made.run_aside("where", where))["pid"]) == third:
                await asyncio.sleep(0.05)
            return first, second, third, fourth
        finally:
            made.close()

    first, second, third, fourth = run(work())
    assert first == third == os.getpid() and len({first, second, fourth}) == 3


def test_processes_that_die_again_and_again_are_not_started_at_once():
    async def work():
        made = ComputePool(aside=1, calm=600.0)
        try:
            await made.run_aside("where", where)
            while not made._up:
                await asyncio.sleep(0.05)
            os.kill(json.loads(await made.run_aside("where", where))["pid"], signal.SIGKILL)
            found = [json.loads(await made.run_aside("where", where))["pid"] for _ in range(3)]
            return found, made._processes
        finally:
            made.close()

    found, processes = run(work())
    assert set(found) == {os.getpid()} and processes is None


def test_too_many_waiting_are_told_to_come_back(monkeypatch):
    monkeypatch.setattr(limits, "MOST_WAITING", 0)

    async def work():
        made = ComputePool(aside=0)
        try:
            await made.run("where", where)
        finally:
            made.close()

    with pytest.raises(limits.HttpRefusal) as refused:
        run(work())
    assert refused.value.status == 503
