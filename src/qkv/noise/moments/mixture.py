"""spread: the exact mean and covariance of what one head, or several on shared random keys, return."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.attention import SHOWN, Label
from qkv.core.display import Card, Displayable, number, vector
from qkv.core.memory import Memory
from qkv.core.validation import check_range, same_length, same_width, tensor
from qkv.errors import QkvError
from qkv.noise.key_noise import KeyNoise, Noise, laid_on
from qkv.noise.moments.head_pairs import FINE, Grid, cross
from qkv.noise.moments.single_head import NODES, STEP, moments

MOST_COVARIANCE = 2000
"""Items up to which a covariance of all weights is given."""


@dataclass(frozen=True, eq=False)
class ReadingMoments(Displayable):
    """The mean and (co)variance of a reading's weights and output, each weight's to within `error`.

    `output_error` bounds the errors of the output's moments. With several heads, weights and output are
    those of the mix; `heads_mean` (h, n) and `heads_output_cov` (h, h, dv, dv) hold each head's own mean
    and how their outputs vary together.
    """

    weights_mean: Tensor
    weights_var: Tensor
    output_mean: Tensor
    output_cov: Tensor
    error_bound: float
    output_error_bound: float
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
                ("error of each figure", f"≤ {number(self.error_bound, 2)}"),
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


def reading_moments(
    memory: Memory, query: Any, noise: Noise, mix: Any = None, *, covariance: bool = False
) -> ReadingMoments:
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
    return spread_of(laid_on(asked, noise, memory), memory, queries, weights, covariance)


def spread_of(
    keys: KeyNoise,
    memory: Memory,
    queries: Tensor,
    mix: Tensor,
    covariance: bool = False,
    grid: Grid = FINE,
) -> ReadingMoments:
    """The same, for noise that is already laid on the keys, queries (h, d) and mix (h,)."""
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range("the spread of a reading", m, C)
    _narrow(C)
    # Σ α = 1, so shifting all values shifts the output: around the plain reading, squares lose fewest digits.
    centre = mix.detach() @ torch.softmax(m.detach(), -1) @ memory.values / _safe(float(mix.detach().sum()))
    values = memory.values - centre
    joint = _joint(m, C, values, covariance, grid)
    size, reach = float(mix.detach().abs().sum()), float(torch.linalg.vector_norm(values, dim=1).max())
    # A variance E α² − (E α)² is off by the errors of both terms: at most three times the moments' own.
    slack = 3 * max(1.0, size) ** 2
    return ReadingMoments(
        weights_mean=mix @ joint.means,
        # A variance of 0 may come out below it, by less than the error.
        weights_var=torch.einsum("g,h,ghn->n", mix, mix, joint.variances).clamp(min=0),
        output_mean=mix @ joint.outputs + mix.sum() * centre,
        output_cov=torch.einsum("g,h,ghab->ab", mix, mix, joint.output_covs),
        error_bound=slack * joint.error,
        output_error_bound=slack * joint.total_error * max(reach, reach**2) + 1e-15 * float(centre.abs().max()),
        labels=memory.labels,
        heads_mean=joint.means,
        heads_output_cov=joint.output_covs,
        weights_cov=None if joint.covs is None else torch.einsum("g,h,ghab->ab", mix, mix, joint.covs),
    )


@dataclass(frozen=True, eq=False)
class _Joint:
    """Means of each head, (h, …), and central second moments of each two, (h, h, …)."""

    means: Tensor
    outputs: Tensor
    variances: Tensor
    output_covs: Tensor
    covs: Tensor | None
    error: float
    total_error: float


def _joint(m: Tensor, C: Tensor, values: Tensor, full: bool, grid: Grid) -> _Joint:
    H, n = m.shape
    heads = [moments(m[h], C[:, h, h], values, full) for h in range(H)]
    means = torch.stack([head.mean for head in heads])
    outputs = torch.stack([head.output for head in heads])
    errors, totals = [head.error for head in heads], [head.total_error for head in heads]
    found: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor]] = {}
    for g, h in itertools.combinations_with_replacement(range(H), 2):
        both = torch.tensor([g, h])
        pair = heads[g] if g == h else cross(m[both], C[:, both][:, :, both], values, full, grid)
        if isinstance(pair, float):  # independent heads
            errors.append(pair)
            totals.append(4 * pair)  # Σ_a |∂α_a/∂s| ≤ ½ in each head, so Price's bound for all a, b is |c|/4
            zero = values.new_zeros(values.shape[1], values.shape[1])
            found[g, h] = found[h, g] = (values.new_zeros(n), zero, values.new_zeros(n, n) if full else zero)
            continue
        errors.append(pair.error)
        totals.append(pair.total_error)
        covariance = values.new_zeros(0, 0)
        if pair.product is not None:
            covariance = pair.product - means[g][:, None] * means[h]
        output = pair.output_square - outputs[g][:, None] * outputs[h]
        found[g, h] = (pair.square - means[g] * means[h], output, covariance)
        found[h, g] = (found[g, h][0], output.mT, covariance.mT)

    def stacked(part: int) -> Tensor:
        return torch.stack([torch.stack([found[g, h][part] for h in range(H)]) for g in range(H)])

    return _Joint(means, outputs, stacked(0), stacked(1), stacked(2) if full else None, max(errors), max(totals))


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
        raise QkvError(asked, f"query has shape {tuple(queries.shape)}", "Give one query (d,), or several (h, d)")
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
