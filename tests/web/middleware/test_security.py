"""What protects the server: hosts, origins, tokens, lengths, headers; each with a request that is refused."""

import json
import socket
import time

import httpx
import pytest

from qkv.web import limits
from qkv.web.server import hosts, is_loopback

BODY = {"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}


def error(found, status):
    assert found.status_code == status, found.text
    assert set(found.json()["error"]) == {"asked", "came", "try"}
    return found.json()["error"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1", "169.254.1.1"]
)
def test_a_request_for_another_host_is_refused(client, host):
    error(client.get("/api/health", headers={"host": host}), 403)


def test_names_of_this_machine_are_known_with_any_port(client):
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:9"):
        assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_other_sites_pages_are_refused_and_our_own_is_not(client, server):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"{server}.evil.example"):
        error(client.post("/api/lookup", json=BODY, headers={"origin": origin}), 403)
    assert client.post("/api/lookup", json=BODY, headers={"origin": server}).status_code == 200
    for site in ("cross-site", "same-site"):
        error(client.get("/api/health", headers={"sec-fetch-site": site}), 403)
        error(client.get("/api/health", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}), 403)
        error(client.get("/look.css", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}), 403)
        assert client.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/api/health", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_every_reply_says_what_a_browser_may_do_with_it(client):
    for found in (
        client.get("/"),
        client.get("/api/health"),
        client.get("/nothing"),
        client.get("/", headers={"host": "x"}),
    ):
        policy = dict(part.split(" ", 1) for part in found.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in found.headers["content-security-policy"] and "http" not in policy.values()
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in found.headers and "server" not in found.headers


def test_a_body_that_is_too_long_is_refused_before_it_is_read(client, server):
    error(client.post("/api/lookup", content=b" " * (limits.MOST_BODY + 1)), 413)
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as sock:
        sock.sendall(f"POST /api/lookup HTTP/1.1\r\nHost: {host}\r\nContent-Length: 999999999\r\n\r\n".encode())
        sock.settimeout(10)
        assert b" 413 " in sock.recv(100)


def test_a_chunked_body_that_is_too_long_is_refused_while_it_comes(client):
    sent = 0

    def chunks():
        nonlocal sent
        for _ in range(200):
            sent += 16_384
            yield b"[" * 16_384

    try:
        error(client.post("/api/lookup", content=chunks(), headers={"content-type": "application/json"}), 413)
    except (httpx.WriteError, httpx.RemoteProtocolError):  # the server hung up on us
        assert sent < 200 * 16_384
    assert client.get("/api/health").status_code == 200


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e7", '"1"', "null", "[1]", "9" * 5000])
def test_numbers_that_are_none_are_refused(client, number):
    text = json.dumps(BODY).replace('"query": [1, 0]', f'"query": [{number}, 0]')
    error(
        client.post("/api/lookup", content=text, headers={"content-type": "application/json"}),
        422 if len(number) < 99 else 400,
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422), (b"", 422), (b"\xff\xfe", 422), (b"[" * 60_000, 400), (b"[]", 422), (b"null", 422),
        (b'{"keys": 1}', 422), (json.dumps({**BODY, "more": 1}).encode(), 422),
        (json.dumps({**BODY, "labels": ["a", "a"]}).encode(), 422),
        (json.dumps({**BODY, "labels": ["a", "\ud800"]}).encode(), 422),
        (json.dumps({**BODY, "keys": [[1, 0], [1]]}).encode(), 422),
        (json.dumps({**BODY, "query": [1, 0, 0]}).encode(), 422),
        (json.dumps({**BODY, "wanted": ["nobody"]}).encode(), 422),
        (json.dumps({**BODY, "keys": [[0.0] * 33] * 2}).encode(), 422),
        (json.dumps({**BODY, "keys": [[0.0]] * 65}).encode(), 422),
    ],
)  # fmt: skip
def test_bodies_that_cannot_be_are_refused_in_one_shape(client, body, status):
    error(client.post("/api/lookup", content=body, headers={"content-type": "application/json"}), status)


def test_paths_of_a_request_never_reach_the_file_system(client):
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/../../etc/passwd",
        "/static//etc/passwd",
        "/etc/passwd",
    ):
        error(client.get(path), 404)
    for name in ("../runs", "/etc/passwd", "a" * 41):
        found = client.post("/api/ask", json={"model": name, "question": "?"})
        error(found, 422 if len(name) > 40 else 404)
    error(client.get("/api/jobs/..%2f..%2fetc"), 404)
    error(client.get("/api/jobs/nothing"), 404)
    error(client.put("/api/lookup", json=BODY), 405)


def test_pages_are_small_kept_and_compressed(client):
    first = client.get("/", headers={"accept-encoding": "gzip"})
    tag = first.headers["etag"]
    assert client.get("/", headers={"if-none-match": tag}).status_code == 304
    css = client.get("/look.css", headers={"accept-encoding": "gzip"})
    assert css.headers["content-encoding"] == "gzip" and "--item-a" in css.text
    assert client.get("/lookup").text == first.text
    packed = client.post("/api/noise", json={}, headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.post("/api/noise", json={}, headers={"accept-encoding": "identity"}).headers


def test_beyond_this_machine_every_request_needs_the_token(serve):
    token = "a-token-that-nobody-knows"
    with serve(token=token) as address, httpx.Client(base_url=address) as stranger:
        for path in ("/", "/api/health", "/look.css", "/api/openapi.json"):
            error(stranger.get(path), 401)
            error(stranger.get(path, headers={"authorization": "Bearer wrong"}), 401)
            error(stranger.get(path, headers={"cookie": "qkv_token=wrong; =;"}), 401)
            error(stranger.get(path, headers={"authorization": f"Basic {token}"}), 401)
        error(stranger.get("/api/health", params={"token": token}), 401)
        assert stranger.get("/api/health", headers={"authorization": f"Bearer {token}"}).status_code == 200
        seen = stranger.get("/", params={"token": token})
        assert seen.status_code == 303 and seen.headers["location"] == "/"
        cookie = seen.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert stranger.get("/").status_code == 200  # the cookie that was set
        error(httpx.get(address, params={"token": "wrong"}), 401)


def test_which_addresses_are_this_machine_s_own():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org")))
    assert hosts("0.0.0.0") == () and "10.0.0.1" in hosts("10.0.0.1")


def test_a_slow_or_broken_client_holds_nobody_up(client, server):
    host, port = server.removeprefix("http://").split(":")
    socks = [socket.create_connection((host, int(port)), 10) for _ in range(20)]
    for sock in socks:
        sock.sendall(b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
    start = time.monotonic()
    assert client.post("/api/lookup", json=BODY).status_code == 200
    assert time.monotonic() - start < 5
    for sock in socks:
        sock.close()


def test_one_connection_too_many_is_told_so_in_json(client, server, monkeypatch):
    client.get("/api/health")
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 2)
    address = (httpx.URL(server).host, httpx.URL(server).port)
    with socket.create_connection(address), socket.create_connection(address), httpx.Client(base_url=server) as late:
        found = late.get("/api/health")
        assert "connections are open" in error(found, 503)["came"]
        assert found.headers["connection"] == "close" and "content-security-policy" in found.headers
    monkeypatch.undo()
    assert client.get("/api/health").status_code == 200
