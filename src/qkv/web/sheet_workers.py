"""A killable process that grades answer sheets: where it exceeds its time it is ended, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.killable_process import KillableProcess
from qkv.web.worker_process import initialise_worker

if TYPE_CHECKING:
    from qkv.sheets.feedback import Grade

REQUEST = "grading a sheet"
MAX_CACHED_GRADES = 8
"""Grades that are kept, by text: the page asks again for a sheet when it is opened again."""

SheetKey = tuple[str, str | None, str]
"""A sheet: its text, the problem or None, and the name of the file."""


class SheetWorkers:
    """One worker process, which the first sheet starts, and a sheet after it has died again.

    Args:
        seconds: Time limit for a sheet.
    """

    def __init__(self, seconds: float = limits.GRADE_SECONDS) -> None:
        self.seconds = seconds
        self._worker = KillableProcess(serve_sheets)
        self._turn = asyncio.Semaphore(1)
        self._queued = 0
        self._kept: OrderedDict[SheetKey, Grade] = OrderedDict()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="qkv-grade")

    async def grade(self, text: str, problem: str | None, file: str) -> Grade:
        """The feedback on a sheet.

        Args:
            text: The sheet.
            problem: The name of a shipped problem; None to recognise it.
            file: The name of the sheet.

        Raises:
            HttpRefusal: Too many sheets wait, it took too long, or the worker died (503).
            QkvError: There is no such problem.
        """
        key = (text, problem, file)
        if (found := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return found
        if self._queued >= limits.MAX_QUEUED_SHEETS:
            raise limits.too_many_waiting(REQUEST)
        self._queued += 1
        try:
            async with self._turn:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._threads, self._ask, key)
        finally:
            self._queued -= 1
        self._kept[key] = found
        if len(self._kept) > MAX_CACHED_GRADES:
            self._kept.popitem(last=False)
        return found

    def close(self) -> None:
        """End the process."""
        self._worker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, key: SheetKey) -> Grade:
        try:
            pipe = self._worker.start()
            pipe.send((key, self.seconds))
            reply = self._worker.receive(pipe, time.monotonic() + self.seconds + limits.GRADE_START_SECONDS)
        except (EOFError, OSError):  # the process died: out of memory, or killed from outside
            self._worker.stop()
            raise limits.HttpRefusal(503, REQUEST, "the worker process died", "Grade less at a time") from None
        if reply is None:
            problem = f"it took longer than {self.seconds:g} s"
            raise limits.HttpRefusal(503, REQUEST, problem, "Grade a part of the sheet")
        if isinstance(reply, QkvError):
            raise reply
        return reply


def serve_sheets(pipe: Connection) -> None:
    """The worker process: for each sheet, send its grade, or the refusal."""
    initialise_worker(import_torch=False)
    from qkv.sheets.sheet_files import grade_text

    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            (text, problem, file), seconds = pipe.recv()
            try:
                reply: Any = grade_text(text, problem, file, seconds)
            except QkvError as why:
                reply = QkvError(why.request, why.problem, why.hint)
            pipe.send(reply)
