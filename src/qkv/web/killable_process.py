"""A process that can be killed at a deadline, whatever it does, and is started again by the next request."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class KillableProcess:
    """One process and the pipe to it; used by one thread at a time.

    Args:
        serve: The main function of the process, called with its end of the pipe; it must be importable.
        *arguments: Its further arguments.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any) -> None:
        self._serve = serve
        self._arguments = arguments
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def start(self) -> Connection:
        """The pipe to a live process; starts one if there is none."""
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self.stop()
            context = multiprocessing.get_context("spawn")
            self._pipe, worker_end = context.Pipe()
            self._process = context.Process(target=self._serve, args=(worker_end, *self._arguments), daemon=True)
            self._process.start()
            worker_end.close()
        return self._pipe

    def stop(self) -> None:
        """Kill the process, whatever it does."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.join(5)

    def receive(self, pipe: Connection, deadline: float) -> Any:
        """The next message, or None at the deadline, which kills the process."""
        if not pipe.poll(max(0.0, deadline - time.monotonic())):
            self.stop()
            return None
        return pipe.recv()
