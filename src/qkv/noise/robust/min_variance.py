"""steady: of all queries that read the same without noise, the one that the noise moves least."""

# Adding a constant c to every score changes no weight. For orthogonal keys of one length every such c is a query, so
# the queries of one reading are a line, q(c) = q(0) + c Σ_j μ_j/|μ|², and hardening at a given scale is a search in
# one number. The textbook's t(μ_a + μ_b) is the point where the others score 0; the query that repels the others is
# the point where the wanted ones do. Many candidates are integrated at once, and keys of like mean and variance of
# score are integrated once: n keys cost as much as the few kinds of them.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.validation import finite
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.key_noise import KeyNoise, Noise, laid_on
from qkv.noise.moments.single_head import nodes
from qkv.noise.moments.smoothed_gumbel import alike, logs_and_ratios

FIRST, NEXT = 13, 9
"""Candidates at first, and between the best one's neighbours; a parabola through the best three tells the rest."""
COARSE, FAR = 0.5, 18.0
"""Step and reach of the outer integral: errors of 1e-6, which is enough to choose by."""


@dataclass(frozen=True, eq=False)
class MinVarianceQuery(Displayable):
    """A query of a given scale for a wanted blend; `wanted_score` is what the wanted items score on average, and the
    others score `scale` less. `variance` is the sum of the variances of all weights."""

    query: Tensor
    scale: float
    wanted_score: float
    wanted: Mapping[Any, float]
    variance: float

    def card(self) -> Card:
        wish = " + ".join(f"{number(w)} of {item}" for item, w in list(self.wanted.items())[:6])
        facts = (
            ("scale", number(self.scale)),
            ("score of the wanted", number(self.wanted_score)),
            ("score of the others", number(self.wanted_score - self.scale)),
            ("variance of all weights", number(self.variance)),
            ("query", vector(self.query.tolist())),
        )
        return Card(f"Steady: {wish}", facts)


def min_variance_query(memory: Memory, weights: Mapping[Any, float], noise: Noise, scale: float) -> MinVarianceQuery:
    """The query that reads a blend at a given scale (the gap in score between wanted and other items) and varies least.

    The keys must be orthogonal and of one length; `harden` works for any.
    """
    wanted = BlendSpec.of(memory, weights, 0.5)
    asked = f"steadying a blend of {len(wanted.items)} items"
    scale = finite(asked, "scale", scale)
    norm = common_norm(memory.keys.numpy())
    if norm is None:
        raise QkvError(asked, "these keys are not orthogonal vectors of one length", "Use qkv.noise.harden")
    if scale < 0:
        raise QkvError(asked, f"scale is {scale:g}", "Give a scale of at least 0")
    keys = laid_on(asked, noise, memory)
    scores = torch.full((memory.n,), -scale, dtype=torch.float64)
    logs = torch.tensor(wanted.weights, dtype=torch.float64).log()
    scores[list(wanted.items)] = logs - logs.mean()
    directions = torch.stack([scores, torch.ones_like(scores)]) @ memory.keys / norm**2
    # The less the other noise, the nearer to 0 the answer: the first candidates stand closer there.
    tried = scale * torch.linspace(0, 1, FIRST, dtype=torch.float64) ** 4
    variance = total_variances(keys, directions[0] + tried[:, None] * directions[1])
    best = int(variance.argmin())
    tried = torch.linspace(
        float(tried[max(0, best - 1)]), float(tried[min(FIRST - 1, best + 1)]), NEXT, dtype=torch.float64
    )
    variance = total_variances(keys, directions[0] + tried[:, None] * directions[1])
    at, least = _lowest(tried, variance)
    labels = {memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)}
    return MinVarianceQuery(directions[0] + at * directions[1], scale, at, labels, least)


def _lowest(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Where the parabola through the lowest of equidistant points and its neighbours is least, and its value there."""
    k = int(y.argmin())
    if k in (0, len(x) - 1):
        return float(x[k]), float(y[k])
    a, b, c = (float(v) for v in y[k - 1 : k + 2])
    bend = a - 2 * b + c
    shift = 0.5 * (a - c) / bend if bend > 0 else 0.0
    return float(x[k] + shift * (x[k + 1] - x[k])), b - 0.25 * (a - c) * shift


def total_variances(keys: KeyNoise, queries: Tensor) -> Tensor:
    """Σ_j Var α_j of each query (m, d), to about 1e-6; see moments.py for the integrals."""
    with torch.no_grad():
        # Weights depend on differences of scores: each query's own constant drops out.
        m = keys.score_means(queries)
        m = m - m.max(-1, keepdim=True).values
        mean, variance, where = alike(m, keys.score_variances(queries))
        count = torch.zeros(len(m), len(mean), dtype=torch.float64)
        count.scatter_add_(1, where, torch.ones_like(m))
        u = nodes(mean, variance, COARSE, FAR)
        log, r, q = logs_and_ratios(mean, variance, u)
        weight = COARSE * torch.exp(count @ log)  # (m, nodes): Λ of each query
        return (count * (weight @ q.mT - (weight @ r.mT) ** 2)).sum(-1)
