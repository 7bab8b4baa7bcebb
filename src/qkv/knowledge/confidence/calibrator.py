"""The calibrator of any answers: a linear score for "right", and what is guaranteed of high and of low scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qkv.knowledge.confidence.guarantee import Guarantee
from qkv.knowledge.confidence.logistic import LogisticModel, expit
from qkv.knowledge.confidence.outside_limit import OutsideLimit

REMEMBERED, MADE_UP, UNSURE = "remembered", "made up", "unsure"


@dataclass(frozen=True)
class Calibrator:
    """A score for each row of features, and two guarantees: of high scores (right) and of low scores (wrong).

    Attributes:
        features: Names of the columns.
        right_model: Log-odds that an answer about somebody known is right: the mean of the models that were fitted
            without one part of the rows each.
        seen_model: Log-odds that an answer is about somebody known rather than an outsider or an invented name; None
            where the rows had no such groups. P(right) is the product of both probabilities.
        remembered: The guarantee of the answers that are called "remembered".
        made_up: The guarantee of the answers that are called "made up", of their being wrong. Its scores are negated.
        n_questions: Number of rows that it was fitted on.
        outside: For each group of names outside the text, how many of them may be called "remembered"; empty if this
            was not limited.
    """

    features: tuple[str, ...]
    right_model: LogisticModel
    seen_model: LogisticModel | None
    remembered: Guarantee
    made_up: Guarantee
    n_questions: int
    outside: tuple[OutsideLimit, ...] = ()

    def p_right(self, x: np.ndarray) -> np.ndarray:
        """P(answer right) of each row of features."""
        return expit(self.scores(x))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Log-odds that the answer is right, of each row of features."""
        right = self.right_model.score(x)
        return right if self.seen_model is None else log_odds_of_both(self.seen_model.score(x), right)

    def p_seen(self, x: np.ndarray) -> np.ndarray | None:
        """P(somebody known) of each row of features; None where the rows had no groups."""
        return None if self.seen_model is None else self.seen_model.probability(x)

    def badges(self, x: np.ndarray) -> list[str]:
        """The badge of each row of features."""
        return [self.badge_of_score(float(score)) for score in self.scores(x)]

    def badge_of_score(self, score: float) -> str:
        """The badge for log-odds of being right."""
        if score > self.remembered.threshold:
            return REMEMBERED
        return MADE_UP if -score > self.made_up.threshold else UNSURE

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its inverse."""
        return {
            "features": list(self.features),
            "right_model": asdict(self.right_model),
            "seen_model": None if self.seen_model is None else asdict(self.seen_model),
            "remembered": self.remembered.to_json(),
            "made_up": self.made_up.to_json(),
            "n_questions": self.n_questions,
            "outside": [each.to_json() for each in self.outside],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Calibrator:
        """A calibrator from its data; what does not fit together is refused with ValueError, KeyError or TypeError."""
        if not isinstance(data, dict) or not all(type(name) is str for name in data["features"]):
            raise ValueError("a calibrator is not an object, or has a feature without a name")
        features = tuple(data["features"])
        seen = data["seen_model"]
        right_model = LogisticModel.from_json(data["right_model"])
        seen_model = None if seen is None else LogisticModel.from_json(seen)
        models = (right_model, seen_model or right_model)
        counted = type(data["n_questions"]) is int and data["n_questions"] >= 0
        if any(len(model.weights) != len(features) for model in models) or not counted:
            raise ValueError("the models of a calibrator have other features, or the number of questions is none")
        return cls(
            features,
            right_model,
            seen_model,
            Guarantee.from_json(data["remembered"]),
            Guarantee.from_json(data["made_up"]),
            data["n_questions"],
            tuple(OutsideLimit.from_json(each) for each in data.get("outside", ())),
        )


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A calibrator with the out-of-fold results of the rows that it was fitted on.

    Attributes:
        calibrator: For new rows.
        scores: Log-odds that each answer is right, from models that were fitted without its person.
        right: Whether each answer is right.
        groups: The group of each row: "known", "outsider" or "invented".
        seen_scores: Log-odds that each row is about somebody known, out of fold; None where that is not estimated.
    """

    calibrator: Calibrator
    scores: np.ndarray
    right: np.ndarray
    groups: tuple[str, ...]
    seen_scores: np.ndarray | None = None

    @property
    def p_right(self) -> np.ndarray:
        """P(answer right) of each row, out of fold."""
        return expit(self.scores)

    @property
    def badges(self) -> np.ndarray:
        """The badge of each row, out of fold."""
        return np.array([self.calibrator.badge_of_score(float(score)) for score in self.scores])

    @property
    def coverage(self) -> float:
        """Share of the right answers that are called "remembered", out of fold."""
        return float((self.badges[self.right] == REMEMBERED).mean()) if self.right.any() else 0.0

    def called_remembered(self, group: str) -> tuple[int, int]:
        """(answers of this group that are called "remembered", answers of this group), out of fold."""
        own = np.array([each == group for each in self.groups], dtype=bool)
        return int((self.badges[own] == REMEMBERED).sum()), int(own.sum())


def log_odds_of_both(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The log-odds of p·q, from those of p and of q."""
    log = np.minimum(-np.logaddexp(0.0, -one) - np.logaddexp(0.0, -two), -1e-300)
    return log - np.log(-np.expm1(log))


def groups_or_known(groups: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The groups as given; "known" for every row where they are left out."""
    return ("known",) * n if groups is None else tuple(map(str, groups))
