"""Health, and initial states that their routes accept."""

import pytest

from qkv import __version__


def test_health_has_the_version(client):
    assert client.get("/api/health").json() == {"status": "ok", "version": __version__}


@pytest.mark.parametrize("page", ["lookup", "noise", "wiring"])
def test_every_initial_state_is_a_valid_request(client, state, page):
    assert client.post(f"/api/{page}", json=state(page)).status_code == 200


def test_a_page_without_an_initial_state_is_refused(client):
    assert client.get("/api/example/claims").status_code == 422
