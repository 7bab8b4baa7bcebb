"""Reports of head layouts for plots and web pages: moments, law, probability of success and drawn weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.types import Item, Weights
from qkv.core.validation import check_range, finite, whole
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import layout_name
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import KeyNoise, Noise, noise_on_keys, without_rounding
from qkv.noise.laws.independent_heads import MixedLaw, mixed_law
from qkv.noise.method import IN_WORDS, Method
from qkv.noise.moments.mixture import moments_of_heads
from qkv.noise.monte_carlo import generator, readings
from qkv.noise.probability.ball import probability_within
from qkv.noise.probability.conditional_mc import ConditionalDraws, conditional_draws
from qkv.noise.probability.low_rank import Directions, noise_directions
from qkv.noise.probability.output_within import SuccessProbability, count_within, target_vector
from qkv.noise.robust.min_variance import min_variance_query

BIN_WIDTH = 0.04
"""Width of a bin of the histogram; one bin is centred at the wanted weight."""
CONFIDENCE = 0.95
"""Of the probability's interval, where readings are drawn."""
N_DRAWS = 2000
"""Conditional draws of a layout."""
MONTE_CARLO_FACTOR = 2
"""How many times as many readings are drawn where no variable can be integrated."""


@dataclass(frozen=True, eq=False)
class LayoutReport(Displayable):
    """Figures of one layout under noise: moments and law of one item's weight, and the probability of success.

    Attributes:
        name: The name of the layout.
        heads: The number of heads.
        mean: Mean of the item's weight.
        variance: Variance of the item's weight.
        error_bound: Bound on the errors of `mean` and `variance`.
        probability: The probability that the output is within the radius of the wanted one.
        low: The lower end of its interval.
        high: The upper end of its interval.
        method: How the probability was computed, see `qkv.noise.method`.
        law_method: How the law of the weight was computed.
        edges: The edges of the law's bins, from 0 to 1.
        share: The probability of each bin.
        drawn: Some drawn weights of the item.
    """

    name: str
    heads: int
    mean: float
    variance: float
    error_bound: float
    probability: float
    low: float
    high: float
    method: Method
    law_method: Method
    edges: Tensor = field(repr=False)
    share: Tensor = field(repr=False)
    drawn: Tensor = field(repr=False)

    def card(self) -> Card:
        facts = (
            ("mean weight", number(self.mean)),
            ("variance", number(self.variance)),
            ("probability of success", f"{number(self.probability)}, {IN_WORDS[self.method]}"),
        )
        return Card(self.name, facts)


def reference_layouts(memory: Memory, weights: Weights, noise: Noise, scale: float) -> dict[str, HeadMix]:
    """Three layouts for a blend at one score gap: one plain head, one head for each item, and the min-variance query.

    Args:
        memory: The memory; its keys must be orthogonal and of one norm.
        weights: The wanted weights of at least two items, which sum to 1.
        noise: The noise on the keys.
        scale: The factor in front of the wanted keys, and so the gap in score between them and the others, at least 0.

    Returns:
        The layouts by name: "one head", "two heads" (or as many as there are items), and "min variance".

    Raises:
        QkvError: Fewer than two items are wanted, or there is no min-variance query, see `min_variance_query`.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
        >>> noise = qkv.noise.Gaussian(isotropic=0.01)
        >>> list(qkv.noise.reference_layouts(memory, {"a": 0.5, "b": 0.5}, noise, 6.0))
        ['one head', 'two heads', 'min variance']
    """
    wanted = BlendSpec.of(memory, weights, 0.5)
    items = list(wanted.items)
    if len(items) < 2:
        raise QkvError("reference layouts for a blend", "one item is wanted", "Give at least two items")
    own = memory.keys[items] / memory.keys[items].square().sum(-1, keepdim=True)
    mix = torch.tensor(wanted.weights, dtype=torch.float64)
    logs = mix.log() - mix.log().mean()
    return {
        "one head": HeadMix.single((scale + logs) @ own),
        layout_name(len(items)): HeadMix(scale * own, mix),
        "min variance": HeadMix.single(min_variance_query(memory, weights, noise, scale).query),
    }


def layout_reports(
    memory: Memory,
    layouts: Mapping[str, Layout],
    noise: Noise,
    weights: Weights,
    radius: float,
    *,
    item: Item | None = None,
    n_samples: int = 200,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> tuple[LayoutReport, ...]:
    """Moments and law of one item's weight, and the probability of success, for each of several layouts.

    The law is integrated where the scores of the heads are independent, and the probability where one normal variable
    moves all scores, or two under one head. Else the leading normal variable is integrated where one dominates
    (conditional Monte Carlo); else readings are drawn.

    Args:
        memory: The memory whose keys are the means of the random keys.
        layouts: The layouts by name, each anything that `HeadMix.of` accepts.
        noise: The noise on the keys.
        weights: The wanted weights of some items, which sum to 1.
        radius: The distance from the wanted output that counts as success.
        item: The item whose weight is reported; by default the first wanted one.
        n_samples: Drawn weights to return.
        n_draws: Draws for conditional Monte Carlo; plain Monte Carlo draws twice as many.
        seed: The seed of the draws.

    Returns:
        A report for each layout, in their order.

    Raises:
        QkvError: The inputs do not fit together.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
        >>> noise, wanted = qkv.noise.Gaussian(along={"a": 0.5}), {"a": 0.5, "b": 0.5}
        >>> layouts = qkv.noise.reference_layouts(memory, wanted, noise, 6.0)
        >>> [found.method for found in qkv.noise.layout_reports(memory, layouts, noise, wanted, 0.1)]
        ['exact', 'exact', 'exact']
    """
    request = "reports of head layouts"
    if not isinstance(layouts, Mapping) or not layouts:
        raise QkvError(request, f"layouts is {layouts!r:.60}", "Give at least one layout by its name")
    if (radius := finite(request, "radius", radius)) <= 0:
        raise QkvError(request, f"radius is {radius:g}", "Give a radius above 0")
    n_samples, n_draws = whole(request, "n_samples", n_samples, 0), whole(request, "n_draws", n_draws)
    seed = whole(request, "seed", seed, 0)
    wanted = BlendSpec.of(memory, weights, 0.5)
    watched = memory.index(cast(Item, next(iter(weights))) if item is None else item)
    middle = dict(zip(wanted.items, wanted.weights, strict=True)).get(watched, 0.5)
    scenario = _Scenario(
        memory=memory,
        keys=noise_on_keys(request, noise, memory),
        target=target_vector(request, memory, weights),
        radius=radius,
        item=watched,
        edges=bin_edges(middle),
        n_samples=n_samples,
        n_draws=n_draws,
        seed=seed,
    )
    heads = {name: HeadMix.of(memory, value, request=f"the layout {name!r}") for name, value in layouts.items()}
    return tuple(_report(scenario, name, layout.detach()) for name, layout in heads.items())


def bin_edges(middle: float) -> Tensor:
    """Edges of bins from 0 to 1 of which one is centred at the middle; the first and last may be narrower."""
    first = middle - BIN_WIDTH / 2 - BIN_WIDTH * np.floor((middle - BIN_WIDTH / 2) / BIN_WIDTH - 1e-9)
    inner = np.arange(first, 1 - 1e-9, BIN_WIDTH)
    return torch.from_numpy(np.concatenate([[0.0], inner[inner > 1e-9], [1.0]]))


@dataclass(frozen=True, eq=False)
class _Scenario:
    """What the reports of all layouts share."""

    memory: Memory
    keys: KeyNoise
    target: Tensor
    radius: float
    item: int
    edges: Tensor
    n_samples: int
    n_draws: int
    seed: int

    def readings(self, heads: HeadMix, n_draws: int) -> Iterator[Tensor]:
        """Batches of drawn weights, from the start of the seed."""
        return readings(self.keys, heads, n_draws, generator(self.seed))


def _report(of: _Scenario, name: str, heads: HeadMix) -> LayoutReport:
    """The report of one layout."""
    m, C = of.keys.score_means(heads.queries), of.keys.score_covariance(heads.queries)
    check_range(f"the layout {name!r}", m, C)
    C = without_rounding(C, of.keys.score_rounding(heads.queries))
    rounded = of.keys.steps is not None
    law = None if rounded else mixed_law(m, C, heads.mix, of.item)
    directions = None if rounded else noise_directions(C)
    draws = conditional_draws(of.keys, heads, of.n_draws, of.seed)
    mean, variance, error = _moments(of, heads, law)
    success, drawn = _success(of, heads, directions, draws)
    below, law_method = _law_at_edges(of, law, draws, heads, drawn)
    if len(drawn) < of.n_samples:
        drawn = torch.cat([alpha[:, of.item].double() for alpha in of.readings(heads, of.n_samples)])
    return LayoutReport(
        name=name,
        heads=len(heads),
        mean=mean,
        variance=variance,
        error_bound=error,
        probability=success.probability,
        low=success.low,
        high=success.high,
        method=success.method,
        law_method=law_method,
        edges=of.edges,
        share=torch.cat([below.new_zeros(1), below, below.new_ones(1)]).diff(),
        drawn=drawn[: of.n_samples],
    )


def _moments(of: _Scenario, heads: HeadMix, law: MixedLaw | None) -> tuple[float, float, float]:
    """Mean, variance and error bound of the item's weight; an integrated law has them already."""
    if law is not None:
        return law.mean, law.variance, law.error
    found = moments_of_heads(of.keys, of.memory, heads)
    return float(found.weights_mean[of.item]), float(found.weights_var[of.item]), found.error_bound


def _success(
    of: _Scenario, heads: HeadMix, directions: Directions | None, draws: ConditionalDraws | None
) -> tuple[SuccessProbability, Tensor]:
    """The probability of success, and the item's weight in the readings that were drawn for it, if any."""
    nothing = of.edges.new_zeros(0)
    if directions is not None and (len(heads) == 1 or len(directions) <= 1):
        m, error = of.keys.score_means(heads.queries), 2 * of.keys.score_rounding(heads.queries)
        found = probability_within(m, directions, heads.mix, of.memory.values, of.target, of.radius, error)
        return SuccessProbability(*found, of.radius, 0, 1.0), nothing
    if draws is not None:
        from_draws = SuccessProbability.from_conditional_draws
        return from_draws(draws, of.memory, of.target, of.radius, CONFIDENCE), nothing
    n_draws = MONTE_CARLO_FACTOR * of.n_draws
    drawn: list[Tensor] = []

    def recorded(batches: Iterable[Tensor]) -> Iterator[Tensor]:
        for alpha in batches:
            drawn.append(alpha[:, of.item].double())
            yield alpha

    hits = count_within(recorded(of.readings(heads, n_draws)), of.memory, of.target, of.radius)
    return SuccessProbability.from_counts(hits, n_draws, of.radius, CONFIDENCE), torch.cat(drawn)


def _law_at_edges(
    of: _Scenario, law: MixedLaw | None, draws: ConditionalDraws | None, heads: HeadMix, drawn: Tensor
) -> tuple[Tensor, Method]:
    """P(weight ≤ edge) at the inner edges, ascending, and how it was computed."""
    edges = of.edges[1:-1]
    method: Method
    if law is not None:
        below, method = torch.from_numpy(law.below(edges.numpy())), law.method
    elif draws is not None:
        below, method = draws.below(of.item, edges)[0], "conditional_mc"
    else:
        if not len(drawn):
            every = of.readings(heads, MONTE_CARLO_FACTOR * of.n_draws)
            drawn = torch.cat([alpha[:, of.item].double() for alpha in every])
        below, method = (drawn[:, None] <= edges).double().mean(0), "monte_carlo"
    return below.clamp(0.0, 1.0).cummax(0).values, method
