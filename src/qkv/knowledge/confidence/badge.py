"""The badge: remembered, made up or unsure, from the signals of an answer; kept as JSON in the folder of its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkv.core.files import write_text
from qkv.errors import QkvError
from qkv.knowledge.confidence.logistic import LogisticModel

FILE = "trust.json"
FORMAT = "qkv-trust-4"
REMEMBERED, MADE_UP, UNSURE = "remembered", "made up", "unsure"
CLIP = 30.0  # nats beyond which more or less likely makes no difference
TINY = 1e-6
NAMES = ("log_probability", "margin", "entropy", "agreement", "familiarity", "weakest", "bare", "prior")
"""The signals that are numbers, in the order in which the badge's models take them."""
LIKELY, UNLIKELY = 0.9, 0.5  # the rule of thumb, where nothing has been measured


class Judgement(NamedTuple):
    """A badge, the chance that the answer is right, and the chance that the person was read of; both if measured."""

    badge: str
    right: float | None
    seen: float | None


@dataclass(frozen=True)
class Badge:
    """Linear models, and the chances of being right from which on, and up to which, the badge dares to say so.

    `probe` takes the hidden state at the end of the name; `reader` and `model` take the signals and the probe's score,
    and say whether the person was read of, and whether the answer is right.
    """

    probe: LogisticModel
    reader: LogisticModel
    model: LogisticModel
    remembered: float
    made_up: float
    level: float
    precision: float
    people: int

    def seen(self, numbers: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """The chance that each person was read of."""
        return self.reader(features(numbers, self.probe.score(hidden)))

    def right(self, numbers: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """The chance that each answer is right."""
        return self.model(features(numbers, self.probe.score(hidden)))

    def judge(self, numbers: np.ndarray, hidden: np.ndarray) -> list[Judgement]:
        """A badge for each answer."""
        chances = zip(self.right(numbers, hidden), self.seen(numbers, hidden), strict=True)
        return [Judgement(self.word(float(right)), float(right), float(seen)) for right, seen in chances]

    def word(self, right: float) -> str:
        """The badge for a chance of being right."""
        return REMEMBERED if right >= self.remembered else MADE_UP if right <= self.made_up else UNSURE

    def save(self, folder: str | Path) -> None:
        """Write trust.json into a run's folder, whole or not at all."""
        write_text(Path(folder) / FILE, json.dumps({"format": FORMAT, **asdict(self)}) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> Badge | None:
        """The badge of a run, or None if it has not been measured."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT:
                raise ValueError("it is of another format")
            probe, reader, model = (LogisticModel.from_json(data.pop(name)) for name in ("probe", "reader", "model"))
            return cls(probe, reader, model, **data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as why:
            raise QkvError(f"reading {path}", f"it is damaged ({why})", "Measure again with: qkv trust") from None


def features(numbers: np.ndarray, probe: np.ndarray) -> np.ndarray:
    """What the badge's models take: the signals, and the probe's score, none of them without bounds.

    Chances become log-odds and the entropy its logarithm, so that 0.99 and 0.999 are as far apart as 0.5 and 0.9:
    among sure answers, that is where right and wrong differ.
    """
    columns = {name: numbers[:, i] for i, name in enumerate(NAMES)}
    for name in ("log_probability", "bare", "prior"):
        log = np.minimum(columns[name], -TINY)
        columns[name] = log - np.log(-np.expm1(log))
    columns["entropy"] = np.log(np.maximum(columns["entropy"], TINY))
    return np.clip(np.column_stack((*columns.values(), probe)), -CLIP, CLIP)


def rule_of_thumb(log_probabilities: Sequence[float]) -> list[Judgement]:
    """Badges by the answer's probability alone."""
    chances = np.exp(np.asarray(log_probabilities, dtype=float))
    return [Judgement(REMEMBERED if p >= LIKELY else MADE_UP if p < UNLIKELY else UNSURE, None, None) for p in chances]
