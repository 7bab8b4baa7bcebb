"""The explorer, served in a thread on a free port of this machine."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from qkv.web.app import application
from qkv.web.server import listen, make_server


@contextmanager
def serving(**options):
    """The address of a served application, until the block ends."""
    sock = listen("127.0.0.1", 0)
    server = make_server(application(**options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the server does not stop"


@pytest.fixture(scope="session")
def run_coroutine():
    """asyncio.run in a thread of its own: the main thread may hold the event loop of a browser."""

    def run(coroutine):
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(asyncio.run, coroutine).result()

    return run


@pytest.fixture(scope="session")
def serve():
    return serving


@pytest.fixture(scope="session")
def server():
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def client(server):
    with httpx.Client(base_url=server, timeout=120) as found:
        yield found


@pytest.fixture(scope="session")
def post(client):
    """Sends a body, and gives the JSON of a successful reply."""

    def send(path, body):
        found = client.post(path, json=body)
        assert found.status_code in (200, 202), found.text
        return found.json()

    return send


@pytest.fixture(scope="session")
def state(client):
    """The initial state of a page."""
    return lambda page: client.get(f"/api/example/{page}").json()


@pytest.fixture(scope="session")
def run_code():
    """Executes the Python code of a reply, and gives the names that it defines."""

    def run(code):
        names = {"__name__": "notebook"}
        exec(compile(code, "copied", "exec"), names)
        return names

    return run
