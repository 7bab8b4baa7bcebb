"""The badge of a language model's answers for one relation: probes, rates of answers and a calibrator, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qkv.core.files import write_text
from qkv.core.json_files import CHECKSUM, EDITED, read_json, verified, with_checksum
from qkv.errors import QkvError
from qkv.knowledge.confidence.badge import Judgement, writing_of_badge
from qkv.knowledge.confidence.calibrator import MADE_UP, REMEMBERED, Calibrator, CrossFit
from qkv.knowledge.confidence.cross_fitting import cross_fit
from qkv.knowledge.confidence.guarantee import CONFIDENCE, Guarantee
from qkv.knowledge.confidence.logistic import LogisticModel, fit_cross_validated
from qkv.knowledge.datasets.accepted_names import is_accepted
from qkv.knowledge.language_models.answer_rates import AnswerRates
from qkv.knowledge.language_models.name_probes import NameProbes, name_inputs
from qkv.knowledge.language_models.signals import Signals

FORMATS = "qkv-language-model-trust-"
FORMAT = f"{FORMATS}4"
MAX_ABS_INPUT = 30.0  # inputs of the calibrator are clipped to ± this
REAL, INVENTED = "known", "invented"  # the groups of the calibrator
USED = (
    "log_probability",
    "mean_log_probability",
    "other_ways",
    "name_given_answer",
    "name_bond",
    "bond_among_famous",
)
INPUTS = (*USED, "true_against_said", "name_is_real", "fits_name")
"""Columns of the calibrator: a few signals, `AnswerRates.log_ratio`, and what the probes of the name say: the log-odds
that it is real, and the log-probability of the answer's country (`NameProbes`).

The other signals say the same again; with few right answers to fit on, more columns made the badge worse, and so did a
probe of the hidden states for right answers.
"""


@dataclass(frozen=True)
class ModelBadge:
    """The calibrated badge of a model's answers for one relation.

    Attributes:
        relation: What the questions ask for.
        model: Fingerprint of the model that it was fitted on.
        probes: Linear probes of the name: is it real, and which country does it point to?
        rates: How often each answer is true, and how often the model gives it.
        calibrator: Models and thresholds, with what is guaranteed of the answers above and below them.
    """

    relation: str
    model: str
    probes: NameProbes
    rates: AnswerRates
    calibrator: Calibrator

    @property
    def remembered(self) -> Guarantee:
        """What is guaranteed of the answers that are called "remembered"."""
        return self.calibrator.remembered

    def inputs(self, found: Signals, counted: Sequence[bool] | None = None) -> np.ndarray:
        """Rows for the calibrator; `counted` as in `AnswerRates.log_ratio`."""
        real = self.probes.real.score(name_inputs(found.name_values, found.middle_hidden))
        return calibrator_inputs(found, self.rates.log_ratio(found.answers, counted), real, self.probes)

    def judge(self, found: Signals) -> list[Judgement]:
        """The badge of each answer."""
        x = self.inputs(found)
        seen = self.calibrator.p_seen(x)
        chances = [None] * len(x) if seen is None else seen.tolist()
        rows = zip(self.calibrator.badges(x), self.calibrator.p_right(x).tolist(), chances, strict=True)
        return [Judgement(badge, right, own) for badge, right, own in rows]

    def statement(self, badge: str) -> str | None:
        """What is guaranteed of answers with this badge, in words; None of unsure ones."""
        made = {REMEMBERED: self.calibrator.remembered, MADE_UP: self.calibrator.made_up}.get(badge)
        return None if made is None else made.sentence("wrong" if badge == MADE_UP else "right")

    def save(self, folder: str | Path) -> None:
        """Write the badge into the folder of the model, atomically."""
        data = {
            "relation": self.relation,
            "model": self.model,
            "probes": self.probes.to_json(),
            "rates": self.rates.to_json(),
            "calibrator": self.calibrator.to_json(),
        }
        path = badge_path(folder, self.relation)
        text = json.dumps(with_checksum({"format": FORMAT, **data})) + "\n"
        write_text(path, text, writing_of_badge(path, FORMATS))

    @classmethod
    def load(cls, folder: str | Path, relation: str, model: str) -> ModelBadge | None:
        """The badge of a model for a relation, or None; a damaged file, or one of another model, is refused."""
        path = badge_path(folder, relation)
        if not os.path.lexists(path):
            return None
        if not path.is_file():
            raise QkvError(f"reading {path}", "it is no file", "Remove it, and calibrate again with: qkv trust")
        try:
            data = read_json(path)
            if isinstance(data, dict) and data.get(CHECKSUM) == EDITED:
                raise ValueError("it was edited by hand, and what it guarantees was not measured so")
            data = verified(data, required=True)
            if data["format"] != FORMAT or data["relation"] != relation:
                raise ValueError(f"it is no {FORMAT} for {relation}")
            if data["model"] != model:
                raise ValueError("it was fitted on other weights")
            probes, rates = NameProbes.from_json(data["probes"]), AnswerRates.from_json(data["rates"])
            badge = cls(relation, model, probes, rates, Calibrator.from_json(data["calibrator"]))
            if badge.calibrator.features != INPUTS:
                raise ValueError("it was fitted on other signals")
            return badge
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as why:
            raise QkvError(
                f"reading {path}",
                f"it is damaged or does not belong here ({why})",
                "Move it away, and calibrate again with: qkv trust",
            ) from None


def badge_path(folder: str | Path, relation: str) -> Path:
    """The file of a model's badge for a relation."""
    return Path(folder) / f"qkv-trust-{relation}.json"


def fit_model_badge(
    relation: str,
    model: str,
    found: Signals,
    expected: Sequence[str],
    *,
    level: float,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    values: Sequence[str] | None = None,
    probes: NameProbes | None = None,
) -> tuple[ModelBadge, CrossFit]:
    """Fit rates and calibrator to answers that are known to be right or wrong.

    What the calibrator is fitted on is out of fold: the probes come from other names, or their scores from fits without
    the row, and of whom an answer is true is counted among other people only.

    Args:
        relation: What the questions ask for.
        model: Fingerprint of the model.
        found: The answers with their signals; those that are empty are left out, since they have no badge.
        expected: The true value of each; "" for an invented name.
        level: Share of "remembered" answers that shall be right.
        confidence: Share of all draws in which the statement shall be true.
        seed: Seed of the folds.
        values: True values of other people, who are not among these, for the rates; none if left out.
        probes: Probes that were fitted on other names. If left out, one for real names is fitted on these, and none for
            countries.

    Returns:
        The badge, and the out-of-fold scores of the rows.

    Raises:
        QkvError: Fewer than five answers are right, or wrong.
    """
    found, expected = found.not_empty(expected)
    real = np.array([bool(wanted) for wanted in expected], dtype=bool)
    right = np.array(
        [is_accepted(a, wanted, relation) for a, wanted in zip(found.answers, expected, strict=True)], dtype=bool
    )
    n_right, n_wrong = int((right & real).sum()), int((~right & real).sum())
    if min(n_right, n_wrong) < 5:
        problem = f"{n_right} answers are right and {n_wrong} wrong"
        raise QkvError("fitting a badge", problem, "Ask for more people: five of each are needed, and more are better")
    rates = AnswerRates.of(relation, values or (), found.answers)
    rows = name_inputs(found.name_values, found.middle_hidden)
    if probes is None:
        probes, scores = _own_probe(rows, real, seed)
    else:
        scores = probes.real.score(rows)
    ratio = rates.log_ratio(found.answers, [True] * len(real))
    fit = cross_fit(
        calibrator_inputs(found, ratio, scores, probes),
        right,
        groups=[REAL if own else INVENTED for own in real],
        people=[question.name for question in found.questions],
        features=INPUTS,
        level=level,
        confidence=confidence,
        seed=seed,
    )
    return ModelBadge(relation, model, probes, rates, fit.calibrator), fit


def calibrator_inputs(found: Signals, ratio: np.ndarray, real: np.ndarray, probes: NameProbes) -> np.ndarray:
    """Rows (n, INPUTS): the signals that are used, the rates of the answers and what the probes say, clipped."""
    columns = [found.column(name) for name in USED]
    relation = found.questions[0].relation if found.questions else ""
    fits = probes.fits(found.answers, relation, found.late_hidden)
    return np.clip(np.column_stack((*columns, ratio, real, fits)), -MAX_ABS_INPUT, MAX_ABS_INPUT)


def _own_probe(rows: np.ndarray, real: np.ndarray, seed: int) -> tuple[NameProbes, np.ndarray]:
    """A probe for real names from the rows themselves, with the score of each out of fold."""
    if real.all():  # there are no invented names: everything scores 0
        width = rows.shape[1]
        return NameProbes(LogisticModel((0.0,) * width, (1.0,) * width, (0.0,) * width, 0.0), None), np.zeros(len(rows))
    model, scores = fit_cross_validated(rows, real.astype(float), seed)
    return NameProbes(model, None), scores
