"""Serving the application: a socket, a token where it is needed, and an address to open."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.app import application
from qkv.web.middleware.security import LOOPBACK

WAIT = 3
"""Seconds that requests may take to end when the server stops."""


def run(host: str, port: int, models: dict[str, Path], open_page: bool, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `say` prints the address."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that claims and jobs run in
    sock = listening(host, port)
    port = sock.getsockname()[1]
    near = is_loopback(host)
    token = None if near else secrets.token_urlsafe(24)
    app = application(models, token, hosts(host))
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    say(f"The explorer is at {address}{'' if token is None else f'?token={token}'}")
    say("Its API is described at /api/openapi.json. Ctrl-C ends it.")
    server = prepared(app)
    if open_page:
        _open_when_up(server, f"{address}{'' if token is None else f'?token={token}'}")
    server.run(sockets=[sock])


def prepared(app: FastAPI) -> uvicorn.Server:
    """What serves it: quietly, and without waiting for anybody for long. The guard is told how many are connected."""
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=WAIT,
            timeout_keep_alive=20, limit_concurrency=limits.LAST_RESORT, h11_max_incomplete_event_size=32 * 1024,
        )
    )  # fmt: skip
    app.state.connections = lambda: len(server.server_state.connections)
    return server


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there, or a refusal that says why not."""
    asked = f"listening on {host} port {port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(512)
    except OSError as why:
        raise QkvError(asked, why.strerror or str(why), "Give another --port (0 takes a free one) or --host") from None
    return sock


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def hosts(host: str) -> tuple[str, ...]:
    """Names that a request may be addressed to; all of them where every address is listened on: the token guards it."""
    return () if host in ("0.0.0.0", "::") else (*LOOPBACK, host)


def _open_when_up(server: uvicorn.Server, address: str) -> None:
    import threading
    import time

    def wait() -> None:
        for _ in range(200):
            if server.started:
                webbrowser.open(address)
                return
            time.sleep(0.05)

    threading.Thread(target=wait, daemon=True).start()
