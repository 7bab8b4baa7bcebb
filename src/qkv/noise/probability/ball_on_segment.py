"""Where a segment lies in a ball, in logits of its parameter, and the normal measure of an interval."""

# If one score s is random and all others are given, the item's weight p = 1/(1 + e^(r − s)), with r the logsumexp of
# the others, moves the output on the segment from A (p = 0) to B (p = 1). The ball ‖A + p(B − A)‖ ≤ radius is an
# interval of p, so of s = r + logit p. Both p and 1 − p are computed without cancellation, since a logit needs both.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

RELATIVE_ROUNDING = 64 * float(np.finfo(float).eps)
"""Rounding of a distance, relative to the sizes of the points and of the radius."""
NORMAL_ROUNDING = 1e-15
"""Rounding of a difference of two values of Φ."""


def ball_on_segment(A: Array, B: Array, radius: float) -> tuple[Array, Array]:
    """The interval of logit p in which ‖A + p(B − A)‖ ≤ radius, for points A and B, (points, d) or one of them (d,).

    Returns:
        Its lower and upper ends, (points,); ∞ and −∞ where it is empty.
    """
    W = B - A
    a, b0, b1 = (W * W).sum(-1), (A * W).sum(-1), -(B * W).sum(-1)
    norm_A, norm_B = np.sqrt((A * A).sum(-1)), np.sqrt((B * B).sum(-1))
    c0, c1 = (norm_A - radius) * (norm_A + radius), (norm_B - radius) * (norm_B + radius)
    norm_A, norm_B, c0, c1 = np.broadcast_arrays(norm_A, norm_B, c0, c1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # ‖A + pW‖² − radius² = a p² + 2 b0 p + c0, in 1 − p: a q² + 2 b1 q + c1; D = b0² − a c0 = b1² − a c1.
        off = np.sqrt(((A - (b0 / a)[..., None] * W) ** 2).sum(-1))  # distance of the line from the centre
        D = a * (radius - off) * (radius + off)
        root = np.sqrt(np.maximum(D, 0.0))
        enters = np.log(c0 / (root - b0)) - np.log(np.where(b1 <= 0, (root - b1) / a, -c1 / (root + b1)))
        leaves = np.log(np.where(b0 <= 0, (root - b0) / a, -c0 / (root + b0))) - np.log(c1 / (root - b1))
    starts_inside, ends_inside = norm_A <= radius, norm_B <= radius
    low = np.where(starts_inside, -np.inf, enters)
    high = np.where(ends_inside, np.inf, leaves)
    missed = (~starts_inside & ((b0 >= 0) | ~(D >= 0))) | (~ends_inside & ((b1 >= 0) | ~(D >= 0)))
    missed |= np.isnan(low) | np.isnan(high)
    return np.where(missed, np.inf, low), np.where(missed, -np.inf, high)


def normal_mass(low: Array, high: Array) -> Array:
    """P(low ≤ N(0,1) ≤ high), without cancellation in the upper tail; 0 where low is above high."""
    low, high = np.broadcast_arrays(low, high)
    upper = low > 0
    mass = ndtr(np.where(upper, -low, high)) - ndtr(np.where(upper, -high, low))
    return np.where(low < high, np.maximum(mass, 0.0), 0.0)
