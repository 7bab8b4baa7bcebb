"""The query of least variance at a fixed score gap, for orthogonal keys of one norm."""

# Adding a constant c to every score changes no weight. For orthogonal keys of one norm every such c is a query, so the
# queries of one noise-free reading are a line, q(c) = q(0) + c Σ_j μ_j/|μ|², and the least variance at a given scale is
# a search in one number. The textbook's t(μ_a + μ_b) is the point where the others score 0; at the point where the
# wanted items score 0, the query repels the others. Many candidates are integrated at once, and keys of equal mean and
# variance of score are integrated once: n keys cost as much as the distinct ones among them.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.types import Item, Weights
from qkv.core.validation import finite
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import blend_text, weights_by_label
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import KeyNoise, Noise, noise_on_keys
from qkv.noise.moments.mixture import moments_of_heads
from qkv.noise.moments.single_head import outer_nodes
from qkv.noise.moments.smoothed_gumbel import distinct_scores, logs_and_ratios

N_CANDIDATES, N_REFINED = 13, 9
"""Candidates over the whole range, and then between the neighbours of the best; a parabola refines the best three."""
STEP, REACH = 0.5, 18.0
"""Step and reach of the outer integral: errors of 1e-6, which is enough to choose by."""


@dataclass(frozen=True, eq=False)
class MinVarianceQuery(Displayable):
    """The query of least variance for a wanted blend at a given score gap.

    Attributes:
        query: The query, (d,).
        scale: The factor in front of the wanted keys: the gap between their mean score and the score of the others.
        wanted_score: The mean score of the wanted items.
        wanted: The wanted weights by label.
        variance: The sum of the variances of all weights, to about 1e-6.
    """

    query: Tensor
    scale: float
    wanted_score: float
    wanted: Mapping[Item, float]
    variance: float

    def card(self) -> Card:
        facts = (
            ("scale", number(self.scale)),
            ("score of the wanted items", number(self.wanted_score)),
            ("score of the other items", number(self.wanted_score - self.scale)),
            ("variance of all weights", number(self.variance)),
            ("query", vector(self.query.tolist())),
        )
        return Card(f"Least variance: {blend_text(self.wanted)}", facts)


def min_variance_query(memory: Memory, weights: Weights, noise: Noise, scale: float) -> MinVarianceQuery:
    """The query that reads a blend at a given score gap with the least variance of the weights.

    Args:
        memory: The memory; its keys must be orthogonal and of one norm (`harden` works for any).
        weights: The wanted weights of some items, which sum to 1.
        noise: The noise on the keys.
        scale: The factor in front of the wanted keys: the gap between their mean score and the score of the others, at
            least 0.

    Returns:
        The query and its variance.

    Raises:
        QkvError: The keys are not orthogonal vectors of one norm, the scale is negative, or inputs do not fit together.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
        >>> found = qkv.noise.min_variance_query(memory, {"a": 0.5, "b": 0.5}, noise, scale=6.0)
        >>> found.variance < 1e-3
        True
    """
    wanted = BlendSpec.of(memory, weights, 0.5)
    request = f"the query of least variance for a blend of {len(wanted.items)} items"
    scale = finite(request, "scale", scale)
    norm = common_norm(memory.keys.numpy())
    if norm is None:
        raise QkvError(request, "these keys are not orthogonal vectors of one norm", "Use qkv.noise.harden")
    if scale < 0:
        raise QkvError(request, f"scale is {scale:g}", "Give a scale of at least 0")
    keys = noise_on_keys(request, noise, memory)
    scores = torch.full((memory.n,), -scale, dtype=torch.float64)
    logs = torch.tensor(wanted.weights, dtype=torch.float64).log()
    scores[list(wanted.items)] = logs - logs.mean()
    directions = torch.stack([scores, torch.ones_like(scores)]) @ memory.keys / norm**2
    candidates = _candidates(scale, logs.mean() - logs)
    variances = total_variances if bool((logs == logs[0]).all()) else _exact_variances
    variance = variances(keys, directions[0] + candidates[:, None] * directions[1])
    best = int(variance.argmin())
    low, high = float(candidates[max(0, best - 1)]), float(candidates[min(len(candidates) - 1, best + 1)])
    candidates = torch.linspace(low, high, N_REFINED, dtype=torch.float64)
    variance = variances(keys, directions[0] + candidates[:, None] * directions[1])
    c, least = _parabola_minimum(candidates, variance)
    return MinVarianceQuery(directions[0] + c * directions[1], scale, c, weights_by_label(memory, wanted), least)


def _candidates(scale: float, silent: Tensor) -> Tensor:
    """Constants c to try, ascending: `silent` holds where each wanted item scores 0; the others do so at the scale.

    With noise along an item's own mean, its score should be near 0, so the candidates are denser near those places.
    """
    grid = torch.linspace(0, 1, N_CANDIDATES, dtype=torch.float64) ** 4
    if not silent.any():
        return scale * grid
    low, high = min(0.0, float(silent.min())), max(scale, float(silent.max()))
    centres = torch.cat([silent, silent.new_tensor([0.0, scale])]).unique()
    spread = (high - low) * torch.cat([-grid, grid])
    return (centres[:, None] + spread).clamp(low, high).flatten().unique()


def _parabola_minimum(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Place and value of the minimum of the parabola through the lowest of equidistant points and its neighbours."""
    k = int(y.argmin())
    if k in (0, len(x) - 1):
        return float(x[k]), float(y[k])
    a, b, c = (float(v) for v in y[k - 1 : k + 2])
    curvature = a - 2 * b + c
    shift = 0.5 * (a - c) / curvature if curvature > 0 else 0.0
    return float(x[k] + shift * (x[k + 1] - x[k])), b - 0.25 * (a - c) * shift


def _exact_variances(keys: KeyNoise, queries: Tensor) -> Tensor:
    """Σ_j Var α_j of each query (m, d) by the moments of a reading: slower, for scores that lie far apart."""
    memory = Memory(keys.keys)
    found = [moments_of_heads(keys, memory, HeadMix.of(memory, query)).weights_var.sum() for query in queries]
    return torch.stack(found)


def total_variances(keys: KeyNoise, queries: Tensor) -> Tensor:
    """Σ_j Var α_j of each query (m, d), to about 1e-6 where the wanted scores are equal, and less exactly where they
    lie far apart (`_exact_variances`); see moments/single_head.py for the integrals."""
    with torch.no_grad():
        # Weights depend on differences of scores only: each query's largest score is set to 0.
        m = keys.score_means(queries)
        m = m - m.max(-1, keepdim=True).values
        mean, variance, where = distinct_scores(m, keys.score_variances(queries))
        count = torch.zeros(len(m), len(mean), dtype=torch.float64)
        count.scatter_add_(1, where, torch.ones_like(m))
        u = outer_nodes(mean, variance, STEP, REACH)
        log, r, q = logs_and_ratios(mean, variance, u)
        weight = STEP * torch.exp(count @ log)  # (m, nodes): Λ of each query
        return (count * (weight @ q.mT - (weight @ r.mT) ** 2)).sum(-1)
