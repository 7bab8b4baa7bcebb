"""What a request may ask for, and refusals that say so."""

from __future__ import annotations

from qkv.errors import QkvError

MOST_BODY = 256 * 1024
"""Bytes of a request; a longer one is refused before it is read."""
MOST_ITEMS, MOST_WIDTH = 64, 32
"""Items of a memory, and entries of a key or value."""
MOST_ENTRY = 1e6
"""Size of a number in keys, values and queries."""
MOST_SCALE = 1e3
MOST_NOISY, MOST_HEADS, MOST_SAMPLES = 100, 8, 2000
"""Items, heads and drawn readings on the noise page."""
MOST_TOKENS, MOST_NAMES = 6, 12
"""Tokens to be wired, and vectors that they are sums of."""
MOST_TEXT, MOST_CLAIMS = 60_000, 200
"""Characters of a document of claims, and claims in it."""
CLAIM_SECONDS, CHECK_SECONDS = 5.0, 30.0
"""For one claim, and for a whole document."""
AT_ONCE, MOST_IN_LINE = 8, 300
"""Requests that are worked on at a time, and that may be in line; the next is told to come back."""
MOST_WAITING = 64
"""Computations that may wait for a thread; the next is told to come back."""
MOST_CHECKS_WAITING = 8
MOST_RUNNING, MOST_JOBS = 2, 20
"""Jobs at once, and jobs remembered."""
JOB_SECONDS = 1800.0
MOST_CONNECTIONS, LAST_RESORT = 400, 900
"""Open connections: beyond the first, requests are told to come back; beyond the second, before they are looked at."""
MOST_STREAMS = 100
"""Event streams at once."""
MOST_QUESTION = 500
LABEL = 40
"""Characters of a label or name."""


class HttpRefusal(QkvError):
    """A refusal with the HTTP status that says what kind it is."""

    def __init__(self, status: int, asked: str, came: str, remedy: str) -> None:
        super().__init__(asked, came, remedy)
        self.status = status


def too_large(asked: str) -> HttpRefusal:
    """413: more bytes than a request may have."""
    return HttpRefusal(413, asked, f"the request is longer than {MOST_BODY} bytes", "Send less at a time")


def crowded(asked: str) -> HttpRefusal:
    """503: too many others are connected."""
    return HttpRefusal(503, asked, f"more than {MOST_CONNECTIONS} connections are open", "Try again in a second")


def busy(asked: str) -> HttpRefusal:
    """503: too many others are waiting."""
    return HttpRefusal(503, asked, "too many requests are waiting", "Try again in a second")
