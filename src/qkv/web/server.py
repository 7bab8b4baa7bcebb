"""Serves the application: socket, token, uvicorn, and the address to open."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from qkv.errors import QkvError
from qkv.web import limits
from qkv.web.app import application
from qkv.web.middleware.security import LOOPBACK_HOSTS
from qkv.web.model_registry import DEFAULT_RUNS
from qkv.web.read_deadline import DeadlineProtocol

SHUTDOWN_SECONDS = 3
"""Time that open requests have to end when the server stops."""
ANY_ADDRESS = ("0.0.0.0", "::")


def run(
    host: str,
    port: int,
    models: dict[str, Path],
    open_page: bool,
    say: Callable[[str], None],
    runs: Path = DEFAULT_RUNS,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        host: Address to listen on; beyond this machine, a token is required.
        port: Port to listen on; 0 takes a free one.
        models: Folders of runs that can be asked, and of models of transformers whose heads can be looked at, by name.
        open_page: Whether to open the page in a browser.
        say: Prints a line: the address of the page, and where the API is described.
        runs: Folder for models that are trained on the page and kept.

    Raises:
        QkvError: The address cannot be listened on, or a folder holds no model.
    """
    listener = listen(host, port)
    port = listener.getsockname()[1]
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    app = application(models, token, allowed_hosts(host), runs)
    shown_host = "127.0.0.1" if host in ANY_ADDRESS else f"[{host}]" if ":" in host else host
    address = f"http://{shown_host}:{port}/{'' if token is None else f'?token={token}'}"
    say(f"The explorer is at {address}")
    say("Its API is described at /api/openapi.json. Press Ctrl-C to stop.")
    server = make_server(app)
    if open_page:
        _open_when_started(server, address)
    with _environment_variable("OMP_NUM_THREADS", "1"):  # for the processes that are started meanwhile
        server.run(sockets=[listener])


def make_server(app: FastAPI) -> uvicorn.Server:
    """A uvicorn server for the application, which it tells the number of open connections."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=DeadlineProtocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            timeout_keep_alive=20,
            limit_concurrency=limits.MAX_UVICORN_CONNECTIONS,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
    app.state.connections = lambda: len(server.server_state.connections)
    return server


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        QkvError: The host is unknown, or the port taken or not permitted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        raise QkvError(
            f"listening on {host} port {port}",
            error.strerror or str(error),
            "Give another --port (0 takes a free one) or --host",
        ) from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect to the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(host: str) -> tuple[str, ...]:
    """Host names that a request may be addressed to; empty, for all names, where every address is listened on.

    In that case the machine's names are not known, and the token keeps other sites out.
    """
    return () if host in ANY_ADDRESS else (*LOOPBACK_HOSTS, host)


def _open_when_started(server: uvicorn.Server, address: str) -> None:
    def wait() -> None:
        for _ in range(200):
            if server.started:
                webbrowser.open(address)
                return
            time.sleep(0.05)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable, and restore it afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
