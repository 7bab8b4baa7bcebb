"""Threads and processes for short computations, so that none of them blocks the event loop."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

from qkv.web import limits
from qkv.web.schemas import json_bytes
from qkv.web.worker_process import initialise_worker

RESTART_SECONDS = 10.0


class ComputePool:
    """Two threads for most computations, two processes for the expensive ones, and a bounded queue in front of both.

    The processes take seconds to start. Until they are ready, and while they are started again after one has died,
    their work is done in the threads.

    Args:
        threads: Number of threads.
        processes: Number of processes; 0 runs everything in the threads.
        warm_up: Called once in each process before it is used: imports and tables that the first request would
            otherwise wait for. Must be picklable.
        restart_seconds: Least time between two starts of the processes, so that processes that die again and again do
            not keep the machine busy.
    """

    def __init__(
        self,
        threads: int = 2,
        processes: int = 2,
        warm_up: Callable[[], Any] | None = None,
        restart_seconds: float = RESTART_SECONDS,
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="qkv")
        self._single_torch_thread = SingleTorchThread()
        self._processes: ProcessPoolExecutor | None = None
        self._process_count, self._warm_up = processes, warm_up or _no_warm_up
        self._restart_seconds = restart_seconds
        self._started_at = -restart_seconds
        self._ready = False
        self._queued = 0

    async def run(self, request: str, function: Callable[..., Any], *arguments: Any) -> bytes:
        """Call `function` in a thread.

        Args:
            request: What is computed, for the refusal.
            function: The computation.
            *arguments: Its arguments.

        Returns:
            The result as JSON.

        Raises:
            HttpRefusal: Too many computations are waiting (503).
        """
        return await self._submit(self._threads, request, self._in_thread, function, arguments)

    async def run_in_process(self, request: str, function: Callable[..., Any], *arguments: Any) -> bytes:
        """Call `function` in a process if the processes are ready, else in a thread; as `run` otherwise.

        The first call starts the processes. The function and its arguments must be picklable.
        """
        may_start = time.monotonic() - self._started_at >= self._restart_seconds
        if self._processes is None and self._process_count and may_start:
            self._start_processes()
        processes = self._processes
        if processes is not None and self._ready:
            try:
                return await self._submit(processes, request, _in_process, function, arguments)
            except BrokenProcessPool:
                if self._processes is processes:  # only the first of the calls that fail with it discards the pool
                    self._processes, self._ready = None, False
                    self._threads.submit(processes.shutdown)
        return await self.run(request, function, *arguments)

    def preload(self) -> None:
        """Import what most computations need, in a thread; returns at once."""
        self._threads.submit(_import_design)

    def close(self) -> None:
        """Stop the threads and the processes; computations that wait are cancelled."""
        processes, self._processes, self._ready = self._processes, None, False
        self._started_at = float("inf")
        self._threads.shutdown(wait=False, cancel_futures=True)
        if processes is not None:
            for process in list((processes._processes or {}).values()):
                process.terminate()  # the executor notices and ends as well
            processes.shutdown(wait=True, cancel_futures=True)

    def _start_processes(self) -> None:
        context = multiprocessing.get_context("spawn")
        processes = ProcessPoolExecutor(self._process_count, mp_context=context, initializer=initialise_worker)
        self._processes, self._started_at = processes, time.monotonic()

        def on_warm(future: Future[Any]) -> None:
            if self._processes is processes:
                self._ready = not future.cancelled() and future.exception() is None
                if not self._ready:
                    self._processes = None

        for _ in range(self._process_count):
            processes.submit(self._warm_up).add_done_callback(on_warm)

    def _in_thread(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
        with self._single_torch_thread:
            return json_bytes(function(*arguments))

    async def _submit(
        self,
        executor: Executor,
        request: str,
        call: Callable[..., bytes],
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> bytes:
        if self._queued >= limits.MAX_QUEUED_COMPUTATIONS:
            raise limits.too_many_waiting(request)
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, call, function, arguments)
        finally:
            self._queued -= 1


class SingleTorchThread:
    """Context manager: torch uses one thread in a block; when no block is active any more, as many as before.

    Blocks may overlap in several threads. Torch keeps a thread count for each thread and one for threads to come; the
    count to restore is therefore taken once, by the first block, and not in a thread that a block has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._count_before: int | None = None  # torch is imported by the first block

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if self._count_before is None:
                self._count_before = torch.get_num_threads()
            self._active += 1
            torch.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        import torch

        with self._lock:
            self._active -= 1
            if self._active == 0 and self._count_before is not None:
                torch.set_num_threads(self._count_before)


def _in_process(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """The result is encoded in the process: bytes are cheap to pass on."""
    return json_bytes(function(*arguments))


def _import_design() -> None:
    import qkv.design.query
    import qkv.design.wiring  # noqa: F401


def _no_warm_up() -> None:
    pass
