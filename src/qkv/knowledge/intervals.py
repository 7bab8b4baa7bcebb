"""95 % confidence intervals: Wilson for a proportion, Newcombe for a difference of two, Student's t for a mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from qkv.errors import QkvError

Z95 = float(ndtri(0.975))


def wilson_interval(successes: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval: all p with |successes/n − p| ≤ z·sqrt(p(1−p)/n).

    SciPy's `binomtest(...).proportion_ci("wilson")` takes whole counts only; a mean over several runs has a fraction.
    """
    if n < 1 or not 0 <= successes <= n:
        raise QkvError(
            "an interval for a proportion", f"{successes} of {n} are successes", "Give n ≥ 1 and 0 ≤ successes ≤ n"
        )
    p, w = successes / n, z * z / n
    middle = (p + w / 2) / (1 + w)
    half = math.sqrt(p * (1 - p) * w + w * w / 4) / (1 + w)
    # At 0 and n the end of the interval is exactly 0 or 1; the formula gives it up to rounding.
    return (0.0 if successes == 0 else max(0.0, middle - half)), (1.0 if successes == n else min(1.0, middle + half))


def independent_draws(groups: Iterable[Hashable]) -> float:
    """How many independent draws have the variance of a share over rows, all rows of a group being alike (Kish).

    With the group of each row given: the square of the number of rows, through the sum of the squares of the sizes of
    the groups. Groups of one size count once each; where few have most of the rows, it is less.
    """
    sizes = Counter(groups).values()
    return sum(sizes) ** 2 / sum(size * size for size in sizes) if sizes else 0.0


def difference_interval(one: tuple[float, int], two: tuple[float, int], z: float = Z95) -> tuple[float, float]:
    """Newcombe's interval (1998, method 10) for p₁ − p₂ of two independent samples, each given as (successes, n)."""
    (low1, high1), (low2, high2) = wilson_interval(*one, z), wilson_interval(*two, z)
    p1, p2 = one[0] / one[1], two[0] / two[1]
    below = math.hypot(p1 - low1, high2 - p2)
    above = math.hypot(high1 - p1, p2 - low2)
    return p1 - p2 - below, p1 - p2 + above


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, low, high) of values, such as one per seed, by Student's t; for one value low and high are infinite."""
    n = len(values)
    if n == 0:
        raise QkvError("the interval of a mean", "there are no values", "Give at least one")
    mean = float(np.mean(values))
    if n == 1:
        return mean, -math.inf, math.inf
    half = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / math.sqrt(n))
    return mean, mean - half, mean + half
