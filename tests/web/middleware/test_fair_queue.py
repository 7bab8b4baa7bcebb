"""Whoever came first is served first, and a slow line holds up nobody else."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from qkv.web import limits
from qkv.web.middleware.fair_queue import FairQueueMiddleware


def run(work):
    """In a thread of its own: this one may hold the loop of a browser."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def asked(turns, path, said, parts=(b"",)):
    """One request through the turns; its reply is noted."""
    messages = [{"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)]

    async def receive():
        return messages.pop(0)

    async def send(message):
        said.append((path, message))

    await turns({"type": "http", "method": "GET", "path": path}, receive, send)


def test_cheap_requests_do_not_overtake_dear_ones():
    async def app(scope, receive, send):
        await asyncio.sleep(0.05 if "dear" in scope["path"] else 0)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def work():
        said = []
        turns = FairQueueMiddleware(app, at_once=1)
        await asyncio.gather(*(asked(turns, path, said) for path in ("/dear", "/cheap", "/dear2", "/cheap2")))
        return [path for path, _ in said]

    assert run(work()) == ["/dear", "/cheap", "/dear2", "/cheap2"]


def test_the_body_reaches_the_application_in_its_parts():
    async def app(scope, receive, send):
        seen = b""
        while True:
            message = await receive()
            seen += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.body", "body": seen})

    async def work():
        said = []
        await asked(FairQueueMiddleware(app), "/x", said, (b"one ", b"two ", b"three"))
        return said

    assert run(work()) == [("/x", {"type": "http.response.body", "body": b"one two three"})]


def test_an_error_gives_the_turn_back():
    async def app(scope, receive, send):
        if scope["path"] == "/bad":
            raise ValueError("it is bad")
        await send({"type": "http.response.body", "body": b""})

    async def work():
        said = []
        turns = FairQueueMiddleware(app, at_once=1)
        found = await asyncio.gather(*(asked(turns, path, said) for path in ("/bad", "/good")), return_exceptions=True)
        return [type(one) for one in found], [path for path, _ in said]

    assert run(work()) == ([ValueError, type(None)], ["/good"])


def test_too_long_a_line_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "MOST_IN_LINE", 0)

    async def work():
        said = []
        await asked(FairQueueMiddleware(None), "/x", said)
        return said

    start, body = (message for _, message in run(work()))
    assert start["status"] == 503 and "waiting" in json.loads(body["body"])["error"]["came"]


def test_requests_that_are_never_finished_hold_up_nobody(server):
    address = (httpx.URL(server).host, httpx.URL(server).port)
    head = b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    slow = [socket.create_connection(address) for _ in range(2 * limits.AT_ONCE)]
    try:
        for one in slow:
            one.sendall(head)
        time.sleep(0.2)
        assert httpx.get(f"{server}/api/health", timeout=20).status_code == 200
    finally:
        for one in slow:
            one.close()
