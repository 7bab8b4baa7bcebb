"""Long jobs in processes of their own: start, follow and cancel them; limits on their number and time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from qkv.core.display import plain
from qkv.core.files import ClaimedFolder
from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.job_tasks import run_task
from qkv.web.schemas import refusal_detail

MAX_EVENTS = 1000
"""Events kept per job; older ones are dropped."""
KEEP_ALIVE_SECONDS = 15.0
"""A stream without events sends a comment after so many seconds, so that proxies keep it open."""
EventData = dict[str, Any]


@dataclass(eq=False)
class Job:
    """A job: its settings, its events so far, and its process.

    Each event sets `changed` and replaces it by a new one; a waiter reads `changed` first, then awaits it.
    """

    id: str
    kind: str
    settings: dict[str, Any]
    folder: Path
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    status: str = "running"
    result: EventData | None = None
    error: EventData | None = None
    progress: EventData | None = None
    events: deque[tuple[int, str, EventData]] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS))
    last_event: int = 0
    process: multiprocessing.process.BaseProcess | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def to_json(self) -> dict[str, Any]:
        """The state of the job, as the API gives it."""
        seconds = (self.ended_at or time.monotonic()) - self.started_at
        names = ("id", "kind", "status", "settings", "progress", "result", "error")
        return {**{name: getattr(self, name) for name in names}, "seconds": round(seconds, 3)}


class JobManager:
    """All jobs of a server. Their files lie in one temporary folder, which is removed when the server stops.

    If the server is killed, the next one that starts removes it.

    Must be created in the event loop that serves the requests; its methods are called there.

    Args:
        on_trained: Called in a thread with the name and folder of a model that a job has trained.
        seconds: Time limit for a job.
    """

    def __init__(self, on_trained: Callable[[str, Path], None], seconds: float = limits.JOB_SECONDS) -> None:
        self._on_trained = on_trained
        self._seconds = seconds
        self._jobs: dict[str, Job] = {}
        self._folder = ClaimedFolder("qkv-server-")
        self._loop = asyncio.get_running_loop()
        self._open_streams = 0

    def start(self, kind: str, settings: dict[str, Any], inputs: dict[str, Any] | None = None) -> str:
        """Start a job.

        Args:
            kind: What to do.
            settings: Its settings, as the state of the job gives them.
            inputs: What else its process is told, and nobody else, such as the folder of a model.

        Returns:
            Its id.

        Raises:
            HttpRefusal: Too many jobs are running (429).
        """
        running = sum(job.status == "running" for job in self._jobs.values())
        if running >= limits.MAX_RUNNING_JOBS:
            raise limits.HttpRefusal(
                429, "starting a job", f"{running} jobs are running", "Wait for one to end, or cancel it"
            )
        self._drop_old_jobs()
        id = f"{kind}-{secrets.token_hex(4)}"
        job = Job(id, kind, settings, self._folder.path / id)
        job.folder.mkdir()
        context = multiprocessing.get_context("spawn")
        pipe, worker_end = context.Pipe(duplex=False)
        job.process = context.Process(
            target=run_task, args=(worker_end, kind, {**settings, **(inputs or {})}, str(job.folder)), daemon=True
        )
        job.process.start()
        worker_end.close()
        self._jobs[id] = job
        threading.Thread(target=self._watch, args=(job, pipe), daemon=True, name=id).start()
        return id

    def find(self, id: str) -> Job:
        """The job with this id.

        Raises:
            HttpRefusal: There is none (404).
        """
        if id not in self._jobs:
            raise limits.HttpRefusal(404, f"the job {id!r}", "there is no such job", "See /api/jobs")
        return self._jobs[id]

    def latest(self) -> list[Job]:
        """All jobs, the latest first."""
        return list(reversed(self._jobs.values()))

    def cancel(self, id: str) -> None:
        """Cancel a job if it is running. Its status changes at once; a thread ends the process."""
        job = self.find(id)
        if job.status == "running":
            self._end(job, "cancelled", {})
            threading.Thread(target=_remove, args=(job,), daemon=True).start()

    def check_streams(self) -> None:
        """Check that a further event stream may be opened.

        Raises:
            HttpRefusal: Too many are open (503).
        """
        if self._open_streams >= limits.MAX_EVENT_STREAMS:
            raise limits.too_many_waiting("following a job")

    async def follow(self, job: Job, after: int) -> AsyncIterator[str]:
        """Server-sent events of a job, from after event number `after` until the job has ended."""
        self._open_streams += 1
        try:
            while True:
                changed = job.changed
                new = [event for event in job.events if event[0] > after]
                for number, name, data in new:
                    after = number
                    yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
                if job.status != "running" and after >= job.last_event:
                    return
                if not new:
                    try:
                        await asyncio.wait_for(changed.wait(), KEEP_ALIVE_SECONDS)
                    except TimeoutError:
                        yield ": still running\n\n"
        finally:
            self._open_streams -= 1

    def close(self) -> None:
        """End every job and remove all files."""
        for job in self._jobs.values():
            _stop(job)
        self._folder.remove()

    def _watch(self, job: Job, pipe: Connection) -> None:
        """In a thread: pass on the events of the process, until it ends or its time limit is reached."""
        request, deadline = f"the job {job.id}", job.started_at + self._seconds
        status, data = "progress", {}
        with contextlib.suppress(EOFError, OSError):
            while status == "progress":
                if not pipe.poll(max(0.0, deadline - time.monotonic())):
                    status, data = (
                        "failed",
                        refusal_detail(QkvError(request, f"it ran for {self._seconds:g} s", "Ask for less")),
                    )
                    break
                status, data = pipe.recv()
                if status == "progress":
                    self._in_loop(self._add_progress, job, data)
        if status == "progress":
            status, data = "failed", refusal_detail(QkvError(request, "its process ended early", "Try again"))
        pipe.close()
        if status == "done" and job.kind == "train":
            self._on_trained(str(data["model"]), job.folder / "model")
        elif status == "failed":
            _remove(job)
        _stop(job)
        self._in_loop(self._end, job, status, data)

    def _in_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def _add_progress(self, job: Job, data: EventData) -> None:
        if job.status == "running":
            job.progress = plain(data, words=True)
            self._add_event(job, "progress", job.progress)

    def _end(self, job: Job, status: str, data: EventData) -> None:
        if job.status != "running":
            return
        job.status, job.ended_at = status, time.monotonic()
        data = plain(data, words=True)
        job.result = data if status == "done" else None
        job.error = data if status == "failed" else None
        self._add_event(job, status, data)

    def _add_event(self, job: Job, name: str, data: EventData | None) -> None:
        job.last_event += 1
        job.events.append((job.last_event, name, data or {}))
        job.changed.set()
        job.changed = asyncio.Event()

    def _drop_old_jobs(self) -> None:
        """Remember only the latest jobs; models that they have trained stay."""
        ended = [job for job in self._jobs.values() if job.status != "running"]
        for job in ended[: max(0, len(self._jobs) + 1 - limits.MAX_LISTED_JOBS)]:
            del self._jobs[job.id]


def _remove(job: Job) -> None:
    """End the process and remove its files."""
    _stop(job)
    shutil.rmtree(job.folder, ignore_errors=True)


def _stop(job: Job) -> None:
    """End the process by SIGTERM, and by SIGKILL if that does not help."""
    process = job.process
    if process is None or not process.is_alive():
        return
    process.terminate()
    process.join(2)
    if process.is_alive():
        process.kill()
        process.join(5)
