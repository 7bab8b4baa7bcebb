"""The explorer under load, slow clients, foreign hosts and origins, and bodies that are not what they should be."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import environment

CLIENTS = 24
SECONDS = 60.0
GOOD = {"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}
PATHS = (
    "/",
    "/api/health",
    "/api/example/lookup",
    "/api/catalogue",
    "/api/models",
    "/api/jobs",
    "/docs/",
    "/theme.css",
)
FOREIGN_HOSTS = (
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "169.254.1.1", "[::1", "", "evil@local.x",
)  # fmt: skip
FOREIGN_ORIGINS = ("http://evil.example", "null", "http://127.0.0.1:1", "https://localhost.evil.example", "file://")
REFUSAL = {"request", "problem", "hint"}


@contextlib.contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Address and process id of a `qkv serve` on this machine, ended by Ctrl-C; a traceback of it is an error."""
    command = [sys.executable, "-m", "qkv", "serve", "--port", "0", "--no-open"]
    with tempfile.TemporaryFile("w+", errors="replace") as err:
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=err, text=True)
        try:
            assert process.stdout is not None
            found = re.search(r"(http://127\.0\.0\.1:(\d+))/", process.stdout.readline())
            assert found is not None
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(found[2])), 1):
                    break
                time.sleep(0.05)
            yield found[1], process.pid
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            err.seek(0)
            said = err.read()
            if "Traceback" in said:
                raise RuntimeError(f"the server showed a traceback: {said[-1500:]}")


def _missing() -> bool:
    return find_spec("uvicorn") is None or find_spec("httpx") is None


def run_load(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Many clients at once, without a pause: computations, pages, and a tenth of bodies that are damaged."""
    tally = Tally(f"load: {CLIENTS} clients without a pause", count, progress)
    if _missing():
        return tally.result("Not run: the extra web is not installed.")
    import httpx

    with served() as (address, _), httpx.Client(base_url=address, timeout=SECONDS) as client:
        wanted = client.post("/api/lookup", json=GOOD).json()
        with ThreadPoolExecutor(CLIENTS) as pool:
            each = [random.Random(seed * 1000 + i) for i in range(CLIENTS)]
            shares = [count // CLIENTS + (i < count % CLIENTS) for i in range(CLIENTS)]
            futures = [pool.submit(_one_client, address, draw, n, wanted) for draw, n in zip(each, shares, strict=True)]
            for future in futures:
                for outcome in future.result():
                    tally.add(*outcome)
        if client.post("/api/lookup", json=GOOD).json() != wanted:
            tally.add("lost", "the server answers differently afterwards")
    return tally.result("Unchanged: the right answer. Refused: 4xx for damaged bodies, 503 where too many wait.")


def _one_client(address: str, draw: random.Random, count: int, wanted: Any) -> list[tuple[str, str]]:
    import httpx

    from faults.damage import damaged_copies

    body = httpx.Request("POST", address, json=GOOD).content
    out = []
    with httpx.Client(base_url=address, timeout=SECONDS) as client:
        for _ in range(count):
            chance = draw.random()
            try:
                if chance < 0.5:
                    out.append(_judged(client.post("/api/lookup", json=GOOD), wanted))
                elif chance < 0.6:
                    damaged = next(damaged_copies(body, 1, draw.randrange(10**9)))
                    headers = {"content-type": "application/json"}
                    out.append(_judged(client.post("/api/lookup", content=damaged, headers=headers), None))
                else:
                    out.append(_judged(client.get(draw.choice(PATHS)), None))
            except httpx.TimeoutException:
                out.append(("hangs", "no reply"))
            except httpx.HTTPError as why:
                out.append(("lost", f"{type(why).__name__}: {why}"))
    return out


def _judged(found: Any, wanted: Any) -> tuple[str, str]:
    """The outcome of a reply; `wanted` is the body of the right one, None if any answer will do."""
    if found.status_code == 200:
        right = wanted is None or found.json() == wanted
        return ("unchanged" if right else "believed"), found.text[:300]
    kind = found.headers.get("content-type", "")
    sentence = kind.startswith("application/json") and set(found.json().get("error", {})) >= REFUSAL
    if found.status_code in (400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 503) and sentence:
        return "refused", ""
    return "tracebacks", f"{found.status_code} {found.text[:300]}"


def run_foreign(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Requests for other host names and from pages of other sites: none may be served."""
    tally, draw = Tally("foreign hosts and origins", count, progress), random.Random(seed)
    if _missing():
        return tally.result("Not run: the extra web is not installed.")
    import httpx

    with served() as (address, _), httpx.Client(base_url=address, timeout=SECONDS) as client:
        for _ in range(count):
            kind, path = draw.choice(("host", "origin", "site", "both")), draw.choice(PATHS)
            headers = {}
            if kind in ("host", "both"):
                headers["host"] = draw.choice(FOREIGN_HOSTS)
            if kind in ("origin", "both"):
                headers["origin"] = draw.choice(FOREIGN_ORIGINS)
            if kind == "site":
                headers |= {"sec-fetch-site": draw.choice(("cross-site", "same-site")), "sec-fetch-mode": "cors"}
            post = kind != "host" or draw.random() < 0.5
            found = (
                client.post("/api/lookup", json=GOOD, headers=headers) if post else client.get(path, headers=headers)
            )
            if found.status_code == 200:
                tally.add("believed", f"{headers} was served")
            elif "access-control-allow-origin" in found.headers:
                tally.add("believed", f"{headers}: other sites may read the refusal")
            else:
                tally.add(*_judged(found, None))
    return tally.result("None is served, and no other site may read a reply.")


def run_slow(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Clients that never finish their request, hang up, or do not read; others must be answered meanwhile."""
    tally, draw = Tally("slow clients", count, progress), random.Random(seed)
    if _missing():
        return tally.result("Not run: the extra web is not installed.")
    import httpx

    waits = []
    with served() as (address, _), contextlib.ExitStack() as stack:
        port = httpx.URL(address).port
        assert port is not None
        for i in range(count):
            with contextlib.suppress(OSError):
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                sock.sendall(_unfinished(draw))
                if draw.random() < 0.2:
                    sock.close()
            if i % 10 and i != count - 1:
                tally.add("unchanged")
                continue
            began = time.monotonic()
            try:
                with httpx.Client(base_url=address, timeout=SECONDS) as client:
                    found = client.post("/api/lookup", json=GOOD)
                waits.append(time.monotonic() - began)
                # A full house is refused in a sentence; a second later the oldest silent clients have been put out.
                tally.add(*_judged(found, None))
            except httpx.TimeoutException:
                tally.add("hangs", f"behind {i} slow clients")
            except httpx.HTTPError as why:
                tally.add("lost", f"{type(why).__name__}: {why}")
        time.sleep(1.5)
        with httpx.Client(base_url=address, timeout=SECONDS) as client:
            if client.post("/api/lookup", json=GOOD).status_code != 200:
                tally.add("lost", "no answer although the slow clients had their time")
    longest = max(waits, default=0.0)
    return tally.result(f"Every tenth is followed by an honest request, which waits at most {longest:.1f} s here.")


def _unfinished(draw: random.Random) -> bytes:
    head = b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 90\r\n"
    whole = head + b"\r\n" + b'{"keys": [[1, 0], [0, 1]], "values": [[1]'
    return whole[: draw.randrange(len(whole))]


def kinds() -> list[tuple[str, Callable[[int, int, Progress], FaultCount]]]:
    """Name and function of each kind."""
    return [("load", run_load), ("foreign", run_foreign), ("slow", run_slow)]
