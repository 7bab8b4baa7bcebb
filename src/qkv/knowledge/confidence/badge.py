"""The badge of an answer: remembered, made up or unsure; fitted models and thresholds, stored as trust.json."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkv.core.files import write_text
from qkv.core.json_files import CHECKSUM, EDITED, read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.confidence.features import FEATURES
from qkv.knowledge.confidence.logistic import LogisticModel

FILE = "trust.json"
FORMAT = "qkv-trust-6"
UNCHECKED_FORMAT = "qkv-trust-5"  # the same without a checksum
REMEMBERED, MADE_UP, UNSURE = "remembered", "made up", "unsure"
MAX_ABS_INPUT = 30.0  # inputs of the logistic models are clipped to ± this
MIN_PROBABILITY = 1e-6  # distance from 0 and 1 before a logarithm is taken
RULE_REMEMBERED, RULE_MADE_UP = 0.9, 0.5  # probabilities of the answer, for a run whose badge is not calibrated


class Judgement(NamedTuple):
    """The badge of one answer, with P(answer right) and P(person in the training text) if the badge is calibrated."""

    badge: str
    p_right: float | None
    p_seen: float | None


@dataclass(frozen=True)
class Badge:
    """The calibrated badge of a run, as `trust` fits it.

    Attributes:
        probe: Logistic model on the hidden state at the end of the name: was the person in the training text?
        seen_model: Logistic model on features and probe score: was the person in the training text?
        right_model: Logistic model on features and probe score: is the answer right?
        remembered_threshold: The badge is "remembered" if P(right) is at least this; above 1 for never.
        made_up_threshold: The badge is "made up" if P(right) is at most this; below 0 for never.
        level: Share of "remembered" answers that shall be right.
        precision: Share of "remembered" answers that were right in calibration, out of fold.
        n_questions: Number of questions that it was fitted on.
    """

    probe: LogisticModel
    seen_model: LogisticModel
    right_model: LogisticModel
    remembered_threshold: float
    made_up_threshold: float
    level: float
    precision: float
    n_questions: int

    def p_seen(self, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """P(person in the training text) from feature values (n, features) and hidden states (n, d_model)."""
        return self.seen_model.probability(model_inputs(values, self.probe.score(hidden)))

    def p_right(self, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """P(answer right) from feature values (n, features) and hidden states (n, d_model)."""
        return self.right_model.probability(model_inputs(values, self.probe.score(hidden)))

    def judge(self, values: np.ndarray, hidden: np.ndarray) -> list[Judgement]:
        """The badge of each answer."""
        probabilities = zip(self.p_right(values, hidden), self.p_seen(values, hidden), strict=True)
        return [Judgement(self.name(float(right)), float(right), float(seen)) for right, seen in probabilities]

    def name(self, p_right: float) -> str:
        """The badge for a probability of being right."""
        if p_right >= self.remembered_threshold:
            return REMEMBERED
        return MADE_UP if p_right <= self.made_up_threshold else UNSURE

    def save(self, folder: str | Path) -> None:
        """Write trust.json into the folder of a run, atomically."""
        data = with_checksum({"format": FORMAT, "features": list(FEATURES), **asdict(self)})
        write_text(Path(folder) / FILE, json.dumps(data) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Badge | None:
        """The badge of a run, or None if it has not been calibrated; damaged files and other formats are refused."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        try:
            data = read_json(path)
            version = data.get("format") if isinstance(data, dict) else None
            data = verified(data, required=version != UNCHECKED_FORMAT)
            if data.pop("format") not in (FORMAT, UNCHECKED_FORMAT):
                raise ValueError(f"its format is {version!r}, not {FORMAT!r}")
            if data.pop("features") != list(FEATURES):
                raise ValueError("it was fitted on other features")
            models = {name: LogisticModel.from_json(data.pop(name)) for name in ("probe", "seen_model", "right_model")}
            wrong = [f"{name} is {value!r}" for name, value in data.items() if not _is_finite_number(value)]
            if wrong:
                raise ValueError(wrong[0])
            return cls(**{**models, **data})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as why:
            raise QkvError(
                f"reading {path}",
                f"it is damaged or of another version ({why})",
                f'Calibrate again with: qkv trust; or, if you edited it by hand, set "{CHECKSUM}" in it to "{EDITED}"',
            ) from None


def _is_finite_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def model_inputs(values: np.ndarray, probe_scores: np.ndarray) -> np.ndarray:
    """Inputs (n, features + 1) of the badge's models: transformed features, and the probe's score.

    Probabilities become log-odds and the entropy its logarithm, so that 0.99 and 0.999 are as far apart as 0.5 and 0.9:
    right and wrong answers of high probability differ there.
    """
    columns = {name: values[:, i] for i, name in enumerate(FEATURES)}
    for name in ("log_probability", "name_only_log_probability", "no_name_log_probability"):
        log = np.minimum(columns[name], -MIN_PROBABILITY)
        columns[name] = log - np.log(-np.expm1(log))
    columns["entropy"] = np.log(np.maximum(columns["entropy"], MIN_PROBABILITY))
    return np.clip(np.column_stack((*columns.values(), probe_scores)), -MAX_ABS_INPUT, MAX_ABS_INPUT)


def rule_of_thumb(log_probabilities: Sequence[float]) -> list[Judgement]:
    """Badges by the probability of the answer alone, for a run whose badge is not calibrated."""
    out = []
    for p in np.exp(np.asarray(log_probabilities, dtype=float)):
        badge = REMEMBERED if p >= RULE_REMEMBERED else MADE_UP if p < RULE_MADE_UP else UNSURE
        out.append(Judgement(badge, None, None))
    return out
