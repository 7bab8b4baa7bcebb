"""Deadlines of a connection: for a whole request to arrive, and for a client to take its reply.

Uvicorn limits only the time between two requests. A client that sends half a request, or never reads its reply, would
occupy one of the limited connections for as long as it likes.
"""

from __future__ import annotations

import asyncio
import http
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from qkv.web import limits
from qkv.web.limits import HttpRefusal
from qkv.web.middleware.security import REPLY_HEADERS
from qkv.web.schemas import refusal_reply


class DeadlineProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn, with deadlines.

    - From the first byte of a request (for the first request: from the connection on), all of it must arrive within
      `limits.REQUEST_SECONDS`, however often some bytes arrive. Otherwise the reply is 408.
    - A client that takes nothing of its reply for as long is disconnected.
    - Where more than `limits.MAX_CONNECTIONS` are open, a new connection closes those that have waited longest for a
      request, so that clients that send nothing keep nobody out.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._start_read_timer()
        if len(self.connections) > limits.MAX_CONNECTIONS:
            self._close_longest_waiting(len(self.connections) - limits.MAX_CONNECTIONS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_read_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waiting_since = self.loop.time()
        if self.conn.trailing_data[0]:  # the beginning of the next request arrived with the last one
            self._follow_request()

    def _should_upgrade(self) -> bool:
        """No request changes the protocol; uvicorn would advise on standard error to install packages for that."""
        return False

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(limits.REQUEST_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def _follow_request(self) -> None:
        """Start the deadline at the beginning of a request, and end it when all of the request has arrived."""
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_read_timer()
        else:
            self._stop_read_timer()
            self._waiting_since = None

    def _start_read_timer(self) -> None:
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(limits.REQUEST_SECONDS, self._request_timed_out)

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _close_longest_waiting(self, count: int) -> None:
        """Close up to `count` connections that have waited for a whole request for long enough, the longest first."""
        latest = self.loop.time() - limits.MIN_WAITING_SECONDS
        waiting = [
            (other._waiting_since, id(other), other)
            for other in self.connections
            if isinstance(other, DeadlineProtocol) and other._waiting_since is not None
            if other._waiting_since <= latest
        ]
        for *_, other in sorted(waiting)[:count]:
            other._waiting_since = None
            other.transport.abort()

    def _request_timed_out(self) -> None:
        self._read_timer = None
        if self.transport.is_closing():
            return
        begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send_timed_out()
        self.transport.close()
        self._abort_later()

    def _send_timed_out(self) -> None:
        problem = f"the request did not arrive whole within {limits.REQUEST_SECONDS:g} s"
        reply = refusal_reply(HttpRefusal(408, "reading a request", problem, "Send it again"))
        security = [(name.encode(), value.encode()) for name, value in REPLY_HEADERS.items()]
        headers = [*reply.raw_headers, *security, (b"connection", b"close")]
        reason = http.HTTPStatus.REQUEST_TIMEOUT.phrase.encode()
        events = (
            h11.Response(status_code=408, headers=headers, reason=reason),
            h11.Data(data=bytes(reply.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))

    def _abort_later(self) -> None:
        """Closing waits until the client has read everything; do not wait forever."""
        self.loop.call_later(limits.REQUEST_SECONDS, self.transport.abort)
