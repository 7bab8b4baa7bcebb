"""Distribution of one item's weight under noise: histogram and quantiles, with their uncertainty."""

# Where the heads' scores are independent, as for one head they always are, the distribution function F is integrated
# (independent_heads.py). Else, where one or two normal variables move all scores (probability/low_rank.py), they are
# put on a fine grid: each node stands for its cell and carries the cell's probability. Else readings are drawn, each
# with probability 1/n_draws. In all cases the law is a list of weights with probabilities; the methods differ in the
# bound on the error of F: for draws it is Dvoretzky, Kiefer, Wolfowitz and Massart's √(log(2/(1 − confidence))/(2
# n_draws)), for a grid twice the change from half as many nodes, and for an integrated F the jumps between two of the
# weights at which it is tabulated.

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.special import ndtr

from qkv.core.attention import Label
from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, Item
from qkv.core.validation import check_confidence, check_range, whole
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import Noise, noise_on_keys
from qkv.noise.laws.independent_heads import POINTS, MixedLaw, mixed_law
from qkv.noise.method import IN_WORDS, Method
from qkv.noise.monte_carlo import generator, readings
from qkv.noise.probability.low_rank import NORMAL_TAIL, LowRankScores, noise_directions

GRID_NODES = {0: 1, 1: 40_001, 2: 801}
"""Nodes for each variable, by the number of variables."""
ROWS_AT_ONCE = 2**20
"""Nodes evaluated at once."""
KNOTS = 4001
"""Weights at which an integrated law is tabulated, at least."""
N_DRAWS = 100_000
"""Draws where the law cannot be integrated."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are printed."""


@dataclass(frozen=True, eq=False)
class WeightDistribution(Displayable):
    """The distribution of one item's weight.

    Attributes:
        item: The item's label.
        method: How it was computed: "quadrature" or "monte_carlo", see `qkv.noise.method`.
        n_draws: The number of draws; 0 by quadrature.
        confidence: The confidence with which `error_bound` holds for the whole distribution function; 1 by quadrature,
            where it is an estimate.
        error_bound: Largest error of the distribution function.
        edges: The edges of the bins, (bins + 1,).
        share: The probability of each bin, (bins,).
        low: Lower ends of the intervals of `share`.
        high: Upper ends of the intervals of `share`.
        weights: The weights at which the distribution function is tabulated, ascending.
        below: The distribution function there.
    """

    item: Label
    method: Method
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
        """The p-quantile, and the ends of an interval around it."""
        if not (isinstance(p, int | float) and 0 <= p <= 1):
            raise QkvError(f"a quantile of the weight of {self.item!r}", f"p is {p!r}", "Give a number from 0 to 1")
        at = torch.tensor([p, p - self.error_bound, p + self.error_bound], dtype=torch.float64).clamp(0, 1)
        where = torch.searchsorted(self.below, at).clamp(max=len(self.below) - 1)
        middle, low, high = (float(self.weights[i]) for i in where)
        return middle, low, high

    def card(self) -> Card:
        how = f"from {self.n_draws} draws" if self.method == "monte_carlo" else IN_WORDS[self.method]
        rows = []
        for p in QUANTILES:
            middle, low, high = self.quantile(p)
            rows.append((f"{100 * p:g}%", number(middle), f"{number(low)} to {number(high)}"))
        return Card(
            title=f"Weight of {self.item} under noise, {how}",
            columns=("quantile", "weight", "between"),
            rows=tuple(rows),
        )


def weight_distribution(
    memory: Memory,
    query: Layout,
    noise: Noise,
    item: Item,
    *,
    mix: ArrayLike | None = None,
    bins: int = 50,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> WeightDistribution:
    """The distribution of the weight that a reading under noise gives to one item.

    Args:
        memory: The memory whose keys are the means of the random keys.
        query: One query (d,), several heads (h, d), or anything else that `HeadMix.of` accepts.
        noise: The noise on the keys.
        item: The item, by label or index.
        mix: Weights of the heads, (h,); by default 1/h for each.
        bins: The number of bins.
        n_draws: Draws where the law cannot be integrated.
        seed: The seed of the draws, at least 0.
        confidence: The confidence of the error bound where readings are drawn.

    Returns:
        The distribution as a histogram and a tabulated distribution function.

    Raises:
        QkvError: The inputs do not fit together, or the item is unknown.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> query = 8 * (memory.keys[0] + memory.keys[1])
        >>> noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
        >>> law = qkv.noise.weight_distribution(memory, query, noise, "a", bins=4)
        >>> law.method, [round(p, 3) for p in law.share.tolist()]
        ('quadrature', [0.423, 0.077, 0.077, 0.423])
    """
    request = f"the distribution of the weight of {item!r}"
    heads = HeadMix.of(memory, query, mix, request=request).detach()
    index, bins, n_draws = memory.index(item), whole(request, "bins", bins), whole(request, "n_draws", n_draws)
    label, confidence = memory.labels[index], check_confidence(request, confidence)
    keys = noise_on_keys(request, noise, memory)
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    check_range(request, m, C)
    law = mixed_law(m, C, heads.mix, index) if keys.steps is None else None
    if law is not None:
        coarse = law if len(m) == 1 else mixed_law(m, C, heads.mix, index, POINTS // 2)
        return _tabulated(label, law, coarse or law, bins)
    directions = noise_directions(C) if keys.steps is None else None
    if directions is not None:
        count = GRID_NODES[len(directions)]
        fine, half = (_on_grid(m, directions, heads.mix, index, nodes) for nodes in (count, count // 2 + 1))
        error = 2 * _largest_difference(fine, half) + 1e-12
        return _binned(label, *fine, error, bins, "quadrature")
    random = generator(whole(request, "seed", seed, least=0))
    drawn = torch.cat([alpha[:, index].double() for alpha in readings(keys, heads, n_draws, random)])
    mass = torch.full((n_draws,), 1 / n_draws, dtype=torch.float64)
    error = math.sqrt(math.log(2 / (1 - confidence)) / (2 * n_draws))
    return _binned(label, drawn.sort().values, mass, error, bins, "monte_carlo", n_draws, confidence)


def _tabulated(item: Label, law: MixedLaw, coarse: MixedLaw, bins: int) -> WeightDistribution:
    """An integrated law at many weights, with the share of each bin from the distribution function itself."""
    knots = law.knots(KNOTS)
    # The mass between two knots is put in the middle; below the first there is none but rounding.
    weights = np.concatenate([knots[:1], (knots[1:] + knots[:-1]) / 2])
    below = np.maximum.accumulate(np.where(knots >= law.high, 1.0, law.below(knots)))
    edges = np.linspace(0.0, max(1.0, law.high), bins + 1)
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    share = np.diff(law.below(edges[1:-1]), prepend=0.0, append=1.0)
    merging = 2 * float(np.abs(law.below(knots) - coarse.below(knots)).max()) if law is not coarse else 0.0
    error = law.law_error + merging
    return WeightDistribution(
        item=item,
        method="quadrature",
        n_draws=0,
        confidence=1.0,
        error_bound=error + float(np.diff(below, prepend=0.0).max()),
        edges=torch.from_numpy(edges),
        share=torch.from_numpy(share),
        low=torch.from_numpy((share - 2 * error).clip(min=0.0)),
        high=torch.from_numpy((share + 2 * error).clip(max=1.0)),
        weights=torch.from_numpy(weights),
        below=torch.from_numpy(below),
    )


def _binned(
    item: Label,
    weights: Tensor,
    mass: Tensor,
    error: float,
    bins: int,
    method: Method,
    n_draws: int = 0,
    confidence: float = 1.0,
) -> WeightDistribution:
    """The law of weights in ascending order with their probabilities."""
    below = mass.cumsum(0)
    ends = min(0.0, float(weights[0])), max(1.0, float(weights[-1]))
    edges = torch.linspace(*ends, bins + 1, dtype=torch.float64)
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    places = torch.searchsorted(weights, edges)
    places[-1] = len(weights)
    share = torch.cat([below.new_zeros(1), below])[places].diff()
    return WeightDistribution(
        item=item,
        method=method,
        n_draws=n_draws,
        confidence=confidence,
        error_bound=error,
        edges=edges,
        share=share,
        low=(share - 2 * error).clamp(min=0),
        high=(share + 2 * error).clamp(max=1),
        weights=weights,
        below=below,
    )


def _on_grid(m: Tensor, directions: Tensor, mix: Tensor, index: int, count: int) -> tuple[Tensor, Tensor]:
    """Weights at the nodes, in order, and the probability of each node's cell."""
    variables = len(directions)
    if variables == 0:
        return (mix @ torch.softmax(m, -1))[index : index + 1], torch.ones(1, dtype=torch.float64)
    z = torch.linspace(-NORMAL_TAIL, NORMAL_TAIL, count, dtype=torch.float64)
    ends = torch.cat([z[:1] - 50, (z[1:] + z[:-1]) / 2, z[-1:] + 50])
    cell = ndtr(ends).diff()
    nodes = torch.cartesian_prod(*[z] * variables).reshape(-1, variables)
    mass = cell if variables == 1 else torch.outer(cell, cell).flatten()
    few = LowRankScores.of(m, directions)
    column, share = few.column_of(index)
    found = [few.weights(part)[:, :, column] @ (mix * share) for part in nodes.split(ROWS_AT_ONCE)]
    weights, order = torch.cat(found).sort()
    return weights, mass[order]


def _largest_difference(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> float:
    """The largest difference of two distribution functions, each given by weights and probabilities."""
    at = torch.cat([one[0], other[0]])
    values = []
    for weights, mass in (one, other):
        below = torch.cat([mass.new_zeros(1), mass.cumsum(0)])
        values.append(below[torch.searchsorted(weights, at, right=True)])
    return float((values[0] - values[1]).abs().max())
