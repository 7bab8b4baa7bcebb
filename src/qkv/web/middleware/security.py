"""Checks of every request (host, origin, token, body length), and security headers of every reply."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qkv.web import limits
from qkv.web.limits import HttpRefusal
from qkv.web.schemas import refusal_reply
from qkv.web.static_files import PAGES, not_found

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
COOKIE = "qkv_token"
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{1,5})?")

REPLY_HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of every reply; a route may set its own value."""


class SecurityMiddleware:
    """Accepts requests of the server's own page and of programs of the user; refuses all others.

    The host check is not starlette's TrustedHostMiddleware: that one answers in plain text with status 400, whereas
    here every refusal is JSON of one form, with status 403 and these headers.

    Args:
        app: The application behind it.
        hosts: Names that a request may be addressed to; all names if empty.
        token: If given, every request must carry it, in a cookie or an Authorization header.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK_HOSTS, token: str | None = None) -> None:
        self.app = BodyLimit(app)
        self.hosts = frozenset(host.lower() for host in hosts)
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = add_headers(send)
        headers = Headers(scope=scope)
        reply = self._refusal(scope, headers)
        if reply is None and self.token is not None and not self._has_token(headers):
            reply = self._login(scope)
        await (reply or self.app)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The reply to a request that is not accepted, whatever its token; None if it is."""
        request = _request_line(scope)
        if scope["app"].state.connections() > limits.MAX_CONNECTIONS:
            reply = refusal_reply(limits.too_many_connections(request))
            reply.headers["connection"] = "close"
            return reply
        for name in ("host", "origin"):
            if len(headers.getlist(name)) > 1:  # the one that is checked here need not be the one that others believe
                problem = f"it has more than one header {name.title()}"
                return refusal_reply(HttpRefusal(403, request, problem, "Send one"))
        host = headers.get("host", "")
        # DNS rebinding: a name of an attacker that was made to resolve to this machine still stands in Host.
        if self.hosts and host_name(host) not in self.hosts:
            problem = f"it is addressed to the host {host[:80]!r}"
            return refusal_reply(HttpRefusal(403, request, problem, "Use the address that was printed"))
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            problem = f"it comes from a page of {origin[:80]!r}"
            return refusal_reply(HttpRefusal(403, request, problem, "Use the page of this server"))
        site = headers.get("sec-fetch-site", "none")
        followed_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if site not in ("same-origin", "none") and (not followed_link or scope["path"].startswith("/api")):
            problem = "it comes from a page of another site"
            return refusal_reply(HttpRefusal(403, request, problem, "Use the page of this server"))
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limits.MAX_BODY_BYTES:
            return refusal_reply(limits.body_too_large(request))
        return None

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, given: str) -> bool:
        """Compared in constant time: how long a refusal takes tells nothing about the token."""
        assert self.token is not None
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _login(self, scope: Scope) -> Response:
        """The printed address has the token as a parameter; it is exchanged for a cookie."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and not scope["path"].startswith("/api") and self._is_token(given):
            page = scope["path"].removeprefix("/")
            if page not in PAGES:  # a redirect to any other path, such as //host/, could lead to another host
                return not_found(scope["method"], scope["path"])
            cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            return Response(status_code=303, headers={"location": f"/{page}", "set-cookie": cookie})
        hint = "Open the address that was printed at start, or send Authorization: Bearer with its token"
        return refusal_reply(HttpRefusal(401, _request_line(scope), "the token is missing or wrong", hint))


class BodyLimit:
    """Counts the bytes of a body as they arrive, since a chunked request does not state its length.

    When there are too many, the application sees a disconnected client; whatever it replies to half a body, the client
    is told that the body was too long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        n_bytes = 0
        exceeded = replied = False

        async def count() -> Message:
            nonlocal n_bytes, exceeded
            message: Message = {"type": "http.disconnect"} if exceeded else await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > limits.MAX_BODY_BYTES:
                exceeded = True
                return {"type": "http.disconnect"}
            return message

        async def send_unless_exceeded(message: Message) -> None:
            nonlocal replied
            if exceeded and not replied:
                return
            replied = True
            await send(message)

        try:
            await self.app(scope, count, send_unless_exceeded)
        except Exception:
            if not exceeded:
                raise
        if exceeded and not replied:
            reply = refusal_reply(limits.body_too_large(_request_line(scope)))
            reply.headers["connection"] = "close"
            await reply(scope, receive, send)


def add_headers(send: Send) -> Send:
    """A `send` that adds `REPLY_HEADERS` to a reply, apart from those that it has."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            for name, value in REPLY_HEADERS.items():
                headers.setdefault(name, value)
            message = {**message, "headers": headers.raw}
        await send(message)

    return send_with_headers


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty if the header is anything but a name and perhaps a port."""
    found = _HOST.fullmatch(header)
    return (found["address"] or found["name"]).lower() if found else ""


def _request_line(scope: Scope) -> str:
    return f"{scope['method']} {scope['path']}"
