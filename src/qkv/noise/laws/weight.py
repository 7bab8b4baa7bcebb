"""Distribution of one item's weight under noise: histogram and quantiles, with their uncertainty."""

# Where the heads' scores are independent, as for one head they always are, the distribution function F is integrated
# (independent_heads.py). Else, where one or two normal variables move all scores (probability/low_rank.py), the weight
# is enclosed over boxes of them (probability/enclosure.py). Else readings are drawn, each with probability 1/n_draws.
# In all cases the law is a list of weights with probabilities; the methods differ in the bound on the error of F: for
# draws it is Dvoretzky, Kiefer, Wolfowitz and Massart's √(log(2/(1 − confidence))/(2 n_draws)), for boxes the largest
# probability of those that hold one weight, and for an integrated F the jumps between two of the weights at which it
# is tabulated. Rounding of the scores moves a weight by `weight_error`, whatever the law: F is then known between its
# values at the two ends.

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from qkv.core.attention import Label
from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, Item
from qkv.core.validation import check_confidence, check_range, whole
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import Noise, noise_on_keys, without_rounding
from qkv.noise.laws.independent_heads import MixedLaw, mixed_law
from qkv.noise.method import IN_WORDS, Method
from qkv.noise.monte_carlo import check_bins, generator, readings, weight_range
from qkv.noise.probability.ball_on_segment import Array
from qkv.noise.probability.enclosure import Heads, law_of_weight
from qkv.noise.probability.low_rank import Directions, LowRankScores, noise_directions

KNOTS, MIXED_KNOTS = 4000, 1000
"""A law of one head, or of several, is tabulated so that between two weights there is at most 1/KNOTS of it."""
WEIGHT_ROUNDING = 1e-14
"""Rounding of a weight, beside that of the scores."""
N_DRAWS = 100_000
"""Draws where the law cannot be integrated."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are printed."""


@dataclass(frozen=True, eq=False)
class WeightDistribution(Displayable):
    """The distribution of one item's weight.

    Attributes:
        item: The item's label.
        method: How it was computed: "exact", "quadrature" or "monte_carlo", see `qkv.noise.method`.
        n_draws: The number of draws; 0 if nothing was drawn.
        confidence: The confidence with which `error_bound` holds for the whole distribution function; 1 if nothing was
            drawn.
        error_bound: Largest error of the tabulated distribution function, apart from `weight_error`.
        edges: The edges of the bins, (bins + 1,).
        share: The probability of each bin, (bins,).
        low: Lower ends of the intervals of `share`.
        high: Upper ends of the intervals of `share`.
        weights: The weights at which the distribution function is tabulated, ascending.
        below: The distribution function there.
        weight_error: Largest error of a weight, by rounding of the scores.
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
    weight_error: float = 0.0

    def quantile(self, p: float) -> tuple[float, float, float]:
        """The p-quantile, and the ends of an interval that holds it.

        Where `error_bound` leaves open whether the distribution reaches p at all, an end of the interval is that of all
        bins.
        """
        if not (isinstance(p, int | float) and 0 <= p <= 1):
            raise QkvError(f"a quantile of the weight of {self.item!r}", f"p is {p!r}", "Give a number from 0 to 1")
        at = torch.tensor([max(p, 1e-300), p - self.error_bound, p + self.error_bound], dtype=torch.float64)
        where = torch.searchsorted(self.below, at).tolist()
        middle = float(self.weights[min(where[0], len(self.weights) - 1)])
        low = float(self.weights[where[1]]) - self.weight_error if float(at[1]) > 0 else -math.inf
        high = float(self.weights[where[2]]) + self.weight_error if where[2] < len(self.weights) else math.inf
        return middle, min(middle, max(low, float(self.edges[0]))), max(middle, min(high, float(self.edges[-1])))

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
    index, bins, n_draws = memory.index(item), check_bins(request, bins), whole(request, "n_draws", n_draws)
    label, confidence = memory.labels[index], check_confidence(request, confidence)
    keys = noise_on_keys(request, noise, memory)
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    check_range(request, m, C)
    rounding = keys.score_rounding(heads.queries)
    C = without_rounding(C, rounding)
    # A weight changes by at most ¼ of what its logit, a difference of two scores, changes.
    weight_error = WEIGHT_ROUNDING * float(heads.mix.abs().sum()) + float(heads.mix.abs() @ rounding)
    law = mixed_law(m, C, heads.mix, index) if keys.steps is None else None
    if law is not None:
        return _tabulated(label, law, bins, weight_range(heads), weight_error)
    directions = noise_directions(C) if keys.steps is None else None
    if directions is not None:
        low, high, mass = _enclosed(m, directions, heads.mix, index, (rounding + directions.error).numpy())
        return _from_boxes(label, low, high, mass, bins, weight_range(heads), weight_error)
    random = generator(whole(request, "seed", seed, least=0))
    drawn = torch.cat([alpha[:, index].double() for alpha in readings(keys, heads, n_draws, random)])
    error = math.sqrt(math.log(2 / (1 - confidence)) / (2 * n_draws))
    return _drawn(label, drawn.sort().values, error, _edges(bins, weight_range(heads)), weight_error, confidence)


def _tabulated(
    item: Label, law: MixedLaw, bins: int, ends: tuple[float, float], weight_error: float
) -> WeightDistribution:
    """An integrated law at many weights, with the share of each bin from the distribution function itself."""
    knots = law.knots(KNOTS if law.lattice is None else MIXED_KNOTS, weight_error)
    low, high = law.bounds(knots)
    # The mass between two knots is put in the middle; below the first there is none but rounding.
    weights = np.concatenate([knots[:1], (knots[1:] + knots[:-1]) / 2])
    below = np.maximum.accumulate(np.clip(np.where(knots >= law.high, 1.0, law.below(knots)), low, high))
    jumps = np.where(np.diff(knots, prepend=0.0) > weight_error, np.diff(below, prepend=0.0), 0.0)
    error = float(np.maximum(high - below, below - low).max()) + float(jumps.max())
    edges = _edges(bins, ends).numpy()
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    inner = edges[1:-1]
    least, most = law.bounds(inner - weight_error)[0], law.bounds(inner + weight_error)[1]
    at_edges = np.maximum.accumulate(np.clip(law.below(inner), least, most))
    share = np.diff(np.concatenate([[0.0], at_edges, [1.0]]))
    least, most = np.concatenate([[0.0], least, [1.0]]), np.concatenate([[0.0], most, [1.0]])
    return WeightDistribution(
        item=item,
        method=law.method,
        n_draws=0,
        confidence=1.0,
        error_bound=error,
        edges=torch.from_numpy(edges),
        share=torch.from_numpy(share),
        low=torch.from_numpy((least[1:] - most[:-1]).clip(min=0.0, max=share)),
        high=torch.from_numpy((most[1:] - least[:-1]).clip(min=share, max=1.0)),
        weights=torch.from_numpy(weights),
        below=torch.from_numpy(below),
        weight_error=weight_error,
    )


def _edges(bins: int, ends: tuple[float, float]) -> Tensor:
    """Edges of equal bins over all weights that are possible, at least from 0 to 1."""
    return torch.linspace(min(0.0, ends[0]), max(1.0, ends[1]), bins + 1, dtype=torch.float64)


def _enclosed(m: Tensor, directions: Directions, mix: Tensor, index: int, error: Array) -> tuple[Array, Array, Array]:
    """Least and largest weight in each of many boxes of the variables, and the probabilities of the boxes."""
    if len(directions) == 0:
        found = (mix @ torch.softmax(m, -1))[index : index + 1].numpy()
        return found, found, np.ones(1)
    few = LowRankScores.of(m, directions.moves)
    column, share = few.column_of(index)
    return law_of_weight(Heads.of(few, error), (mix * share).numpy(), column)


def _from_boxes(
    item: Label, low: Array, high: Array, mass: Array, bins: int, ends: tuple[float, float], weight_error: float
) -> WeightDistribution:
    """The law of a weight that lies between two numbers in each of some boxes of given probabilities."""
    order = np.argsort((low + high) / 2, kind="stable")
    low, high, mass = low[order], high[order], mass[order]
    missing = max(0.0, 1 - float(mass.sum())) + 1e-15
    weights, below = (low + high) / 2, np.cumsum(mass)
    # The distribution function at a weight is uncertain by the mass of the boxes in which the weight lies; those that
    # are no wider than the error of a weight are points.
    wide = high - low > weight_error
    places = np.concatenate([low[wide], high[wide]])
    begun, over = _cumulative(low[wide], mass[wide], places, "right"), _cumulative(high[wide], mass[wide], places)
    error = float((begun - over).max(initial=0.0))
    low, high = low - weight_error, high + weight_error
    edges = _edges(bins, ends).numpy()
    inner = edges[1:-1]
    # P(weight < w) is at least the mass of the boxes below w, and at most that of the boxes that begin below it.
    surely = _cumulative(high, mass, inner)
    maybe = np.minimum(1.0, _cumulative(low, mass, inner) + missing)
    at_edges = np.clip(_cumulative(weights, mass, inner), surely, maybe)
    share = np.diff(np.concatenate([[0.0], at_edges, [1.0]]))
    least, most = np.concatenate([[0.0], surely, [1.0]]), np.concatenate([[0.0], maybe, [1.0]])
    return WeightDistribution(
        item=item,
        method="quadrature" if len(mass) > 1 else "exact",
        n_draws=0,
        confidence=1.0,
        error_bound=error + missing,
        edges=torch.from_numpy(edges),
        share=torch.from_numpy(share),
        low=torch.from_numpy((least[1:] - most[:-1]).clip(min=0.0, max=share)),
        high=torch.from_numpy((most[1:] - least[:-1]).clip(min=share, max=1.0)),
        weights=torch.from_numpy(weights),
        below=torch.from_numpy(np.minimum(below, 1.0)),
        weight_error=weight_error,
    )


def _cumulative(places: Array, mass: Array, at: Array, side: Literal["left", "right"] = "left") -> Array:
    """The mass below each of some points, or, with "right", up to them."""
    order = np.argsort(places, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(mass[order])])
    return total[np.searchsorted(places[order], at, side=side)]


def _drawn(
    item: Label, weights: Tensor, error: float, edges: Tensor, weight_error: float, confidence: float
) -> WeightDistribution:
    """The law of drawn weights in ascending order, each with the same probability."""
    n_draws = len(weights)
    below = torch.arange(1, n_draws + 1, dtype=torch.float64) / n_draws
    # A weight on an edge counts in the bin above it, on the last edge in the last bin.
    places = [torch.searchsorted(weights, edges[1:-1] + moved) for moved in (0.0, -weight_error, weight_error)]
    share, least, most = (torch.cat([below.new_zeros(1), at / n_draws, below.new_ones(1)]) for at in places)
    return WeightDistribution(
        item=item,
        method="monte_carlo",
        n_draws=n_draws,
        confidence=confidence,
        error_bound=error,
        edges=edges,
        share=share.diff(),
        low=(least[1:] - most[:-1] - 2 * error).clamp(min=0),
        high=(most[1:] - least[:-1] + 2 * error).clamp(max=1),
        weights=weights,
        below=below,
        weight_error=weight_error,
    )
