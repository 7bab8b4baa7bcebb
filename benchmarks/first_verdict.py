"""Time from the start of `qkv serve` to the first verdict: the request is sent as soon as the port answers.

Prints, for each start, when the server answered and when the verdicts on the first example were there, in seconds after
the process was started; the last line is JSON with the medians. The files that Python reads are in the disk cache after
the first start, which is left out.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from qkv.web.claim_examples import FIRST_EXAMPLE


def send(address: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def start_once() -> tuple[float, float]:
    """Seconds until the server answered, and until the verdicts were there."""
    with tempfile.TemporaryDirectory() as runs:
        begin = time.monotonic()
        command = [sys.executable, "-m", "qkv", "serve", "--port", "0", "--no-open", "--runs", runs]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            address = found[0].rstrip("/")
            send(f"{address}/api/health")
            answered = time.monotonic() - begin
            verdicts = send(f"{address}/api/check", {"text": FIRST_EXAMPLE})["verdicts"]
            assert [v["verdict"] for v in verdicts] == ["proved", "proved", "conditional", "refuted"]
            return answered, time.monotonic() - begin
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5)
    starts = parser.parse_args().starts
    start_once()
    measured = [start_once() for _ in range(starts)]
    for answered, decided in measured:
        print(f"answers after {answered:.2f} s, first verdicts after {decided:.2f} s")
    answered, decided = (statistics.median(column) for column in zip(*measured, strict=True))
    print(json.dumps({"starts": starts, "answers_after": round(answered, 3), "first_verdict_after": round(decided, 3)}))


if __name__ == "__main__":
    main()
