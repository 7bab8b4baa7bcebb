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
from qkv.noise.chance import Chance, counted, near, target_of
from qkv.noise.exact import spread_of
from qkv.noise.heads import layout_of
from qkv.noise.laws import Distribution, drawn_law
from qkv.noise.leading import led
from qkv.noise.models import KeyNoise, Noise, laid_on
from qkv.noise.sampling import generator, readings
from qkv.noise.search import Heads
from qkv.noise.steadying import steady

BINS, CONFIDENCE = 50, 0.95
DRAWS, MANY = 500, 8
"""Draws beside the leading noise, and how many times as many where there is none that leads."""
SURE, ROUNDING = 3.0, 1e-9
"""Standard errors that the chance may be off by."""


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

    Chance and law are what `within` and `distribution` give, with fewer draws where one key's noise leads.
    """
    watched = memory.index(next(iter(weights)) if item is None else item)
    keys = laid_on("layouts side by side", noise, memory)
    return tuple(
        _arm(memory, keys, name, layout, weights, tol, watched, samples, draws, seed)
        for name, layout in layouts.items()
    )


def _arm(
    memory: Memory,
    keys: KeyNoise,
    name: str,
    layout: Any,
    weights: Mapping[Any, float],
    tol: float,
    watched: int,
    samples: int,
    draws: int,
    seed: int,
) -> Arm:
    queries, mix = layout_of(f"the layout {name!r}", memory, layout)
    with torch.no_grad():
        exact = spread_of(keys, memory, queries, mix)
    goal = target_of("a chance of success", memory, weights)
    found = led(keys, queries, mix, draws, seed)
    if found is None:
        chance, law = _drawn(memory, keys, queries, mix, goal, tol, watched, MANY * draws, seed)
        p, low, high, method, edges, share = (
            chance.probability, chance.low, chance.high, chance.method, law.edges, law.share,
        )  # fmt: skip
    else:
        p, error = found.chance(memory.values, goal, tol)
        low, high = max(0.0, p - SURE * error - ROUNDING), min(1.0, p + SURE * error + ROUNDING)
        method = "integration" if error < ROUNDING else "integration over draws"
        edges = torch.linspace(0, 1, BINS + 1, dtype=torch.float64)
        below, _ = found.below(watched, edges[1:-1])
        share = torch.cat([below.new_zeros(1), below, below.new_ones(1)]).diff()
    drawn = [r[:, watched].double() for r in readings(keys, queries, mix, samples, generator(seed))]
    return Arm(
        name=name,
        heads=len(queries),
        mean=float(exact.weights_mean[watched]),
        variance=float(exact.weights_var[watched]),
        error=exact.error,
        probability=p,
        low=low,
        high=high,
        method=method,
        x=(edges[1:] + edges[:-1]) / 2,
        density=share / edges.diff(),
        drawn=torch.cat(drawn),
    )


def _drawn(
    memory: Memory,
    keys: KeyNoise,
    queries: Tensor,
    mix: Tensor,
    goal: Tensor,
    tol: float,
    watched: int,
    draws: int,
    seed: int,
) -> tuple[Chance, Distribution]:
    """What `within` and `distribution` give from the same draws, by drawing them once."""
    seen, hits = [], 0
    for r in readings(keys, queries, mix, draws, generator(seed)):
        seen.append(r[:, watched].double())
        hits += near(r.double(), memory, goal, tol)
    return counted(hits, draws, tol, CONFIDENCE), drawn_law(memory.labels[watched], torch.cat(seen), BINS, CONFIDENCE)
