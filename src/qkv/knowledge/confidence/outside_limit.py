"""The limit of names outside the text that may be called "remembered": a threshold, and the share that it bounds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qkv.core.display import lower_percent, upper_percent
from qkv.errors import QkvError
from qkv.knowledge.confidence.guarantee import CONFIDENCE

MAX_OUTSIDE = 0.03
GROUPS = ("outsider", "invented")
"""Groups of names that are not in the text."""


@dataclass(frozen=True)
class OutsideLimit:
    """At most a share `bound` of the names of one group score above `threshold`, with this confidence.

    It speaks of names that are drawn like the given ones, and of every higher threshold as well.

    Attributes:
        group: The group of the names: "outsider" or "invented".
        wanted: The largest share that may score above the threshold.
        confidence: Share of all draws of such names in which the statement is true.
        threshold: The lowest threshold that the limit allows.
        n: Names of the group that were given.
        allowed: How many of these may score above the threshold.
        bound: Upper confidence bound of the share of all such names that do (Clopper and Pearson).
    """

    group: str
    wanted: float
    confidence: float
    threshold: float
    n: int
    allowed: int
    bound: float

    @property
    def shown(self) -> bool:
        """Whether the wanted limit is guaranteed; if not, only the given names are known to keep it."""
        return self.bound <= self.wanted

    def __str__(self) -> str:
        wanted, sure = upper_percent(self.wanted, 3), f"{lower_percent(self.confidence, 6)} confidence"
        if self.shown:
            return f"at most {wanted} of such names ({sure})"
        bound = upper_percent(self.bound, 3)
        return (
            f"measured, not guaranteed: {self.n} such names are too few for {wanted}, and show at most {bound} ({sure})"
        )

    def to_json(self) -> dict[str, Any]:
        """The fields, and whether the limit is shown."""
        return {**asdict(self), "shown": self.shown}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> OutsideLimit:
        """The inverse of `to_json`; what is no limit of names is refused with ValueError, KeyError or TypeError."""
        if not isinstance(data, dict):
            raise ValueError("a limit is not an object")
        values = {name: value for name, value in data.items() if name != "shown"}
        numbers = [value for name, value in values.items() if name != "group"]
        if type(values["group"]) is not str or any(
            type(value) not in (int, float) or not abs(value) < 1e300 for value in numbers
        ):
            raise ValueError("a limit has a field that is not a number")
        made = cls(**values)
        counts = type(made.n) is type(made.allowed) is int and 0 <= made.allowed < made.n
        shares = (made.wanted, made.confidence, made.bound)
        if made.group not in GROUPS or not counts or not all(0 < share < 1 for share in shares[:2]) or made.bound > 1:
            raise ValueError("a limit has a field that is out of range")
        least = 1 - (1 - made.confidence) ** (1 / made.n)  # the bound where none is allowed
        if made.bound < max(made.allowed / made.n, least - 1e-9) or data.get("shown", made.shown) is not made.shown:
            raise ValueError("a limit states more than its names show")
        return made


def outside_limit(scores: Any, group: str, wanted: float = MAX_OUTSIDE, confidence: float = CONFIDENCE) -> OutsideLimit:
    """The lowest threshold above which at most a share `wanted` of such names score.

    The number of given names that may score above it is fixed by their number alone: the largest one whose exact
    binomial bound is at most `wanted`. The share of the population above the k+1st highest of n scores exceeds that
    bound in at most 1 − `confidence` of all draws, whatever the scores are; and a share above a higher threshold is
    no larger. So the statement needs no correction, for the choice of the threshold or for a further condition.

    Where there are too few names for any bound of `wanted`, the share of the given names is kept at `wanted` instead,
    and the bound that it has is stated.

    Args:
        scores: A score of each given name.
        group: What these names are.
        wanted: Largest share that may score above the threshold, in (0, 1).
        confidence: Share of all draws in which the statement shall be true, in (0, 1).

    Raises:
        QkvError: There is no score, one is not finite, or a share is not in (0, 1).
    """
    s = np.sort(np.asarray(scores, dtype=float))[::-1]
    if s.ndim != 1 or not len(s) or not np.isfinite(s).all() or not 0 < wanted < 1 or not 0 < confidence < 1:
        raise QkvError(
            "limiting the names outside the text",
            f"there are {s.size} scores, the limit is {wanted} and the confidence {confidence}",
            "Give finite scores, and shares in (0, 1), such as 0.03 and 0.95",
        )
    n = len(s)
    allowed = math.floor(wanted * n + 1e-9)
    bounds = _upper_bounds(np.arange(allowed + 1), n, confidence)
    exact = np.flatnonzero(bounds <= wanted)
    if len(exact):
        allowed = int(exact[-1])
    return OutsideLimit(group, wanted, confidence, float(s[allowed]), n, allowed, float(bounds[allowed]))


def _upper_bounds(k: np.ndarray, n: int, confidence: float) -> np.ndarray:
    """Clopper and Pearson's one-sided upper bound of a probability, for each k of n; k < n."""
    from scipy.special import betaincinv  # here, because `qkv ask` reads a limit without SciPy

    return np.asarray(betaincinv(k + 1, n - k, confidence))
