"""Scores that one or two normal variables move: the layout as a function of them, and the measure of level sets."""

# If at most two independent normal variables move all scores (one noisy key under one or two heads, two noisy keys
# under one head, …), a reading is a function of these variables z alone. The probability of an event {f(z) ≤ 0} is then
# an integral of the normal density φ over a set: along the last variable f is evaluated at many nodes, its sign changes
# are located between nodes, and Φ gives the measure of the intervals between them.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import ndtr

MAX_DIRECTIONS = 2
"""Normal variables up to which a probability is integrated over them."""
LINE_NODES, PLANE_NODES = 20_001, 1_201
"""Nodes for one variable, and for each of two."""
BISECTIONS = 50
"""Halvings of the interval between two nodes in which a sign changes."""
NORMAL_TAIL = 8.5
"""Where z ends: P(|N(0,1)| > 8.5) = 2e-17."""
LINE_ROUNDING, PLANE_ROUNDING = 1e-12, 1e-9
"""Added to the estimated error of a measure in one and in two variables."""
MIN_RELATIVE_EIGENVALUE = 1e-14
"""Eigenvalues of a key's score covariance below this part of its largest count as 0."""


@dataclass(frozen=True, eq=False)
class LowRankScores:
    """Scores of the few noisy items, with all other items merged into one column.

    The others' scores do not vary, so each keeps its share of their total weight.
    """

    noisy: Tensor  # indices of the noisy items
    fixed: Tensor  # indices of the others
    scores: Tensor  # (h, noisy + 1)
    directions: Tensor  # (variables, h, noisy + 1): the change of the scores with each variable
    shares: Tensor  # (h, fixed): the share of each fixed item

    @classmethod
    def of(cls, m: Tensor, directions: Tensor) -> LowRankScores:
        """Merge the items that no variable moves, for score means (h, n) and directions (variables, h, n)."""
        moving = (directions != 0).any(0).any(0)
        noisy, fixed = moving.nonzero().flatten(), (~moving).nonzero().flatten()
        rest = torch.logsumexp(m[:, fixed], -1, keepdim=True)
        return cls(
            noisy,
            fixed,
            torch.cat([m[:, noisy], rest], dim=1),
            torch.cat([directions[:, :, noisy], directions.new_zeros(*directions.shape[:2], 1)], dim=2),
            torch.softmax(m[:, fixed], -1),
        )

    def weights(self, z: Tensor) -> Tensor:
        """Weights of the noisy items and of all others together, (points, h, noisy + 1)."""
        return torch.softmax(self.scores + torch.einsum("pr,rhk->phk", z, self.directions), -1)

    def values(self, values: Tensor) -> Tensor:
        """The value that each column reads, (h, noisy + 1, dv)."""
        own = values[self.noisy].expand(len(self.scores), -1, -1)
        return torch.cat([own, (self.shares @ values[self.fixed])[:, None, :]], dim=1)

    def column_of(self, item: int) -> tuple[int, Tensor]:
        """The column that holds an item, and its share of it under each head."""
        column = (self.noisy == item).nonzero().flatten()
        if len(column):
            return int(column[0]), torch.ones(len(self.scores), dtype=torch.float64)
        return len(self.noisy), self.shares[:, int((self.fixed == item).nonzero()[0])]


def noise_directions(C: Tensor) -> Tensor | None:
    """How each of at most two independent normal variables moves the scores, (variables, h, n); None if there are more.

    Args:
        C: Score covariances, (n, h, h).
    """
    H = C.shape[1]
    out = []
    noisy = (C.diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten().tolist()
    if len(noisy) > MAX_DIRECTIONS:
        return None
    for j in noisy:
        values, vectors = torch.linalg.eigh(C[j])
        for k in (values > MIN_RELATIVE_EIGENVALUE * values[-1]).nonzero().flatten().tolist():
            direction = torch.zeros(H, C.shape[0], dtype=torch.float64)
            direction[:, j] = vectors[:, k] * values[k].sqrt()
            out.append(direction)
    if len(out) > MAX_DIRECTIONS:
        return None
    return torch.stack(out) if out else torch.zeros(0, H, C.shape[0], dtype=torch.float64)


def probability_within(
    m: Tensor, directions: Tensor, mix: Tensor, values: Tensor, target: Tensor, radius: float
) -> tuple[float, float]:
    """P(‖output − target‖ ≤ radius) and an estimate of its error, from the change with half as many nodes."""
    few = LowRankScores.of(m, directions)
    # The columns of all heads and the target span few dimensions: distances are computed in these.
    columns = torch.cat([few.values(values).flatten(0, 1), target[None]])
    reduced = torch.linalg.qr(columns.mT, mode="r").R.mT
    parts, goal = reduced[:-1].reshape(len(m), -1, reduced.shape[1]), reduced[-1]

    def excess(z: Tensor) -> Tensor:
        """‖output − target‖ − radius, for normal variables z (points, variables)."""
        output = torch.einsum("h,phk,hkd->pd", mix, few.weights(z), parts)
        return torch.linalg.vector_norm(output - goal, dim=-1) - radius

    return normal_measure(excess, len(directions))


def normal_measure(excess: Callable[[Tensor], Tensor], variables: int) -> tuple[float, float]:
    """P(excess(z) ≤ 0) for z ~ N(0, I) in 0, 1 or 2 variables, and an estimate of its error."""
    if variables == 0:
        return float(excess(torch.zeros(1, 0, dtype=torch.float64))[0] <= 0), 0.0
    if variables == 1:
        fine, coarse = (_measure_on_line(excess, count) for count in (LINE_NODES, LINE_NODES // 2 + 1))
        return fine, 2 * abs(fine - coarse) + LINE_ROUNDING
    fine, coarse = (_measure_on_plane(excess, count) for count in (PLANE_NODES, PLANE_NODES // 2 + 1))
    return fine, 2 * abs(fine - coarse) + PLANE_ROUNDING


def _measure_on_line(excess: Callable[[Tensor], Tensor], count: int) -> float:
    """One variable: sign changes between nodes are located by bisection."""
    z = torch.linspace(-NORMAL_TAIL, NORMAL_TAIL, count, dtype=torch.float64)
    f = torch.cat([excess(part[:, None]) for part in z.split(4096)])
    inside = f <= 0
    change = (inside[1:] != inside[:-1]).nonzero().flatten()
    low, high = z[change], z[change + 1]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (excess(middle[:, None]) <= 0) == inside[change]
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    below = ndtr(torch.cat([z[:1], low, z[-1:]]))
    below[0], below[-1] = 0.0, 1.0
    return float(below.diff()[0 if bool(inside[0]) else 1 :: 2].sum())  # every second interval is inside


def _measure_on_plane(excess: Callable[[Tensor], Tensor], count: int) -> float:
    """Two variables: along the second, sign changes by linear interpolation; over the first, the trapezoid rule."""
    z = torch.linspace(-NORMAL_TAIL, NORMAL_TAIL, count, dtype=torch.float64)
    below = ndtr(z)
    density = torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (2 * NORMAL_TAIL / (count - 1))
    total = 0.0
    for first, share in zip(z, density, strict=True):
        f = excess(torch.stack([first.expand(count), z], dim=1))
        a, b = f[:-1], f[1:]
        cross = (a <= 0) != (b <= 0)
        at = torch.where(cross, a / torch.where(cross, a - b, torch.ones_like(a)), torch.zeros_like(a))
        middle = ndtr(z[:-1] + at * z.diff())
        left = torch.where(a <= 0, torch.where(cross, middle, below[1:]) - below[:-1], torch.zeros_like(a))
        right = torch.where(cross & (b <= 0), below[1:] - middle, torch.zeros_like(a))
        total += float(share * (left + right).sum())
    return total
