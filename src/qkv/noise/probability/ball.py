"""P(output in a ball) where at most two normal variables move all scores."""

# Under one head this is a closed form or one integral (one_head.py); under several it is enclosed (enclosure.py).

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from qkv.noise.method import Method
from qkv.noise.probability.ball_on_segment import RELATIVE_ROUNDING, Array
from qkv.noise.probability.enclosure import Heads, measure_of_ball
from qkv.noise.probability.low_rank import Directions, LowRankScores
from qkv.noise.probability.one_head import measure_of_one, measure_of_two


def probability_within(
    m: Tensor,
    directions: Directions,
    mix: Tensor,
    values: Tensor,
    target: Tensor,
    radius: float,
    score_error: Tensor,
) -> tuple[float, float, float, Method]:
    """P(‖output − target‖ ≤ radius), the ends of an interval that holds it, and the method.

    Args:
        m: Mean scores, (h, n).
        directions: The variables that move them.
        mix: Weights of the heads, (h,).
        values: The values of the items, (n, dv).
        target: The target, (dv,).
        radius: The radius.
        score_error: Bound on the error of the scores of each head, (h,).
    """
    few = LowRankScores.of(m, directions.moves)
    # The columns of all heads and the target span few dimensions: distances are computed in these.
    columns = torch.cat([few.values(values).flatten(0, 1), target[None]])
    size = max(float(columns.abs().max()), radius)
    reduced = torch.linalg.qr(columns.mT / size, mode="r").R.mT
    parts, goal = reduced[:-1].reshape(len(m), -1, reduced.shape[1]).numpy(), reduced[-1].numpy()
    rounding = RELATIVE_ROUNDING * (columns.shape[1] ** 0.5 * (1 + float(mix.abs().sum())) + 1)
    radius = radius / size
    error = (score_error + directions.error).numpy()
    variables = len(directions)
    if variables == 0:
        weights = torch.softmax(few.scores, -1)
        output = torch.einsum("h,hk,hkd->d", mix, weights, torch.from_numpy(parts)).numpy()
        distance = float(np.sqrt(((output - goal) ** 2).sum()))
        rounding += float(np.abs(mix.numpy()) @ np.minimum(2.0, error)) * columns.shape[1] ** 0.5
        inside, tie = float(distance <= radius), abs(distance - radius) <= rounding
        return inside, 0.0 if tie else inside, 1.0 if tie else inside, "exact"
    segment = _segment(few, mix.numpy(), parts, goal)
    if segment is not None:
        return *measure_of_one(*segment, radius, 2 * float(error.max())), "exact"
    if len(m) == 1:
        points = float(mix[0]) * parts[0] - goal
        sds = few.directions[:, 0, :-1].square().sum(0).sqrt().numpy()
        return *measure_of_two(few.scores[0].numpy(), sds, points, radius, 2 * float(error[0])), "quadrature"
    found = measure_of_ball(Heads.of(few, error), mix.numpy(), parts, goal, radius, rounding)
    return *found, "quadrature"


def _segment(few: LowRankScores, mix: Array, parts: Array, goal: Array) -> tuple[float, float, Array, Array] | None:
    """Mean and standard deviation of a logit that alone moves the output, and its ends; None where more moves it."""
    moved = (few.directions != 0).any(2).any(0).nonzero().flatten().tolist()
    if len(moved) != 1 or few.scores.shape[1] - (not len(few.fixed)) != 2:
        return None
    h = moved[0]
    scores, sds = few.scores[h].numpy(), few.directions[:, h].square().sum(0).sqrt().numpy()
    weights = torch.softmax(few.scores, -1).numpy()
    others = [g for g in range(len(mix)) if g != h]
    fixed = np.einsum("h,hk,hkd->d", mix[others], weights[others], parts[others]) - goal
    # With two items and no others, only the difference of their scores matters.
    start, end = fixed + mix[h] * parts[h, 1], fixed + mix[h] * parts[h, 0]
    return float(scores[0] - scores[1]), float(np.hypot(sds[0], sds[1])), start, end
