"""P(output in a ball) under one head with one or two noisy scores: a closed form, and one integral of closed forms."""

# One noisy score moves the output on a segment (ball_on_segment.py): the probability is a difference of two values of
# Φ. With two, the one of larger standard deviation is treated so for every value of the other, z, and the result is
# integrated over z. As a function of z it changes on the scales 1 of z and 1 of the score, and is singular where the
# segment begins to touch the ball, or where its lower end enters it. With t the weight that the other item has against
# the items without noise, these places are roots of quadratics in t. The panels of a Gauss rule are graded towards
# them, and towards the real parts of complex roots, near which the function changes fast; the difference of two rules
# measures the error, and panels with a large one are halved.
#
# Rounding moves the distance by a part of its size, so the ends of the interval are computed for a radius a little
# smaller and larger. Rounding of the scores by e moves a probability by at most φ(0) e/σ for each noisy score.

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, roots_legendre

from qkv.noise.probability.ball_on_segment import (
    NORMAL_ROUNDING,
    RELATIVE_ROUNDING,
    Array,
    ball_on_segment,
    normal_mass,
)

NORMAL_TAIL, TAIL_MASS = 8.5, 2e-17
"""Where z ends, and P(|N(0,1)| > 8.5)."""
SCORE_REACH, SCORE_STEP = 42.0, 1.5
"""A score further from its competitors has a weight of 0 or 1, up to rounding; the width of panels in the score."""
GRADING, LEVELS = 0.25, 26
"""Panels around a singularity shrink by this factor, so many times: to 2e-16 of a score."""
MAX_PANEL_ERROR, MAX_PANELS, MAX_HALVINGS = 1e-14, 20_000, 30
"""Panels whose two rules differ by more are halved, while there are at most so many."""
FINE_RULE, COARSE_RULE = roots_legendre(16), roots_legendre(10)
ERROR_FACTOR = 2.0
"""The error is this many times the difference of the two rules."""
ROOT_2PI = math.sqrt(2 * math.pi)
DENSITY_AT_ZERO = 1 / ROOT_2PI
"""φ(0)."""

Estimate = tuple[float, float, float]
"""A probability, and the ends of an interval that holds it."""


def measure_of_one(logit: float, sd: float, A: Array, B: Array, radius: float, score_error: float) -> Estimate:
    """The probability where the output is A + p(B − A), with logit p normal; the ball is around 0."""
    widen = score_error / sd + RELATIVE_ROUNDING * NORMAL_TAIL

    def mass(r: float, wider: float) -> float:
        low, high = ball_on_segment(A[None], B[None], r)
        return float(normal_mass((low - logit) / sd - wider, (high - logit) / sd + wider)[0])

    return _bracketed(lambda r, side: mass(r, side * widen), _rounding(np.stack([A, B]), radius), radius, 0.0)


def measure_of_two(scores: Array, sds: Array, points: Array, radius: float, score_error: float) -> Estimate:
    """The probability for two noisy items and the rest.

    Args:
        scores: The mean scores of the two noisy items, and the logsumexp of the others, (3,).
        sds: Standard deviations of the two noisy scores, (2,).
        points: The output if all weight is on either of the noisy items or on the rest, (3, d); the ball is around 0.
        radius: The radius of the ball.
        score_error: Bound on the error of the scores.
    """
    inner = int(np.argmax(sds))
    outer = 1 - inner
    m, sd, rest = scores[outer], sds[outer], scores[2]
    v0, v1, v2 = points[2], points[outer], points[inner]
    errors = []

    def mass(r: float, _side: int) -> float:
        def given(z: Array) -> Array:
            s = m + sd * z
            A = expit(rest - s)[:, None] * v0 + expit(s - rest)[:, None] * v1
            low, high = ball_on_segment(A, v2, r)
            centre = scores[inner] - np.logaddexp(s, rest)
            return np.exp(-0.5 * z * z) * normal_mass((low - centre) / sds[inner], (high - centre) / sds[inner])

        places = (_singular_logits(v0, v1, v2, r) + rest - m) / sd
        found, error = _integrate(given, _knots(m - rest, sd, places))
        errors.append(error / ROOT_2PI)
        return found / ROOT_2PI

    moved = 2 * DENSITY_AT_ZERO * score_error * float((1 / sds).sum())
    p, low, high = _bracketed(mass, _rounding(points, radius), radius, moved + TAIL_MASS)
    off = float(max(errors))
    return p, max(0.0, low - off), min(1.0, high + off)


def _rounding(points: Array, radius: float) -> float:
    """Bound on the rounding of a distance between convex combinations of the points and 0."""
    return RELATIVE_ROUNDING * (float(np.abs(points).max(initial=0.0)) * points.shape[-1] ** 0.5 + radius)


def _bracketed(mass: Callable[[float, int], float], rounding: float, radius: float, error: float) -> Estimate:
    """The measure at the radius, and that of a smaller and a larger one; `mass` takes a radius, and −1, 0 or 1."""
    p = min(1.0, mass(radius, 0))
    low = mass(radius - rounding, -1) if radius > rounding else 0.0
    high = mass(radius + rounding, 1)
    error += NORMAL_ROUNDING
    return p, max(0.0, min(p, low) - error), min(1.0, max(p, high) + error)


def _singular_logits(v0: Array, v1: Array, v2: Array, radius: float) -> Array:
    """logit t, with x(t) = v0 + t(v1 − v0), where x enters the ball or the line from x to v2 touches it, or nearly."""
    E, W = v1 - v0, v2 - v0
    kappa = float(v2 @ v2) - radius**2
    a, b = float(v2 @ W), float(v2 @ E)
    # (v2·(W − tE))² − κ‖W − tE‖² and ‖v0 + tE‖² − radius², from the highest power of t on.
    touching = (b * b - kappa * float(E @ E), 2 * (kappa * float(W @ E) - a * b), a * a - kappa * float(W @ W))
    entering = (float(E @ E), 2 * float(v0 @ E), float(v0 @ v0) - radius**2)
    roots = [complex(root).real for quadratic in (touching, entering) for root in np.roots(quadratic)]
    t = np.array([root for root in roots if 0 < root < 1])
    logits = np.log(t) - np.log1p(-t)
    exact = np.concatenate(ball_on_segment(v0[None], v1[None], radius))
    out = np.concatenate([logits, exact])
    return np.unique(out[np.isfinite(out)])


def _knots(gap: float, sd: float, places: Array) -> Array:
    """Ends of panels in z: on the scales of z and of the score, and graded towards the singular places."""
    parts = [np.arange(-NORMAL_TAIL, NORMAL_TAIL + 0.5), places]
    if sd * SCORE_STEP > 1:
        parts.append((np.arange(-SCORE_REACH, SCORE_REACH + SCORE_STEP, SCORE_STEP) - gap) / sd)
    distances = 2 * SCORE_STEP * GRADING ** np.arange(LEVELS) / max(sd, 1.0)
    for place in places:
        parts += [place - distances, place + distances]
    knots = np.unique(np.concatenate(parts))
    return knots[(knots >= -NORMAL_TAIL) & (knots <= NORMAL_TAIL)]


def _integrate(function: Callable[[Array], Array], knots: Array) -> tuple[float, float]:
    """∫ over all panels by Gauss's rule, and its measured error; panels with a large one are halved."""
    low, high = knots[:-1], knots[1:]
    total, error, panels = 0.0, 0.0, 0
    for _ in range(MAX_HALVINGS):
        middle, half = (low + high) / 2, (high - low) / 2
        fine, coarse = (
            half * (function((middle[:, None] + half[:, None] * x).ravel()).reshape(len(half), -1) @ weight)
            for x, weight in (FINE_RULE, COARSE_RULE)
        )
        off = np.abs(fine - coarse)
        panels += len(half)
        again = off > MAX_PANEL_ERROR
        if panels > MAX_PANELS:
            again[:] = False
        total, error = total + float(fine[~again].sum()), error + float(off[~again].sum())
        if not again.any():
            break
        low, high = (
            np.concatenate([low[again], middle[again]]),
            np.concatenate([middle[again], high[again]]),
        )
    else:
        # What is left are panels of no more than rounding in width: their integrals are bounded by their width.
        error += float((high - low).sum())
    return total, ERROR_FACTOR * error
