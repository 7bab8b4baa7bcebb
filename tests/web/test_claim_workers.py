"""Claims are decided beside the server: a heavy one is ended, a flood is refused, nothing else waits."""

import asyncio
import concurrent.futures
import os
import signal
import time

import pytest

from qkv.web import limits
from qkv.web.claim_workers import ClaimWorkers

GOOD = "```claim fine\ngiven k_1..k_n free, q free\nthen alpha_i >= 0\n```\n"
BLOCK = """```claim heavy {i}
given k_1..k_n orthonormal, n >= 3
let q = t*(k_a + {i}*k_b)
then alpha_a -> 1/{i} as t -> oo
```
"""
HEAVY = "".join(BLOCK.replace("{i}", str(i)) for i in range(2, 40))


def run(work, **options):
    async def alive():
        checkers = ClaimWorkers(**options)
        try:
            return await work(checkers)
        finally:
            checkers.close()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # this thread may hold the loop of a browser
        return pool.submit(asyncio.run, alive()).result()


def test_when_the_time_for_a_text_is_up_what_was_decided_stands_and_the_rest_is_undecided():
    async def work(checkers):
        await checkers.check(GOOD)  # the process is up
        checkers.seconds = 1.0
        start = time.monotonic()
        late = await checkers.check(GOOD + HEAVY)
        took = time.monotonic() - start
        checkers.seconds = 60.0
        return late, took, await checkers.check(GOOD)

    (verdicts, complete), took, (after, whole) = run(work)
    assert len(verdicts) == 39 and not complete and took < 30
    assert verdicts[0]["verdict"] == "proved"
    assert verdicts[-1]["verdict"] == "undecided" and "1 s" in verdicts[-1]["because"]
    assert [v["verdict"] for v in after] == ["proved"] and whole


def test_a_checker_that_dies_is_a_refusal_and_the_next_text_gets_a_new_one():
    async def work(checkers):
        await checkers.check(GOOD)
        victim = checkers._all[0]._process
        task = asyncio.ensure_future(checkers.check(HEAVY))
        await asyncio.sleep(0.3)
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(limits.HttpRefusal) as refused:
            await task
        return refused.value.status, await checkers.check(GOOD)

    status, (after, whole) = run(work, count=1)
    assert status == 503 and whole and after[0]["verdict"] == "proved"


def test_too_many_texts_at_once_are_told_to_come_back(client):
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: client.post("/api/check", json={"text": GOOD}), range(20)))
    assert {f.status_code for f in found} <= {200, 503} and any(f.status_code == 200 for f in found)


def test_too_many_claims_are_refused(client):
    text = "```claim\ngiven q free\n" + "then 1 = 1\n" * 25 + "```\n"
    found = client.post("/api/check", json={"text": text * 9})
    assert found.status_code == 413 and "225 claims" in found.json()["error"]["came"]
    assert client.post("/api/check", json={"text": "x" * (limits.MOST_TEXT + 1)}).status_code == 422


def test_while_claims_are_decided_others_are_served(client):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.post, "/api/check", json={"text": HEAVY[:4000]})
        time.sleep(0.1)
        for _ in range(5):
            start = time.monotonic()
            assert client.get("/api/health").status_code == 200
            assert time.monotonic() - start < 15
        assert slow.result().status_code == 200


def test_the_report_is_the_page_that_check_writes(client):
    found = client.post("/api/check/report", json={"text": GOOD})
    assert found.headers["content-disposition"].startswith("attachment") and "✓ proved: fine" in found.text
    assert "--item-a" in found.text and "<script" not in found.text
