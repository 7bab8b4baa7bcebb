"""Worker processes killed with SIGKILL while they work: of a pool, of a Dask cluster, and of the explorer."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from faults.count import FaultCount, Progress, Tally, nothing

SECONDS = 60.0
CLAIM = (
    "```claim fine {i}\ngiven k_1..k_n orthonormal, n >= 3\nlet q = t*(k_a + {i}*k_b)\nthen c -> v_b as t -> oo\n```\n"
)


def run_pool(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Kill a process of `qkv design copyable --processes 2` while it decides keys."""
    tally, draw = Tally("worker of a pool killed", count, progress), random.Random(seed)
    for _ in range(count):
        _decide_keys(tally, draw, {"processes": 2})
    return tally.result("Refused: a sentence says that a worker process died.")


def run_cluster(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Kill a worker of a Dask cluster on this machine while it decides keys."""
    tally, draw = Tally("worker of a Dask cluster killed", count, progress), random.Random(seed)
    if find_spec("distributed") is None:
        return tally.result("Not run: dask is not installed.")
    import distributed

    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, silence_logs=50, **options) as cluster:
        for _ in range(count):
            _decide_keys(tally, draw, {"cluster": cluster.scheduler_address})
            with contextlib.suppress(TimeoutError), distributed.Client(cluster) as client:
                client.wait_for_workers(2, timeout=30)  # the cluster starts a new one
    return tally.result(
        "Unchanged: the cluster gave the work to another worker, and the result is the same. "
        "Refused: no other worker held the data."
    )


def _decide_keys(tally: Tally, draw: random.Random, who: dict[str, Any]) -> None:
    """Decide keys, kill one of this process's descendants meanwhile, and compare with the answer without workers."""
    import numpy as np
    import psutil

    from qkv.design.hull.selectable import copyable
    from qkv.errors import QkvError

    keys = np.random.default_rng(draw.randrange(4)).normal(size=(400, 5))
    wanted = _vertices(keys)
    stop = threading.Event()

    def kill() -> None:
        delay = draw.random() * 1.5
        if stop.wait(delay):
            return
        found = [p for p in psutil.Process().children(recursive=True) if _is_worker(p)]
        if found:
            with contextlib.suppress(psutil.NoSuchProcess):
                draw.choice(found).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    began = time.monotonic()
    try:
        found = copyable(keys, **who).vertices.tolist()
        tally.add("unchanged" if found == wanted else "believed", f"{len(found)} keys instead of {len(wanted)}")
    except QkvError:
        tally.add("refused" if time.monotonic() - began < SECONDS else "hangs")
    except Exception as why:
        tally.add("tracebacks", f"{type(why).__name__}: {why}")
    finally:
        stop.set()
        killer.join()


def _is_worker(process: Any) -> bool:
    try:
        line = " ".join(process.cmdline())
    except Exception:
        return False
    return "qkv.parallel" in line or "spawn_main" in line


def _vertices(keys: Any) -> list[int]:
    from qkv.design.hull.selectable import copyable

    return copyable(keys, processes=1).vertices.tolist()


def run_web(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Kill processes of the explorer while it decides claims and computes; the next request must be answered."""
    tally, draw = Tally("worker of the explorer killed", count, progress), random.Random(seed)
    if find_spec("uvicorn") is None or find_spec("httpx") is None:
        return tally.result("Not run: the extra web is not installed.")
    import httpx
    import psutil

    from faults.hostile_clients import served

    with (
        served() as (address, pid),
        httpx.Client(base_url=address, timeout=SECONDS) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        for i in range(count):
            text = CLAIM.replace("{i}", str(2 + i % 50))
            posted = pool.submit(client.post, "/api/check", json={"text": text})
            time.sleep(draw.random() * 0.6)
            workers = psutil.Process(pid).children(recursive=True)
            if workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(workers).pid, signal.SIGKILL)
            _count_reply(tally, posted, client)
    return tally.result("Refused: 503 with a sentence, and the next request is answered.")


def _count_reply(tally: Tally, posted: Any, client: Any) -> None:
    import httpx

    try:
        found = posted.result()
        after = client.get("/api/health")
    except httpx.TimeoutException:
        tally.add("hangs", "no reply")
        return
    except httpx.HTTPError as why:
        tally.add("lost", f"the server went away: {why}")
        return
    if after.status_code != 200:
        tally.add("lost", f"afterwards: {after.status_code} {after.text[:300]}")
    elif found.status_code == 200:
        kinds = [verdict["verdict"] for verdict in found.json()["verdicts"]]
        tally.add("unchanged" if kinds == ["proved"] else "believed", f"{kinds}")
    elif found.status_code in (429, 503) and set(found.json().get("error", {})) == {"request", "problem", "hint"}:
        tally.add("refused")
    else:
        tally.add("tracebacks", f"{found.status_code} {found.text[:400]}")
