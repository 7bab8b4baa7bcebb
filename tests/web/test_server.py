"""The server: addresses, sockets, and the environment that it leaves as it was."""

import os
import socket

import pytest
from marks import spread

from qkv.errors import QkvError
from qkv.web import server
from qkv.web.server import allowed_hosts, is_loopback, listen


def test_loopback_addresses_are_recognised():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org")))
    assert allowed_hosts("0.0.0.0") == () and "10.0.0.1" in allowed_hosts("10.0.0.1")


def test_a_port_that_is_taken_or_a_host_that_is_unknown_is_refused():
    with listen("127.0.0.1", 0) as taken, pytest.raises(QkvError, match="--port"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(QkvError, match="--host"):
        listen("no.such.host.invalid", 0)


@pytest.mark.parametrize(
    ("host", "address"),
    spread(
        [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://localhost:"), ("0.0.0.0", "http://127.0.0.1:")], 2
    ),
)
def test_the_address_is_printed_with_a_token_where_others_can_connect(monkeypatch, host, address):
    seen = {}

    class FakeServer:
        def run(self, sockets):
            seen["threads"] = os.environ["OMP_NUM_THREADS"]
            assert isinstance(sockets[0], socket.socket)
            sockets[0].close()

    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr(server, "make_server", lambda app: FakeServer())
    said = []
    server.run(host, 0, {}, False, said.append)
    assert address in said[0] and ("?token=" in said[0]) == (host == "0.0.0.0")
    assert seen == {"threads": "1"} and os.environ["OMP_NUM_THREADS"] == "7"
    monkeypatch.delenv("OMP_NUM_THREADS")
    server.run("127.0.0.1", 0, {}, False, said.append)
    assert "OMP_NUM_THREADS" not in os.environ
