"""distribution: the histogram and the quantiles of one item's weight under noise, with their uncertainty."""

# Where heads read independent scores, which one head always does, the distribution function F is integrated
# (mixing.py). Else, where one or two normal numbers move all scores (see chance.py), they are put on a fine grid:
# each node stands for its cell and carries the cell's probability. Else readings are drawn, each with probability
# 1/draws. Any way the law is a list of weights with probabilities; only how far F may lie from the true one differs:
# by Dvoretzky, Kiefer, Wolfowitz and Massart's √(log(2/(1 − confidence))/(2 draws)) for draws, by twice the change
# from half as many nodes for a grid, and for an integrated F by what lies between two of the weights it is given at.

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qkv.core.attention import Label
from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.validation import check_range, level, whole
from qkv.errors import QkvError
from qkv.noise.key_noise import Noise, laid_on
from qkv.noise.laws.independent_heads import POINTS, MixedLaw, mixed_law
from qkv.noise.moments.mixture import heads_of
from qkv.noise.monte_carlo import generator, readings
from qkv.noise.probability.output_within import CUT, DRAWS, few_directions, gathered

NODES = {0: 1, 1: 40_001, 2: 801}
"""Nodes in each direction, by how many directions there are."""
ROWS = 2**20
KNOTS = 4001
"""Weights at which an integrated law is given."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class WeightDistribution(Displayable):
    """The law of one item's weight: the share of each bin, and any quantile; F is right to within `off`.

    By sampling, that holds for all of F at once at the `confidence`; by quadrature it is an estimate.
    """

    item: Label
    method: str
    n_draws: int
    confidence: float
    error_bound: float
    edges: Tensor
    share: Tensor
    low: Tensor
    high: Tensor
    weights: Tensor = field(repr=False)
    below: Tensor = field(repr=False)

    def quantile(self, p: float) -> tuple[float, float, float]:
        """The p-quantile, and the ends between which it lies."""
        if not (isinstance(p, int | float) and 0 <= p <= 1):
            raise QkvError(f"a quantile of the weight of {self.item!r}", f"p is {p!r}", "Give a number from 0 to 1")
        at = torch.tensor([p, p - self.error_bound, p + self.error_bound], dtype=torch.float64).clamp(0, 1)
        where = torch.searchsorted(self.below, at).clamp(max=len(self.below) - 1)
        middle, low, high = (float(self.weights[i]) for i in where)
        return middle, low, high

    def card(self) -> Card:
        by = "quadrature" if self.method == "quadrature" else f"{self.n_draws} draws"
        rows = []
        for p in QUANTILES:
            middle, low, high = self.quantile(p)
            rows.append((f"{100 * p:g}%", number(middle), f"{number(low)} to {number(high)}"))
        return Card(
            title=f"Weight of {self.item} under noise, by {by}",
            columns=("quantile", "weight", "between"),
            rows=tuple(rows),
        )


def weight_distribution(
    memory: Memory,
    query: Any,
    noise: Noise,
    item: Any,
    *,
    mix: Any = None,
    bins: int = 50,
    n_draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> WeightDistribution:
    """The law of the weight that `query`, or several heads, give to one item."""
    asked = f"the distribution of the weight of {item!r}"
    queries, shares = heads_of(asked, memory, query, mix)
    queries, shares = queries.detach(), shares.detach()
    index, bins, n_draws = memory.index(item), whole(asked, "bins", bins), whole(asked, "n_draws", n_draws)
    confidence = level(asked, confidence)
    keys = laid_on(asked, noise, memory)
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range(asked, m, C)
    law = mixed_law(m, C, shares, index) if keys.steps is None else None
    if law is not None:
        coarse = law if len(m) == 1 else mixed_law(m, C, shares, index, POINTS // 2)
        return _integrated(memory.labels[index], law, coarse or law, bins)
    moves = few_directions(C) if keys.steps is None else None
    if moves is not None:
        count = NODES[len(moves)]
        weights, mass = _on_grid(m, moves, shares, index, count)
        off = 2 * _apart((weights, mass), _on_grid(m, moves, shares, index, count // 2 + 1)) + 1e-12
        method, n_draws, confidence = "quadrature", 0, 1.0
    else:
        random = generator(whole(asked, "seed", seed, least=0))
        drawn = [alpha[:, index].double() for alpha in readings(keys, queries, shares, n_draws, random)]
        return drawn_law(memory.labels[index], torch.cat(drawn), bins, confidence)
    return _binned(memory.labels[index], weights, mass, off, method, n_draws, confidence, bins)


def _integrated(item: Label, law: MixedLaw, coarse: MixedLaw, bins: int) -> WeightDistribution:
    """The law at many weights, and each bin's share from the distribution function itself."""
    knots = law.knots(KNOTS)
    # What lies between two of them stands in the middle; below the first there is nothing but rounding.
    weights = np.concatenate([knots[:1], (knots[1:] + knots[:-1]) / 2])
    below = np.maximum.accumulate(np.where(knots >= law.high, 1.0, law.below(knots)))
    edges = np.linspace(0.0, max(1.0, law.high), bins + 1)
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    share = np.diff(law.below(edges[1:-1]), prepend=0.0, append=1.0)
    sure = law.off + (2 * float(np.abs(law.below(knots) - coarse.below(knots)).max()) if law is not coarse else 0.0)
    return WeightDistribution(
        item=item,
        method="quadrature",
        n_draws=0,
        confidence=1.0,
        error_bound=sure + float(np.diff(below, prepend=0.0).max()),
        edges=torch.from_numpy(edges),
        share=torch.from_numpy(share),
        low=torch.from_numpy((share - 2 * sure).clip(min=0.0)),
        high=torch.from_numpy((share + 2 * sure).clip(max=1.0)),
        weights=torch.from_numpy(weights),
        below=torch.from_numpy(below),
    )


def drawn_law(item: Label, drawn: Tensor, bins: int, confidence: float) -> WeightDistribution:
    """The law that draws of a weight tell, to within what Dvoretzky's inequality allows."""
    draws = len(drawn)
    mass = torch.full((draws,), 1 / draws, dtype=torch.float64)
    off = math.sqrt(math.log(2 / (1 - confidence)) / (2 * draws))
    return _binned(item, drawn.sort().values, mass, off, "sampling", draws, confidence, bins)


def _binned(
    item: Label, weights: Tensor, mass: Tensor, off: float, method: str, draws: int, confidence: float, bins: int
) -> WeightDistribution:
    below = mass.cumsum(0)
    ends = min(0.0, float(weights[0])), max(1.0, float(weights[-1]))
    edges = torch.linspace(*ends, bins + 1, dtype=torch.float64)
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    places = torch.searchsorted(weights, edges)
    places[-1] = len(weights)
    at = torch.cat([below.new_zeros(1), below])[places]
    share = at.diff()
    return WeightDistribution(
        item=item,
        method=method,
        n_draws=draws,
        confidence=confidence,
        error_bound=off,
        edges=edges,
        share=share,
        low=(share - 2 * off).clamp(min=0),
        high=(share + 2 * off).clamp(max=1),
        weights=weights,
        below=below,
    )


def _on_grid(m: Tensor, moves: Tensor, mix: Tensor, index: int, count: int) -> tuple[Tensor, Tensor]:
    """Weights at the nodes, in order, and the probability of each node's cell."""
    directions = len(moves)
    if directions == 0:
        return (mix @ torch.softmax(m, -1))[index : index + 1], torch.ones(1, dtype=torch.float64)
    z = torch.linspace(-CUT, CUT, count, dtype=torch.float64)
    ends = torch.cat([z[:1] - 50, (z[1:] + z[:-1]) / 2, z[-1:] + 50])
    cell = (0.5 * torch.special.erfc(-ends / math.sqrt(2))).diff()
    nodes = torch.cartesian_prod(*[z] * directions).reshape(-1, directions)
    mass = cell if directions == 1 else torch.outer(cell, cell).flatten()
    few = gathered(m, moves)
    column, share = few.of(index)
    found = [few.weights(part)[:, :, column] @ (mix * share) for part in nodes.split(ROWS)]
    weights, order = torch.cat(found).sort()
    return weights, mass[order]


def _apart(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """The largest difference of two distribution functions."""
    at = torch.cat([one[0], other[0]])
    values = []
    for weights, mass in (one, other):
        below = torch.cat([mass.new_zeros(1), mass.cumsum(0)])
        values.append(below[torch.searchsorted(weights, at, right=True)])
    return float((values[0] - values[1]).abs().max())
