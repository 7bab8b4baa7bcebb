"""The OpenAPI document is complete, and no request that it allows ends in a server error."""

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
    """Jobs are refused as too many: nothing is trained here."""
    monkeypatch.setattr(limits, "MAX_RUNNING_JOBS", 0)
    monkeypatch.setattr(limits, "CLAIM_SECONDS", 0.5)


@schema.parametrize()
@CHEAP
def test_no_request_that_the_document_allows_ends_in_a_server_error(case, server):
    found = case.call(base_url=server)
    case.validate_response(found, checks=[not_a_server_error, status_code_conformance, response_schema_conformance])
