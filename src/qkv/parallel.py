"""Who does the work: this process, local processes, a Dask cluster, or any executor that is passed in."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import Any

from qkv.errors import MissingExtra, QkvError

Progress = Callable[[int, int], None]
"""Called with the number of pieces done and of all pieces, in each of at most two rounds."""

PATIENCE = 5.0
"""Seconds of work ahead from which it pays to start processes, which takes about one."""
CONNECT = 10
"""Seconds to wait for a cluster."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class WorkerPool:
    """Maps a function over pieces of work, in order; what they share goes to each cluster worker once."""

    def __init__(self, executor: Any = None, processes: int | None = None, cluster: str | None = None) -> None:
        asked = "sharing out the work"
        if sum(x is not None for x in (executor, processes, cluster)) > 1:
            came = "more than one of executor, processes and cluster was given"
            raise QkvError(asked, came, "Give the one that should do it")
        if processes is not None and (not isinstance(processes, int) or processes < 1):
            raise QkvError(asked, f"processes is {processes!r}", "Give a whole number above 0")
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise QkvError(
                asked,
                f"executor is a {type(executor).__name__} without submit()",
                "Give a concurrent.futures executor",
            )
        self._executor: Any = executor
        self._wanted = processes
        self._client: Any = _connect(cluster) if cluster is not None else None
        self._pool: ProcessPoolExecutor | None = None
        self.size = processes or _cores()
        if self._client is not None:
            self._executor = self._client.get_executor(pure=False)
            self.size = max(1, sum(self._client.ncores().values()))
        elif executor is not None:
            self.size = int(getattr(executor, "_max_workers", None) or self.size)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._pool is not None:
            _stop(self._pool, at_once=kind is not None)
        if self._client is not None:
            self._executor.shutdown(wait=False)
            self._client.close()

    def map(
        self,
        work: Callable[..., Any],
        shared: Any,
        pieces: Sequence[tuple[Any, ...]],
        progress: Progress | None,
    ) -> list[Any]:
        """[work(shared, *piece) for piece in pieces], by whoever is there."""
        tell = progress or (lambda done, total: None)
        total, done = len(pieces), []
        if self._executor is None and self._wanted in (None, 1):
            # Nobody said who should work: begin here, and call for help if that would take long.
            began = time.monotonic()
            for piece in pieces:
                done.append(work(shared, *piece))
                tell(len(done), total)
                ahead = (time.monotonic() - began) / len(done) * (total - len(done))
                if self._wanted is None and self.size > 1 and total - len(done) > 1 and ahead > PATIENCE:
                    break
        rest = pieces[len(done) :]
        if not rest:
            return done
        if self._client is not None:
            shared = self._client.scatter(shared, broadcast=True, hash=False)
        with self._started() as executor:
            futures = [executor.submit(work, shared, *piece) for piece in rest]
        try:
            for count, _ in enumerate(_completed(futures), len(done) + 1):
                tell(count, total)
            return done + [future.result() for future in futures]
        except BrokenProcessPool:
            raise QkvError(
                "sharing out the work", "a worker process died", "Give it more memory, or pass processes=1"
            ) from None
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    @contextmanager
    def _started(self) -> Iterator[Executor]:
        """The executor; local processes start inside this context, on their first piece."""
        if self._executor is not None:
            yield self._executor
            return
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.size, context, initializer=_attend_to_parent)
        with _clean_start():
            yield self._pool


@contextmanager
def _clean_start() -> Iterator[None]:
    """Processes that start in here use one BLAS thread each, and do not run the caller's script again.

    A spawned process imports the caller's __main__ to find functions there. Ours come from this package, so
    an empty __main__ stands in: a script needs no `if __name__ == "__main__"` around its call.
    """
    main = sys.modules["__main__"]
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    stand_in = types.ModuleType("__main__")
    sys.modules["__main__"] = stand_in
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _attend_to_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and do not outlive it however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            connection.wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _stop(pool: ProcessPoolExecutor, at_once: bool) -> None:
    """End the pool; at once means without waiting for the pieces in hand."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    if at_once:
        for worker in workers:
            worker.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra(f"working on the cluster {address}", "cluster") from None
    try:
        return Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as why:
        detail = (str(why).splitlines() or [type(why).__name__])[0]
        raise QkvError(
            f"working on the cluster {address}",
            f"it does not answer ({detail})",
            "Check the address: tcp://HOST:8786",
        ) from None


def _completed(futures: list[Any]) -> Iterator[Any]:
    """Futures as they end; a foreign executor's futures may know nothing of as_completed, and go in order."""
    try:
        yield from as_completed(futures)
    except (AttributeError, TypeError):
        for future in futures:
            future.result()
            yield future


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
