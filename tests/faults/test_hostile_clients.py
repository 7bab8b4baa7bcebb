"""A short part of the load and of the foreign requests against a real server; and replies that are wrong are caught."""

import contextlib

import httpx
import pytest

from faults import hostile_clients

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def one_server():
    with hostile_clients.served() as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "count"), [("load", 8), ("foreign", 30), ("slow", 20), pytest.param("load", 40, marks=pytest.mark.slow)]
)
def test_a_short_part_of_each_kind_does_no_harm(kind, count, one_server, monkeypatch):
    monkeypatch.setattr(hostile_clients, "served", lambda: contextlib.nullcontext(one_server))
    found = dict(hostile_clients.kinds())[kind](count, 2, lambda done, total: None)
    assert found.harmless and found.tried == count, found.examples


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (httpx.Response(200, json={"weights": [1]}), "unchanged"),
        (httpx.Response(200, json={"weights": [2]}), "believed"),
        (httpx.Response(403, json={"error": {"request": "", "problem": "", "hint": ""}}), "refused"),
        (httpx.Response(500, text="Internal Server Error"), "tracebacks"),
        (httpx.Response(422, json={"detail": "x"}), "tracebacks"),
    ],
)
def test_replies_are_judged(reply, outcome):
    assert hostile_clients._judged(reply, {"weights": [1]})[0] == outcome
