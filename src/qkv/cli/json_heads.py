"""Models of the JSON documents about heads of real models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from qkv.cli.json_fields import Fields, Matrix, Vector


class HeadRow(Fields):
    """One head of a model."""

    layer: int
    head: int
    kind: Literal["previous token", "induction", "duplicate", "first token", "self", "broad", "mixed"]
    score: float
    effect: float
    effect_repeated: float | None
    effective: float
    previous: float
    induction: float | None
    duplicate: float | None
    first: float
    itself: float
    margin: float | None
    radius: float | None
    reads: float
    keys_readable: float | None
    keys_readable_at_most: float | None
    keys_read: float | None
    copying: float | None
    rank: float | None
    subspace: float | None


class HeadRounding(Fields):
    """One head with its keys rounded."""

    layer: int
    head: int
    bits: int
    predicted: Annotated[float, Field(description="Predicted error of the output, relative root mean square.")]
    measured: Annotated[float, Field(description="Measured error of the output, relative root mean square.")]
    survives_predicted: Annotated[float, Field(description="Predicted chance that the top item stays on top.")]
    survives: Annotated[float, Field(description="Share of queries whose top item stayed on top.")]
    certified: Annotated[float, Field(description="Share of queries whose top item no such rounding can change.")]
    noise: float
    wide: Annotated[float, Field(description="Share of queries whose scores vary by more than 1.")]
    exact_queries: int
    method: Literal["first order", "exact moments", "both"]


class Rounding(Fields):
    """The heads of a model with their keys rounded."""

    model: str
    per: Literal["channel", "token"]
    bits: list[int]
    tokens: int
    windows: int
    kl: Annotated[list[float] | None, Field(description="KL of the whole model for each number of bits.")]
    rows: list[HeadRounding]


class HeadLink(Fields):
    """A token that looks at another."""

    token: int
    seen: int
    weight: float
    score: float


class HeadLookedUp(Fields):
    """A token that the chosen token sees."""

    position: int
    token: str
    score: float
    weight: float
    spread: Annotated[float | None, Field(description="Predicted standard deviation of the weight under rounding.")]
    rounded: Annotated[float | None, Field(description="The weight with rounded keys.")]
    hardened: Annotated[float | None, Field(description="The weight with the hardened query.")]


class HeadSpread(Fields):
    """What rounding does to what one token reads."""

    bits: int
    predicted: float
    measured: float
    same_top: bool


class HeadHardened(Fields):
    """A query that resists rounding better, beside the model's own."""

    bits: int
    squared_error: float
    own_squared_error: float
    distance: float
    length: float
    cosine: float
    query: Vector


class HeadView(Fields):
    """qkv heads --head: one head on one text, seen from one token."""

    model: str
    head: str
    kind: str
    score: float
    judged_on: Annotated[str, Field(description="What the kind was judged on: the text, or repeated random tokens.")]
    tokens: list[str]
    token: int
    margin: float | None
    radius: float | None
    looked_up: list[HeadLookedUp]
    links: list[HeadLink]
    spread: list[HeadSpread]
    bits: int
    rounding: list[HeadRounding]
    hardened: HeadHardened | None
    note: str


class HeadTable(Fields):
    """qkv heads: one row for each head of a model."""

    model: str
    tokens: int
    windows: int
    effect_tokens: int
    effect_unit: str
    removal: Annotated[str, Field(description="What takes the place of a removed head's output: mean or zero.")]
    keys_asked: int
    repeated: bool
    told_apart: Annotated[bool, Field(description="Whether some window has more than four tokens.")]
    rows: list[HeadRow]
    rounding: Annotated[Rounding | None, Field(description="null without --bits.")]


class KeyBits(Fields):
    """qkv heads --allocate: bits of the channels of a model's keys."""

    model: str
    average: float
    predicted_kl: Annotated[float, Field(description="Expected on the calibration text, nats per token.")]
    forecast_kl: Annotated[float, Field(description="Expected on the evaluation text, from keys before rounding.")]
    forecast_spread: Annotated[float, Field(description="Standard deviation of forecast_kl over draws of errors.")]
    measured_kl: Annotated[float, Field(description="Nats per token, on the evaluation text.")]
    uniform_bits: int
    uniform_predicted_kl: float
    uniform_forecast_kl: float
    uniform_forecast_spread: float
    uniform_kl: float
    calibration_tokens: int
    evaluation_tokens: Annotated[int, Field(description="Other tokens than those of the calibration.")]
    samples: int
    draws: int
    seed: int
    calibration_windows: Annotated[
        int | None, Field(description="A single window judges the bits that it chose itself.")
    ]
    mean_bits: float
    own_basis: bool
    channels_with_bits: dict[str, int]
    head_bits: Annotated[Matrix, Field(description="Mean bits of each layer's key heads.")]


class CertifiedHead(Fields):
    """qkv certify: certificates of one head, written to a file."""

    model: str
    head: str
    queries: int
    windows: int
    radius: Annotated[float, Field(description="How far every key may move, whichever the query.")]
    statements: list[str]
    file: str


class NameHead(Fields):
    """One head, by its weight on the name."""

    layer: int
    head: int
    weight: float
    effect: float


class Answering(Fields):
    """Loss of the answers, and the share that greedy decoding gets right."""

    loss: float
    right: float


class NameHeads(Fields):
    """qkv name-heads: which heads look up the name, and what the model answers without them."""

    model: str
    questions: int
    name_share: float
    whole: Answering
    removed: list[str]
    without: Answering
    random: Answering
    random_worst: Answering
    draws: int
    removal: Annotated[str, Field(description="What takes the place of a removed head's output: mean or zero.")]
    rows: list[NameHead]
