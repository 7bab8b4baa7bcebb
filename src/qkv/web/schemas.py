"""The shapes of requests and replies that several routes share, and how they are written."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from qkv.core.display import plain
from qkv.web import limits


class Shape(BaseModel):
    """Unknown fields, NaN, infinities, and numbers in quotes are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


Entry = Annotated[float, Field(ge=-limits.MOST_ENTRY, le=limits.MOST_ENTRY)]
Label = Annotated[str, Field(min_length=1, max_length=limits.LABEL)]
Vector = Annotated[list[Entry], Field(min_length=1, max_length=limits.MOST_WIDTH)]
Vectors = Annotated[list[Vector], Field(min_length=1, max_length=limits.MOST_ITEMS)]
Tolerance = Annotated[float, Field(ge=1e-9, le=0.5, description="Largest leak.")]
Python = Annotated[str, Field(description="Python code that gives the same numbers.")]
Row = list[float]


class Problem(BaseModel):
    """What was asked, what came in, what to try."""

    asked: str
    came: str
    remedy: str = Field(alias="try", serialization_alias="try")


class Error(BaseModel):
    """The one shape of every refusal."""

    error: Problem


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": says}
    for status, says in {
        400: "The body is not JSON.",
        401: "The token is missing or wrong.",
        403: "The request comes from another site, or is for another host.",
        413: "The body is too long.",
        422: "A field is missing, out of range or contradicts another.",
        429: "Too many jobs.",
        503: "The server is busy, or this part is not installed.",
    }.items()
}


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A reply of numbers, lists and strings; what is bytes already is JSON."""
    body = value if isinstance(value, bytes) else written(value)
    return Response(body, status, headers, media_type="application/json")


def written(value: Any) -> bytes:
    """JSON; arrays become lists."""
    return to_json(value, fallback=_listed, inf_nan_mode="strings")


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else plain(value)


def refusal(status: int, asked: str, came: str, remedy: str) -> Response:
    """An error in its one shape."""
    return reply({"error": {"asked": asked, "came": came, "try": remedy}}, status)
