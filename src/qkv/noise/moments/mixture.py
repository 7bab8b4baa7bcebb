"""Mean and covariance of the weights and output of one head, or of a mix of heads on shared random keys."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from qkv.core.attention import MAX_ROWS_SHOWN, Label
from qkv.core.display import Card, Displayable, known_to, number, upper_bound, vector
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike
from qkv.core.validation import check_range
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import KeyNoise, Noise, noise_on_keys
from qkv.noise.moments.head_pairs import FINE, CrossMoments, Grid, cross_moments
from qkv.noise.moments.single_head import MAX_NODES, STEP, HeadMoments, head_moments
from qkv.parallel import Progress

REQUEST = "the moments of a reading"
MAX_COVARIANCE_ITEMS = 2000
"""Items up to which the covariance of all weights is computed."""
SCORE_DEVIATIONS = 40
"""Length of the outer integral in standard deviations of the widest score, at most."""
ROUNDING_NOTE = (
    "Rounding errors are taken as independent Gaussians, which keys on one grid only approximate; the error bound does "
    "not cover that. Compare with drawn readings (sample)."
)


@dataclass(frozen=True, eq=False)
class ReadingMoments(Displayable):
    """Mean and (co)variance of the weights and the output of a reading.

    With several heads, weights and output are those of the mix.

    Attributes:
        weights_mean: E α_j for each item, (n,).
        weights_var: Var α_j for each item, (n,).
        output_mean: E o, (dv,).
        output_cov: Cov o, (dv, dv).
        error_bound: Bound on the error of each entry of `weights_mean`, `weights_var` and `weights_cov`; where keys are
            rounded (`is_rounding`), it is a bound for the Gaussian noise that stands for the rounding.
        output_error_bound: Bound on the error of each entry of `output_mean` and `output_cov`.
        labels: The labels of the items.
        heads_mean: Mean weights of each head, (h, n).
        heads_output_cov: Covariances between the outputs of each two heads, (h, h, dv, dv).
        weights_cov: Cov α, (n, n), if it was asked for.
        is_rounding: Whether the noise is `Quantised`, whose rounding errors are taken as independent Gaussians here.
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
    is_rounding: bool = False

    @property
    def total_variance(self) -> Tensor:
        """E‖o − E o‖²: the trace of the output's covariance."""
        return self.output_cov.diagonal().sum()

    def squared_error(self, target: Tensor) -> Tensor:
        """E‖o − target‖²."""
        return self.total_variance + ((self.output_mean - target) ** 2).sum()

    def card(self) -> Card:
        n, heads = len(self.weights_mean), len(self.heads_mean)
        mean, var, error = self.weights_mean.detach(), self.weights_var.detach().clamp(min=0), self.error_bound
        order = mean.abs().where(mean.abs() > error, 0.0).argsort(descending=True, stable=True).tolist()
        by = f" by {heads} heads" if heads > 1 else ""
        notes = [f"… {n - MAX_ROWS_SHOWN} more"] if n > MAX_ROWS_SHOWN else []
        if self.is_rounding:
            notes.append(ROUNDING_NOTE)
        return Card(
            title=f"Moments of a reading of {n} item{'s' * (n != 1)}{by}",
            facts=(
                ("mean output", vector(self.output_mean.tolist())),
                ("total variance of output", number(float(self.total_variance))),
                ("error of each weight's moments", f"≤ {upper_bound(error, 2)}"),
            ),
            columns=("item", "mean weight", "standard deviation", "variance"),
            rows=tuple(
                (
                    str(self.labels[i]),
                    known_to(float(mean[i]), error),
                    _deviation(float(var[i]), error),
                    known_to(float(var[i]), error),
                )
                for i in order[:MAX_ROWS_SHOWN]
            ),
            note=" ".join(notes),
        )


def _deviation(variance: float, error_bound: float) -> str:
    """The root of a variance; where that is not above its error, only what is known of it."""
    if variance > error_bound or not error_bound:
        return number(math.sqrt(variance))
    return f"≤ {upper_bound(math.sqrt(variance + error_bound), 2)}"


def reading_moments(
    memory: Memory,
    query: Layout,
    noise: Noise,
    mix: ArrayLike | None = None,
    *,
    covariance: bool = False,
    callback: Progress | None = None,
) -> ReadingMoments:
    """Mean and covariance of the weights and the output of a reading under noise, by integration.

    The result is differentiable in a query or mix that is a torch tensor which requires gradients.

    Args:
        memory: The memory whose keys are the means of the random keys.
        query: One query (d,), several heads (h, d), or anything else that `HeadMix.of` accepts.
        noise: The noise on the keys.
        mix: Weights of the heads, (h,); by default 1/h for each.
        covariance: Whether to compute the covariance of all weights too, for up to 2000 items.
        callback: Called with the numbers of finished and of all heads and pairs of heads.

    Returns:
        The moments, with bounds on their errors.

    Raises:
        QkvError: The inputs do not fit together; a score varies so widely that millions of nodes would be needed; or
            two correlated heads would need a two-dimensional integral that is too large.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> query = 8 * (memory.keys[0] + memory.keys[1])
        >>> found = qkv.noise.reading_moments(memory, query, qkv.noise.Gaussian(along={"a": 0.5}))
        >>> print(f"{float(found.weights_mean[0]):.6f} {float(found.weights_var[0]):.6f}")
        0.499820 0.182763
    """
    heads = HeadMix.of(memory, query, mix, request=REQUEST)
    if covariance and memory.n > MAX_COVARIANCE_ITEMS:
        raise QkvError(
            REQUEST,
            f"the covariance of {memory.n} weights was asked for",
            f"That is given for up to {MAX_COVARIANCE_ITEMS} items; output_cov and weights_var have no such limit",
        )
    return moments_of_heads(noise_on_keys(REQUEST, noise, memory), memory, heads, covariance, callback=callback)


def moments_of_heads(
    keys: KeyNoise,
    memory: Memory,
    heads: HeadMix,
    covariance: bool = False,
    grid: Grid = FINE,
    callback: Progress | None = None,
) -> ReadingMoments:
    """The moments of a checked layout, for given covariances of the keys."""
    mix = heads.mix
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    check_range(REQUEST, m, C)
    _check_score_deviations(C)
    # Σ α = 1, so shifting all values shifts the output: centred at the noise-free output, squares lose fewest digits.
    total = float(mix.detach().sum())
    centre = mix.detach() @ torch.softmax(m.detach(), -1) @ memory.values / (total if abs(total) > 1e-3 else 1.0)
    values = memory.values - centre
    joint = _joint_moments(m, C, values, covariance, grid, callback or (lambda done, total: None))
    size, reach = float(mix.detach().abs().sum()), float(torch.linalg.vector_norm(values, dim=1).max())
    # A variance E α² − (E α)² is off by the errors of both terms: at most three times the moments' own.
    slack = 3 * max(1.0, size) ** 2
    return ReadingMoments(
        weights_mean=mix @ joint.means,
        # A variance of 0 may come out negative, by less than the error.
        weights_var=torch.einsum("g,h,ghn->n", mix, mix, joint.variances).clamp(min=0),
        output_mean=mix @ joint.outputs + mix.sum() * centre,
        output_cov=torch.einsum("g,h,ghab->ab", mix, mix, joint.output_covs),
        error_bound=slack * joint.error,
        output_error_bound=slack * joint.total_error * max(reach, reach**2) + 1e-15 * float(centre.abs().max()),
        labels=memory.labels,
        heads_mean=joint.means,
        heads_output_cov=joint.output_covs,
        weights_cov=None if joint.covs is None else torch.einsum("g,h,ghab->ab", mix, mix, joint.covs),
        is_rounding=keys.steps is not None,
    )


@dataclass(frozen=True, eq=False)
class _Joint:
    """Means of each head, (h, …), and central second moments of each pair of heads, (h, h, …)."""

    means: Tensor
    outputs: Tensor
    variances: Tensor
    output_covs: Tensor
    covs: Tensor | None
    error: float
    total_error: float


def _joint_moments(m: Tensor, C: Tensor, values: Tensor, full: bool, grid: Grid, report: Progress) -> _Joint:
    """Single-head moments, and cross-moments of each pair of heads."""
    H, n = m.shape
    rule = grid.one_head_step, grid.one_head_reach
    heads = [head_moments(m[h], C[:, h, h], values, full, *rule) for h in range(H)]
    means = torch.stack([head.mean for head in heads])
    outputs = torch.stack([head.output for head in heads])
    errors, totals = [head.error for head in heads], [head.total_error for head in heads]
    found: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor]] = {}
    pairs = list(itertools.combinations_with_replacement(range(H), 2))
    for done, (g, h) in enumerate(pairs):
        report(done, len(pairs))
        both = torch.tensor([g, h])
        if g == h:
            pair: HeadMoments | CrossMoments | float = heads[g]
        else:
            squares = torch.stack([heads[k].square.detach() + heads[k].error for k in (g, h)])
            pair = cross_moments(m[both], C[:, both][:, :, both], values, full, grid, squares)
        if isinstance(pair, float):  # independent heads: all central cross-moments are 0, to within this
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

    report(len(pairs), len(pairs))

    def stacked(part: int) -> Tensor:
        return torch.stack([torch.stack([found[g, h][part] for h in range(H)]) for g in range(H)])

    return _Joint(means, outputs, stacked(0), stacked(1), stacked(2) if full else None, max(errors), max(totals))


def _check_score_deviations(C: Tensor) -> None:
    """Refuse scores that vary so widely that the outer integral would have too many nodes."""
    widest = float(C.detach().diagonal(dim1=1, dim2=2).max()) ** 0.5
    if SCORE_DEVIATIONS * widest / STEP > MAX_NODES:
        raise QkvError(
            REQUEST,
            f"a score has the standard deviation {widest:.4g}, which would need millions of nodes",
            "Use a smaller query or less noise; beyond 1e3 a weight is 0 or 1 almost surely",
        )
