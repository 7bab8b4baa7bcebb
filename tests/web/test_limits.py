"""Refusals state their limit and carry their HTTP status."""

import pytest

from qkv.errors import QkvError
from qkv.web import limits


@pytest.mark.parametrize(
    ("refusal", "status", "number"),
    [
        (limits.body_too_large, 413, limits.MAX_BODY_BYTES),
        (limits.too_many_connections, 503, limits.MAX_CONNECTIONS),
        (limits.too_many_waiting, 503, "too many"),
    ],
)
def test_refusals_have_a_status_and_say_what_to_do(refusal, status, number):
    found = refusal("GET /")
    assert isinstance(found, QkvError) and found.status == status
    assert str(found).startswith("GET /: ") and str(number) in found.problem and found.hint


def test_uvicorn_refuses_only_after_the_application_does():
    assert limits.MAX_CONNECTIONS < limits.MAX_UVICORN_CONNECTIONS
    assert limits.CLAIM_SECONDS < limits.CHECK_SECONDS
