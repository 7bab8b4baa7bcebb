"""Seeded Monte Carlo of a reading: draws of scores (not of keys), with standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from scipy.special import bdtr, bdtrik, betaincinv
from torch import Tensor

from qkv.core.attention import MAX_ROWS_SHOWN, Label
from qkv.core.display import Card, Displayable, number, vector
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, Item
from qkv.core.validation import check_confidence, check_range, whole
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import KeyNoise, Noise, heads_independent, noise_on_keys
from qkv.parallel import Progress

SCORES_AT_ONCE = 2**18
"""Scores drawn at once: few enough to stay in the processor's cache, which halves the time."""
MAX_FLOAT32_SCORE = 80.0
"""Size of the scores up to which float32 neither overflows nor errs by more than 1e-5."""
MIN_FLOAT32_SD = 1e-2
"""Standard deviation of a score from which float32 rounding is small beside it."""
MIN_FLOAT32_KEYS = 256
"""Number of keys from which drawing in float32 is worth it."""
N_BATCHES = 64
"""Independent parts of a run; standard errors are estimated from the differences between them."""
N_KEPT_ITEMS = 4
"""Items whose drawn weights are kept unless others are named: those of largest weight without noise."""
BYTES_PER_KEPT_WEIGHT = 24
"""Memory for one kept weight: in parts, concatenated, and sorted."""
MAX_BINS = 1_000_000
"""Bins of a histogram, at most."""
MIN_DRAWS_FOR_MEAN_SE, MIN_DRAWS_FOR_VAR_SE = 2, 3
"""Draws from which a standard error can be estimated: one draw has no spread, and two have equal squared deviations."""
DEFAULT_FREE_BYTES = 4 * 2**30
"""Free memory that is assumed where the system does not report it."""


@dataclass(frozen=True, eq=False)
class Sample(Displayable):
    """Moments of random readings, each with its standard error, and the drawn weights of some items.

    Attributes:
        n_draws: The number of readings.
        seed: The seed.
        weights_mean: Mean weight of each item, (n,).
        weights_mean_se: Standard error of `weights_mean`; NaN, for unknown, with one draw.
        weights_var: Variance of each item's weight, (n,).
        weights_var_se: Standard error of `weights_var`; NaN, for unknown, with fewer than three draws.
        output_mean: Mean output, (dv,).
        output_mean_se: Standard error of `output_mean`, unknown as that of `weights_mean`.
        output_cov: Covariance of the output, (dv, dv).
        output_cov_se: Standard error of `output_cov`, unknown as that of `weights_var`.
        labels: The labels of the items.
        kept_weights: All drawn weights, (n_draws,), of the items that were kept, by label.
        weight_range: The least and the largest weight that the mix of heads allows.
    """

    n_draws: int
    seed: int
    weights_mean: Tensor
    weights_mean_se: Tensor
    weights_var: Tensor
    weights_var_se: Tensor
    output_mean: Tensor
    output_mean_se: Tensor
    output_cov: Tensor
    output_cov_se: Tensor
    labels: tuple[Label, ...]
    kept_weights: dict[Label, Tensor] = field(repr=False)
    weight_range: tuple[float, float] = (0.0, 1.0)

    def quantile(self, item: Label, p: float, confidence: float = 0.95) -> tuple[float, float, float]:
        """The p-quantile of a kept item's weight, and the ends of its confidence interval.

        The interval is between two order statistics, whose ranks come from the binomial distribution. Where there is no
        such rank it ends with the least or largest weight that is possible.
        """
        request = f"the {p!r}-quantile of the weight of {item!r}"
        if not (isinstance(p, int | float) and 0 <= p <= 1):
            raise QkvError(request, f"p is {p!r}", "Give a number from 0 to 1")
        ordered = self._drawn_weights(request, item).sort().values
        low, high = quantile_ranks(p, self.n_draws, check_confidence(request, confidence))
        middle = float(ordered[min(self.n_draws - 1, int(p * self.n_draws))])
        least = float(ordered[low - 1]) if low >= 1 else self.weight_range[0]
        most = float(ordered[high - 1]) if high <= self.n_draws else self.weight_range[1]
        return middle, min(middle, least), max(middle, most)

    def histogram(self, item: Label, bins: int = 50) -> tuple[Tensor, Tensor]:
        """Counts of a kept item's weight in equal bins, and their edges, from 0 to 1 or as far as the weights go."""
        request = f"a histogram of the weight of {item!r}"
        drawn = self._drawn_weights(request, item)
        low, high = min(0.0, float(drawn.min())), max(1.0, float(drawn.max()))
        bins = check_bins(request, bins)
        return torch.histc(drawn, bins, low, high), torch.linspace(low, high, bins + 1, dtype=torch.float64)

    def _drawn_weights(self, request: str, item: Label) -> Tensor:
        if not isinstance(item, Hashable) or item not in self.kept_weights:
            shown = ", ".join(map(repr, self.kept_weights))
            raise QkvError(
                request, f"only the weights of {shown} were kept", f"Sample again with keep_items=[{item!r}]"
            )
        return self.kept_weights[item]

    def card(self) -> Card:
        order = self.weights_mean.abs().argsort(descending=True, stable=True).tolist()[:MAX_ROWS_SHOWN]
        n = len(self.labels)

        def row(i: int) -> tuple[str, str, str]:
            mean, var = self.weights_mean, self.weights_var
            return (
                str(self.labels[i]),
                f"{number(float(mean[i]))} ± {_error_text(float(self.weights_mean_se[i]))}",
                f"{number(float(var[i]))} ± {_error_text(float(self.weights_var_se[i]))}"
                if self.n_draws > 1
                else "unknown",
            )

        few = ""
        if self.n_draws < MIN_DRAWS_FOR_VAR_SE:
            few = f", unknown from {self.n_draws} draw{'s' * (self.n_draws != 1)}"
        return Card(
            title=f"{self.n_draws} random readings of {n} item{'s' * (n != 1)}",
            facts=(("mean output", vector(self.output_mean.tolist())), ("seed", str(self.seed))),
            columns=("item", "mean weight", "variance"),
            rows=tuple(row(i) for i in order),
            note=f"± is one standard error{few}{f'; … {n - MAX_ROWS_SHOWN} more' if n > MAX_ROWS_SHOWN else ''}",
        )


def sample(
    memory: Memory,
    query: Layout,
    noise: Noise,
    n_draws: int = 1_000_000,
    seed: int = 0,
    *,
    mix: ArrayLike | None = None,
    keep_items: Sequence[Item] | None = None,
    callback: Progress | None = None,
) -> Sample:
    """Moments of a reading under noise, estimated from draws; the same seed gives the same figures.

    Args:
        memory: The memory whose keys are the means of the random keys.
        query: One query (d,), several heads (h, d), or anything else that `HeadMix.of` accepts.
        noise: The noise on the keys; `Quantised` keys are rounded.
        n_draws: The number of readings to draw.
        seed: The seed, at least 0.
        mix: Weights of the heads, (h,); by default 1/h for each.
        keep_items: Items whose drawn weights are kept; by default the four of largest weight without noise.
        callback: Called with the numbers of finished and of all draws.

    Returns:
        Estimates with standard errors, and the kept weights.

    Raises:
        QkvError: The inputs do not fit together, or the kept weights do not fit in the free memory.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
        >>> noise = qkv.noise.Gaussian(isotropic=0.1)
        >>> found = qkv.noise.sample(memory, 3 * memory.keys[0], noise, n_draws=1000)
        >>> exact = qkv.noise.reading_moments(memory, 3 * memory.keys[0], noise)
        >>> bool(abs(found.weights_mean[0] - exact.weights_mean[0]) < 5 * found.weights_mean_se[0])
        True
    """
    request = "sampling a reading"
    heads = HeadMix.of(memory, query, mix, request=request).detach()
    n_draws, seed = whole(request, "n_draws", n_draws), whole(request, "seed", seed, least=0)
    keys = noise_on_keys(request, noise, memory)
    noise_free = heads.weights(memory.keys)
    if keep_items is None:
        items = noise_free.abs().topk(min(N_KEPT_ITEMS, memory.n)).indices.tolist()
    else:
        items = [memory.index(item) for item in keep_items]
    _check_memory(request, n_draws, len(items))
    # Sums are taken of differences from the noise-free reading, so that squares lose few digits.
    centre = noise_free @ memory.values
    values = memory.values - centre
    values32 = values.float()
    random = generator(seed)
    kept: list[Tensor] = []
    batches: list[_Batch] = []
    for rows in split(n_draws, min(N_BATCHES, n_draws)):
        first, second = (torch.zeros(memory.n, dtype=torch.float64) for _ in range(2))
        output = torch.zeros(memory.dv, dtype=torch.float64)
        square = torch.zeros(memory.dv, memory.dv, dtype=torch.float64)
        for alpha in readings(keys, heads, rows, random):
            kept.append(alpha[:, items].double())
            o = alpha @ (values if alpha.dtype == torch.float64 else values32)
            output += o.sum(0)
            square += o.mT @ o
            alpha -= noise_free.to(alpha.dtype)
            first += torch.ones(len(alpha), dtype=alpha.dtype) @ alpha
            second += torch.linalg.vector_norm(alpha, dim=0).double().square()
        batches.append(_Batch(rows, first / rows, second / rows, output / rows, square / rows))
        if callback is not None:
            callback(sum(batch.n_draws for batch in batches), n_draws)
    watched = {memory.labels[i]: column for i, column in zip(items, torch.cat(kept).mT, strict=True)}
    return replace(
        _summary(memory, seed, batches, noise_free, centre * heads.mix.sum(), watched), weight_range=weight_range(heads)
    )


def readings(keys: KeyNoise, heads: HeadMix, n_draws: int, random: np.random.Generator) -> Iterator[Tensor]:
    """Mixed weights of random readings, (some, n) at a time, in a buffer that the next ones overwrite."""
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    check_range("sampling a reading", m, C)
    H, n = m.shape
    draw = _rounded_scores(keys, heads.queries) if keys.steps is not None else _gaussian_scores(m, C)
    size = max(1, SCORES_AT_ONCE // (H * n))
    if keys.steps is not None:
        size = max(1, size // keys.keys.shape[1])
    for some in split(n_draws, math.ceil(n_draws / size)):
        scores = draw(some, random)  # (heads, some, n)
        if scores.dtype == torch.float64:  # float32 is taken for scores that cannot overflow
            scores -= scores.amax(-1, keepdim=True)
        scores.exp_()
        scores *= heads.mix[:, None, None].to(scores.dtype) / scores.sum(-1, keepdim=True)
        yield scores[0] if H == 1 else scores.sum(0)


ScoreSampler = Callable[[int, np.random.Generator], Tensor]
"""Draws so many scores, (heads, draws, n)."""


def _gaussian_scores(m: Tensor, C: Tensor) -> ScoreSampler:
    """Scores of one key under h heads are jointly Gaussian: h normal variables a key, whatever its dimension."""
    H, n = m.shape
    noisy = (C.diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten()
    uncorrelated = heads_independent(C)
    if uncorrelated:
        F = torch.diag_embed(C[noisy].diagonal(dim1=1, dim2=2).sqrt()).permute(1, 2, 0)  # (h, r, noisy)
    else:
        values, vectors = torch.linalg.eigh(C[noisy])
        F = (vectors * values.clamp(min=0).sqrt()[:, None, :]).permute(1, 2, 0)
    all_noisy = len(noisy) == n

    # In float32 a score of up to MAX_FLOAT32_SCORE is off by 1e-5 at most, far below the standard errors, and draws of
    # one head cost half as much. Few keys, several heads and narrow scores, where rounding matters, stay in float64.
    max_sd = float(C.diagonal(dim1=1, dim2=2).max()) ** 0.5 if n else 0.0
    top = float((m - m.max(-1, keepdim=True).values).abs().max()) + 8 * max_sd
    enough = n >= MIN_FLOAT32_KEYS and max_sd >= MIN_FLOAT32_SD and top <= MAX_FLOAT32_SCORE
    dtype = torch.float32 if H == 1 and all_noisy and enough else torch.float64
    buffer = torch.empty(0, dtype=dtype)
    shift, factor = (m - m.max(-1, keepdim=True).values).to(dtype), F.to(dtype)

    def draw(some: int, random: np.random.Generator) -> Tensor:
        nonlocal buffer
        count = H * some * len(noisy)
        if count == 0:
            return m[:, None, :].repeat(1, some, 1)
        if len(buffer) < count:
            buffer = torch.empty(count, dtype=dtype)
        random.standard_normal(dtype=buffer.numpy().dtype.type, out=buffer[:count].numpy())
        z = buffer[:count].view(H, some, len(noisy))
        if H == 1 and all_noisy:
            return torch.addcmul(shift, z, factor[0, 0], out=z)
        if H == 1:
            z *= factor[0, 0]
            moved = z
        else:
            moved = z * F.diagonal().mT[:, None, :] if uncorrelated else torch.einsum("hrn,rsn->hsn", F, z)
        if all_noisy:
            moved += shift[:, None, :]
            return moved
        out = m[:, None, :].repeat(1, some, 1)
        out[:, :, noisy] += moved
        return out

    return draw


def _rounded_scores(keys: KeyNoise, queries: Tensor) -> ScoreSampler:
    """Scores of keys rounded to grids with a random offset; a channel with step 0 is not rounded."""
    assert keys.steps is not None
    active = keys.steps > 0
    step, k, q = keys.steps[active], keys.keys[:, active], queries[:, active]
    rest = keys.keys[:, ~active] @ queries[:, ~active].mT

    def draw(some: int, random: np.random.Generator) -> Tensor:
        shift = torch.from_numpy(random.random((some, 1, len(step))))
        rounded = (torch.round(k / step + shift) - shift) * step
        return (rounded @ q.mT + rest).permute(2, 0, 1).contiguous()

    return draw


@dataclass(frozen=True, eq=False)
class _Batch:
    """Means over some draws of α − c and its square, and of o − Vᵀc and its outer product; c is noise-free."""

    n_draws: int
    first: Tensor
    second: Tensor
    output: Tensor
    square: Tensor


def _summary(
    memory: Memory,
    seed: int,
    batches: list[_Batch],
    noise_free: Tensor,
    centre: Tensor,
    watched: dict[Label, Tensor],
) -> Sample:
    """Moments of all draws from those of the batches, whose differences give the standard errors."""
    draws = sum(batch.n_draws for batch in batches)
    share = torch.tensor([batch.n_draws / draws for batch in batches], dtype=torch.float64)
    first, second = torch.stack([b.first for b in batches]), torch.stack([b.second for b in batches])
    output, square = torch.stack([b.output for b in batches]), torch.stack([b.square for b in batches])

    def pooled(x: Tensor) -> Tensor:
        return torch.tensordot(share, x, 1)

    def standard_error(x: Tensor) -> Tensor:
        """Of the mean of the batches, from their variance."""
        return (pooled((x - pooled(x)) ** 2) / max(1, len(batches) - 1)).sqrt()

    def known(se: Tensor, least: int) -> Tensor:
        return se if draws >= least else torch.full_like(se, math.nan)

    mean, out = pooled(first), pooled(output)
    var = (pooled(second) - mean**2).clamp(min=0)
    cov = pooled(square) - torch.outer(out, out)
    # The variance of a batch is taken around the pooled mean: that is the batch's influence on the pooled variance.
    return Sample(
        n_draws=draws,
        seed=seed,
        weights_mean=mean + noise_free,
        weights_mean_se=known((var / max(1, draws - 1)).sqrt(), MIN_DRAWS_FOR_MEAN_SE),
        weights_var=var,
        weights_var_se=known(standard_error(second - 2 * mean * first), MIN_DRAWS_FOR_VAR_SE),
        output_mean=out + centre,
        output_mean_se=known((cov.diagonal().clamp(min=0) / max(1, draws - 1)).sqrt(), MIN_DRAWS_FOR_MEAN_SE),
        output_cov=cov,
        output_cov_se=known(
            standard_error(square - output[:, :, None] * out - out[:, None] * output[:, None, :]), MIN_DRAWS_FOR_VAR_SE
        ),
        labels=memory.labels,
        kept_weights=watched,
    )


def _error_text(se: float) -> str:
    return "unknown" if math.isnan(se) else number(se, 2)


def check_bins(request: str, bins: int) -> int:
    """A number of bins from 1 to MAX_BINS."""
    if whole(request, "bins", bins) > MAX_BINS:
        raise QkvError(request, f"bins is {bins}", f"Give at most {MAX_BINS:,} bins")
    return int(bins)


def _check_memory(request: str, draws: int, items: int) -> None:
    """All drawn weights of the kept items are held: refuse more than fit in memory before drawing the first."""
    free = free_bytes()
    most = free // (BYTES_PER_KEPT_WEIGHT * max(1, items))
    if draws > most:
        need, room = (f"{size / 2**30:,.3g} GB" for size in (BYTES_PER_KEPT_WEIGHT * draws * items, free))
        problem = f"{draws:,} drawn weights of {items} items would take {need}, and {room} are free"
        fewer = "" if items <= 1 else ", or keep fewer items"
        raise QkvError(request, problem, f"Draw at most {most:,}{fewer}; qkv.noise.reading_moments needs no draws")


def free_bytes() -> int:
    """Memory available without swapping; DEFAULT_FREE_BYTES where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024 * int(found.split()[1])
    except (OSError, StopIteration, ValueError):
        return DEFAULT_FREE_BYTES


def generator(seed: int) -> np.random.Generator:
    """A NumPy generator: its normal variables are the same on every machine, and twice as fast as torch's."""
    return np.random.Generator(np.random.SFC64(seed))


def split(total: int, parts: int) -> list[int]:
    """`total` as a sum of `parts` nearly equal integers, without zeros."""
    low, more = divmod(total, parts)
    return [low + (i < more) for i in range(parts) if low + (i < more)]


def weight_range(heads: HeadMix) -> tuple[float, float]:
    """The least and the largest weight of an item in a mix of heads; 0 and 1 where it is positive and sums to 1."""
    low, high = float(heads.mix.clamp(max=0).sum()), float(heads.mix.clamp(min=0).sum())
    return low, 1.0 if abs(high - 1) < 1e-12 else high


def quantile_ranks(p: float, draws: int, confidence: float) -> tuple[int, int]:
    """Ranks, from 1 on, of drawn values that enclose the p-quantile with this confidence; 0 or draws + 1 for none."""
    tail = (1 - confidence) / 2
    if p in (0, 1):
        return (0, 1) if p == 0 else (draws, draws + 1)
    return _binomial_quantile(tail, draws, p), _binomial_quantile(1 - tail, draws, p) + 1


def _binomial_quantile(q: float, draws: int, p: float) -> int:
    """The least k with P(Bin(draws, p) ≤ k) ≥ q."""
    k = max(0, math.floor(float(bdtrik(q, draws, p))) - 1)
    while k < draws and float(bdtr(k, draws, p)) < q:
        k += 1
    return k


def binomial_interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval for a probability: it covers the truth with at least this confidence."""
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, draws - hits + 1, tail))
    high = 1.0 if hits == draws else float(betaincinv(hits + 1, draws - hits, 1 - tail))
    return low, high
