"""Probability that the output of a reading lies within a radius of a target."""

# The output depends on the noise through the scores alone. If at most two independent normal variables move all scores,
# the probability is an integral over them (low_rank.py). Else readings are drawn and counted, or, for layout reports,
# the leading variable is integrated and the others are drawn (conditional_mc.py).

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, Weights
from qkv.core.validation import check_confidence, check_range, finite, same_width, tensor, whole
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import Noise, noise_on_keys, without_rounding
from qkv.noise.method import IN_WORDS, Method
from qkv.noise.monte_carlo import binomial_interval, generator, readings
from qkv.noise.probability.ball import probability_within
from qkv.noise.probability.conditional_mc import ConditionalDraws
from qkv.noise.probability.low_rank import noise_directions

N_DRAWS = 100_000
"""Draws where nothing is integrated."""


@dataclass(frozen=True)
class SuccessProbability(Displayable):
    """The probability that the output is within a radius of the target, and an interval around it.

    Attributes:
        probability: The probability.
        low: The lower end of the interval.
        high: The upper end of the interval.
        method: How it was computed, see `qkv.noise.method`. The interval is: for "exact" rounding; for "quadrature"
            twice the difference of two rules, or bounds over boxes of the noise; for "conditional_mc" Bernstein's and
            Chernoff's at `confidence`; for "monte_carlo" Clopper and Pearson's at `confidence`.
        radius: The radius.
        n_draws: The number of draws; 0 if nothing was drawn.
        confidence: The confidence of the interval; 1 if nothing was drawn.

    Example:
        >>> from qkv.noise import SuccessProbability
        >>> SuccessProbability.from_counts(90, 100, radius=0.1, confidence=0.95).method
        'monte_carlo'
    """

    probability: float
    low: float
    high: float
    method: Method
    radius: float
    n_draws: int
    confidence: float

    @classmethod
    def from_counts(cls, hits: int, n_draws: int, radius: float, confidence: float) -> SuccessProbability:
        """The estimate from so many hits among so many draws."""
        low, high = binomial_interval(hits, n_draws, confidence)
        return cls(hits / n_draws, low, high, "monte_carlo", radius, n_draws, confidence)

    @classmethod
    def from_conditional_draws(
        cls, draws: ConditionalDraws, memory: Memory, target: Tensor, radius: float, confidence: float
    ) -> SuccessProbability:
        """The estimate from conditional draws."""
        found = draws.probability_within(memory.values, target, radius, confidence)
        return cls(*found, "conditional_mc", radius, len(draws.logit), confidence)

    def _interval_name(self) -> str:
        """What the interval is: one at a confidence where readings were drawn, otherwise that of the computation."""
        if self.n_draws:
            return f"{number(100 * self.confidence)} % interval"
        return "error estimate" if self.method == "quadrature" else "bounds"

    def card(self) -> Card:
        how = f"from {self.n_draws} draws" if self.method == "monte_carlo" else IN_WORDS[self.method]
        return Card(
            title=f"Output within {number(self.radius)} of the target",
            facts=(
                ("probability", f"{number(self.probability, 6)}, {how}"),
                (self._interval_name(), f"{number(self.low, 6)} to {number(self.high, 6)}"),
            ),
        )


def success_probability(
    memory: Memory,
    query: Layout,
    noise: Noise,
    target: ArrayLike | Weights,
    radius: float,
    *,
    mix: ArrayLike | None = None,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> SuccessProbability:
    """P(‖output − target‖ ≤ radius) of a reading under noise.

    Args:
        memory: The memory whose keys are the means of the random keys.
        query: One query (d,), several heads (h, d), or anything else that `HeadMix.of` accepts.
        noise: The noise on the keys.
        target: A vector (dv,), or wanted weights of items, such as {"a": 0.5, "b": 0.5}.
        radius: The largest distance from the target that counts as success, above 0.
        mix: Weights of the heads, (h,); by default 1/h for each.
        n_draws: Draws where the probability cannot be integrated.
        seed: The seed of the draws, at least 0.
        confidence: The confidence of the interval where readings are drawn.

    Returns:
        The probability with an interval, and how it was computed.

    Raises:
        QkvError: The inputs do not fit together, or the radius is not positive.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> query = 8 * (memory.keys[0] + memory.keys[1])
        >>> noise = qkv.noise.Gaussian(along={"a": 0.5})
        >>> found = qkv.noise.success_probability(memory, query, noise, {"a": 0.5, "b": 0.5}, 0.25)
        >>> found.method, round(found.probability, 6)
        ('exact', 0.024914)
    """
    request = "the probability of an output near a target"
    heads = HeadMix.of(memory, query, mix, request=request).detach()
    goal = target_vector(request, memory, target)
    radius = finite(request, "radius", radius)
    if radius <= 0:
        raise QkvError(request, f"radius is {radius:g}", "Give a distance above 0")
    n_draws, seed = whole(request, "n_draws", n_draws), whole(request, "seed", seed, least=0)
    confidence = check_confidence(request, confidence)
    keys = noise_on_keys(request, noise, memory)
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    check_range(request, m, C)
    rounding = keys.score_rounding(heads.queries)
    directions = noise_directions(without_rounding(C, rounding)) if keys.steps is None else None
    if directions is not None:
        found = probability_within(m, directions, heads.mix, memory.values, goal, radius, 2 * rounding)
        return SuccessProbability(*found, radius, 0, 1.0)
    hits = count_within(readings(keys, heads, n_draws, generator(seed)), memory, goal, radius)
    return SuccessProbability.from_counts(hits, n_draws, radius, confidence)


def count_within(weights: Iterable[Tensor], memory: Memory, target: Tensor, radius: float) -> int:
    """How many of the drawn readings, batches of weights (some, n), have an output within the radius of the target."""
    distances = (torch.linalg.vector_norm(alpha.double() @ memory.values - target, dim=-1) for alpha in weights)
    return sum(int((distance <= radius).sum()) for distance in distances)


def target_vector(request: str, memory: Memory, target: ArrayLike | Weights) -> Tensor:
    """A target (dv,), given as a vector or as wanted weights of items."""
    if isinstance(target, Mapping):
        blend = BlendSpec.of(memory, target, 0.5)
        return torch.tensor(blend.weights, dtype=torch.float64) @ memory.values[list(blend.items)]
    goal = tensor("target", target, "dv")
    same_width(request, target=goal, values=memory.values)
    return goal
