"""Claim workers: time limits, dead processes, a bounded queue, and other requests meanwhile."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from marks import some

from qkv.web import limits
from qkv.web.claim_examples import FIRST_EXAMPLE
from qkv.web.claim_workers import ClaimWorkers

GOOD = "```claim fine\ngiven k_1..k_n free, q free\nthen alpha_i >= 0\n```\n"
BLOCK = """```claim heavy {i}
given k_1..k_n orthonormal, n >= 3
let q = t*(k_a + {i}*k_b)
then alpha_a -> 1/{i} as t -> oo
```
"""
HEAVY = "".join(BLOCK.replace("{i}", str(i)) for i in range(2, 40))


def run(scenario, **options):
    async def with_workers():
        workers = ClaimWorkers(**options)
        try:
            return await scenario(workers)
        finally:
            workers.close()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the main thread may hold the event loop of a browser
        return pool.submit(asyncio.run, with_workers()).result()


def test_claims_that_are_not_decided_within_the_time_limit_are_undecided():
    async def scenario(workers):
        await workers.check(GOOD)  # starts the process
        workers.check_seconds = 1.0
        start = time.monotonic()
        late = await workers.check(GOOD + HEAVY)
        took = time.monotonic() - start
        workers.check_seconds = 60.0
        return late, took, await workers.check(GOOD)

    (verdicts, complete), took, (after, whole) = run(scenario)
    assert len(verdicts) == 39 and not complete and took < 30
    assert verdicts[0]["verdict"] == "proved"
    assert verdicts[-1]["verdict"] == "undecided" and "1 s" in verdicts[-1]["because"]
    assert [v["verdict"] for v in after] == ["proved"] and whole


def test_after_a_worker_died_the_next_text_gets_a_new_one():
    async def scenario(workers):
        await workers.check(GOOD)
        victim = workers._workers[0]._process
        task = asyncio.ensure_future(workers.check(HEAVY))
        await asyncio.sleep(0.3)
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(limits.HttpRefusal) as refused:
            await task
        return refused.value.status, await workers.check(GOOD)

    status, (after, whole) = run(scenario, count=1)
    assert status == 503 and whole and after[0]["verdict"] == "proved"


def test_texts_beyond_the_queue_are_refused(client):
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: client.post("/api/check", json={"text": GOOD}), range(20)))
    assert {f.status_code for f in found} <= {200, 503} and any(f.status_code == 200 for f in found)


def test_too_many_claims_are_refused(client):
    text = "```claim\ngiven q free\n" + "then 1 = 1\n" * 25 + "```\n"
    found = client.post("/api/check", json={"text": text * 9})
    assert found.status_code == 413 and "225 claims" in found.json()["error"]["problem"]
    assert client.post("/api/check", json={"text": "x" * (limits.MAX_CLAIM_TEXT + 1)}).status_code == 422


@pytest.mark.slow
def test_other_requests_are_served_while_claims_are_decided(client):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.post, "/api/check", json={"text": HEAVY[:4000]})
        time.sleep(0.1)
        for _ in range(5):
            start = time.monotonic()
            assert client.get("/api/health").status_code == 200
            assert time.monotonic() - start < 15
        assert slow.result().status_code == 200


def test_a_worker_whose_server_was_killed_ends():
    """The parent starts a worker and is killed; the worker, which waits on its pipe, must not live on."""
    code = (
        "import os; from qkv.web.claim_workers import ClaimWorker; worker = ClaimWorker(5.0); "
        f"worker.check({GOOD!r}, 60.0); print(worker._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=120)
    pid, end = int(done.stdout), time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.slow
def test_a_started_worker_has_decided_the_first_example_before_a_text_comes():
    """Its process is there at once; it imports no torch for it, which takes longer than everything else."""

    async def scenario(workers):
        workers.start()
        process = workers._workers[0]._process
        first = await workers.check(FIRST_EXAMPLE)
        return process.pid, workers._workers[0]._process.pid, first

    before, after, (verdicts, whole) = run(scenario)
    assert before == after and whole
    assert [v["verdict"] for v in verdicts] == ["proved", "proved", "conditional", "refuted"]


@pytest.mark.slow
def test_after_the_first_text_every_worker_is_started():
    async def scenario(workers):
        await workers.check(GOOD)
        return [worker._process is not None and worker._process.is_alive() for worker in workers._workers]

    assert run(scenario) == [True, True]


@pytest.mark.parametrize("module", some(["qkv.web.server", "qkv.web.claim_workers"], ["qkv.web.claim_workers"]))
def test_the_server_and_a_worker_start_without_torch(module):
    code = (
        f"import sys, {module}\n"
        "from qkv.web.claim_workers import CachedVerdicts\nfrom qkv.web.claim_examples import FIRST_EXAMPLE\n"
        "from qkv.claims.syntax.markdown import read\n"
        "decide = CachedVerdicts(60.0)\n"
        "assert [decide(claim)['verdict'] for claim in read(FIRST_EXAMPLE)][0] == 'proved'\n"
        "print([name for name in ('torch', 'scipy.signal', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
