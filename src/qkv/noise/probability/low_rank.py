"""Scores that one or two normal variables move: the variables, and the layout with all other items merged."""

# If at most two independent normal variables move all scores (one noisy key under one or two heads, two noisy keys
# under one head, …), a reading is a function of these variables z alone.

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_DIRECTIONS = 2
"""Normal variables up to which a probability is integrated over them."""
MIN_RELATIVE_EIGENVALUE = 1e-14
"""Eigenvalues of a key's score covariance below this part of its largest are left out."""
EIGENVALUE_ROUNDING = 1e-15
"""Rounding of these eigenvalues, relative to the largest."""
TAIL = 9.0
"""P(|N(0,1)| > 9) = 2e-19: how many standard deviations what is left out of a score can be."""


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


@dataclass(frozen=True, eq=False)
class Directions:
    """How independent normal variables move the scores.

    Attributes:
        moves: The change of the scores with each variable, (variables, h, n).
        left_out: Standard deviation of what they leave out of a score, at most, (h,).
    """

    moves: Tensor
    left_out: Tensor

    def __len__(self) -> int:
        """The number of variables."""
        return len(self.moves)

    @property
    def error(self) -> Tensor:
        """Bound on what they leave out of a score, (h,)."""
        return TAIL * self.left_out


def noise_directions(C: Tensor) -> Directions | None:
    """The at most two independent normal variables that move all scores; None if there are more.

    Args:
        C: Score covariances, (n, h, h).
    """
    n, H = C.shape[:2]
    out = []
    noisy = (C.diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten().tolist()
    if n == 1:  # a single item always has the weight 1
        noisy = []
    if len(noisy) > MAX_DIRECTIONS:
        return None
    left_out = torch.zeros(H, dtype=torch.float64)
    for j in noisy:
        own = C[j].diagonal()
        diagonal = torch.equal(C[j], torch.diag(own))
        if diagonal:  # its own variable under each head, without rounding
            order = own.argsort()
            values, vectors = own[order], torch.eye(H, dtype=torch.float64)[:, order]
        else:
            values, vectors = torch.linalg.eigh(C[j])
            small = torch.where(values > MIN_RELATIVE_EIGENVALUE * values[-1], torch.zeros_like(values), values)
            variance = (small.clamp(min=0) * vectors**2).sum(1) + EIGENVALUE_ROUNDING * H * values[-1]
            left_out = torch.maximum(left_out, variance.sqrt())
        least = 0.0 if diagonal else MIN_RELATIVE_EIGENVALUE * float(values[-1])
        for k in (values > least).nonzero().flatten().tolist():
            direction = torch.zeros(H, n, dtype=torch.float64)
            direction[:, j] = vectors[:, k] * values[k].sqrt()
            out.append(direction)
    if len(out) > MAX_DIRECTIONS:
        return None
    return Directions(torch.stack(out) if out else torch.zeros(0, H, n, dtype=torch.float64), left_out)
