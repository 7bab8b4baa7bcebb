"""Killable processes that check claims: one that exceeds its time is ended, and no other request waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from qkv.web import limits
from qkv.web.worker_process import initialise_worker

REQUEST = "checking claims"
MAX_CACHED_VERDICTS = 2000
"""Verdicts that a worker keeps, by source text: while a user edits one block, all others stay the same."""

VerdictFields = dict[str, Any]


class ClaimWorkers:
    """A few worker processes, each started when it is first needed.

    Args:
        count: Number of processes.
        check_seconds: Time limit for a document.
        claim_seconds: Time limit for one claim.
    """

    def __init__(
        self,
        count: int = 2,
        check_seconds: float = limits.CHECK_SECONDS,
        claim_seconds: float = limits.CLAIM_SECONDS,
    ) -> None:
        self.check_seconds = check_seconds
        self._workers = tuple(ClaimWorker(claim_seconds) for _ in range(count))
        self._idle = list(self._workers)
        self._slots = asyncio.Semaphore(count)
        self._queued = 0
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="qkv-check")

    async def check(self, text: str) -> tuple[list[VerdictFields], bool]:
        """Check the claims of a document.

        Returns:
            The verdicts in the order of the text, and whether all claims were decided in time.

        Raises:
            HttpRefusal: Too many documents wait, or the worker died (503); there are too many claims (413).
        """
        if self._queued >= limits.MAX_QUEUED_CHECKS:
            raise limits.too_many_waiting(REQUEST)
        self._queued += 1
        try:
            async with self._slots:
                worker = self._idle.pop(0)
                try:
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(self._threads, worker.check, text, self.check_seconds)
                finally:
                    self._idle.insert(0, worker)  # the one used last has most verdicts cached
        finally:
            self._queued -= 1

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)


class ClaimWorker:
    """One worker process and the pipe to it; used by one thread at a time."""

    def __init__(self, claim_seconds: float) -> None:
        self._claim_seconds = claim_seconds
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def check(self, text: str, seconds: float) -> tuple[list[VerdictFields], bool]:
        """As `ClaimWorkers.check`. Claims that are not decided in time are undecided, and the process is ended."""
        deadline = time.monotonic() + seconds
        try:
            pipe = self._start()
            pipe.send(text)
            claims = self._receive(pipe, deadline)
            if claims is None:
                raise limits.HttpRefusal(503, REQUEST, "the text was not parsed in time", "Check less at a time")
            if len(claims) > limits.MAX_CLAIMS:
                self.stop()
                raise limits.HttpRefusal(
                    413, REQUEST, f"there are {len(claims)} claims", f"Check at most {limits.MAX_CLAIMS} at a time"
                )
            verdicts: list[VerdictFields] = []
            for _ in claims:
                verdict = self._receive(pipe, deadline)
                if verdict is None:
                    break
                verdicts.append(verdict)
        except (EOFError, OSError):  # the process died: out of memory, or killed from outside
            self.stop()
            raise limits.HttpRefusal(503, REQUEST, "the worker process died", "Check less at a time") from None
        missing = claims[len(verdicts) :]
        if missing:
            self.stop()
        because = f"the time limit for the whole text, {seconds:g} s, was reached"
        undecided = [
            {**claim, "verdict": "undecided", "because": because, "derivation": [], "counterexample": None}
            for claim in missing
        ]
        return verdicts + undecided, not missing

    def stop(self) -> None:
        """Kill the process, whatever it does."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.join(5)

    def _start(self) -> Connection:
        """The pipe to a live process; starts one if there is none."""
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self.stop()
            context = multiprocessing.get_context("spawn")
            self._pipe, worker_end = context.Pipe()
            self._process = context.Process(target=serve_claims, args=(worker_end, self._claim_seconds), daemon=True)
            self._process.start()
            worker_end.close()
        return self._pipe

    def _receive(self, pipe: Connection, deadline: float) -> Any:
        """The next message, or None at the deadline."""
        if not pipe.poll(max(0.0, deadline - time.monotonic())):
            self.stop()
            return None
        return pipe.recv()


def serve_claims(pipe: Connection, claim_seconds: float) -> None:
    """The worker process: for each text, send the list of its claims, then their verdicts one by one."""
    initialise_worker()
    from qkv.claims.pipeline import malformed, verdict
    from qkv.claims.symbolic import prover  # noqa: F401  (imported now, outside of a claim's time limit)
    from qkv.claims.syntax.markdown import UnparsedClaim, read

    cache: OrderedDict[Any, VerdictFields] = OrderedDict()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            claims = read(pipe.recv())
            # The position of a claim is that of its statement, of a malformed one that of the error.
            positions = [(c.why.at if isinstance(c, UnparsedClaim) else c.at) for c in claims]
            says = [c.source.strip().split("\n")[0][:200] if isinstance(c, UnparsedClaim) else c.says for c in claims]
            pipe.send([
                {"id": claim.id, "says": text, "line": at[0], "column": at[1]}
                for claim, text, at in zip(claims, says, positions, strict=True)
            ])  # fmt: skip
            if len(claims) > limits.MAX_CLAIMS:
                continue
            for claim, (line, column) in zip(claims, positions, strict=True):
                if isinstance(claim, UnparsedClaim):
                    fields = malformed(claim).to_json()
                else:
                    key = (claim.source, claim.says)
                    found = cache.pop(key, None) or verdict(claim, claim_seconds).to_json()
                    if found["verdict"] != "undecided":  # with more time, it may be decided when asked again
                        cache[key] = found
                    fields = {**found, "id": claim.id}
                    if len(cache) > MAX_CACHED_VERDICTS:
                        cache.popitem(last=False)
                pipe.send({**fields, "line": line, "column": column})
