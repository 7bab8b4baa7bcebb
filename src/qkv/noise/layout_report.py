"""arms: layouts of heads side by side, each with its exact moments and law, its chance of success and drawn weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.validation import check_range
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import head_count, layout_of
from qkv.noise.key_noise import KeyNoise, Noise, laid_on
from qkv.noise.laws.independent_heads import mixed_law
from qkv.noise.moments.mixture import spread_of
from qkv.noise.monte_carlo import generator, readings
from qkv.noise.probability.conditional_mc import led
from qkv.noise.probability.output_within import counted, near, target_of
from qkv.noise.robust.min_variance import min_variance_query
from qkv.noise.robust.search import Heads

BAR, CONFIDENCE = 0.04, 0.95
"""Width of a bar of the law, one of which stands around the wanted weight."""
DRAWS, MANY = 500, 8
"""Draws beside the leading noise, and how many times as many where there is none that leads."""
SURE, ROUNDING = 3.0, 1e-9
"""Standard errors that the chance may be off by."""


@dataclass(frozen=True, eq=False)
class LayoutReport(Displayable):
    """One layout: exact mean and variance of one item's weight; the law of that weight, by `law`, as the share of each
    bar between two `edges`; the probability that the output is near the wanted one, by `method`, between `low` and
    `high`; and some drawn weights."""

    name: str
    heads: int
    mean: float
    variance: float
    error_bound: float
    probability: float
    low: float
    high: float
    method: str
    law: str
    edges: Tensor = field(repr=False)
    share: Tensor = field(repr=False)
    drawn: Tensor = field(repr=False)

    def card(self) -> Card:
        facts = (
            ("mean weight", number(self.mean)),
            ("variance", number(self.variance)),
            ("chance of success", f"{number(self.probability)}, by {self.method}"),
        )
        return Card(self.name, facts)


def reference_layouts(memory: Memory, weights: Mapping[Any, float], noise: Noise, scale: float) -> dict[str, Heads]:
    """The three answers to noise at one scale: one plain head, one an item, and one that the noise moves least."""
    wanted = BlendSpec.of(memory, weights, 0.5)
    items = list(wanted.items)
    if len(items) < 2:
        raise QkvError("layouts of heads side by side", "one item is wanted", "Give at least two items")
    own = memory.keys[items] / memory.keys[items].square().sum(-1, keepdim=True)
    mix = torch.tensor(wanted.weights, dtype=torch.float64)
    alone = torch.ones(1, dtype=torch.float64)
    logs = mix.log() - mix.log().mean()
    return {
        "one head": ((scale + logs)[None] @ own, alone),
        head_count(len(items)): (scale * own, mix),
        "hardened": (min_variance_query(memory, weights, noise, scale).query[None], alone),
    }


def layout_reports(
    memory: Memory,
    layouts: Mapping[str, Any],
    noise: Noise,
    weights: Mapping[Any, float],
    radius: float,
    *,
    item: Any = None,
    n_samples: int = 200,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> tuple[LayoutReport, ...]:
    """Each layout's arm, for the weight of `item` (the first wanted one) and success within `tol` of the blend.

    The law is what `distribution` gives; the chance what `within` gives, with fewer draws where one key's noise leads.
    """
    watched = memory.index(next(iter(weights)) if item is None else item)
    keys = laid_on("layouts side by side", noise, memory)
    goal = target_of("a chance of success", memory, weights)
    wanted = BlendSpec.of(memory, weights, 0.5)
    middle = dict(zip(wanted.items, wanted.weights, strict=True)).get(watched, 0.5)
    return tuple(
        _arm(memory, keys, name, layout, goal, radius, watched, edges_around(middle), n_samples, n_draws, seed)
        for name, layout in layouts.items()
    )


def edges_around(middle: float) -> Tensor:
    """Bars from 0 to 1, of which one stands around the middle; those at the ends may be narrower."""
    first = middle - BAR / 2 - BAR * np.floor((middle - BAR / 2) / BAR - 1e-9)
    inner = np.arange(first, 1 - 1e-9, BAR)
    return torch.from_numpy(np.concatenate([[0.0], inner[inner > 1e-9], [1.0]]))


def _arm(
    memory: Memory,
    keys: KeyNoise,
    name: str,
    layout: Any,
    goal: Tensor,
    tol: float,
    watched: int,
    edges: Tensor,
    samples: int,
    draws: int,
    seed: int,
) -> LayoutReport:
    queries, mix = layout_of(f"the layout {name!r}", memory, layout)
    queries, mix = queries.detach(), mix.detach()
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range(f"the layout {name!r}", m, C)
    law = mixed_law(m, C, mix, watched) if keys.steps is None else None
    if law is None:
        exact = spread_of(keys, memory, queries, mix)
        mean, variance, error = float(exact.weights_mean[watched]), float(exact.weights_var[watched]), exact.error_bound
    else:
        mean, variance, error = law.mean, law.variance, law.error
    found = led(keys, queries, mix, draws, seed)
    seen: list[Tensor] = []
    if found is None:
        hits = 0
        for r in readings(keys, queries, mix, MANY * draws, generator(seed)):
            seen.append(r[:, watched].double())
            hits += near(r.double(), memory, goal, tol)
        chance = counted(hits, MANY * draws, tol, CONFIDENCE)
        p, low, high, method = chance.probability, chance.low, chance.high, chance.method
    else:
        p, off = found.chance(memory.values, goal, tol)
        low, high = max(0.0, p - SURE * off - ROUNDING), min(1.0, p + SURE * off + ROUNDING)
        method = "integration" if off < ROUNDING else "integration over draws"
    if law is not None:
        below = torch.from_numpy(law.below(edges[1:-1].numpy()))
    elif found is not None:
        below, _ = found.below(watched, edges[1:-1])
    else:
        below = (torch.cat(seen)[:, None] <= edges[1:-1]).double().mean(0)
    if sum(map(len, seen)) < samples:
        seen = [r[:, watched].double() for r in readings(keys, queries, mix, samples, generator(seed))]
    return LayoutReport(
        name=name,
        heads=len(queries),
        mean=mean,
        variance=variance,
        error_bound=error,
        probability=p,
        low=low,
        high=high,
        method=method,
        law="sampling" if law is None else "quadrature",
        edges=edges,
        share=torch.cat([below.new_zeros(1), below, below.new_ones(1)]).diff(),
        drawn=torch.cat(seen)[:samples],
    )
