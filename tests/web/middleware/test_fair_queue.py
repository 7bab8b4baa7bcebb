"""The fair queue: first come, first served; slow clients occupy no slot."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from qkv.web import limits
from qkv.web.middleware.fair_queue import FairQueueMiddleware


def run(coroutine):
    """Runs a coroutine in a thread: the main one may hold the event loop of a browser."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def send_request(queue, path, sent, parts=(b"",)):
    """Passes one request through the queue, and appends the messages of its reply to `sent`."""
    messages = [{"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)]

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append((path, message))

    await queue({"type": "http", "method": "GET", "path": path}, receive, send)


def test_cheap_requests_do_not_overtake_expensive_ones():
    async def app(scope, receive, send):
        await asyncio.sleep(0.05 if "expensive" in scope["path"] else 0)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def scenario():
        sent = []
        queue = FairQueueMiddleware(app, concurrency=1)
        await asyncio.gather(
            *(send_request(queue, path, sent) for path in ("/expensive", "/cheap", "/expensive2", "/cheap2"))
        )
        return [path for path, _ in sent]

    assert run(scenario()) == ["/expensive", "/cheap", "/expensive2", "/cheap2"]


def test_the_body_reaches_the_application_in_its_parts():
    async def app(scope, receive, send):
        seen = b""
        while True:
            message = await receive()
            seen += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.body", "body": seen})

    async def scenario():
        sent = []
        await send_request(FairQueueMiddleware(app), "/x", sent, (b"one ", b"two ", b"three"))
        return sent

    assert run(scenario()) == [("/x", {"type": "http.response.body", "body": b"one two three"})]


def test_an_error_frees_the_slot():
    async def app(scope, receive, send):
        if scope["path"] == "/bad":
            raise ValueError("it is bad")
        await send({"type": "http.response.body", "body": b""})

    async def scenario():
        sent = []
        queue = FairQueueMiddleware(app, concurrency=1)
        found = await asyncio.gather(
            *(send_request(queue, path, sent) for path in ("/bad", "/good")), return_exceptions=True
        )
        return [type(one) for one in found], [path for path, _ in sent]

    assert run(scenario()) == ([ValueError, type(None)], ["/good"])


def test_requests_beyond_the_queue_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_QUEUED_REQUESTS", 0)

    async def scenario():
        sent = []
        await send_request(FairQueueMiddleware(None), "/x", sent)
        return sent

    start, body = (message for _, message in run(scenario()))
    assert start["status"] == 503 and "waiting" in json.loads(body["body"])["error"]["problem"]


def test_requests_that_are_never_finished_occupy_no_slot(server):
    address = (httpx.URL(server).host, httpx.URL(server).port)
    head = b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    slow = [socket.create_connection(address) for _ in range(2 * limits.CONCURRENT_REQUESTS)]
    try:
        for one in slow:
            one.sendall(head)
        time.sleep(0.2)
        assert httpx.get(f"{server}/api/health", timeout=20).status_code == 200
    finally:
        for one in slow:
            one.close()
