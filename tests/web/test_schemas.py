"""Requests are strict, and replies are JSON."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from qkv.web import limits
from qkv.web.schemas import RefusalReply, RequestModel, Vector, json_bytes, json_reply, refusal_reply


class Body(RequestModel):
    query: Vector


@pytest.mark.parametrize(
    "body",
    [
        '{"query": [1], "more": 1}', '{"query": ["1"]}', '{"query": [NaN]}', '{"query": [Infinity]}', '{"query": []}',
        '{"query": [1e7]}', "{}",
    ],
)  # fmt: skip
def test_what_is_unknown_not_a_number_or_out_of_range_is_refused(body):
    assert Body.model_validate_json('{"query": [1, 2.5]}').query == [1.0, 2.5]
    with pytest.raises(ValidationError):
        Body.model_validate_json(body)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_arrays_and_tensors_keep_their_value(values):
    for value in (values, np.array(values, dtype=float), torch.tensor(values, dtype=torch.float64)):
        assert json.loads(json_bytes({"x": value})) == {"x": values}


def test_infinities_and_nan_become_strings():
    assert json.loads(json_bytes([float("inf"), float("-inf"), float("nan")])) == ["Infinity", "-Infinity", "NaN"]


def test_bytes_are_sent_as_they_are():
    assert json_reply(b"[1]", 202).body == b"[1]" and json_reply([1]).body == b"[1]"


def test_a_refusal_has_the_documented_form():
    reply = refusal_reply(limits.HttpRefusal(429, "a", "b", "c"))
    assert reply.status_code == 429 and reply.media_type == "application/json"
    assert RefusalReply.model_validate_json(reply.body).model_dump() == {
        "error": {"request": "a", "problem": "b", "hint": "c"}
    }
