"""The worker for sheets: the grades of the library, a time limit, a dead process, a bounded queue, kept grades."""

import asyncio
import concurrent.futures
import os
import signal
import time

import pytest

from qkv.web import limits, sheet_workers
from qkv.web.sheet_workers import SheetWorkers

SHEET = "# (b)\n\nTake $q = \\beta (k_a + k_b)$ with $\\beta \\gg 0$, so $k_a^\\top q = \\beta$.\n"


def run(scenario, **options):
    async def with_workers():
        workers = SheetWorkers(**options)
        try:
            return await scenario(workers)
        finally:
            workers.close()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the main thread may hold the event loop of a browser
        return pool.submit(asyncio.run, with_workers()).result()


def stuck(pipe):
    """A process that never answers."""
    pipe.recv()
    time.sleep(600)


def test_the_grade_is_that_of_the_library_and_is_kept():
    from qkv.sheets import grade

    async def scenario(workers):
        first = await workers.grade(SHEET, None, "x.md")
        start = time.monotonic()
        return first, await workers.grade(SHEET, None, "x.md"), time.monotonic() - start

    first, again, took = run(scenario)
    assert first.to_json() == grade(SHEET, file="x.md").to_json() and first.text == SHEET
    assert again is first and took < 0.1


def test_a_sheet_that_takes_too_long_is_refused_and_its_process_killed(monkeypatch):
    monkeypatch.setattr(limits, "GRADE_START_SECONDS", 0.2)
    monkeypatch.setattr(sheet_workers, "serve_sheets", stuck)

    async def scenario(workers):
        with pytest.raises(limits.HttpRefusal) as refused:
            await workers.grade("x", None, "")
        return refused.value, workers._worker._process

    refused, process = run(scenario, seconds=0.2)
    assert refused.status == 503 and "longer than 0.2 s" in refused.problem and process is None


@pytest.mark.slow
def test_after_the_process_died_the_next_sheet_gets_a_new_one():
    async def scenario(workers):
        await workers.grade(SHEET, None, "")
        os.kill(workers._worker._process.pid, signal.SIGKILL)
        workers._worker._process.join(10)
        return await workers.grade(SHEET + " ", None, "")

    assert not run(scenario).failed


def test_sheets_beyond_the_queue_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_QUEUED_SHEETS", 1)
    monkeypatch.setattr(limits, "GRADE_START_SECONDS", 0.5)
    monkeypatch.setattr(sheet_workers, "serve_sheets", stuck)

    async def scenario(workers):
        found = await asyncio.gather(*(workers.grade(f"{i}", None, "") for i in range(3)), return_exceptions=True)
        return [why.problem for why in found]

    problems = run(scenario, seconds=0.5)
    assert sum("too many requests are waiting" in p for p in problems) == 2
