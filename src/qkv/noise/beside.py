"""arms: layouts of heads side by side, each with its exact moments, chance of success, law and drawn weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.memory import Memory
from qkv.core.show import Card, Shown, number
from qkv.design.problem import Blend
from qkv.errors import QkvError
from qkv.noise.chance import can_integrate, counted, near, target_of, within
from qkv.noise.exact import spread_of
from qkv.noise.heads import layout_of
from qkv.noise.laws import distribution, drawn_law
from qkv.noise.models import KeyNoise, Noise, laid_on
from qkv.noise.sampling import generator, readings
from qkv.noise.search import Heads
from qkv.noise.steadying import steady

BINS, CONFIDENCE = 50, 0.95
DRAWS = 4000
"""Readings drawn for the chance and the law where neither can be integrated."""


@dataclass(frozen=True, eq=False)
class Arm(Shown):
    """One layout: exact mean and variance of one item's weight, the probability that the output is near the wanted
    one, between `low` and `high`, the law of the weight as a density over `x`, and some drawn weights."""

    name: str
    heads: int
    mean: float
    variance: float
    error: float
    probability: float
    low: float
    high: float
    method: str
    x: Tensor = field(repr=False)
    density: Tensor = field(repr=False)
    drawn: Tensor = field(repr=False)

    def card(self) -> Card:
        facts = (
            ("mean weight", number(self.mean)),
            ("variance", number(self.variance)),
            ("chance of success", f"{number(self.probability)}, by {self.method}"),
        )
        return Card(self.name, facts)


def at_scale(memory: Memory, weights: Mapping[Any, float], noise: Noise, scale: float) -> dict[str, Heads]:
    """The three answers to noise at one scale: one plain head, one an item, and one that the noise moves least."""
    wanted = Blend.of(memory, weights, 0.5)
    items = list(wanted.items)
    if len(items) < 2:
        raise QkvError("layouts of heads side by side", "one item is wanted", "Give at least two items")
    own = memory.keys[items] / memory.keys[items].square().sum(-1, keepdim=True)
    mix = torch.tensor(wanted.weights, dtype=torch.float64)
    alone = torch.ones(1, dtype=torch.float64)
    logs = mix.log() - mix.log().mean()
    return {
        "one head": ((scale + logs)[None] @ own, alone),
        "two heads" if len(items) == 2 else f"{len(items)} heads": (scale * own, mix),
        "hardened": (steady(memory, weights, noise, scale).query[None], alone),
    }


def arms(
    memory: Memory,
    layouts: Mapping[str, Any],
    noise: Noise,
    weights: Mapping[Any, float],
    tol: float,
    *,
    item: Any = None,
    samples: int = 200,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[Arm, ...]:
    """Each layout's arm, for the weight of `item` (the first wanted one) and success within `tol` of the blend.

    Chance and law are those of `within` and `distribution`; where both must be drawn, they share their draws.
    """
    watched = memory.index(next(iter(weights)) if item is None else item)
    keys = laid_on("layouts side by side", noise, memory)
    return tuple(
        _arm(memory, keys, name, layout, noise, weights, tol, watched, samples, draws, seed)
        for name, layout in layouts.items()
    )


def _arm(
    memory: Memory,
    keys: KeyNoise,
    name: str,
    layout: Any,
    noise: Noise,
    weights: Mapping[Any, float],
    tol: float,
    watched: int,
    samples: int,
    draws: int,
    seed: int,
) -> Arm:
    queries, mix = layout_of(f"the layout {name!r}", memory, layout)
    label = memory.labels[watched]
    with torch.no_grad():
        exact = spread_of(keys, memory, queries, mix)
    if can_integrate(keys, queries):
        chance = within(memory, queries, noise, weights, tol, mix=mix)
        law = distribution(memory, queries, noise, label, mix=mix, bins=BINS)
        some = [r[:, watched].double() for r in readings(keys, queries, mix, samples, generator(seed))]
        drawn = torch.cat(some)
    else:
        goal, seen, hits = target_of("a chance of success", memory, weights), [], 0
        for r in readings(keys, queries, mix, max(draws, samples), generator(seed)):
            seen.append(r[:, watched].double())
            hits += near(r.double(), memory, goal, tol)
        drawn = torch.cat(seen)
        chance = counted(hits, len(drawn), tol, CONFIDENCE)
        law = drawn_law(label, drawn, BINS, CONFIDENCE)
    return Arm(
        name=name,
        heads=len(queries),
        mean=float(exact.weights_mean[watched]),
        variance=float(exact.weights_var[watched]),
        error=exact.error,
        probability=chance.probability,
        low=chance.low,
        high=chance.high,
        method=chance.method,
        x=(law.edges[1:] + law.edges[:-1]) / 2,
        density=law.share / law.edges.diff(),
        drawn=drawn[:samples],
    )
