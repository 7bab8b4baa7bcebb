"""Load test of the explorer: 50 concurrent clients on loopback, all endpoints but claims, questions and jobs.

Each client sends a request, waits for its reply and sends the next after a pause of `--pause` seconds on average, as a
user does who moves a slider; with a pause of 0 it sends as fast as it can.

Prints the share of errors, latencies by endpoint, and the server's memory after a warm-up and at the end; the last line
is JSON. Clients run on the same cores.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import defaultdict

import psutil

WARM = 20
"""Seconds before memory is measured, in which processes start and caches fill."""


def lookup(rng: random.Random) -> dict:
    n = rng.choice((5, 10, 50))
    keys = [[round(rng.gauss(0, 1), 3) for _ in range(2)] for _ in range(n)]
    query = [round(rng.gauss(0, 1), 3) for _ in range(2)]
    return {
        "keys": keys,
        "values": keys,
        "labels": [f"i{i}" for i in range(n)],
        "query": query,
        "scale": rng.uniform(0, 20),
    }


def copying(rng: random.Random) -> dict:
    body = lookup(rng)
    return {k: body[k] for k in ("keys", "values", "labels")} | {"item": "i0"}


def blending(rng: random.Random) -> dict:
    body = lookup(rng)
    return {k: body[k] for k in ("keys", "values", "labels")} | {"weights": {"i0": 0.5, "i1": 0.5}}


def noise(rng: random.Random) -> dict:
    along, isotropic = rng.randrange(21) / 10, 10.0 ** rng.randrange(-6, 0)
    return {"n": rng.choice((10, 50)), "along": along, "isotropic": isotropic, "scale": rng.randrange(1, 100) / 5}


def wiring(rng: random.Random) -> dict:
    names = [f"x_{i}" for i in range(3)]
    tokens = [
        {"name": "x_0", "is": {"d": 1, "b": 1}},
        {"name": "x_1", "is": {"a": 1}},
        {"name": "x_2", "is": {"c": 1, "b": 1}},
    ]
    rules = [{"token": name, "reads": rng.choice(names), "writes": {rng.choice("abcd"): 1}} for name in names[:2]]
    return {"tokens": tokens, "rules": rules, "beta": rng.uniform(0.2, 4)}


KINDS = {
    "lookup": ("POST", "/api/lookup", lookup),
    "copy": ("POST", "/api/design/copy", copying),
    "blend": ("POST", "/api/design/blend", blending),
    "noise": ("POST", "/api/noise", noise),
    "wiring": ("POST", "/api/wiring", wiring),
    "health": ("GET", "/api/health", None),
    "example": ("GET", "/api/example/lookup", None),
    "catalogue": ("GET", "/api/catalogue", None),
    "models": ("GET", "/api/models", None),
    "jobs": ("GET", "/api/jobs", None),
    "page": ("GET", "/", None),
    "documents": ("GET", "/docs/", None),
    "style": ("GET", "/theme.css", None),
}


async def one(reader, writer, method: str, path: str, body: dict | None) -> int:
    """Send one request over an open connection; the status of its reply."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    writer.write(head.encode() + b"\r\n" + content)
    reply = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: (\d+)", reply, flags=re.I)
    if length:
        await reader.readexactly(int(length[1]))
    else:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    return int(reply.split(" ", 2)[1])


async def client(
    port: int, seed: int, end: float, pause: float, took: dict[str, list[float]], wrong: list[str]
) -> None:
    rng = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while time.monotonic() < end:
        kind = rng.choice(tuple(KINDS))
        method, path, make = KINDS[kind]
        body = make(rng) if make else None
        start = time.perf_counter()
        status = await one(reader, writer, method, path, body)
        took[kind].append(time.perf_counter() - start)
        if status != 200:
            wrong.append(f"{kind}: {status}")
        await asyncio.sleep(rng.uniform(0, 2 * pause))
    writer.close()


def cpu(server: psutil.Process) -> float:
    """Processor time of the server and its processes, in seconds."""
    return sum(sum(process.cpu_times()[:2]) for process in (server, *server.children(recursive=True)))


async def load_test(port: int, server: psutil.Process, clients: int, seconds: float, pause: float) -> dict:
    took: dict[str, list[float]] = defaultdict(list)
    wrong: list[str] = []
    memory: list[float] = []
    spent: list[float] = []
    end = time.monotonic() + seconds + WARM

    async def watch() -> None:
        await asyncio.sleep(WARM)
        for rows in took.values():
            rows.clear()
        spent.append(cpu(server))
        while time.monotonic() < end:
            every = [server, *server.children(recursive=True)]
            memory.append(sum(process.memory_info().rss for process in every) / 2**20)
            await asyncio.sleep(0.5)

    await asyncio.gather(watch(), *(client(port, seed, end, pause, took, wrong) for seed in range(clients)))
    spent.append(cpu(server))
    every = sorted(x for rows in took.values() for x in rows)

    def at(rows: list[float], p: float) -> float:
        return round(1e3 * sorted(rows)[min(len(rows) - 1, int(p * len(rows)))], 1)

    for kind, rows in took.items():
        print(f"{kind:<10} {len(rows):>6} requests   median {at(rows, 0.5):>7} ms   p99 {at(rows, 0.99):>7} ms")
    tenth = max(1, len(memory) // 10)
    first, last = sum(memory[:tenth]) / tenth, sum(memory[-tenth:]) / tenth
    return {
        "clients": clients,
        "seconds": seconds,
        "pause": pause,
        "requests": len(every),
        "per_second": round(len(every) / seconds, 1),
        "cpu_ms_per_request": round(1e3 * (spent[1] - spent[0]) / max(1, len(every)), 2),
        "errors": len(wrong),
        "median_ms": at(every, 0.5),
        "p99_ms": at(every, 0.99),
        "memory_mb": [round(first, 1), round(last, 1)],
        "memory_grew": round(last / first - 1, 4),
        "holds": not wrong and at(every, 0.99) < 500 and abs(last / first - 1) <= 0.05,
        "wrong": wrong[:5],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=0.25, help="Mean seconds between a reply and the next request.")
    given = parser.parse_args()
    command = [sys.executable, "-m", "qkv", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
            found = asyncio.run(load_test(port, psutil.Process(process.pid), given.clients, given.seconds, given.pause))
        finally:
            process.terminate()
    print(json.dumps({"explorer": found}))


if __name__ == "__main__":
    main()
