"""Computations in a few threads, and the heaviest in processes beside them, so that none holds up other requests."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import parent_process
from typing import Any

from qkv.web import limits
from qkv.web.schemas import written


class ComputePool:
    """A bounded queue in front of two threads and two processes; torch is told to use one thread in each.

    The processes take seconds to start. Until they are up, their work is done in the threads; should one die, all are
    started again, though not at once again and again.
    """

    def __init__(self, threads: int = 2, aside: int = 2, calm: float = 10.0) -> None:
        import torch

        torch.set_num_threads(1)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="qkv")
        self._processes: ProcessPoolExecutor | None = None
        self._waiting = 0
        self._up = False
        self._aside, self._calm = aside, calm
        self._began = -calm

    async def run(self, asked: str, work: Callable[..., Any], *arguments: Any) -> bytes:
        """The result of `work` as JSON; refuses when too many are waiting."""
        return await self._in(self._threads, asked, work, arguments)

    async def run_aside(self, asked: str, work: Callable[..., Any], *arguments: Any) -> bytes:
        """The same, in the processes if they are up; the first to ask has them started."""
        if self._processes is None and self._aside and time.monotonic() - self._began >= self._calm:
            self._start()
        processes = self._processes
        if processes is not None and self._up:
            try:
                return await self._in(processes, asked, work, arguments)
            except BrokenProcessPool:
                if self._processes is processes:  # the first of all that were waiting
                    self._processes, self._up = None, False
                    self._threads.submit(processes.shutdown)
        return await self._in(self._threads, asked, work, arguments)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        processes = ProcessPoolExecutor(self._aside, mp_context=context, initializer=begin)
        self._processes, self._began = processes, time.monotonic()

        def started(future: Any) -> None:
            if self._processes is processes:
                self._up = not future.cancelled() and future.exception() is None
                if not self._up:
                    self._processes = None

        for _ in range(self._aside):
            processes.submit(ready).add_done_callback(started)

    async def _in(self, executor: Executor, asked: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
        if self._waiting >= limits.MOST_WAITING:
            raise limits.busy(asked)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, done, work, *arguments)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Let go of the threads and the processes."""
        processes, self._processes, self._up = self._processes, None, False
        self._began = float("inf")
        self._threads.shutdown(wait=False, cancel_futures=True)
        if processes is not None:
            for process in list((processes._processes or {}).values()):
                process.terminate()  # its pool sees that and ends too
            processes.shutdown(wait=True, cancel_futures=True)


def done(work: Callable[..., Any], *arguments: Any) -> bytes:
    """The result, written where it was computed: bytes are cheap to hand over."""
    return written(work(*arguments))


def begin() -> None:
    """In the process: one thread, no word about Ctrl-C, and an end with the server, however that ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=follow_parent, daemon=True).start()


def ready() -> None:
    """The first task: the imports and tables that others would wait for."""
    from qkv.web.routes.noise import NoiseRequest, figures

    figures(NoiseRequest())


def follow_parent() -> None:
    """A server that was killed leaves no process behind."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
