"""Request and reply types that several routes share, and their JSON encoding."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from qkv.core.display import plain
from qkv.errors import QkvError
from qkv.web import limits


class RequestModel(BaseModel):
    """Base of all request bodies: unknown fields, NaN, infinities and numbers in quotes are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


Entry = Annotated[float, Field(ge=-limits.MAX_ABS_ENTRY, le=limits.MAX_ABS_ENTRY)]
Label = Annotated[str, Field(min_length=1, max_length=limits.MAX_LABEL_LENGTH)]
Vector = Annotated[list[Entry], Field(min_length=1, max_length=limits.MAX_VECTOR_LENGTH)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=limits.MAX_ITEMS)]
Tolerance = Annotated[float, Field(ge=1e-9, le=0.5, description="Largest leak.")]
PythonCode = Annotated[str, Field(description="Python code that computes the same numbers.")]
Row = list[float]


class RefusalDetail(BaseModel):
    """What was requested, what is wrong with it, and what to do instead."""

    request: str
    problem: str
    hint: str


class RefusalReply(BaseModel):
    """The body of every reply with a status of 400 or more."""

    error: RefusalDetail


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": RefusalReply, "description": description}
    for status, description in {
        400: "The body is not JSON.",
        401: "The token is missing or wrong.",
        403: "The request comes from another site, or is for another host.",
        413: "The body is too long.",
        422: "A field is missing, out of range or contradicts another.",
        429: "Too many jobs.",
        503: "The server is busy, or this part is not installed.",
    }.items()
}
"""Refusals that any route may send, for the OpenAPI document."""


def json_reply(value: Any, status: int = 200) -> Response:
    """A JSON reply. Bytes are taken as encoded already, which is how results of the compute pool arrive."""
    body = value if isinstance(value, bytes) else json_bytes(value)
    return Response(body, status, media_type="application/json")


def json_bytes(value: Any) -> bytes:
    """JSON of numbers, strings, lists, dataclasses, arrays and tensors; infinities and NaN become strings."""
    return to_json(value, fallback=_to_plain, inf_nan_mode="strings")


def _to_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else plain(value, words=True)


def encoded(array: Any) -> str:
    """Numbers of an array or tensor as float32 in base64, row by row, least significant byte first."""
    import numpy as np

    return base64.b64encode(np.asarray(array, dtype="<f4").tobytes()).decode("ascii")


def refusal_reply(refusal: limits.HttpRefusal) -> Response:
    """The reply that tells the client of a refusal."""
    return json_reply({"error": refusal_detail(refusal)}, refusal.status)


def refusal_detail(error: QkvError) -> dict[str, str]:
    """The fields of `RefusalDetail`."""
    return {"request": error.request, "problem": error.problem, "hint": error.hint}
