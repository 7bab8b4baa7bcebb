"""The compute pool: processes where they are ready, threads otherwise; one torch thread; a bounded queue."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import torch

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.compute_pool import ComputePool, SingleTorchThread


def run(coroutine):
    """Runs a coroutine in a thread: the main one may hold the event loop of a browser."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


def process_id():
    return {"pid": os.getpid()}


def refuse():
    raise QkvError("request", "problem", "hint")


def test_calls_run_in_processes_once_they_are_ready_and_in_threads_until_then():
    async def scenario():
        pool = ComputePool(processes=1, restart_seconds=0.0)
        try:
            first = json.loads(await pool.run_in_process("where", process_id))["pid"]
            while not pool._ready:
                await asyncio.sleep(0.05)
            second = json.loads(await pool.run_in_process("where", process_id))["pid"]
            with pytest.raises(QkvError, match="problem"):
                await pool.run_in_process("refusing", refuse)
            os.kill(second, signal.SIGKILL)
            third = json.loads(await pool.run_in_process("where", process_id))["pid"]
            while (fourth := json.loads(await pool.run_in_process("where", process_id))["pid"]) == third:
                await asyncio.sleep(0.05)
            return first, second, third, fourth
        finally:
            pool.close()

    first, second, third, fourth = run(scenario())
    assert first == third == os.getpid() and len({first, second, fourth}) == 3


@pytest.mark.slow
def test_processes_that_died_are_not_restarted_before_the_restart_time():
    async def scenario():
        pool = ComputePool(processes=1, restart_seconds=600.0)
        try:
            await pool.run_in_process("where", process_id)
            while not pool._ready:
                await asyncio.sleep(0.05)
            os.kill(json.loads(await pool.run_in_process("where", process_id))["pid"], signal.SIGKILL)
            found = [json.loads(await pool.run_in_process("where", process_id))["pid"] for _ in range(3)]
            return found, pool._processes
        finally:
            pool.close()

    found, processes = run(scenario())
    assert set(found) == {os.getpid()} and processes is None


def test_calls_beyond_the_queue_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_QUEUED_COMPUTATIONS", 0)

    async def scenario():
        pool = ComputePool(processes=0)
        try:
            await pool.run("where", process_id)
        finally:
            pool.close()

    with pytest.raises(limits.HttpRefusal) as refused:
        run(scenario())
    assert refused.value.status == 503


def torch_threads(barrier=None):
    if barrier is not None:
        barrier.wait(20)
    return torch.get_num_threads()


def in_new_thread(function):
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


@pytest.fixture
def three_torch_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_torch_uses_one_thread_in_a_call_and_the_caller_s_count_is_unchanged(three_torch_threads):
    async def scenario():
        pool = ComputePool(threads=2, processes=0)
        try:
            for _ in range(2):  # twice: a worker thread that served before has a count of its own
                barrier = threading.Barrier(2)
                calls = (pool.run("counting", torch_threads, barrier) for _ in range(2))
                assert [json.loads(found) for found in await asyncio.gather(*calls)] == [1, 1]
                assert json.loads(await pool.run("counting", torch_threads)) == 1
                assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3
            with pytest.raises(QkvError):
                await pool.run("refusing", refuse)
        finally:
            pool.close()
        assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3

    run(scenario())
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3


def test_overlapping_blocks_restore_the_count_when_the_last_one_ends(three_torch_threads):
    single = SingleTorchThread()
    with single:
        with single:
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_a_pool_that_is_made_or_closed_changes_no_thread_count(three_torch_threads):
    async def scenario():
        ComputePool(processes=0).close()

    run(scenario())
    assert torch.get_num_threads() == 3


def warm_up():
    os.environ["QKV_TEST_WARM"] = str(os.getpid())


def warmed_in():
    return {"pid": os.getpid(), "warm": os.environ.get("QKV_TEST_WARM"), "threads": torch.get_num_threads()}


@pytest.mark.slow
def test_the_warm_up_runs_in_the_processes_before_they_are_used():
    async def scenario():
        pool = ComputePool(processes=1, warm_up=warm_up)
        try:
            await pool.run_in_process("where", process_id)
            while not pool._ready:
                await asyncio.sleep(0.05)
            return json.loads(await pool.run_in_process("where", warmed_in))
        finally:
            pool.close()

    found = run(scenario())
    assert found == {"pid": found["pid"], "warm": str(found["pid"]), "threads": 1} and found["pid"] != os.getpid()


def fail():
    raise RuntimeError("no")


@pytest.mark.slow
def test_processes_whose_warm_up_fails_are_not_used():
    async def scenario():
        pool = ComputePool(processes=1, warm_up=fail)
        try:
            await pool.run_in_process("where", process_id)
            while pool._processes is not None:
                await asyncio.sleep(0.05)
            return json.loads(await pool.run_in_process("where", process_id))["pid"]
        finally:
            pool.close()

    assert run(scenario()) == os.getpid()


KILLED_SERVER = """
import asyncio, json, os, signal
from qkv.web.compute_pool import ComputePool

async def main():
    pool = ComputePool(processes=1)
    await pool.run_in_process("where", os.getpid)
    while not pool._ready:
        await asyncio.sleep(0.05)
    print(json.loads(await pool.run_in_process("where", os.getpid)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.slow
def test_the_processes_of_a_server_that_was_killed_end(tmp_path):
    (tmp_path / "server.py").write_text(KILLED_SERVER, encoding="utf-8")
    done = subprocess.run([sys.executable, tmp_path / "server.py"], stdout=subprocess.PIPE, text=True, timeout=120)
    pid, end = int(done.stdout), time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
            time.sleep(0.05)
