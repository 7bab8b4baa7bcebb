"""JSON Schemas of the documents that --json prints: one model a command, from which docs/schemas is written.

Every field is always present; null stands for what is not known, does not apply or is not a finite number. The tests
validate the output of every command against its schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from qkv.cli.json_documents import CURRENT_VERSION, ERROR, schema_name
from qkv.cli.json_fields import Fields, Label, Matrix, Vector, Weights
from qkv.cli.json_heads import CertifiedHead, HeadTable, HeadView, KeyBits, NameHeads
from qkv.cli.json_knowledge import (
    Answer,
    Exported,
    FactFiles,
    Generated,
    Imported,
    KnownScores,
    Scores,
    Study,
    Training,
    Trust,
)
from qkv.cli.json_sheets import Sheets
from qkv.core.documents import SCHEMA, VERSION

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Noise(Fields):
    """Noise on the keys, as --noise reads it."""

    isotropic: float
    along: dict[str, float]
    bits: int | None
    covariance: Matrix | list[Matrix] | None


class Reading(Fields):
    """qkv read: weights and output of one query, or of each of several as rows."""

    weights: Vector | Matrix
    output: Vector | Matrix
    labels: list[Label]
    heads: Annotated[Matrix | None, Field(description="Weights of each head, where a mix of heads was read.")]


class Measures(Fields):
    """Which distance each bound of a design measures."""

    distance: str
    output_distance: str


class Design(Fields):
    """qkv design copy and blend: a query with certified bounds."""

    status: Literal["exact", "within", "out of reach", "best found"]
    possible: Annotated[bool, Field(description="Whether the weights are within tol; exit code 1 if not.")]
    wanted: Weights
    tol: float
    query: Vector
    scale: float
    distance: Annotated[float, Field(description="Certified upper bound, in total variation.")]
    output_distance: Annotated[float | None, Field(description="Certified upper bound; null if it is not finite.")]
    says: Annotated[str, Field(description="What is certified of this query, in words.")]
    least_norm: Annotated[
        float | None, Field(description="Every query with these ratios has this norm or more; null if none is known.")
    ]
    least_norm_within_tol: Annotated[
        float | None, Field(description="Every query within tol has this norm or more; null if no bound is known.")
    ]
    distance_at_least: Annotated[
        float | None, Field(description="No query is nearer than this, as `distance_bound` says; null if not known.")
    ]
    distance_at_least_below_norm: Annotated[
        float | None, Field(description="Of queries below this norm; null if it holds for every query.")
    ]
    distance_bound: str | None
    obstacle: Annotated[str | None, Field(description="What is proved impossible, in words.")]
    measures: Measures


class Projection(Fields):
    """qkv design project: the matrix that keeps span A and removes span B."""

    possible: bool
    matrix: Matrix | None
    coordinates: Matrix | None
    shared: Annotated[Vector | None, Field(description="A vector in both spans, where there is no matrix.")]
    form: str
    says: str
    difference: str


class Wiring(Fields):
    """qkv design wire: Q, K and V that follow the rules, or what is proved of none."""

    status: Literal["exact", "within", "out of reach", "not found"]
    possible: bool
    X: Matrix
    Q: Matrix | None
    K: Matrix | None
    V: Matrix | None
    head_size: int
    rules: list[int]
    distances: Vector
    output_distances: Vector
    residual: Annotated[float | None, Field(description="null where there are no matrices.")]
    tol: float
    least_norm: Annotated[
        float | None,
        Field(
            description="Certified: every W that follows the rules, as `says` puts it, has this Frobenius norm or more."
        ),
    ]
    reasons: list[str]
    labels: list[Label]
    says: str


class TextRule(Fields):
    """A rule that says which token reads which."""

    name: Literal["previous", "duplicate", "induction"]
    sink: Annotated[int | None, Field(description="Token that is read where there is nothing to read.")]


class Circuit(Fields):
    """qkv design wire-texts: layers with which the tokens of texts read by a rule."""

    status: Literal["found", "found for some tokens", "out of reach", "not found"]
    scope: Literal["every text", "given texts"]
    rule: TextRule
    tol: float
    distance: Annotated[float, Field(description="Certified upper bound, in total variation; 1 if nothing was found.")]
    rules: Annotated[int | None, Field(description="How many rules the given texts hold; null for every text.")]
    norm: float | None
    least_norm: float | None
    excluded: Annotated[list[int], Field(description="Tokens that are not covered.")]
    reasons: list[str]
    possible: bool
    says: str | None


class Reachability(Fields):
    """qkv design reach: how near the output comes to the target."""

    status: Literal["reached", "out of reach", "undecided"]
    possible: Annotated[bool | None, Field(description="null if undecided.")]
    multiple: float
    distance: float
    at_least: float
    tol: float
    says: str


class KeySelectability(Fields):
    """Whether some query can select one key."""

    item: Label
    possible: Annotated[bool | None, Field(description="null where a margin is excluded only above margin_at_most.")]
    query: Vector | None
    margin: Annotated[float | None, Field(description="null where no query selects it, or where it is the only key.")]
    combination: dict[str, float] | None
    margin_at_most: float | None


class Copyable(Fields):
    """qkv design copyable: the decision about every key."""

    keys: int
    possible: int
    impossible: int
    undecided: int
    answers: list[KeySelectability]


class Finding(Fields):
    """One claim of a certificate, recomputed."""

    claim: str
    holds: bool
    why: str


class Verification(Fields):
    """One certificate, verified."""

    holds: bool
    statement: str
    why: str
    findings: list[Finding]


class Verifications(Fields):
    """qkv design verify: every certificate of the file, and the result beside them where it is not theirs."""

    holds: Annotated[bool, Field(description="Whether all hold; exit code 1 if not.")]
    certificates: list[Verification]


class HeadMoments(Fields):
    """Moments of the reading of one head, or of a mix of heads."""

    weights_mean: Vector
    weights_var: Vector
    output_mean: Vector
    output_cov: Matrix
    error_bound: float
    output_error_bound: float
    labels: list[Label]
    is_rounding: bool


class Moments(HeadMoments):
    """qkv noise moments: mean and variance of weights and output."""

    noise: Noise


class Probability(Fields):
    """qkv noise probability: that the output is within the radius."""

    probability: float
    low: float
    high: float
    method: Literal["exact", "quadrature", "conditional_mc", "monte_carlo"]
    radius: float
    n_draws: int
    confidence: float
    wanted: Weights
    noise: Noise


class Sample(Fields):
    """qkv noise sample: moments of drawn readings with standard errors."""

    n_draws: int
    seed: int
    weights_mean: Vector
    weights_mean_se: list[float | None]
    weights_var: list[float | None]
    weights_var_se: list[float | None]
    output_mean: Vector
    output_mean_se: list[float | None]
    output_cov: list[list[float | None]]
    output_cov_se: list[list[float | None]]
    labels: list[Label]
    weight_range: Vector
    noise: Noise


class Comparison(Fields):
    """qkv noise compare: head layouts under the same noise."""

    names: list[str]
    heads: list[int]
    variances: Vector
    errors: Vector
    leaks: Vector
    items: list[int]
    wanted: Weights
    noise: Noise


class HardenedHead(Fields):
    """Queries that keep a blend in spite of the noise, and their mix."""

    queries: Matrix
    mix: Vector
    wanted: Weights
    tol: float
    distance: float
    squared_error: float
    gain: Annotated[float | None, Field(description="null if it is not finite.")]
    gain_over_heads: Annotated[float | None, Field(description="null where there are no such heads, or not finite.")]
    more_heads_help: bool | None
    advice: str


class RobustQuery(HardenedHead):
    """qkv noise harden: queries and their mix."""

    possible: Annotated[bool, Field(description="Whether the reading without noise is within tol; exit code 1 if not.")]
    noise: Noise


class Sweep(Fields):
    """qkv noise sweep: moments of each head, or with --weights a robust query for each."""

    heads: list[HeadMoments] | list[HardenedHead]
    possible: Annotated[
        bool | None, Field(description="Whether every head is within tol without noise; null without --weights.")
    ]
    noise: Noise


class Step(Fields):
    """One line of a derivation."""

    text: str
    latex: str


class KernelCheck(Fields):
    """What Coq says of a proved claim."""

    checker: str
    accepted: bool
    form: str
    theorem: str
    because: str


class Verdict(Fields):
    """The verdict on one claim."""

    document: str
    id: str
    verdict: Literal["proved", "holds", "conditional", "refuted", "malformed", "undecided"]
    says: str
    because: str
    derivation: list[Step]
    counterexample: str | None
    kernel: KernelCheck | None


class Counts(Fields):
    """How many claims got each verdict."""

    proved: int
    holds: int
    conditional: int
    refuted: int
    malformed: int
    undecided: int


class Verdicts(Fields):
    """qkv check: the verdicts of all documents."""

    documents: list[str]
    counts: Counts
    verdicts: list[Verdict]


class Tour(Fields):
    """qkv tour: where the report was written."""

    report: str
    chapters: list[str]


class ModelFolder(Fields):
    """qkv models get: where the model was written."""

    model: str
    folder: str
    licence: str


class Refusal(Fields):
    """Any command that refuses its input (exit code 2): the reason in words and in parts."""

    message: str
    request: str | None
    problem: str | None
    hint: str | None
    exit_code: Literal[2]
    command: Annotated[str | None, Field(description="The command that refused; null if there is no such command.")]


MODELS: dict[str, type[Fields]] = {
    "read": Reading,
    "check": Verdicts,
    "grade": Sheets,
    "design copy": Design,
    "design blend": Design,
    "design project": Projection,
    "design wire": Wiring,
    "design wire-texts": Circuit,
    "design reach": Reachability,
    "design copyable": Copyable,
    "design verify": Verifications,
    "noise moments": Moments,
    "noise probability": Probability,
    "noise sample": Sample,
    "noise compare": Comparison,
    "noise harden": RobustQuery,
    "noise sweep": Sweep,
    "facts": FactFiles,
    "pretrain": Training,
    "finetune": Training,
    "generate": Generated,
    "export": Exported,
    "import": Imported,
    "evaluate": Scores,
    "ask": Answer,
    "trust": Trust,
    "study": Study,
    "heads": HeadTable,
    "certify": CertifiedHead,
    "name-heads": NameHeads,
    "models get": ModelFolder,
    "tour": Tour,
    ERROR: Refusal,
}
"""The model of each command's document."""

OTHER_MODELS: dict[str, tuple[type[Fields], ...]] = {"heads": (KeyBits, HeadView), "evaluate": (KnownScores,)}
"""Models of the other documents that a command prints, with some of its options."""


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema of a command's document, or of any of its documents."""
    first, *others = (_closed(model, verb) for model in (MODELS[verb], *OTHER_MODELS.get(verb, ())))
    if not others:
        return {"$schema": DRAFT, **first, "title": schema_name(verb)}
    parts: dict[str, Any] = {}
    for found in (first, *others):
        parts |= found.pop("$defs", {}) | {found["title"]: found}
    refs = [{"$ref": f"#/$defs/{found['title']}"} for found in (first, *others)]
    return {"$schema": DRAFT, "$defs": parts, "anyOf": refs, "title": schema_name(verb)}


def _closed(model: type[Fields], verb: str) -> dict[str, Any]:
    found = model.model_json_schema(mode="serialization")
    own = {SCHEMA: {"const": schema_name(verb)}, VERSION: {"const": CURRENT_VERSION}}
    found["properties"] = {**own, **found["properties"]}
    found["required"] = [*own, *found["required"]]
    return found


def file_name(verb: str) -> str:
    """The name of the file in docs/schemas that holds the schema of a command."""
    return f"{verb.replace(' ', '-')}.json"


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema to a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for verb in MODELS:
        path = folder / file_name(verb)
        path.write_text(json.dumps(schema_of(verb), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written
