"""What is guaranteed of the answers to each kind of question, where a badge is fitted on several kinds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkv.knowledge.confidence.cross_fitting import for_lesser, one_row_each
from qkv.knowledge.confidence.guarantee import MIN_LEVEL, Guarantee, lower_bound

if TYPE_CHECKING:
    from qkv.knowledge.confidence.calibrator import Calibrator


class KindLevel(NamedTuple):
    """What is guaranteed of the answers to one kind of question.

    Attributes:
        kind: The kind, with … for the name.
        remembered: At least this share of the answers that are called "remembered" is right; 0 if not even one half is
            shown of this kind.
        made_up: The same for those that are called "made up", of being wrong.
    """

    kind: str
    remembered: float
    made_up: float


def kind_levels(
    kinds: Sequence[str],
    scores: np.ndarray,
    right: np.ndarray,
    people: Sequence[str],
    calibrator: Calibrator,
    seed: int = 0,
) -> tuple[KindLevel, ...]:
    """The level of each kind of question, by its own answers at the thresholds that all kinds share.

    A level that holds for all questions together may be false of a kind that is rare among them. Of several kinds, each
    has the level of all if its own answers show it (Clopper and Pearson's lower bound), and otherwise what they show at
    half the error, as levels below the wanted one are stated (`cross_fit`).

    Args:
        kinds: The kind of each row.
        scores: Log-odds of being right, out of fold.
        right: Whether each answer is right.
        people: Whom each row is about; one row of each person counts in each kind.
        calibrator: The thresholds, with what is guaranteed of all kinds together.
        seed: Seed of which row of a person counts.
    """
    names = list(dict.fromkeys(kinds))
    remembered, made_up = calibrator.remembered, calibrator.made_up
    if len(names) == 1:
        return (KindLevel(names[0], remembered.level, made_up.level),)
    out = []
    for name in names:
        rows = np.flatnonzero([kind == name for kind in kinds])
        rows = rows[one_row_each([people[i] for i in rows.tolist()], seed)]
        s, y = scores[rows], right[rows]
        out.append(KindLevel(name, _level(s, y, remembered), _level(-s, ~y, made_up)))
    return tuple(out)


def _level(scores: np.ndarray, right: np.ndarray, every: Guarantee) -> float:
    """What the answers above the threshold show; 0 if that is less than one half, or none are there."""
    accepted = scores > every.threshold
    n, k = int(accepted.sum()), int((accepted & right).sum())
    if not every.accepted or not n:
        return 0.0
    if lower_bound(k, n, every.confidence) >= every.level:
        return every.level
    shown = lower_bound(k, n, for_lesser(every.confidence))
    return min(every.level, shown) if shown >= MIN_LEVEL else 0.0
