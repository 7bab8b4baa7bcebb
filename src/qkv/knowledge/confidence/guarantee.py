"""The strongest statement "answers above this threshold are right at least so often" that labelled answers support."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qkv.core.display import lower_percent
from qkv.errors import QkvError
from qkv.knowledge.confidence.logistic import expit

CONFIDENCE = 0.95
MIN_LEVEL = 0.5  # "right less than half of the time" is not called remembered
STEP = 0.01  # each test accepts this share more answers than the one before
TOLERANCE = 0.02  # how far below the highest promised bound that of the first, larger set may be


@dataclass(frozen=True)
class Guarantee:
    """Answers with a score above `threshold` are right at least `level` of the time, with this confidence.

    It speaks of answers that are drawn like the labelled ones: in a share `confidence` of all such draws, the statement
    is true.

    Attributes:
        threshold: Scores above it are accepted; infinite if no answer is.
        level: The share of right answers that is guaranteed: `wanted`, or less where that could not be shown; 0 if
            nothing is accepted.
        wanted: The share that was asked for.
        confidence: Share of all draws of labelled answers in which such a statement is true.
        accepted: Labelled answers that are accepted.
        right: How many of these are right.
        bound: Lower confidence bound of the share of right answers among the accepted; with no answer accepted, that
            of the surest answers. Below `wanted` it may have more confidence than is stated.
        more: How many times as many labelled answers would be expected to show `wanted`, if as many of the surest stay
            right; 1 if it is shown, infinite if that share is too small.
    """

    threshold: float
    level: float
    wanted: float
    confidence: float
    accepted: int
    right: int
    bound: float
    more: float

    @property
    def reached(self) -> bool:
        """Whether the wanted level is guaranteed."""
        return self.accepted > 0 and self.level >= self.wanted

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, what: str = "right", counted: str = "") -> str:
        """The statement in words; `what` is what the answers are guaranteed to be, `counted` how they are counted."""
        if not self.accepted:
            return "no answer"
        level, sure = lower_percent(self.level, 3), lower_percent(self.confidence, 6)
        return f"{what} at least {level} of the time{counted} ({sure} confidence)"

    def to_json(self) -> dict[str, Any]:
        """The fields, with null for an infinite number."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Guarantee:
        """The inverse of `to_json`; what is not a guarantee of some answers is refused with ValueError or TypeError."""
        if not isinstance(data, dict):
            raise ValueError("a guarantee is not an object")
        values: dict[str, Any] = {name: math.inf if value is None else value for name, value in data.items()}
        if any(
            type(value) not in (int, float) or not (abs(value) < 1e300 or value == math.inf)
            for value in values.values()
        ):
            raise ValueError("a guarantee has a field that is not a number")
        made = cls(**values)
        shares = (made.level, made.wanted, made.confidence, made.bound)
        counts = type(made.accepted) is type(made.right) is int and 0 <= made.right <= made.accepted
        open_shares = 0 < made.wanted < 1 and 0 < made.confidence < 1
        if not counts or not open_shares or not all(0 <= share <= 1 for share in shares) or made.more < 1:
            raise ValueError("a guarantee has a field that is out of range")
        if made.accepted and not made.level <= made.bound <= made.right / made.accepted:
            raise ValueError("a guarantee states more than its answers show")
        if (made.accepted > 0) != (made.level > 0) or (made.accepted > 0) != math.isfinite(made.threshold):
            raise ValueError("a guarantee has a level or a threshold, and no answers that it accepts, or the reverse")
        return made


def guarantee(
    scores: Any,
    right: Any,
    wanted: float,
    confidence: float = CONFIDENCE,
    *,
    most: int | None = None,
    lesser_confidence: float | None = None,
) -> Guarantee:
    """The lowest threshold whose accepted answers are right at least `wanted` of the time, or else the surest answers.

    The answers are sorted by score. A first set of surest answers is chosen without looking at their labels: the
    largest one for which the scores themselves, as log-odds of being right, promise a lower bound within two hundredths
    of the highest. If the exact binomial test rejects at 1 − `confidence` that fewer than `wanted` of its population
    are right, larger and larger sets are tested in a fixed order, up to the first that is not rejected; the last set
    rejected is accepted. If the first set fails, it is accepted at the level that its test does show (Clopper and
    Pearson's lower bound).

    For scores fixed in advance this is a fixed sequence of tests: for the first set the hypotheses "fewer than q are
    right" for increasing q, and then "fewer than `wanted` are right" for larger and larger sets. A false statement
    needs the rejection of the first true hypothesis, so that its probability is at most 1 − `confidence`, without a
    correction for the number of tests (Angelopoulos et al. 2021, Learn then Test). A lower `wanted` passes every test
    that a higher one passes: it never accepts less.

    Args:
        scores: Log-odds of being right, from a model that was not fitted on the answer itself. Only positive ones are
            ever accepted.
        right: Whether each answer is right.
        wanted: Share of accepted answers that shall be right, in (0, 1); below one half, one half is shown.
        confidence: Share of all draws in which the statement shall be true, in (0, 1).
        most: Accept at most so many of the labelled answers.
        lesser_confidence: Confidence with which a level below `wanted` is stated of the first set, `confidence` if left
            out. Scores that were fitted on these answers, if only on the others of them, need more (`cross_fit`).

    Returns:
        The threshold and the level that is guaranteed above it.

    Raises:
        QkvError: Scores and labels differ in length, or a share is not in (0, 1).
    """
    from scipy.special import betaincinv  # here, because `qkv ask` reads a Guarantee without SciPy

    s, y = _checked(scores, right, wanted, confidence)
    order = np.argsort(-s, kind="stable")
    s, y = s[order], y[order]
    ends = np.flatnonzero(np.append(np.diff(s) != 0, True)[: len(s)]) + 1  # sizes of sets that a threshold can accept
    ends = ends[s[ends - 1] > 0]  # an answer that is rather wrong than right is in no set, whatever the level
    if most is not None:
        ends = ends[ends <= most]
    if not len(ends):
        return Guarantee(math.inf, 0.0, wanted, confidence, 0, 0, 0.0, math.inf)
    wrong = np.concatenate(([0], (~y).cumsum()))
    promised = np.concatenate(([0.0], (1 - expit(s)).cumsum()))
    promises = betaincinv(ends - promised[ends] + 1e-9, promised[ends] + 1, 1 - confidence)
    start = int(ends[np.flatnonzero(promises >= promises.max() - TOLERANCE)[-1]])
    sizes = [start]
    while len(later := ends[ends >= sizes[-1] * (1 + STEP)]):
        sizes.append(int(later[0]))
    if sizes[-1] != ends[-1]:
        sizes.append(int(ends[-1]))
    bounds = [lower_bound(int(k - wrong[k]), k, confidence) for k in sizes]
    goal = max(wanted, MIN_LEVEL)
    passed = next((j for j, bound in enumerate(bounds) if bound < goal), len(sizes))
    k = sizes[max(passed - 1, 0)]
    bound = bounds[max(passed - 1, 0)]
    more = 1.0 if passed else more_needed(int(start - wrong[start]), start, goal, confidence)
    if not passed:
        bound = lower_bound(int(start - wrong[start]), start, lesser_confidence or confidence)
    if not passed and bound < MIN_LEVEL:
        return Guarantee(math.inf, 0.0, wanted, confidence, 0, 0, bound, more)
    threshold = max(0.0, float(s[k])) if k < len(s) else 0.0
    return Guarantee(threshold, min(goal, bound), wanted, confidence, k, int(k - wrong[k]), bound, more)


def more_needed(right: int, n: int, wanted: float, confidence: float) -> float:
    """How many times as many answers, right as often, have a lower bound of `wanted`; ∞ if no number has."""
    from scipy.special import betaincinv

    share = right / n
    if share <= wanted:
        return math.inf

    def shown(factor: float) -> bool:
        return bool(betaincinv(factor * right, factor * (n - right) + 1, 1 - confidence) >= wanted)

    high = 1.0
    while not shown(high):
        high *= 2
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return max(1.0, high)


def lower_bound(right: int, n: int, confidence: float) -> float:
    """Clopper and Pearson's one-sided lower bound of a probability."""
    from scipy.special import betaincinv

    return float(betaincinv(right, n - right + 1, 1 - confidence)) if right else 0.0


def _checked(scores: Any, right: Any, wanted: float, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    s, y = np.asarray(scores, dtype=float), np.asarray(right)
    if s.ndim != 1 or s.shape != y.shape or not np.isfinite(s).all() or not np.isin(y, (0, 1)).all():
        raise QkvError(
            "guaranteeing a share of right answers",
            f"scores have shape {s.shape} and labels {y.shape}, or one of them is not finite",
            "Give a finite score and True or False for each answer",
        )
    if not 0 < wanted < 1 or not 0 < confidence < 1:
        raise QkvError(
            "guaranteeing a share of right answers",
            f"the level is {wanted} and the confidence {confidence}",
            "Give shares in (0, 1), such as 0.95",
        )
    return s, y.astype(bool)
