"""Readings by several heads whose scores one or two normal variables move: enclosures over boxes of the variables."""

# Over a box of the variables every score of a head lies in an interval, and scores of different columns are moved by
# different variables; so the weight of a column lies between its values with its own score at one end and the others at
# the other end. That encloses the distance of the output from a target, and the weight of an item. Boxes in which an
# event neither always nor never happens are halved, until their probability is small. The bounds hold for all boxes
# together, whatever the scales of the scores: nothing that is narrow is stepped over.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qkv.noise.probability.ball_on_segment import Array, normal_mass
from qkv.noise.probability.low_rank import LowRankScores
from qkv.noise.probability.one_head import NORMAL_TAIL, Estimate

TAIL_MASS = 1e-16
"""P(max |z| > 8.5) for two variables, with rounding."""
MAX_UNDECIDED = {1: 1e-13, 2: 1e-5}
"""Probability of undecided boxes at which halving ends, by the number of variables."""
MAX_BOXES = {1: 100_000, 2: 300_000}
"""Boxes that are evaluated at most, by the number of variables."""
LAW_BOXES = {1: 40_000, 2: 400_000}
"""Boxes of a law, by the number of variables: none with more probability than one of so many equal ones."""
FLAT = 1e-14
"""A weight that varies by less within a box is not divided further."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of the variables, (boxes, variables)."""

    low: Array
    high: Array

    @classmethod
    def all(cls, variables: int) -> Boxes:
        """One box, outside of which there is TAIL_MASS."""
        return cls(np.full((1, variables), -NORMAL_TAIL), np.full((1, variables), NORMAL_TAIL))

    @property
    def mass(self) -> Array:
        """The probability of each."""
        return np.asarray(normal_mass(self.low, self.high).prod(-1))

    def halves(self, chosen: NDArray[np.bool_], slopes: Array) -> Boxes:
        """The halves of the chosen boxes, across the variable that moves weights most; slopes (boxes, variables)."""
        low, high = self.low[chosen], self.high[chosen]
        axis = ((high - low) * slopes[chosen]).argmax(-1)[:, None] == np.arange(low.shape[1])
        middle = (low + high) / 2
        return Boxes(
            np.concatenate([low, np.where(axis, middle, low)]), np.concatenate([np.where(axis, middle, high), high])
        )


@dataclass(frozen=True, eq=False)
class Heads:
    """Scores of the columns of several heads, as functions of the variables."""

    base: Array  # (h, columns)
    directions: Array  # (variables, h, columns)
    error: Array  # (h,): bound on the error of the scores

    @classmethod
    def of(cls, few: LowRankScores, score_error: Array) -> Heads:
        """Heads with merged columns."""
        return cls(few.scores.numpy(), few.directions.numpy(), score_error)

    def slopes(self, least: Array, most: Array) -> Array:
        """How fast each variable can move weights that lie between least and most (boxes, h, columns)."""
        return np.asarray(np.einsum("rhk,bhk->br", np.abs(self.directions), most * (1 - least)))

    def weights(self, boxes: Boxes) -> tuple[Array, Array, Array]:
        """Least and largest weights over boxes and those at their centres, each (boxes, h, columns)."""
        ends = [np.einsum("br,rhk->brhk", z, self.directions) for z in (boxes.low, boxes.high)]
        least, most = np.minimum(*ends).sum(1), np.maximum(*ends).sum(1)
        margin = self.error[:, None]
        low, high, centre = self.base + least - margin, self.base + most + margin, self.base + (least + most) / 2
        return _softmax(low, high), _softmax(high, low), _softmax(centre, centre)


def _softmax(own: Array, others: Array) -> Array:
    """The weight of each column with its own score from one array and those of the other columns from another."""
    columns = own.shape[-1]
    out = np.empty_like(own)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(columns):
            rest = np.exp(np.delete(others, k, -1) - own[..., k : k + 1]).sum(-1)
            out[..., k] = np.where(np.isneginf(own[..., k]), 0.0, 1 / (1 + rest))
    return out


def measure_of_ball(heads: Heads, mix: Array, points: Array, goal: Array, radius: float, rounding: float) -> Estimate:
    """P(‖output − goal‖ ≤ radius) between bounds that hold for every box.

    Args:
        heads: The scores.
        mix: The weight of each head, (h,).
        points: The value that each column of each head reads, (h, columns, d).
        goal: The target, (d,).
        radius: The radius.
        rounding: Bound on the rounding of a distance.
    """
    variables = len(heads.directions)
    lengths = np.abs(mix)[:, None] * np.sqrt(((points - points[:, -1:]) ** 2).sum(-1))
    boxes, inside, evaluated = Boxes.all(variables), 0.0, 0
    parked_in, parked = 0.0, 0.0  # undecided boxes that are not halved any more: by their centres, and all
    while True:
        least, most, centre = heads.weights(boxes)
        mass = boxes.mass
        distance = np.sqrt(((np.einsum("h,bhk,hkd->bd", mix, centre, points) - goal) ** 2).sum(-1))
        reach = (np.maximum(most - centre, centre - least) * lengths).sum((1, 2)) + rounding
        inside += float(mass[distance + reach <= radius].sum())
        undecided = np.abs(distance - radius) <= reach
        evaluated += len(mass)
        left = float(mass[undecided].sum())
        done = left + parked <= MAX_UNDECIDED[variables] or evaluated + 2 * int(undecided.sum()) > MAX_BOXES[variables]
        small = mass <= MAX_UNDECIDED[variables] / 4 / max(1, int(undecided.sum()))
        stay = undecided & (small | done)
        parked += float(mass[stay].sum())
        parked_in += float(mass[stay & (distance <= radius)].sum())
        if done or not (undecided & ~stay).any():
            break
        boxes = boxes.halves(undecided & ~stay, heads.slopes(least, most))
    slack = TAIL_MASS + 1e-15
    return min(1.0, inside + parked_in), max(0.0, inside - slack), min(1.0, inside + parked + slack)


def law_of_weight(heads: Heads, shares: Array, column: int) -> tuple[Array, Array, Array]:
    """The weight Σ_h shares_h · (weight of the column under head h): its least and largest value in each of many
    boxes, and their probabilities."""
    variables = len(heads.directions)
    most_mass = 1 / LAW_BOXES[variables]
    boxes = Boxes.all(variables)
    parts: list[tuple[Array, Array, Array]] = []
    evaluated = 0
    while True:
        least, most, _ = heads.weights(boxes)
        ends = shares * least[..., column], shares * most[..., column]
        low, high, mass = np.minimum(*ends).sum(-1), np.maximum(*ends).sum(-1), boxes.mass
        evaluated += len(mass)
        again = (mass > most_mass) & (high - low > FLAT)
        if evaluated + 2 * int(again.sum()) > 4 * LAW_BOXES[variables]:
            again[:] = False
        parts.append((low[~again], high[~again], mass[~again]))
        if not again.any():
            break
        boxes = boxes.halves(again, heads.slopes(least, most))
    low, high, mass = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, mass
