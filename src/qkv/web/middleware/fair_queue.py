"""First come, first served: a few requests are worked on at a time, and nobody overtakes those who wait."""

# Without turns, a crowd ends up waiting for the dearest figures alone: whoever asks for something cheap is served at
# once and asks again, until nearly everybody stands in the one long queue. With one queue for all, each waits for as
# long as all those before it take together, which is the same for everybody. Where nobody waits, a turn costs
# nothing.

from __future__ import annotations

import asyncio
from typing import Any

from qkv.web import limits
from qkv.web.middleware.security import App, Message, Receive, Scope, Send, refused

APART = ("/api/check", "/api/ask", "/api/jobs/")
"""What may take long and has a queue of its own, and streams."""


class FairQueueMiddleware:
    """Requests are read in full before their turn and replied to after it: nobody's slow line holds up others."""

    def __init__(self, app: App, at_once: int = limits.AT_ONCE) -> None:
        self.app = app
        self._turn = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(APART):
            await self.app(scope, receive, send)
            return
        if self._waiting >= limits.MOST_IN_LINE:
            await refused(limits.busy(f"{scope['method']} {scope['path']}"))(scope, receive, send)
            return
        asked = await _whole(receive)
        said: list[Message] = []
        self._waiting += 1
        try:
            async with self._turn:
                await self.app(scope, _given(asked, receive), _kept(said))
        finally:
            self._waiting -= 1
            for message in said:
                await send(message)


async def _whole(receive: Receive) -> list[Message]:
    """All parts of a request's body, or what came until it was given up."""
    found: list[Message] = []
    while True:
        message = await receive()
        found.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            return found


def _given(messages: list[Message], receive: Receive) -> Receive:
    left = iter(messages)

    async def next_one() -> Message:
        message: Any = next(left, None)
        return message if message is not None else await receive()

    return next_one


def _kept(said: list[Message]) -> Send:
    async def keep(message: Message) -> None:
        said.append(message)

    return keep
