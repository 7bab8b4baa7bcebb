"""The application: every refusal has one form, whatever is wrong with a request."""

import json

import pytest

BODY = {"keys": [[1, 0], [0, 1]], "values": [[1], [2]], "labels": ["a", "b"], "query": [1, 0], "scale": 1}


def error(found, status):
    assert found.status_code == status, found.text
    assert set(found.json()["error"]) == {"request", "problem", "hint"}
    return found.json()["error"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e7", '"1"', "null", "[1]", "9" * 5000])
def test_numbers_that_are_not_finite_numbers_in_range_are_refused(client, number):
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
def test_invalid_bodies_are_refused_in_one_form(client, body, status):
    error(client.post("/api/lookup", content=body, headers={"content-type": "application/json"}), status)


def test_unknown_paths_and_methods_are_refused_in_one_form(client):
    assert error(client.get("/api/nothing"), 404)["hint"] == "See /api/openapi.json"
    for method in ("PUT", "GET", "HEAD", "DELETE"):
        found = client.request(method, "/api/lookup")
        assert found.status_code == 405 and "POST" in found.headers["allow"]
    assert error(client.put("/api/lookup", json=BODY), 405)["request"] == "PUT /api/lookup"
    assert error(client.get("/api/lookup"), 405)["problem"] == "Method Not Allowed"


@pytest.mark.parametrize("wanted", [["a", 7], [], {"a": "x"}, 5, {"a": 2}])
def test_a_field_of_several_types_is_named_without_them(client, wanted):
    problem = error(client.post("/api/lookup", json={**BODY, "wanted": wanted}), 422)["problem"]
    assert problem.startswith("wanted") and "[" not in problem.split(":")[0] and "constrained" not in problem


def test_several_invalid_fields_are_counted(client):
    found = error(client.post("/api/lookup", json={**BODY, "scale": -1, "query": []}), 422)
    assert ", and 1 more" in found["problem"] and found["request"] == "POST /api/lookup"
