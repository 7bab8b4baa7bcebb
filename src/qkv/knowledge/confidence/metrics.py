"""Metrics of confidence scores: AUROC, risk-coverage (AURC, PRR), and reliability (ECE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.core.display import Card, Displayable, number
from qkv.errors import QkvError

N_BINS = 10


def auroc(scores: Any, labels: Any) -> float:
    """Area under the ROC curve: P(a positive scores higher than a negative), ties counting one half."""
    s, y = _scores_and_labels("the area under a ROC curve", scores, labels)
    positive, negative = s[y], np.sort(s[~y])
    if not len(positive) or not len(negative):
        raise QkvError("the area under a ROC curve", "all labels are the same", "Give positives and negatives")
    below = np.searchsorted(negative, positive, side="left")
    up_to = np.searchsorted(negative, positive, side="right")
    return float((below + up_to).sum() / (2 * len(positive) * len(negative)))


def risk_coverage(scores: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    """(coverage, risk): the share of wrong answers among the k of highest score, for k = 1..n.

    Within a tie the wrong answers are spread evenly: the mean over all orders of the tie.
    """
    s, y = _scores_and_labels("a risk-coverage curve", scores, right)
    order = np.argsort(-s, kind="stable")
    s, wrong = s[order], (~y[order]).astype(float)
    edges = np.flatnonzero(np.diff(s)) + 1
    for tie in np.split(np.arange(len(s)), edges):
        wrong[tie] = wrong[tie].mean()
    k = np.arange(1, len(s) + 1)
    return k / len(s), wrong.cumsum() / k


def aurc(scores: Any, right: Any) -> float:
    """Area under the risk-coverage curve: the mean risk over all coverages. Less is better."""
    return float(risk_coverage(scores, right)[1].mean())


def prr(scores: Any, right: Any) -> float:
    """Prediction-rejection ratio: 0 for random rejection, 1 for a perfect one."""
    _, y = _scores_and_labels("a prediction-rejection ratio", scores, right)
    if y.all() or not y.any():
        raise QkvError("a prediction-rejection ratio", "all answers are right, or all wrong", "Give some of both")
    random = 1 - float(y.mean())
    best = aurc(y.astype(float), y)
    return (random - aurc(scores, right)) / (random - best)


@dataclass(frozen=True)
class Reliability(Displayable):
    """A reliability diagram: answers in bins of equal width by their stated probability of being right."""

    counts: tuple[int, ...]
    """Answers in each bin."""
    stated: tuple[float, ...]
    """Mean stated probability in each bin; 0 in an empty one."""
    observed: tuple[float, ...]
    """Share of right answers in each bin; 0 in an empty one."""
    edges: tuple[float, ...]

    @property
    def ece(self) -> float:
        """Expected calibration error: |stated − observed|, averaged over the answers."""
        gaps = [c * abs(s - o) for c, s, o in zip(self.counts, self.stated, self.observed, strict=True) if c]
        return sum(gaps) / sum(self.counts)

    def card(self) -> Card:
        rows = tuple(
            (f"{low:.1f} to {high:.1f}", str(c), f"{s:.3f}", f"{o:.3f}")
            for c, s, o, low, high in zip(
                self.counts, self.stated, self.observed, self.edges, self.edges[1:], strict=False
            )
            if c
        )
        return Card(
            "Reliability",
            (("expected calibration error", number(self.ece)),),
            ("stated", "answers", "mean stated", "right"),
            rows,
        )


def reliability(probabilities: Any, right: Any, bins: int = N_BINS) -> Reliability:
    """Stated probabilities against the share of right answers, in bins of equal width; 1 belongs to the last bin."""
    p, y = _scores_and_labels("a reliability diagram", probabilities, right)
    if p.min() < 0 or p.max() > 1 or bins < 1:
        raise QkvError(
            "a reliability diagram",
            f"the probabilities run from {p.min()} to {p.max()}, in {bins} bins",
            "Give probabilities in [0, 1], and at least one bin",
        )
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    nonzero = np.maximum(counts, 1)
    stated = np.bincount(bin_of, weights=p, minlength=bins) / nonzero
    observed = np.bincount(bin_of, weights=y.astype(float), minlength=bins) / nonzero
    return Reliability(
        tuple(counts.tolist()),
        tuple(stated.tolist()),
        tuple(observed.tolist()),
        tuple(np.linspace(0, 1, bins + 1).tolist()),
    )


def _scores_and_labels(request: str, scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of one length; empty ones, NaN and labels other than 0 and 1 are refused."""
    s, y = np.asarray(scores, dtype=float), np.asarray(labels)
    if s.ndim != 1 or s.shape != y.shape or not len(s) or np.isnan(s).any():
        raise QkvError(
            request,
            f"scores have shape {s.shape} and labels {y.shape}, or a score is NaN",
            "Give one score and one label for each answer",
        )
    if not np.isin(y, (0, 1)).all():
        raise QkvError(request, "labels are not all 0 or 1", "Give True or False for each score")
    return s, y.astype(bool)
