"""Claims are decided in processes of their own: one that takes too long is ended, and nothing else waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from qkv.web import limits

ASKED = "checking claims"
KEPT = 2000
"""Verdicts remembered, by the block they stand in: while one types, all other blocks stay as they are."""

Verdict = dict[str, Any]


class ClaimWorkers:
    """A few processes that decide claims, started when first needed."""

    def __init__(
        self, count: int = 2, seconds: float = limits.CHECK_SECONDS, each: float = limits.CLAIM_SECONDS
    ) -> None:
        self.seconds, self.each = seconds, each
        self._free = [Checker(each) for _ in range(count)]
        self._all = tuple(self._free)
        self._turn = asyncio.Semaphore(count)
        self._waiting = 0
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="qkv-check")

    async def check(self, text: str) -> tuple[list[Verdict], bool]:
        """The verdicts, and whether all claims were decided in time."""
        if self._waiting >= limits.MOST_CHECKS_WAITING:
            raise limits.busy(ASKED)
        self._waiting += 1
        try:
            async with self._turn:
                checker = self._free.pop(0)
                try:
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(self._threads, checker.check, text, self.seconds)
                finally:
                    self._free.insert(0, checker)  # the one that was used last remembers most
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """End the processes."""
        for checker in self._all:
            checker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)


class Checker:
    """One process, and the pipe to it; called by one thread at a time."""

    def __init__(self, each: float) -> None:
        self._each = each
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def check(self, text: str, seconds: float) -> tuple[list[Verdict], bool]:
        """Claims that were not decided in time are undecided; the process that held them up is ended."""
        end = time.monotonic() + seconds
        try:
            pipe = self._started()
            pipe.send(text)
            todo = self._receive(pipe, end)
            if todo is None:
                raise limits.HttpRefusal(503, ASKED, "the text could not be read in time", "Check less at a time")
            if len(todo) > limits.MOST_CLAIMS:
                self.stop()
                raise limits.HttpRefusal(
                    413, ASKED, f"there are {len(todo)} claims", f"Check at most {limits.MOST_CLAIMS} at a time"
                )
            found: list[Verdict] = []
            for _ in todo:
                verdict = self._receive(pipe, end)
                if verdict is None:
                    break
                found.append(verdict)
        except (EOFError, OSError):  # the process died: out of memory, or ended from outside
            self.stop()
            raise limits.HttpRefusal(503, ASKED, "the checker died over it", "Check less at a time") from None
        late = todo[len(found) :]
        if late:
            self.stop()
        because = f"the time for the whole text, {seconds:g} s, was up"
        missing = [
            {**one, "verdict": "undecided", "because": because, "derivation": [], "counterexample": None}
            for one in late
        ]
        return found + missing, not late

    def stop(self) -> None:
        """End the process, whatever it does."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.join(5)

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self.stop()
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=decide, args=(theirs, self._each), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _receive(self, pipe: Connection, end: float) -> Any:
        if not pipe.poll(max(0.0, end - time.monotonic())):
            self.stop()
            return None
        return pipe.recv()


def decide(pipe: Connection, each: float) -> None:
    """The process: for each text, first what there is to decide, then the verdicts one by one."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    from qkv.claims.pipeline import verdict
    from qkv.claims.symbolic import prover  # noqa: F401  (now, since a claim's clock should not wait for imports)
    from qkv.claims.syntax.markdown import UnparsedClaim, read

    known: OrderedDict[Any, Verdict] = OrderedDict()
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            claims = read(pipe.recv())
            # Columns of a claim are told by where its statement begins, of a broken one by what is wrong in it.
            places = [(c.why.at if isinstance(c, UnparsedClaim) else c.at) for c in claims]
            says = [c.source.strip().split("\n")[0][:200] if isinstance(c, UnparsedClaim) else c.says for c in claims]
            pipe.send([
                {"id": c.id, "says": s, "line": at[0], "column": at[1]}
                for c, s, at in zip(claims, says, places, strict=True)
            ])  # fmt: skip
            if len(claims) > limits.MOST_CLAIMS:
                continue
            for claim, (line, column) in zip(claims, places, strict=True):
                if isinstance(claim, UnparsedClaim):
                    out = broken(claim)
                else:
                    key = (claim.source, claim.says)
                    found = known.pop(key, None) or verdict(claim, each).to_json()
                    if found["verdict"] != "undecided":  # what time did not allow may be decided the next time
                        known[key] = found
                    out = {**found, "id": claim.id}
                    if len(known) > KEPT:
                        known.popitem(last=False)
                pipe.send({**out, "line": line, "column": column})


def broken(claim: Any) -> Verdict:
    """The verdict on a claim that could not be read."""
    from qkv.claims.pipeline import malformed

    return malformed(claim).to_json()
