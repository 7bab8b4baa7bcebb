"""Base of the models of JSON documents: closed, every field required."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Vector = list[float]
Matrix = list[list[float]]
Label = str | int
Weights = Annotated[dict[str, float], Field(description="Weights by the label of the item.")]


class Fields(BaseModel):
    """Fields of a document: exactly these."""

    model_config = ConfigDict(extra="forbid")
