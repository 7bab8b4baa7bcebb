"""The gate in front of every request: host, origin, token and length; and what every reply says."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.responses import Response

from qkv.web import limits
from qkv.web.schemas import refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
COOKIE = "qkv_token"
STYLE_HASHES: tuple[str, ...] = ()
"""Style elements that a vendored library writes into the page, by hash: "'sha256-…'"."""

HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            " ".join(("style-src 'self'", *STYLE_HASHES)),
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
}


class SecurityMiddleware:
    """Lets through what comes from the page itself, or from a program of the owner; everything else is refused."""

    def __init__(self, app: App, hosts: Iterable[str] = LOOPBACK, token: str | None = None) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        spoken = with_headers(send)
        why = self._refused(scope, headers)
        if why is not None:
            await why(scope, receive, spoken)
            return
        if self.token is not None and not self._known(headers):
            await self._greet(scope, receive, spoken)
            return
        await Bounded(self.app)(scope, receive, spoken)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> Any:
        asked = f"{scope['method']} {scope['path']}"
        if scope["app"].state.connections() > limits.MOST_CONNECTIONS:
            out = refused(limits.crowded(asked))
            out.headers["connection"] = "close"
            return out
        host = headers.get("host", "")
        # A page whose name was made to point here (DNS rebinding) still says its own name.
        if self.hosts and host_of(host) not in self.hosts:
            return refusal(403, asked, f"it is addressed to the host {host[:80]!r}", "Use the address that was printed")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return refusal(403, asked, f"it comes from a page of {origin[:80]!r}", "Use the page of this server")
        site = headers.get("sec-fetch-site", "none")
        link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if site not in ("same-origin", "none") and (not link or scope["path"].startswith("/api")):
            return refusal(403, asked, "it comes from another site's page", "Use the page of this server")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limits.MOST_BODY:
            return refused(limits.too_large(asked))
        return None

    def _known(self, headers: dict[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        shown = [given.strip()] if kind.lower() == "bearer" else []
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        shown += [cookie.value] if cookie is not None else []
        return any(self._same(one) for one in shown)

    def _same(self, given: str) -> bool:
        """Compared in constant time, so that nothing can be learnt from how long a refusal takes."""
        assert self.token is not None
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _greet(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The printed address carries the token once; a cookie carries it from then on."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and not scope["path"].startswith("/api") and self._same(given):
            cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            there = [(b"location", scope["path"].encode("latin-1")), (b"set-cookie", cookie.encode())]
            await send({"type": "http.response.start", "status": 303, "headers": [*there, (b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        asked = f"{scope['method']} {scope['path']}"
        remedy = "Open the address that was printed at start, or send Authorization: Bearer with its token"
        await refusal(401, asked, "the token is missing or wrong", remedy)(scope, receive, send)


class Bounded:
    """Counts a body as it comes, since a chunked one does not say its length."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0
        over = started = False

        async def counted() -> Message:
            nonlocal seen, over
            message = {"type": "http.disconnect"} if over else await receive()
            seen += len(message.get("body", b""))
            if seen > limits.MOST_BODY:
                over = True
                return {"type": "http.disconnect"}
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            if over and not started:
                return  # whatever the route makes of half a body, the answer is that it was too long
            started = True
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except Exception:
            if not over:
                raise
        if over and not started:
            out = refused(limits.too_large(f"{scope['method']} {scope['path']}"))
            out.headers["connection"] = "close"
            await out(scope, receive, send)


def refused(why: limits.HttpRefusal) -> Response:
    """A refusal as a reply."""
    return refusal(why.status, why.request, why.problem, why.hint)


def with_headers(send: Send) -> Send:
    """Every reply says what a browser may do with it; what a route set itself stays."""
    fixed = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def spoken(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", []))
            names = {name.lower() for name, _ in own}
            own += [pair for pair in fixed if pair[0] not in names]
            if b"cache-control" not in names:
                own.append((b"cache-control", b"no-store"))
            message = {**message, "headers": own}
        await send(message)

    return spoken


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""
