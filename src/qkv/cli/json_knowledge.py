"""Models of the JSON documents about training and knowledge."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from qkv.cli.json_fields import Fields, Vector


class FactFiles(Fields):
    """qkv facts: the files of texts and questions."""

    folder: str
    subjects: int
    relations: list[str]
    counts: Annotated[dict[str, int], Field(description="Lines of each file by its name.")]
    invented: Annotated[bool, Field(description="Whether the subjects in outside.tsv are invented names.")]
    note: Annotated[str, Field(description="Rows and files that were left out; empty if there are none.")]
    columns: Annotated[list[str], Field(description="The first row, where it was taken for the names of columns.")]


class TrainResult(Fields):
    """One run, trained."""

    folder: str
    step: int
    loss: Annotated[float | None, Field(description="null if this call took no step.")]
    val_loss: float | None
    parameters: int
    tokens: int
    seconds: float


class Training(Fields):
    """qkv pretrain and finetune: one run for each seed."""

    runs: list[TrainResult]


class Generated(Fields):
    """qkv generate: the continuation of each prompt."""

    prompts: list[str]
    texts: list[str]
    unknown: list[str]
    tokens: list[list[str]] | None
    log_probabilities: list[list[float | None]] | None


class Exported(Fields):
    """qkv export: where the model was written."""

    folder: str
    architecture: str
    parameters: int


class Imported(Fields):
    """qkv import: the new run."""

    folder: str
    config: Annotated[dict[str, str | float | int | bool], Field(description="The fields of ModelConfig.")]


class Score(Fields):
    """Accuracy with its 95 % interval."""

    accuracy: float
    low: float
    high: float
    n: int


class KnownGroup(Fields):
    """Right answers of a language model about a group of people."""

    kind: str
    group: str
    right: int
    n: int
    low: float
    high: float


class Scores(Score):
    """qkv evaluate: accuracy of the runs beside baselines."""

    subjects: int
    baselines: dict[str, Score]
    runs: Vector
    unnamed: int


class KnownScores(Scores):
    """qkv evaluate of a language model: its accuracy, by groups of people too."""

    relation: str
    groups: list[KnownGroup]


class Alternative(Fields):
    """A possible answer."""

    text: str
    probability: float | None


class Head(Fields):
    """Attention of one head to the name."""

    layer: int
    head: int
    weight: float | None


class Answer(Fields):
    """qkv ask: an answer with its badge."""

    question: str
    answer: str
    alternatives: list[Alternative]
    badge: Literal["remembered", "made up", "unsure"] | None
    why: str
    evidence: dict[str, float | None]
    heads: list[Head]
    name: str
    guarantee: str | None


class FeatureQuality(Fields):
    """How well one feature separates known from unknown, and right from wrong."""

    feature: str
    auroc_seen: float | None
    auroc_right: float | None
    aurc: float | None
    prr: float | None


class Reliability(Fields):
    """A reliability diagram."""

    counts: list[int]
    stated: Vector
    observed: Vector
    edges: Vector


class PlainThreshold(Fields):
    """What a threshold on the log-probability of the answer alone reaches."""

    level: float
    precision: float
    coverage: float
    unknown: int
    invented: int


class OutsideLimit(Fields):
    """What is guaranteed of the share of names outside the text that are called remembered."""

    group: Literal["outsider", "invented"]
    wanted: float
    confidence: float
    threshold: float
    n: int
    allowed: int
    bound: float
    shown: bool


class KindLevel(Fields):
    """What is guaranteed of the answers to one kind of question; 0 where not even one half is shown."""

    kind: str
    remembered: float
    made_up: float


class Trust(Fields):
    """qkv trust: what is guaranteed of the badge, and its quality."""

    level: float
    stated_level: float
    confidence: float
    known: int
    unknown: int
    accuracy: float
    precision: float
    low: float
    high: float
    coverage: float
    counts: dict[str, dict[str, int]]
    features: list[FeatureQuality]
    reliability: Reliability
    plain: PlainThreshold
    more_questions: int | None
    empty: int
    held_out: bool
    remarks: list[str]
    kept_earlier: bool
    outside: list[OutsideLimit]
    kinds: list[KindLevel]
    known_coverage: float
    ece: float


class Study(Fields):
    """qkv study: the table of a study."""

    name: str
    title: str
    rows: Annotated[list[dict[str, Any]], Field(description="The columns are those of the study.")]
    remarks: list[str]
    done: int
    cells: int
