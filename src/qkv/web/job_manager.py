"""Jobs in processes of their own: started, followed, cancelled, bounded in number and time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from qkv.core.display import plain
from qkv.web import limits
from qkv.web.job_tasks import run

ASKED = "starting a job"
MOST_EVENTS = 1000
"""Events kept of a job; of a longer one, the oldest are forgotten."""
BEAT = 15.0
"""Seconds after which a silent stream says that it is still there."""
ENDINGS = ("done", "failed", "cancelled")


@dataclass(eq=False)
class Job:
    """One job: what was asked, what has happened, and the process that does it."""

    id: str
    kind: str
    settings: dict[str, Any]
    folder: Path
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    status: str = "running"
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    progress: dict[str, Any] | None = None
    events: deque[tuple[int, str, Any]] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    count: int = 0
    process: multiprocessing.process.BaseProcess | None = None
    watcher: threading.Thread | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def to_json(self) -> dict[str, Any]:
        """The job as it stands."""
        seconds = (self.ended or time.monotonic()) - self.began
        names = ("id", "kind", "status", "settings", "progress", "result", "error")
        return {**{name: getattr(self, name) for name in names}, "seconds": round(seconds, 3)}


class Jobs:
    """All jobs of a server; their folders live under one that goes when the server stops."""

    def __init__(self, trained: Callable[[str, Path], None], seconds: float = limits.JOB_SECONDS) -> None:
        self._trained = trained
        self._seconds = seconds
        self._jobs: dict[str, Job] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="qkv-serve-"))
        self._loop = asyncio.get_running_loop()
        self._streams = 0

    def start(self, kind: str, settings: dict[str, Any]) -> str:
        """Start a job and give its id; refuses when too many run."""
        running = [job for job in self._jobs.values() if job.status == "running"]
        if len(running) >= limits.MOST_RUNNING:
            came = f"{len(running)} jobs are running"
            raise limits.HttpRefusal(429, ASKED, came, "Wait for one to end, or cancel it")
        self._forget()
        id = f"{kind}-{secrets.token_hex(4)}"
        job = Job(id, kind, settings, self._folder / id)
        job.folder.mkdir()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        job.process = context.Process(target=run, args=(theirs, kind, settings, str(job.folder)), daemon=True)
        job.process.start()
        theirs.close()
        job.watcher = threading.Thread(target=self._watch, args=(job, ours), daemon=True, name=id)
        self._jobs[id] = job
        job.watcher.start()
        return id

    def find(self, id: str) -> Job:
        """A job by its id."""
        if id not in self._jobs:
            raise limits.HttpRefusal(404, f"the job {id!r}", "there is no such job", "See /api/jobs")
        return self._jobs[id]

    def latest(self) -> list[Job]:
        """All jobs, the latest first."""
        return list(reversed(self._jobs.values()))

    def cancel(self, id: str) -> None:
        """End a job that runs: at once for whoever asks, and its process a moment later, in a thread."""
        job = self.find(id)
        if job.status == "running":
            self._end(job, "cancelled", {})
            threading.Thread(target=remove, args=(job,), daemon=True).start()

    def check_streams(self) -> None:
        """Refuse to be followed by too many at once."""
        if self._streams >= limits.MOST_STREAMS:
            raise limits.busy("following a job")

    async def follow(self, job: Job, after: int) -> AsyncIterator[str]:
        """Events as text, from after the given one until the job has ended."""
        self._streams += 1
        try:
            while True:
                changed = job.changed
                new = [event for event in job.events if event[0] > after]
                for number, name, data in new:
                    after = number
                    yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
                if job.status != "running" and after >= job.count:
                    return
                if not new:
                    try:
                        await asyncio.wait_for(changed.wait(), BEAT)
                    except TimeoutError:
                        yield ": still running\n\n"
        finally:
            self._streams -= 1

    def close(self) -> None:
        """End every job and remove what they wrote."""
        for job in self._jobs.values():
            stop(job)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self, job: Job, pipe: Connection) -> None:
        """In a thread: pass on what the process says, until it ends or its time is up."""
        end = job.began + self._seconds
        told: tuple[str, Any] | None = None
        with contextlib.suppress(EOFError, OSError):
            while told is None or told[0] == "progress":
                if not pipe.poll(max(0.0, end - time.monotonic())):
                    problem = {
                        "asked": f"the job {job.id}",
                        "came": f"it ran for {self._seconds:g} s",
                        "try": "Ask for less",
                    }
                    told = ("failed", problem)
                    break
                told = pipe.recv()
                if told[0] == "progress":
                    self._later(self._progress, job, told[1])
        if told is None or told[0] == "progress":
            told = ("failed", {"asked": f"the job {job.id}", "came": "its process ended early", "try": "Try again"})
        pipe.close()
        if told[0] == "done" and job.kind == "train":
            self._trained(str(told[1]["model"]), job.folder / "model")
        elif told[0] == "failed":
            remove(job)
        stop(job)
        self._later(self._end, job, *told)

    def _later(self, work: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the server has stopped
            self._loop.call_soon_threadsafe(work, *arguments)

    def _progress(self, job: Job, data: dict[str, Any]) -> None:
        if job.status == "running":
            job.progress = plain(data)
            self._tell(job, "progress", job.progress)

    def _end(self, job: Job, status: str, data: dict[str, Any]) -> None:
        if job.status != "running":
            return
        job.status, job.ended = status, time.monotonic()
        data = plain(data)
        job.result = data if status == "done" else None
        job.error = data if status == "failed" else None
        self._tell(job, status, data)

    def _tell(self, job: Job, name: str, data: Any) -> None:
        job.count += 1
        job.events.append((job.count, name, data))
        job.changed.set()
        job.changed = asyncio.Event()

    def _forget(self) -> None:
        """Only the latest jobs are remembered; a trained model stays."""
        ended = [job for job in self._jobs.values() if job.status != "running"]
        for job in ended[: max(0, len(self._jobs) + 1 - limits.MOST_JOBS)]:
            del self._jobs[job.id]


def remove(job: Job) -> None:
    """End the process and remove what it wrote."""
    stop(job)
    shutil.rmtree(job.folder, ignore_errors=True)


def stop(job: Job) -> None:
    """End the process, asking first."""
    process = job.process
    if process is None or not process.is_alive():
        return
    process.terminate()
    process.join(2)
    if process.is_alive():
        process.kill()
        process.join(5)
