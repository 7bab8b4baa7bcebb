"""Killable processes that check claims: one that exceeds its time is ended, and no other request waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from qkv.web import limits
from qkv.web.claim_examples import FIRST_EXAMPLE
from qkv.web.killable_process import KillableProcess
from qkv.web.worker_process import initialise_worker

if TYPE_CHECKING:
    from qkv.claims.syntax.markdown import UnparsedClaim
    from qkv.claims.syntax.nodes import Claim

REQUEST = "checking claims"
MAX_CACHED_VERDICTS = 2000
"""Verdicts that a worker keeps, by source text: while a user edits one block, all others stay the same."""
IDLE_SECONDS = 3.0
"""A worker that has waited so long for a text imports qkv.noise, and with it torch, which few claims need."""

VerdictFields = dict[str, Any]


class ClaimWorkers:
    """A few worker processes. `start` starts the first; a text starts all, and one that has died again.

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
        self._closed = False
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="qkv-check")

    def start(self) -> None:
        """Start the first process: it imports the checker, and decides the first example, before a text comes."""
        self._idle[0].start()

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
                    if not self._closed:
                        for idle in self._idle:
                            idle.start()
        finally:
            self._queued -= 1

    def close(self) -> None:
        """End the processes."""
        self._closed = True
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)


class ClaimWorker(KillableProcess):
    """One process that checks claims; used by one thread at a time."""

    def __init__(self, claim_seconds: float) -> None:
        super().__init__(serve_claims, claim_seconds)

    def check(self, text: str, seconds: float) -> tuple[list[VerdictFields], bool]:
        """As `ClaimWorkers.check`. Claims that are not decided in time are undecided, and the process is ended."""
        deadline = time.monotonic() + seconds
        try:
            pipe = self.start()
            pipe.send(text)
            claims = self.receive(pipe, deadline)
            if claims is None:
                raise limits.HttpRefusal(503, REQUEST, "the text was not parsed in time", "Check less at a time")
            if len(claims) > limits.MAX_CLAIMS:
                self.stop()
                raise limits.HttpRefusal(
                    413, REQUEST, f"there are {len(claims)} claims", f"Check at most {limits.MAX_CLAIMS} at a time"
                )
            verdicts: list[VerdictFields] = []
            for _ in claims:
                verdict = self.receive(pipe, deadline)
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
        empty: dict[str, Any] = {"derivation": [], "counterexample": None, "kernel": None}
        undecided = [{**claim, "verdict": "undecided", "because": because, **empty} for claim in missing]
        return verdicts + undecided, not missing


def serve_claims(pipe: Connection, claim_seconds: float) -> None:
    """The worker process: for each text, send the list of its claims, then their verdicts one by one."""
    initialise_worker(import_torch=False)  # most claims do not need it, and it takes longer than all other imports
    from qkv.claims.syntax.markdown import UnparsedClaim, read

    decide = CachedVerdicts(claim_seconds)
    for example in read(FIRST_EXAMPLE):  # loads what the first claim would wait for
        if not pipe.poll():
            decide(example)
    if not pipe.poll(IDLE_SECONDS):
        import qkv.noise.probability.output_within  # noqa: F401
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
                pipe.send({**decide(claim), "line": line, "column": column})


class CachedVerdicts:
    """The verdict on a claim as JSON fields; those on the latest claims are kept.

    Args:
        claim_seconds: Time limit for one claim.
    """

    def __init__(self, claim_seconds: float) -> None:
        from qkv.claims.symbolic import prover  # noqa: F401  (imported now, outside of a claim's time limit)

        self._claim_seconds = claim_seconds
        self._kept: OrderedDict[Any, VerdictFields] = OrderedDict()

    def __call__(self, claim: Claim | UnparsedClaim) -> VerdictFields:
        """The verdict on a claim."""
        from qkv.claims.pipeline import malformed, verdict
        from qkv.claims.syntax.nodes import Claim

        if not isinstance(claim, Claim):
            return malformed(claim).to_json()
        key = (claim.source, claim.says)
        found = self._kept.pop(key, None) or verdict(claim, self._claim_seconds).to_json()
        if found["verdict"] != "undecided":  # with more time, it may be decided when asked again
            self._kept[key] = found
        if len(self._kept) > MAX_CACHED_VERDICTS:
            self._kept.popitem(last=False)
        return {**found, "id": claim.id}
