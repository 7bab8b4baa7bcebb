"""Security: hosts, origins, tokens, body lengths and headers; each with a request that is refused."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
from marks import some, spread

from qkv.web import limits
from qkv.web.middleware.security import SecurityMiddleware, add_headers, host_name

BODY = {"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}


def error(found, status):
    assert found.status_code == status, found.text
    assert set(found.json()["error"]) == {"request", "problem", "hint"}
    return found.json()["error"]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "",
        "[::1",
        "169.254.1.1",
        "evil.com@127.0.0.1",
        "127.0.0.1/evil.com",
        "127.0.0.1?.evil.com",
        "127.0.0.1#.evil.com",
        "127.0.0.1:8931.evil.com",
        "[::1].evil.com",
        "127.0.0.1:x",
    ],
)
def test_a_request_for_another_host_is_refused(client, host):
    error(client.get("/api/health", headers={"host": host}), 403)


def test_loopback_names_are_accepted_with_any_port(client):
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:9"):
        assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_requests_from_pages_of_other_sites_are_refused(client, server):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"{server}.evil.example"):
        error(client.post("/api/lookup", json=BODY, headers={"origin": origin}), 403)
    assert client.post("/api/lookup", json=BODY, headers={"origin": server}).status_code == 200
    for site in ("cross-site", "same-site"):
        error(client.get("/api/health", headers={"sec-fetch-site": site}), 403)
        error(client.get("/api/health", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}), 403)
        error(client.get("/theme.css", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}), 403)
        assert client.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/api/health", headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("name", ["host", "origin"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_request_with_two_hosts_or_origins_is_refused(name, swapped):
    values = [b"127.0.0.1", b"evil.example"] if name == "host" else [b"http://127.0.0.1", b"http://evil.example"]
    headers = [(b"host", b"127.0.0.1")] if name == "origin" else []
    headers += [(name.encode(), value) for value in (reversed(values) if swapped else values)]
    state = SimpleNamespace(state=SimpleNamespace(connections=lambda: 1))
    scope = {"type": "http", "method": "POST", "path": "/api/lookup", "headers": headers, "app": state}
    start, body = called(SecurityMiddleware(None), scope)
    assert start["status"] == 403 and name.title() in json.loads(body["body"])["error"]["problem"]


def test_every_reply_has_the_security_headers(client):
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
    error(client.post("/api/lookup", content=b" " * (limits.MAX_BODY_BYTES + 1)), 413)
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as sock:
        sock.sendall(f"POST /api/lookup HTTP/1.1\r\nHost: {host}\r\nContent-Length: 999999999\r\n\r\n".encode())
        sock.settimeout(10)
        assert b" 413 " in sock.recv(100)


def test_a_chunked_body_that_is_too_long_is_refused_while_it_arrives(client):
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


def test_with_a_token_every_request_needs_it(serve):
    token = "a-token-that-nobody-knows"
    with serve(token=token) as address, httpx.Client(base_url=address) as stranger:
        for path in ("/", "/api/health", "/theme.css", "/api/openapi.json"):
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


def test_clients_that_do_not_finish_their_request_delay_no_other(client, server):
    host, port = server.removeprefix("http://").split(":")
    socks = [socket.create_connection((host, int(port)), 10) for _ in range(20)]
    for sock in socks:
        sock.sendall(b"POST /api/lookup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
    start = time.monotonic()
    assert client.post("/api/lookup", json=BODY).status_code == 200
    assert time.monotonic() - start < 5
    for sock in socks:
        sock.close()


def test_connections_beyond_the_limit_are_refused_in_json(client, server, monkeypatch):
    client.get("/api/health")
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 2)
    address = (httpx.URL(server).host, httpx.URL(server).port)
    with socket.create_connection(address), socket.create_connection(address), httpx.Client(base_url=server) as late:
        found = late.get("/api/health")
        assert "connections are open" in error(found, 503)["problem"]
        assert found.headers["connection"] == "close" and "content-security-policy" in found.headers
    monkeypatch.undo()
    assert client.get("/api/health").status_code == 200


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a.b", "a.b"),
        ("A.B:80", "a.b"),
        ("[::1]:9", "::1"),
        ("", ""),
        ("[::1", ""),
        ("user@evil:1", ""),
        ("localhost:", ""),
        ("::1", ""),
        ("a:80:80", ""),
        ("a b", ""),
        ("a\n", ""),
        ("[a.b]", ""),
        ("[::1]x", ""),
        ("a:٣", ""),
    ],
)
def test_the_name_in_a_host_header(header, name):
    assert host_name(header) == name


@pytest.mark.parametrize("page", some(["/", "/noise", "/knowledge"], ["/noise"]))
def test_a_login_redirects_to_the_page_that_was_asked_for(serve, page):
    with serve(token="secret") as address:
        seen = httpx.get(f"{address}{page}", params={"token": "secret"})
        assert seen.status_code == 303 and seen.headers["location"] == page


TARGETS = (
    "//evil.example/x", "///evil.example", "/%2F%2Fevil.example", "/%5C%5Cevil.example", "/.//evil.example",
    "/%E2%82%AC", "/%0d%0aX-Evil:1", "/%0D%0A%0D%0Ahi", "/%00", "/%ff%fe", "/%ed%a0%80", "/noise/", "/noise%0d%0a",
    "/x" * 500, "http://evil.example/x", "*", "/nonsense",
)  # fmt: skip
BYTES = ("/\u20ac", "/a b", "/\x01", "/\x7f", "/\u00e9")


@pytest.mark.parametrize("cookie", spread(["", "Cookie: qkv_token=secret\r\n", "Cookie: qkv_token=\u20ac\r\n"], 3))
def test_no_path_redirects_elsewhere_or_breaks_the_server(serve, cookie):
    with serve(token="secret") as address:
        url = httpx.URL(address)
        for target in TARGETS + BYTES:
            with socket.create_connection((url.host, url.port), 10) as sock:
                head = f"GET {target}?token=secret HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{cookie}\r\n"
                sock.sendall(head.encode())
                sock.settimeout(10)
                reply = b""
                while part := sock.recv(65536):
                    reply += part
            status = int(reply.split()[1])
            assert 400 <= status < 500, (target, reply[:200])
            assert b"location:" not in reply.lower() and b"\r\nX-Evil" not in reply
            assert (status == 400) == (target in BYTES), (target, status)


def called(app, scope):
    """The messages that an ASGI application sends."""
    sent = []

    async def send(message):
        sent.append(message)

    with ThreadPoolExecutor(1) as executor:  # the main thread may hold the event loop of a browser
        executor.submit(asyncio.run, app(scope, None, send)).result()
    return sent


def test_websockets_are_closed():
    assert called(SecurityMiddleware(None), {"type": "websocket"}) == [{"type": "websocket.close", "code": 1008}]


def test_headers_that_a_route_set_are_kept():
    async def app(scope, receive, send):
        start = {"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"public")]}
        await add_headers(send)(start)

    (start,) = called(app, {})
    headers = dict(start["headers"])
    assert headers[b"cache-control"] == b"public" and headers[b"x-content-type-options"] == b"nosniff"
