"""First-come-first-served concurrency limit.

Without it, clients that repeat cheap requests are served at once and again, while those that asked for expensive ones
queue for the compute pool: after a while nearly every client waits in that one queue. With one queue for all requests,
each waits as long as the requests before it take together. Where nobody waits, the queue costs nothing.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qkv.web import limits
from qkv.web.schemas import refusal_reply

UNQUEUED_PATHS = ("/api/check", "/api/ask", "/api/jobs/")
"""Paths that are not queued here: they may take long and have a queue of their own, or are event streams."""


class FairQueueMiddleware:
    """Processes a limited number of requests at a time, in the order of their arrival.

    A request body is read before the request enters the queue, and a reply is sent after it has left it: a client with
    a slow connection occupies no slot.
    """

    def __init__(self, app: ASGIApp, concurrency: int = limits.CONCURRENT_REQUESTS) -> None:
        self.app = app
        self._slots = asyncio.Semaphore(concurrency)
        self._queued = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(UNQUEUED_PATHS):
            await self.app(scope, receive, send)
            return
        if self._queued >= limits.MAX_QUEUED_REQUESTS:
            refusal = limits.too_many_waiting(f"{scope['method']} {scope['path']}")
            await refusal_reply(refusal)(scope, receive, send)
            return
        body = await _read_body(receive)
        reply: list[Message] = []
        self._queued += 1
        try:
            async with self._slots:
                await self.app(scope, _replay(body, receive), _collect(reply))
        finally:
            self._queued -= 1
            for message in reply:
                await send(message)


async def _read_body(receive: Receive) -> list[Message]:
    """All messages of a request body, or those until the client disconnected."""
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            return messages


def _replay(messages: list[Message], receive: Receive) -> Receive:
    """A `receive` that gives the messages again, then what comes after them."""
    remaining = iter(messages)

    async def receive_next() -> Message:
        message = next(remaining, None)
        return message if message is not None else await receive()

    return receive_next


def _collect(messages: list[Message]) -> Send:
    """A `send` that appends to a list."""

    async def collect(message: Message) -> None:
        messages.append(message)

    return collect
