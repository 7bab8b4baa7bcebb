"""How good a score of confidence is: AUROC, risk against coverage (AURC, PRR), calibration (ECE), all exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qkv.core.display import Card, Displayable, number
from qkv.errors import QkvError

BINS = 10
DOUBT = 0.1


def auroc(scores: Any, labels: Any) -> float:
    """The chance that a positive scores higher than a negative, ties counting half: the area under the ROC curve."""
    s, y = _checked("the area under a ROC curve", scores, labels)
    positive, negative = s[y], np.sort(s[~y])
    if not len(positive) or not len(negative):
        raise QkvError("the area under a ROC curve", "all labels are the same", "Give positives and negatives")
    below = np.searchsorted(negative, positive, side="left")
    up_to = np.searchsorted(negative, positive, side="right")
    return float((below + up_to).sum() / (2 * len(positive) * len(negative)))


def risk_coverage(scores: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    """(coverage, risk): answering the k most confident of n, the share of wrong answers among them, k = 1..n.

    Equal scores cannot be told apart: within a tie wrong answers are spread evenly, as random orders are on average.
    """
    s, y = _checked("a curve of risk against coverage", scores, right)
    order = np.argsort(-s, kind="stable")
    s, wrong = s[order], (~y[order]).astype(float)
    edges = np.flatnonzero(np.diff(s)) + 1
    for tie in np.split(np.arange(len(s)), edges):
        wrong[tie] = wrong[tie].mean()
    k = np.arange(1, len(s) + 1)
    return k / len(s), wrong.cumsum() / k


def aurc(scores: Any, right: Any) -> float:
    """The mean risk over all coverages: small is good."""
    return float(risk_coverage(scores, right)[1].mean())


def prr(scores: Any, right: Any) -> float:
    """The prediction-rejection ratio: how far the scores go from random rejection (0) to a perfect one (1)."""
    _, y = _checked("a prediction-rejection ratio", scores, right)
    if y.all() or not y.any():
        raise QkvError("a prediction-rejection ratio", "all answers are right, or all wrong", "Give some of both")
    random = 1 - float(y.mean())
    best = aurc(y.astype(float), y)
    return (random - aurc(scores, right)) / (random - best)


@dataclass(frozen=True)
class Reliability(Displayable):
    """Answers in bins of equal width by their stated chance: how many, the mean stated, the share that was right."""

    counts: tuple[int, ...]
    stated: tuple[float, ...]
    observed: tuple[float, ...]
    edges: tuple[float, ...]

    @property
    def ece(self) -> float:
        """The expected calibration error: |stated − observed|, weighted by counts."""
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
            ("stated", "answers", "mean", "right"),
            rows,
        )


def reliability(chances: Any, right: Any, bins: int = BINS) -> Reliability:
    """Stated chances against what was right, in bins of equal width; a chance of 1 belongs to the last."""
    p, y = _checked("a reliability diagram", chances, right)
    if p.min() < 0 or p.max() > 1 or bins < 1:
        raise QkvError("a reliability diagram", f"chances run from {p.min()} to {p.max()}", "Give chances in [0, 1]")
    at = np.minimum((p * bins).astype(int), bins - 1)
    counts = np.bincount(at, minlength=bins)
    full = np.maximum(counts, 1)
    stated = np.bincount(at, weights=p, minlength=bins) / full
    observed = np.bincount(at, weights=y.astype(float), minlength=bins) / full
    return Reliability(
        tuple(counts.tolist()),
        tuple(stated.tolist()),
        tuple(observed.tolist()),
        tuple(np.linspace(0, 1, bins + 1).tolist()),
    )


def threshold(chances: Any, right: Any, level: float, doubt: float = DOUBT) -> float:
    """The lowest chance from which on answers are right at least `level` of the time, by a conformal count.

    Of the calibration answers at or above t, a are right and b wrong. One more answer, exchangeable with them, may be
    the worst: so t is safe only if (b + 1)/(a + b + 1) ≤ 1 − level. Since the lowest of many t is taken, where luck
    helps, so few wrong ones must also be unlikely, by a binomial test, if more than 1 − level were wrong: they may
    come by chance at most `doubt` of the time. With no safe t, nothing is (∞).
    """
    from scipy.special import bdtr

    p, y = _checked("a threshold", chances, right)
    if not 0 < level < 1:
        raise QkvError("a threshold", f"the level is {level}", "Give a share in (0, 1), such as 0.95")
    order = np.argsort(-p, kind="stable")
    p, y = p[order], y[order]
    wrong = (~y).cumsum()
    total = np.arange(1, len(p) + 1)
    last = np.append(np.diff(p) != 0, True)  # a threshold takes all of a tie, or none
    few = wrong + 1 <= (1 - level) * (total + 1) + 1e-9  # 1 - 0.8 is not quite 0.2
    safe = last & few & (bdtr(wrong, total, 1 - level) <= doubt)
    return float(p[np.flatnonzero(safe)[-1]]) if safe.any() else float("inf")


def _checked(asked: str, scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    s, y = np.asarray(scores, dtype=float), np.asarray(labels)
    if s.ndim != 1 or s.shape != y.shape or not len(s) or np.isnan(s).any():
        raise QkvError(
            asked, f"scores have shape {s.shape} and labels {y.shape}, or one is no number", "Give as many of each"
        )
    if not np.isin(y, (0, 1)).all():
        raise QkvError(asked, "labels are not all 0 or 1", "Give True or False for each score")
    return s, y.astype(bool)
