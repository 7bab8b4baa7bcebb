"""Intervals for shares: Wilson's for one, Newcombe's for the difference of two, and a mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qkv.errors import QkvError

Z95 = 1.959963984540054  # the normal quantile of 97.5 %


def wilson(right: float, n: int, z: float = Z95) -> tuple[float, float]:
    """The shares p whose own spread would allow `right` of n: |right/n − p| ≤ z·sqrt(p(1−p)/n), solved for p."""
    if n < 1 or not 0 <= right <= n:
        raise QkvError(
            "an interval for a share", f"{right} of {n} were right", "Give n of at least 1, and at most n right"
        )
    p, w = right / n, z * z / n
    middle = (p + w / 2) / (1 + w)
    half = math.sqrt(p * (1 - p) * w + w * w / 4) / (1 + w)
    return (0.0 if right == 0 else max(0.0, middle - half)), (1.0 if right == n else min(1.0, middle + half))


def difference(one: tuple[float, int], two: tuple[float, int], z: float = Z95) -> tuple[float, float]:
    """An interval for the difference of two independent shares, (right, n) each, from the Wilson intervals of both."""
    (low1, high1), (low2, high2) = wilson(*one, z), wilson(*two, z)
    p1, p2 = one[0] / one[1], two[0] / two[1]
    below = math.hypot(p1 - low1, high2 - p2)
    above = math.hypot(high1 - p1, p2 - low2)
    return p1 - p2 - below, p1 - p2 + above


def over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, low, high): the 95 % interval of a mean by Student's t; with one value it is unbounded."""
    n = len(values)
    if n == 0:
        raise QkvError("a mean over seeds", "there are no values", "Give at least one")
    mean = sum(values) / n
    if n == 1:
        return mean, -math.inf, math.inf
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    half = T95[min(n - 1, len(T95)) - 1] * spread
    return mean, mean - half, mean + half


T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""Student's quantiles of 97.5 % for 1 to 20 degrees of freedom; more are treated as 20, which errs on the safe side."""
