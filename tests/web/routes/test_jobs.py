"""Routes of jobs: what is refused before a job starts."""

import pytest


def test_as_many_heads_as_items_are_refused(client):
    found = client.post("/api/jobs", json={"kind": "noise-study", "n": 5, "heads": 5})
    assert found.status_code == 422 and found.json()["error"]["problem"] == "5 heads for 5 items"


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "nothing"},
        {"kind": "train", "d_model": 65},
        {"kind": "train", "n_layer": 9},
        {"kind": "train", "radius": 0.1},
        {"kind": "noise-study", "scales": []},
        {"kind": "noise-study", "n_draws": 10},
    ],
)
def test_settings_out_of_range_are_refused(client, body):
    assert client.post("/api/jobs", json=body).status_code == 422


def test_unknown_jobs_are_not_found(client):
    for method, path in (("GET", "/api/jobs/no"), ("DELETE", "/api/jobs/no"), ("GET", "/api/jobs/no/events")):
        found = client.request(method, path)
        assert found.status_code == 404 and found.json()["error"]["hint"] == "See /api/jobs"
