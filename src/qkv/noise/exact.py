"""spread: the exact mean and covariance of what one head, or several on shared random keys, return."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.arrays import same_length, same_width, tensor
from qkv.core.attention import SHOWN, Label, check_range
from qkv.core.memory import Memory
from qkv.core.show import Card, Shown, number, vector
from qkv.errors import QkvError
from qkv.noise.models import KeyNoise, Noise
from qkv.noise.moments import NODES, STEP, moments
from qkv.noise.shared_heads import CrossMoments, cross

MOST_COVARIANCE = 2000
"""Items up to which a covariance of all weights is given."""


@dataclass(frozen=True, eq=False)
class Spread(Shown):
    """The mean and (co)variance of a reading's weights and output, each weight's to within `error`.

    `output_error` bounds the errors of the output's moments. With several heads, weights and output are
    those of the mix; `heads_mean` (h, n) and `heads_output_cov` (h, h, dv, dv) hold each head's own mean
    and how their outputs vary together.
    """

    weights_mean: Tensor
    weights_var: Tensor
    output_mean: Tensor
    output_cov: Tensor
    error: float
    output_error: float
    labels: tuple[Label, ...]
    heads_mean: Tensor = field(repr=False)
    heads_output_cov: Tensor = field(repr=False)
    weights_cov: Tensor | None = field(default=None, repr=False)

    @property
    def total_variance(self) -> Tensor:
        """E‖o − E o‖²: the trace of the output's covariance."""
        return self.output_cov.diagonal().sum()

    def squared_error(self, target: Tensor) -> Tensor:
        """E‖o − target‖²."""
        return self.total_variance + ((self.output_mean - target) ** 2).sum()

    def card(self) -> Card:
        n, heads = len(self.weights_mean), len(self.heads_mean)
        order = self.weights_mean.detach().abs().argsort(descending=True, stable=True).tolist()
        sd = self.weights_var.detach().clamp(min=0).sqrt()
        by = f" by {heads} heads" if heads > 1 else ""
        return Card(
            title=f"Spread of a reading of {n} item{'s' * (n != 1)}{by}",
            facts=(
                ("mean output", vector(self.output_mean.tolist())),
                ("total variance of output", number(float(self.total_variance))),
                ("error of each figure", f"≤ {number(self.error, 2)}"),
            ),
            columns=("item", "mean weight", "standard deviation", "variance"),
            rows=tuple(
                (
                    str(self.labels[i]),
                    number(float(self.weights_mean[i])),
                    number(float(sd[i])),
                    number(float(self.weights_var[i])),
                )
                for i in order[:SHOWN]
            ),
            note=f"… {n - SHOWN} more" if n > SHOWN else "",
        )


def spread(memory: Memory, query: Any, noise: Noise, mix: Any = None, *, covariance: bool = False) -> Spread:
    """The exact spread of what `query` (d,), or several heads (h, d) mixed by `mix` or averaged, read.

    Differentiable in a query that is a torch tensor. `covariance=True` adds the covariance of all weights.
    """
    asked = "the spread of a reading"
    queries, weights = heads_of(asked, memory, query, mix)
    if covariance and memory.n > MOST_COVARIANCE:
        raise QkvError(
            asked,
            f"the covariance of {memory.n} weights was asked for",
            f"That is given for up to {MOST_COVARIANCE} items; output_cov and weights_var have no such limit",
        )
    return spread_of(noise.on(memory), memory, queries, weights, covariance)


def spread_of(
    keys: KeyNoise, memory: Memory, queries: Tensor, mix: Tensor, covariance: bool = False
) -> Spread:
    """The same, for noise that is already laid on the keys, queries (h, d) and mix (h,)."""
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range("the spread of a reading", m, C)
    _narrow(C)
    H = len(queries)
    # Σ α = 1, so shifting all values shifts the output: around the plain reading, squares lose fewest digits.
    centre = mix.detach() @ torch.softmax(m.detach(), -1) @ memory.values / _safe(float(mix.detach().sum()))
    values = memory.values - centre
    heads = [moments(m[h], C[:, h, h], values, covariance) for h in range(H)]
    means = torch.stack([head.mean for head in heads])
    outputs = torch.stack([head.output for head in heads])
    variances: dict[tuple[int, int], Tensor] = {}
    output_covs: dict[tuple[int, int], Tensor] = {}
    products: dict[tuple[int, int], Tensor] = {}
    errors, totals = [head.error for head in heads], [head.total_error for head in heads]
    for g, h in itertools.combinations_with_replacement(range(H), 2):
        found: CrossMoments | float = 0.0
        if g != h:
            both = torch.tensor([g, h])
            found = cross(m[both], C[:, both][:, :, both], values, covariance)
        if g == h:
            raw = heads[g].square, heads[g].output_square, heads[g].product
        elif isinstance(found, CrossMoments):
            raw = found.diagonal, found.output, found.product
            errors.append(found.error)
            totals.append(found.total_error)
        else:  # independent heads
            errors.append(found)
            totals.append(found)
            raw = means[g] * means[h], outputs[g][:, None] * outputs[h], None
        variances[g, h] = variances[h, g] = raw[0] - means[g] * means[h]
        output_covs[g, h] = raw[1] - outputs[g][:, None] * outputs[h]
        output_covs[h, g] = output_covs[g, h].mT
        if covariance:
            zero = torch.zeros(memory.n, memory.n, dtype=torch.float64)
            products[g, h] = zero if raw[2] is None else raw[2] - means[g][:, None] * means[h]
            products[h, g] = products[g, h].mT
    pairs = list(itertools.product(range(H), repeat=2))
    cov = torch.stack([torch.stack([output_covs[g, h] for h in range(H)]) for g in range(H)])
    size, reach = float(mix.detach().abs().sum()), float(torch.linalg.vector_norm(values, dim=1).max())
    # A variance E α² − (E α)² is off by the errors of both terms: at most three times the moments' own.
    error, total = 3 * max(1.0, size) ** 2 * max(errors), 3 * max(1.0, size) ** 2 * max(totals)
    return Spread(
        weights_mean=mix @ means,
        weights_var=sum(mix[g] * mix[h] * variances[g, h] for g, h in pairs),  # type: ignore[arg-type]
        output_mean=mix @ outputs + mix.sum() * centre,
        output_cov=torch.einsum("g,h,ghab->ab", mix, mix, cov),
        error=error,
        output_error=total * max(reach, reach**2) + 1e-15 * float(centre.abs().max()),
        labels=memory.labels,
        heads_mean=means,
        heads_output_cov=cov,
        weights_cov=sum(mix[g] * mix[h] * products[g, h] for g, h in pairs) if covariance else None,  # type: ignore[arg-type]
    )


def heads_of(asked: str, memory: Memory, query: Any, mix: Any) -> tuple[Tensor, Tensor]:
    """Queries (h, d) and mix (h,), checked; a torch query keeps its gradient."""
    if mix is None and hasattr(query, "queries"):  # a Hardened stands for its heads, a Design for its query
        mix = query.mix
    query = getattr(query, "queries", getattr(query, "query", query))
    if isinstance(query, list | tuple) and query and all(_is_vector(q) for q in query):
        rows = [_checked(q, "d") for q in query]
        for row in rows:
            same_width(asked, query=row, keys=memory.keys)
        queries = torch.stack(rows)
    else:
        queries = torch.atleast_2d(_checked(query, None))
    if queries.dim() != 2:
        raise QkvError(
            asked, f"query has shape {tuple(queries.shape)}", "Give one query (d,), or several (h, d)"
        )
    same_width(asked, query=queries, keys=memory.keys)
    if mix is None:
        return queries, torch.full((len(queries),), 1 / len(queries), dtype=torch.float64)
    weights = tensor("mix", mix, "h")
    same_length(asked, queries=queries, mix=weights)
    if isinstance(mix, Tensor) and mix.requires_grad:
        weights = mix.to(torch.float64)
    return queries, weights


def _is_vector(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _checked(value: Any, dims: str | None) -> Tensor:
    checked = tensor("query", value, dims)
    return value.to(torch.float64) if isinstance(value, Tensor) and value.requires_grad else checked


def _narrow(C: Tensor) -> None:
    widest = float(C.detach().diagonal(dim1=1, dim2=2).max()) ** 0.5
    if 40 * widest / STEP > NODES:
        raise QkvError(
            "the spread of a reading",
            f"a score has the standard deviation {widest:.4g}, which would need millions of nodes",
            "Use a smaller query or less noise; beyond 1e3 a weight is 0 or 1 almost surely",
        )


def _safe(total: float) -> float:
    return total if abs(total) > 1e-3 else 1.0
