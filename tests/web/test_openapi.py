"""The OpenAPI document is complete, and whatever it allows to be sent never ends in a 5xx."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from qkv.web import limits
from qkv.web.app import application

schema = schemathesis.openapi.from_dict(application().openapi())
CHEAP = settings(
    max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch):
    """What starts a job is refused as one too many: nothing is trained here."""
    monkeypatch.setattr(limits, "MOST_RUNNING", 0)
    monkeypatch.setattr(limits, "CLAIM_SECONDS", 0.5)


@schema.parametrize()
@CHEAP
def test_nothing_that_the_document_allows_ends_in_a_server_error(case, server):
    found = case.call(base_url=server)
    case.validate_response(found, checks=[not_a_server_error, status_code_conformance, response_schema_conformance])
