"""Read deadline: connections that do not finish their request are closed, and all others are not."""

import contextlib
import socket
import time

import httpx
import pytest

from qkv.web import limits

BODY = b'{"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}'
HEAD = b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
UNFINISHED = {
    "nothing": b"",
    "half a request line": b"GET /api/hea",
    "headers without an end": b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": HEAD % len(BODY) + BODY[:20],
    "a chunked body without an end": (HEAD % 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    + b"1\r\n{\r\n",
    "half of a second request": b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /api",
}


@pytest.fixture
def connect(server):
    """Opens connections to the server, which are closed at the end of the test."""
    address = httpx.URL(server)
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection((address.host, address.port), 10))


def rest(sock, seconds=10):
    """What the server sends until it closes the connection."""
    found, until = b"", time.monotonic() + seconds
    while time.monotonic() < until:
        sock.settimeout(max(0.01, until - time.monotonic()))
        try:
            part = sock.recv(65536)
        except ConnectionResetError:
            return found
        if not part:
            return found
        found += part
    raise TimeoutError


@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_connection_that_does_not_finish_its_request_is_closed(connect, monkeypatch, kind):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.4)
    sock = connect()
    sock.sendall(UNFINISHED[kind])
    start = time.monotonic()
    said = rest(sock)
    assert 0.2 < time.monotonic() - start < 5
    assert (b" 408 " in said) == (kind != "nothing")


def test_bytes_that_arrive_one_by_one_do_not_move_the_deadline(connect, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.5)
    sock = connect()
    start = time.monotonic()
    with contextlib.suppress(OSError):
        for byte in b"GET /api/health HTTP/1.1\r\nX: " + 200 * b"x":
            sock.sendall(bytes([byte]))
            time.sleep(0.05)
    assert time.monotonic() - start < 4


def test_requests_that_arrive_in_time_are_answered_on_one_connection(connect, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.6)
    sock = connect()
    sock.settimeout(10)
    for _ in range(3):  # each within the deadline, all together not
        whole = HEAD % len(BODY) + BODY
        for part in (whole[:50], whole[50:-30], whole[-30:]):
            sock.sendall(part)
            time.sleep(0.1)
        assert b" 200 " in sock.recv(65536)
        time.sleep(0.4)


@pytest.mark.slow
def test_a_reply_that_takes_longer_than_the_deadline_is_sent(client, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.2)
    settings = {"kind": "noise-study", "n": 5, "scales": [1, 2, 3], "n_draws": 100}
    job = client.post("/api/jobs", json=settings).json()["id"]
    with client.stream("GET", f"/api/jobs/{job}/events") as events:  # open for as long as the job takes
        text = "".join(events.iter_text())
    assert "event: done" in text


def test_450_connections_that_never_finish_their_request_delay_no_other(connect, client, server):
    for i in range(450):
        connect().sendall(list(UNFINISHED.values())[i % 3])
    time.sleep(limits.MIN_WAITING_SECONDS)
    start = time.monotonic()
    for _ in range(5):
        with httpx.Client(base_url=server) as fresh:
            found = fresh.post("/api/lookup", content=BODY, headers={"content-type": "application/json"})
            assert found.status_code == 200, found.text
    assert time.monotonic() - start < 5


def test_a_client_that_does_not_read_its_reply_is_closed(connect, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.4)
    sock = connect()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    ask = b"GET /static/vendor/plot.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    sock.settimeout(0.5)
    start = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() - start < 20:
            with contextlib.suppress(TimeoutError):
                sock.sendall(60 * ask)
            time.sleep(0.1)
    assert time.monotonic() - start < 20


def test_a_request_for_another_protocol_is_answered_as_it_stands_and_nothing_is_logged(connect, caplog):
    sock = connect()
    upgrade = (
        b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    )
    with caplog.at_level("WARNING", "uvicorn.error"):
        sock.sendall(b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + upgrade + b"\r\n")
        assert rest(sock).startswith(b"HTTP/1.1 200 ")
    assert caplog.messages == []
