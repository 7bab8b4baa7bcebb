"""Request limits, and the HTTP refusals that state them."""

from __future__ import annotations

from qkv.errors import QkvError

MAX_BODY_BYTES = 256 * 1024
"""Bytes of a request body; a longer one is refused before it is read."""
MAX_ITEMS, MAX_VECTOR_LENGTH = 64, 32
"""Items of a memory, and entries of a key or value."""
MAX_ABS_ENTRY = 1e6
"""Absolute value of a number in keys, values and queries."""
MAX_SCALE = 1e3
MAX_NOISE_ITEMS, MAX_NOISE_HEADS, MAX_NOISE_SAMPLES = 100, 8, 2000
"""Items, heads and sampled weights on the noise page."""
MAX_WIRING_TOKENS, MAX_WIRING_VECTORS = 6, 12
"""Tokens to be wired, and named vectors that they are sums of."""
MAX_CLAIM_TEXT, MAX_CLAIMS = 60_000, 200
"""Characters of a document of claims, and claims in it."""
MAX_SHEET_TEXT, MAX_FILE_NAME = 200_000, 200
"""Characters of an answer sheet, and of the name of its file."""
GRADE_SECONDS, GRADE_START_SECONDS, MAX_QUEUED_SHEETS = 45.0, 15.0, 4
"""Time limit for a sheet, time for its process to start, and sheets that are being graded or wait."""
MAX_HEADS_TEXT, MAX_HEADS_TOKENS, MAX_EFFECT_TOKENS = 20_000, 512, 64
"""Characters and tokens of a text on the page of heads, and tokens on which the effect of removing is measured."""
MAX_LAYERS_OR_HEADS = 1024
"""Numbers of layers and heads in a request."""
MAX_QUEUED_HEADS, HEADS_SECONDS = 8, 120.0
"""Requests about heads that run or wait, and time limit for one of them."""
CLAIM_SECONDS, CHECK_SECONDS = 5.0, 30.0
"""Time limits for one claim, and for a whole document."""
CONCURRENT_REQUESTS, MAX_QUEUED_REQUESTS = 8, 300
"""Requests processed at a time, and requests in the queue including those; a further one is refused with 503."""
MAX_QUEUED_COMPUTATIONS = 64
"""Computations that run in or wait for a thread or process; a further one is refused with 503."""
MAX_QUEUED_CHECKS = 8
"""Documents of claims that are being checked or wait; a further one is refused with 503."""
MAX_RUNNING_JOBS, MAX_LISTED_JOBS = 2, 20
"""Jobs that run at a time, and jobs that are remembered."""
JOB_SECONDS = 1800.0
"""Time limit for one job."""
MAX_CONNECTIONS, MAX_UVICORN_CONNECTIONS = 400, 900
"""Open connections. Beyond the first number requests are refused with 503 in JSON; beyond the second, uvicorn itself
refuses them before they reach the application."""
REQUEST_SECONDS = 15.0
"""Time for a whole request to arrive, and for a client to take a part of its reply; then the connection is closed."""
MIN_WAITING_SECONDS = 1.0
"""Where too many connections are open, one that has waited so long for a request is closed for a new one."""
MAX_EVENT_STREAMS = 100
"""Event streams that are open at a time."""
MAX_QUESTION_LENGTH = 500
MAX_LABEL_LENGTH = 40
"""Characters of a label or name."""


class HttpRefusal(QkvError):
    """A refusal with its HTTP status."""

    def __init__(self, status: int, request: str, problem: str, hint: str) -> None:
        super().__init__(request, problem, hint)
        self.status = status


def body_too_large(request: str) -> HttpRefusal:
    """413: the body has too many bytes."""
    return HttpRefusal(413, request, f"the request is longer than {MAX_BODY_BYTES} bytes", "Send less at a time")


def too_many_connections(request: str) -> HttpRefusal:
    """503: too many connections are open."""
    return HttpRefusal(503, request, f"more than {MAX_CONNECTIONS} connections are open", "Try again in a second")


def too_many_waiting(request: str) -> HttpRefusal:
    """503: the queue is full."""
    return HttpRefusal(503, request, "too many requests are waiting", "Try again in a second")
