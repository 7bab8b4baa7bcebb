"""Worker processes, Dask clusters and executors; child processes that end with their parent."""

# Local workers are started with `subprocess`, not with `multiprocessing`, whose spawned children run the caller's
# script again (a script without `if __name__ == "__main__"` would start itself over and over) and inherit the
# parent's environment as it is. Avoiding both from the outside means replacing sys.modules["__main__"] and writing to
# os.environ while the children start, which other threads of the caller can see. Here a child gets its environment
# as an argument, runs `serve_parent`, and talks to its parent in pickles over its standard input and output. When
# the parent ends, however it ends, the child's input ends and so does the child; therefore these workers may also be
# started inside daemonic processes, which multiprocessing forbids because its children could be left behind.

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, as_completed
from multiprocessing import connection
from numbers import Integral
from pathlib import Path
from typing import Any

from qkv.errors import MissingExtra, QkvError, kind_of

Progress = Callable[[int, int], None]
"""Called with the numbers of finished and of all pieces of work."""

MIN_SECONDS_FOR_PROCESSES = 5.0
"""Remaining work for which worker processes are started; starting them takes about one second."""
MIN_SECONDS_TO_JUDGE = 0.5
"""Work after which `WorkerPool.stream` judges how much remains: its pieces are small and differ in size."""
CLUSTER_TIMEOUT = 10
"""Seconds to wait for a cluster."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""Environment of worker processes: one BLAS thread each, since there is one worker per core."""


class WorkerDied(QkvError):
    """A worker process ended amid its work, for example because the system ran out of memory."""


class WorkerPool:
    """Maps a function over pieces of work: in this process, in local processes, on a cluster or by an executor.

    Use it as a context manager; at its end, worker processes have ended and the connection to a cluster is closed.

    Args:
        executor: An executor like those of concurrent.futures.
        processes: Number of local processes; 1 computes in this process. If None, and neither executor nor cluster
            is given, work starts in this process, and processes are started if much of it remains; but not inside a
            daemonic process, which is a worker itself.
        cluster: Address of a Dask scheduler.

    Attributes:
        size: Number of workers.

    Raises:
        QkvError: If more than one of the arguments is given, or if the cluster does not answer.
    """

    def __init__(self, executor: Any = None, processes: int | None = None, cluster: str | None = None) -> None:
        request = "distributing the work"
        if sum(x is not None for x in (executor, processes, cluster)) > 1:
            problem = "more than one of executor, processes and cluster was given"
            raise QkvError(request, problem, "Give one of them")
        integral = isinstance(processes, Integral) and not isinstance(processes, bool)
        if processes is not None and (not integral or processes < 1):
            raise QkvError(request, f"processes is {processes!r}", "Give a whole number above 0")
        if executor is not None and not callable(getattr(executor, "submit", None)):
            problem = f"executor is {kind_of(executor)} without submit()"
            raise QkvError(request, problem, "Give a concurrent.futures executor")
        if processes is None and multiprocessing.current_process().daemon:
            processes = 1
        self._executor: Any = executor
        self._requested = processes
        self._client: Any = _connect(cluster) if cluster is not None else None
        self._workers: _WorkerProcesses | None = None
        self.size = int(processes or _available_cores())
        if self._client is not None:
            self._executor = self._client.get_executor(pure=False)
            self.size = max(1, sum(self._client.ncores().values()))
        elif executor is not None:
            self.size = int(getattr(executor, "_max_workers", None) or self.size)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._workers is not None:
            self._workers.close()
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
        """[work(shared, *piece) for piece in pieces], computed by the workers.

        `work` must be importable, since workers do not run the caller's script; `shared` is sent to each worker once.
        """
        if progress is not None and not callable(progress):
            problem = f"callback is {kind_of(progress)}, which cannot be called"
            raise QkvError("reporting progress", problem, "Give a function of (done, total)")
        report = (lambda done, total: None) if progress is None else progress
        done: list[Any] = []
        if self._executor is None and self._requested in (None, 1):
            done = self._map_here(work, shared, pieces, report)
        rest = pieces[len(done) :]
        if not rest:
            return done
        futures = self._submit(work, shared, rest)
        try:
            for count, future in enumerate(_completed(futures), len(done) + 1):
                future.result()  # the first piece that fails ends the work
                report(count, len(pieces))
            return done + [future.result() for future in futures]
        except BaseException as why:
            for future in futures:
                with contextlib.suppress(Exception):  # a cluster that is gone cannot cancel anything
                    future.cancel()
            if self._client is not None and isinstance(why, CancelledError):  # no worker is left that holds `shared`
                problem = "the workers of the cluster that held its data are gone"
                raise QkvError("distributing the work", problem, "Start it again when the cluster has others") from None
            if self._client is not None and type(why).__module__.split(".")[0] == "distributed":
                problem = f"the cluster gave up ({type(why).__name__})"
                raise QkvError("distributing the work", problem, "Look at the logs of its workers") from None
            raise

    def stream(self, work: Callable[..., Any], shared: Any, pieces: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """work(shared, *piece) for each piece in their order, each as soon as those before it are there.

        This process works too, so that the first results come at once, and does again what a worker died of; `work` and
        `shared` are as in `map`. Only for local processes.
        """
        first = 0
        if self._requested in (None, 1):
            for done in self._here(work, shared, pieces):
                yield done
                first += 1
        rest = pieces[first:]
        if not rest:
            return
        if self._workers is None:
            self._workers = _WorkerProcesses(max(1, self.size - 1))
        futures = self._workers.submit(work, shared, rest)
        mine: dict[int, Any] = {}
        for number, future in enumerate(futures):
            later = number
            while number not in mine and not future.done():
                # what no child has begun is withdrawn and done here
                while later < len(futures) and not futures[later].cancel():
                    later += 1
                if later == len(futures):
                    break  # every piece is done or in work
                mine[later] = work(shared, *rest[later])
                later += 1
            try:
                found = mine.pop(number) if number in mine else future.result()
            except WorkerDied:
                found = work(shared, *rest[number])
            yield found

    def _here(self, work: Callable[..., Any], shared: Any, pieces: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Results of the first pieces, computed in this process: of all, unless the rest would take long."""
        start = time.monotonic()
        for count, piece in enumerate(pieces, 1):
            yield work(shared, *piece)
            if count == 1:
                start = time.monotonic()  # the first one also imports what it needs
            left, spent = len(pieces) - count, time.monotonic() - start
            remaining = spent / max(1, count - 1) * left
            judged = self._requested is None and self.size > 1 and left > 1 and spent > MIN_SECONDS_TO_JUDGE
            if judged and remaining > MIN_SECONDS_FOR_PROCESSES:
                return

    def _map_here(
        self, work: Callable[..., Any], shared: Any, pieces: Sequence[tuple[Any, ...]], report: Progress
    ) -> list[Any]:
        """Results of the first pieces, computed in this process: of all, unless the rest would take long."""
        done: list[Any] = []
        start = time.monotonic()
        for piece in pieces:
            done.append(work(shared, *piece))
            report(len(done), len(pieces))
            left = len(pieces) - len(done)
            remaining = (time.monotonic() - start) / len(done) * left
            if self._requested is None and self.size > 1 and left > 1 and remaining > MIN_SECONDS_FOR_PROCESSES:
                break
        return done

    def _submit(self, work: Callable[..., Any], shared: Any, pieces: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._client is not None:
            shared = self._client.scatter(shared, broadcast=True, hash=False)
        if self._executor is not None:
            executor: Executor = self._executor
            return [executor.submit(work, shared, *piece) for piece in pieces]
        if self._workers is None:
            self._workers = _WorkerProcesses(self.size)
        return self._workers.submit(work, shared, pieces)


class _WorkerProcesses:
    """Child processes, each driven by a thread of this process that sends it work and waits for the result."""

    def __init__(self, size: int) -> None:
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="qkv-worker")
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._children: list[_Child] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, work: Callable[..., Any], shared: Any, pieces: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        """Futures of work(shared, *piece) for each piece."""
        task = pickle.dumps((work, shared), pickle.HIGHEST_PROTOCOL)  # once, though it goes to every child
        return [self._threads.submit(self._run, task, pickle.dumps(piece)) for piece in pieces]

    def close(self) -> None:
        """End the children without waiting for work in progress, then the threads."""
        with self._lock:
            self._closed = True
        for child in self._children:
            child.process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for child in self._children:
            child.release()

    def _run(self, task: bytes, piece: bytes) -> Any:
        child = self._take()
        try:
            return child.call(task, piece)
        finally:
            self._idle.put(child)

    def _take(self) -> _Child:
        """An idle child, or a new one: there are never more than threads, since each thread uses one at a time."""
        with contextlib.suppress(queue.Empty):
            return self._idle.get_nowait()
        with self._lock:
            if self._closed:
                raise _worker_died()
            child = _Child()
            self._children.append(child)
        return child


class _Child:
    """A child process that runs `serve_parent`."""

    def __init__(self) -> None:
        path = [str(entry) or str(Path.cwd()) for entry in sys.path]
        code = f"import sys; sys.path[:] = {path!r}; from qkv.parallel import serve_parent; serve_parent()"
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD},
            )
        except OSError as why:
            problem = f"no worker process could be started ({why})"
            raise QkvError("distributing the work", problem, "Pass processes=1") from None
        self._task: bytes | None = None

    def call(self, task: bytes, piece: bytes) -> Any:
        """The result of one piece of work, or the exception that it raised."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            pickle.dump((None if task is self._task else task, piece), self.process.stdin, pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
            self._task = task
            succeeded, value = pickle.load(self.process.stdout)  # noqa: S301 - from our own child
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            raise _worker_died() from None
        if succeeded:
            return value
        raise value

    def release(self) -> None:
        """Collect the exit status and close the pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # flushing what the child did not read
                    pipe.close()


def serve_parent() -> None:
    """Main function of a worker process: answer calls from standard input until it ends, then end at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    calls: queue.SimpleQueue[tuple[bytes | None, bytes]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(calls,), daemon=True).start()
    # What the work prints must not get between the results, so it goes to standard error.
    with os.fdopen(os.dup(1), "wb") as results:
        os.dup2(2, 1)
        work: Callable[..., Any] | None = None
        shared: Any = None
        while True:
            task, piece = calls.get()
            try:
                if task is not None:
                    work, shared = pickle.loads(task)  # noqa: S301 - from our own parent
                assert work is not None
                answer = _pickled(True, work(shared, *pickle.loads(piece)))  # noqa: S301 - from our own parent
            except BaseException as error:
                answer = _pickled(False, error)
            results.write(answer)
            results.flush()


def _receive(calls: queue.SimpleQueue[tuple[bytes | None, bytes]]) -> None:
    """Queue calls from standard input; when it ends, the parent has ended: end too, even amid work."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            calls.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - from our own parent
    os._exit(1)


def _pickled(succeeded: bool, value: Any) -> bytes:
    try:
        answer = pickle.dumps((succeeded, value), pickle.HIGHEST_PROTOCOL)
        if not succeeded:
            pickle.loads(answer)  # noqa: S301 - our own bytes; some exceptions are pickled but cannot be restored
    except Exception:
        return pickle.dumps((False, RuntimeError(f"{type(value).__name__}: {value}")))
    return answer


def exit_with_parent() -> None:
    """In a child process of multiprocessing: end as soon as the parent has ended, however it ended.

    Call it once, from the child, for example from the initializer of a ProcessPoolExecutor. It returns at once; a
    daemon thread waits for the parent.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch(sentinel: int = parent.sentinel) -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="qkv-exit-with-parent", daemon=True).start()


def _worker_died() -> WorkerDied:
    return WorkerDied("distributing the work", "a worker process died", "Give it more memory, or pass processes=1")


def _connect(address: str) -> Any:
    try:
        from distributed import Client  # an optional extra
    except ImportError:
        raise MissingExtra(f"working on the cluster {address}", "cluster") from None
    client, detail = None, ""
    try:
        client = Client(address, timeout=CLUSTER_TIMEOUT, set_as_default=False)
    except Exception as why:  # each transport raises errors of its own for an address that is not its
        detail = (str(why).splitlines() or [type(why).__name__])[0]
    if client is None:
        # Close the client that failed here: if the garbage collector does it while another one starts, they deadlock.
        gc.collect()
        raise QkvError(
            f"working on the cluster {address}",
            f"it does not answer ({detail})",
            "Check the address: tcp://HOST:8786",
        )
    if not client.ncores():
        client.close()
        raise QkvError(f"working on the cluster {address}", "it has no workers", "Start some: dask worker ADDRESS")
    return client


def _completed(futures: list[Any]) -> Iterator[Any]:
    """Futures as they finish; in order, where as_completed does not know an executor's type of futures."""
    try:
        yield from as_completed(futures)
    except (AttributeError, TypeError):
        for future in futures:
            future.result()
            yield future


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
