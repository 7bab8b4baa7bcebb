"""One process for the heads of models: it keeps the models that it has opened, and the last texts."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from qkv.web import limits
from qkv.web.head_tasks import in_process
from qkv.web.worker_process import initialise_worker


class HeadWorker:
    """A process that is started by the first request, and again after it has died or was too slow.

    Its requests are done one after the other, in a bounded queue, so that a model is opened once and no two of them
    take memory at a time.

    Args:
        seconds: Time limit for a request, from when it is its turn.
    """

    def __init__(self, seconds: float = limits.HEADS_SECONDS) -> None:
        self._seconds = seconds
        self._process: ProcessPoolExecutor | None = None
        self._queued = 0
        self._turn: asyncio.Lock | None = None

    async def run(self, request: str, function: Callable[..., Any], *arguments: Any) -> bytes:
        """Call a function of `head_tasks` in the process.

        Args:
            request: What is computed, for the refusal.
            function: The computation; it must be picklable, and so must its arguments.
            *arguments: Its arguments.

        Returns:
            The result as JSON.

        Raises:
            HttpRefusal: Too many requests wait, the computation took too long, or its process died (503).
        """
        if self._queued >= limits.MAX_QUEUED_HEADS:
            raise limits.too_many_waiting(request)
        self._turn = self._turn or asyncio.Lock()
        self._queued += 1
        try:
            async with self._turn:
                return await self._call(request, function, arguments)
        finally:
            self._queued -= 1

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            for child in list((process._processes or {}).values()):
                child.terminate()
            process.shutdown(wait=True, cancel_futures=True)

    async def _call(self, request: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, mp_context=context, initializer=initialise_worker)
        future = asyncio.get_running_loop().run_in_executor(self._process, in_process, function, arguments)
        try:
            return await asyncio.wait_for(future, self._seconds)
        except TimeoutError:
            self.close()
            problem = f"it took longer than {self._seconds:g} s"
            raise limits.HttpRefusal(503, request, problem, "Give a shorter text, or a smaller model") from None
        except BrokenProcessPool:
            self.close()
            hint = "Try again, with a shorter text or a smaller model"
            raise limits.HttpRefusal(503, request, "its process ended early", hint) from None
