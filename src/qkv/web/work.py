"""Computations in a few threads, so that none of them holds up the others' requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from qkv.web import limits


class Threads:
    """A bounded queue in front of two threads; torch itself is told to use one in each."""

    def __init__(self, count: int = 2) -> None:
        import torch

        torch.set_num_threads(1)
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="qkv")
        self._waiting = 0

    async def run(self, asked: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `work`; refuses when too many are waiting."""
        if self._waiting >= limits.MOST_WAITING:
            raise limits.busy(asked)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Let go of the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
