"""sample: seeded Monte Carlo of a reading, drawing scores instead of keys."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import betaincinv
from torch import Tensor

from qkv.core.attention import SHOWN, Label
from qkv.core.display import Card, Displayable, number, vector
from qkv.core.memory import Memory
from qkv.core.validation import check_range, level, whole
from qkv.errors import QkvError
from qkv.noise.key_noise import KeyNoise, Noise, independent, laid_on
from qkv.noise.moments.mixture import heads_of

CHUNK = 2**18
SHORT, NARROW, MANY = 80.0, 1e-2, 256
"""Scores drawn at once: small enough to stay in the processor's cache, which is worth a factor of two."""
BATCHES = 64
"""Independent parts of a run, whose scatter tells the standard errors."""
WATCHED, KEPT = 4, 24
"""Items that are watched unless others are named, and the bytes that each of their drawn weights takes: in pieces,
together, and sorted."""


@dataclass(frozen=True, eq=False)
class Sample(Displayable):
    """Moments of `draws` random readings, each with its standard error, and some items' weights in full.

    `watched` maps the heaviest items, or those asked for, to all their drawn weights.
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
    watched: dict[Label, Tensor] = field(repr=False)

    def quantile(self, item: Label, p: float, confidence: float = 0.95) -> tuple[float, float, float]:
        """The p-quantile of a watched item's weight, with the ends of its confidence interval.

        The true quantile lies between two order statistics as surely as a binomial count between their ranks.
        """
        asked = f"the {p!r}-quantile of the weight of {item!r}"
        if not 0 <= p <= 1:
            raise QkvError(asked, f"p is {p!r}", "Give a number from 0 to 1")
        ordered = self._watched(asked, item).sort().values
        low, high = binomial_interval(round(p * self.n_draws), self.n_draws, level(asked, confidence))
        at = [min(self.n_draws - 1, max(0, int(x * self.n_draws))) for x in (p, low, high)]
        a, b, c = (float(ordered[i]) for i in at)
        return a, min(a, b), max(a, c)

    def histogram(self, item: Label, bins: int = 50) -> tuple[Tensor, Tensor]:
        """Counts of a watched item's weight in equal bins from 0 to 1 (or beyond, if need be), and edges."""
        asked = f"a histogram of the weight of {item!r}"
        drawn = self._watched(asked, item)
        low, high = min(0.0, float(drawn.min())), max(1.0, float(drawn.max()))
        bins = whole(asked, "bins", bins)
        return torch.histc(drawn, bins, low, high), torch.linspace(low, high, bins + 1, dtype=torch.float64)

    def _watched(self, asked: str, item: Label) -> Tensor:
        if item not in self.watched:
            shown = ", ".join(map(repr, self.watched))
            raise QkvError(asked, f"only {shown} were watched", f"Sample again with watch=[{item!r}]")
        return self.watched[item]

    def card(self) -> Card:
        order = self.weights_mean.abs().argsort(descending=True, stable=True).tolist()[:SHOWN]
        n = len(self.labels)

        def row(i: int) -> tuple[str, str, str]:
            mean, var = self.weights_mean, self.weights_var
            return (
                str(self.labels[i]),
                f"{number(float(mean[i]))} ± {number(float(self.weights_mean_se[i]), 2)}",
                f"{number(float(var[i]))} ± {number(float(self.weights_var_se[i]), 2)}",
            )

        return Card(
            title=f"{self.n_draws} random readings of {n} item{'s' * (n != 1)}",
            facts=(("mean output", vector(self.output_mean.tolist())), ("seed", str(self.seed))),
            columns=("item", "mean weight", "variance"),
            rows=tuple(row(i) for i in order),
            note=f"± is one standard error{f'; … {n - SHOWN} more' if n > SHOWN else ''}",
        )


def sample(
    memory: Memory,
    query: Any,
    noise: Noise,
    n_draws: int = 1_000_000,
    seed: int = 0,
    *,
    mix: Any = None,
    keep_items: Any = None,
) -> Sample:
    """Monte Carlo moments of what `query`, or several heads, read; the same seed gives the same figures."""
    asked = "sampling a reading"
    queries, weights = heads_of(asked, memory, query, mix)
    queries, weights = queries.detach(), weights.detach()
    n_draws, seed = whole(asked, "n_draws", n_draws), whole(asked, "seed", seed, least=0)
    keys = laid_on(asked, noise, memory)
    plain = weights @ torch.softmax(keys.score_means(queries), -1)
    if keep_items is None:
        items = plain.abs().topk(min(WATCHED, memory.n)).indices.tolist()
    else:
        items = [memory.index(item) for item in keep_items]
    _fits(asked, n_draws, len(items))
    centre = plain @ memory.values
    values = memory.values - centre
    short = values.float()
    random = generator(seed)
    seen: list[Tensor] = []
    parts: list[tuple[int, Tensor, Tensor, Tensor, Tensor]] = []
    for rows in split(n_draws, min(BATCHES, n_draws)):
        sums = [torch.zeros(memory.n, dtype=torch.float64) for _ in range(2)]
        output, square = (
            torch.zeros(memory.dv, dtype=torch.float64),
            torch.zeros(memory.dv, memory.dv).double(),
        )
        for alpha in readings(keys, queries, weights, rows, random):
            seen.append(alpha[:, items].double())
            o = alpha @ (values if alpha.dtype == torch.float64 else short)
            output += o.sum(0)
            square += o.mT @ o
            alpha -= plain.to(alpha.dtype)
            sums[0] += torch.ones(len(alpha), dtype=alpha.dtype) @ alpha
            sums[1] += torch.linalg.vector_norm(alpha, dim=0).double().square()
        parts.append((rows, sums[0] / rows, sums[1] / rows, output / rows, square / rows))
    return _summary(memory, n_draws, seed, parts, plain, centre * weights.sum(), items, torch.cat(seen))


def readings(keys: KeyNoise, queries: Tensor, mix: Tensor, rows: int, random: np.random.Generator) -> Iterator[Tensor]:
    """Weights of `rows` random readings, (some, n) at a time, in memory that the next ones overwrite."""
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range("sampling a reading", m, C)
    H, n = m.shape
    draw = _rounded(keys, queries) if keys.steps is not None else _gaussian(m, C)
    size = max(1, CHUNK // (H * n))
    if keys.steps is not None:
        size = max(1, size // keys.keys.shape[1])
    for some in split(rows, math.ceil(rows / size)):
        scores = draw(some, random)  # (heads, some, n)
        if scores.dtype == torch.float64:  # float32 is taken for scores that cannot overflow
            scores -= scores.amax(-1, keepdim=True)
        scores.exp_()
        scores *= mix[:, None, None].to(scores.dtype) / scores.sum(-1, keepdim=True)
        yield scores[0] if H == 1 else scores.sum(0)


def _gaussian(m: Tensor, C: Tensor) -> Any:
    """One key's scores under h heads are jointly Gaussian: h numbers a key, however long the key is."""
    H, n = m.shape
    noisy = (C.diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten()
    apart = independent(C)
    if apart:
        F = torch.diag_embed(C[noisy].diagonal(dim1=1, dim2=2).sqrt()).permute(1, 2, 0)  # (h, r, noisy)
    else:
        values, vectors = torch.linalg.eigh(C[noisy])
        F = (vectors * values.clamp(min=0).sqrt()[:, None, :]).permute(1, 2, 0)
    everywhere = len(noisy) == n

    # In float32 a score of up to SHORT is off by 1e-5 at most, far below what so many draws can tell, and one head's
    # draws cost half as much. Few keys, several heads and spreads so narrow that rounding would show stay in float64.
    wide = float(C.diagonal(dim1=1, dim2=2).max()) ** 0.5 if n else 0.0
    top = float((m - m.max(-1, keepdim=True).values).abs().max()) + 8 * wide
    short = H == 1 and everywhere and n >= MANY and wide >= NARROW and top <= SHORT
    dtype = torch.float32 if short else torch.float64
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
        if H == 1 and everywhere:
            return torch.addcmul(shift, z, factor[0, 0], out=z)
        if H == 1:
            z *= factor[0, 0]
            moved = z
        else:
            moved = z * F.diagonal().mT[:, None, :] if apart else torch.einsum("hrn,rsn->hsn", F, z)
        if everywhere:
            moved += shift[:, None, :]
            return moved
        out = m[:, None, :].repeat(1, some, 1)
        out[:, :, noisy] += moved
        return out

    return draw


def _rounded(keys: KeyNoise, queries: Tensor) -> Any:
    """Keys rounded to grids whose places are random; a channel that does not vary needs no grid."""
    assert keys.steps is not None
    active = keys.steps > 0
    step, k, q = keys.steps[active], keys.keys[:, active], queries[:, active]
    rest = keys.keys[:, ~active] @ queries[:, ~active].mT

    def draw(some: int, random: np.random.Generator) -> Tensor:
        shift = torch.from_numpy(random.random((some, 1, len(step))))
        rounded = (torch.round(k / step + shift) - shift) * step
        return (rounded @ q.mT + rest).permute(2, 0, 1).contiguous()

    return draw


def _summary(
    memory: Memory,
    draws: int,
    seed: int,
    parts: list[tuple[int, Tensor, Tensor, Tensor, Tensor]],
    plain: Tensor,
    centre: Tensor,
    items: list[int],
    seen: Tensor,
) -> Sample:
    share = torch.tensor([part[0] / draws for part in parts], dtype=torch.float64)
    first, second, output, square = (torch.stack(rows) for rows in zip(*(part[1:] for part in parts), strict=True))

    def pooled(x: Tensor) -> Tensor:
        return torch.tensordot(share, x, 1)

    def scatter(x: Tensor) -> Tensor:
        """The standard error of the mean of the parts, from how they scatter."""
        return (pooled((x - pooled(x)) ** 2) / max(1, len(parts) - 1)).sqrt()

    mean, out = pooled(first), pooled(output)
    var = (pooled(second) - mean**2).clamp(min=0)
    cov = pooled(square) - torch.outer(out, out)
    # Around the pooled mean, a part's variance is its mean of (x − mean)²: the influence of one part on the
    # whole.
    return Sample(
        n_draws=draws,
        seed=seed,
        weights_mean=mean + plain,
        weights_mean_se=(var / draws).sqrt(),
        weights_var=var,
        weights_var_se=scatter(second - 2 * mean * first),
        output_mean=out + centre,
        output_mean_se=(cov.diagonal().clamp(min=0) / draws).sqrt(),
        output_cov=cov,
        output_cov_se=scatter(square - output[:, :, None] * out - out[:, None] * output[:, None, :]),
        labels=memory.labels,
        watched={memory.labels[i]: seen[:, at] for at, i in enumerate(items)},
    )


def _fits(asked: str, draws: int, items: int) -> None:
    """Every drawn weight of the watched items is kept: refuse what memory cannot hold, before the first is drawn."""
    free = free_bytes()
    most = free // (KEPT * max(1, items))
    if draws > most:
        need, room = (f"{size / 2**30:,.3g} GB" for size in (KEPT * draws * items, free))
        came = f"{draws:,} drawn weights of {items} items would take {need}, and {room} are free"
        fewer = "" if items <= 1 else ", or watch fewer items"
        raise QkvError(asked, came, f"Draw at most {most:,}{fewer}; qkv.noise.spread needs no draws")


def free_bytes() -> int:
    """Memory that can be had without pushing others out; where the system does not say, 4 GB are supposed."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024 * int(found.split()[1])
    except (OSError, StopIteration, ValueError):
        return 4 * 2**30


def generator(seed: int) -> np.random.Generator:
    """Normal numbers in double precision at twice torch's speed; the same on every machine."""
    return np.random.Generator(np.random.SFC64(seed))


def split(total: int, parts: int) -> list[int]:
    """`total` in `parts` nearly equal whole numbers, without zeros."""
    low, more = divmod(total, parts)
    return [low + (i < more) for i in range(parts) if low + (i < more)]


def binomial_interval(hits: int, draws: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval for a probability: it holds the truth at least that often."""
    out = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, draws - hits + 1, out))
    high = 1.0 if hits == draws else float(betaincinv(hits + 1, draws - hits, 1 - out))
    return low, high
