"""within: the probability that the output comes within a tolerance of a target."""

# The output depends on the noise through the scores alone. If one or two independent normal numbers move all
# of them (one noisy key under one or two heads, two noisy keys under one head, …) the probability is an
# integral of φ over the set where the distance is at most tol: along z₁ (for each z₀) the distance is sampled
# finely, its crossings of tol are placed between samples, and Φ measures the intervals between them. Else
# readings are drawn and counted.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.validation import check_range, finite, level, same_width, tensor, whole
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.key_noise import Noise, laid_on
from qkv.noise.moments.mixture import heads_of
from qkv.noise.monte_carlo import binomial_interval, generator, readings

FEW = 2
"""Normal numbers up to which the probability is integrated."""
LINE, SHEET = 20_001, 1_201
"""Nodes in the only direction, and in each of two."""
BISECTIONS = 50
CUT = 8.5
DRAWS = 100_000


@dataclass(frozen=True)
class SuccessProbability(Displayable):
    """The probability that the output is within `tol` of the target, and an interval that holds it.

    By quadrature the interval is the estimate ± its change from half as many nodes; by sampling it is
    Clopper and Pearson's at `confidence`.
    """

    probability: float
    low: float
    high: float
    method: str
    radius: float
    n_draws: int
    confidence: float

    def card(self) -> Card:
        sure = "by quadrature" if self.method == "quadrature" else f"from {self.n_draws} draws"
        return Card(
            title=f"Output within {number(self.radius)} of the target",
            facts=(
                ("probability", f"{number(self.probability, 6)}, {sure}"),
                ("between", f"{number(self.low, 6)} and {number(self.high, 6)}"),
            ),
        )


def success_probability(
    memory: Memory,
    query: Any,
    noise: Noise,
    target: Any,
    radius: float,
    *,
    mix: Any = None,
    n_draws: int = DRAWS,
    seed: int = 0,
    confidence: float = 0.95,
) -> SuccessProbability:
    """P(‖output − target‖ ≤ tol); `target` is a vector (dv,), or wanted weights of items, as {"a": 1.0}."""
    asked = "the chance of an output near a target"
    queries, weights = heads_of(asked, memory, query, mix)
    queries, weights = queries.detach(), weights.detach()
    goal = target_of(asked, memory, target)
    radius = finite(asked, "tol", radius)
    if radius <= 0:
        raise QkvError(asked, f"tol is {radius:g}", "Give a distance above 0")
    n_draws, seed = whole(asked, "n_draws", n_draws), whole(asked, "seed", seed, least=0)
    confidence = level(asked, confidence)
    keys = laid_on(asked, noise, memory)
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    check_range(asked, m, C)
    moves = few_directions(C) if keys.steps is None else None
    if moves is not None:
        few = gathered(m, moves)
        # Each head's few columns and the target span few dimensions, whatever the values' own is.
        columns = torch.cat([few.values(memory.values).flatten(0, 1), goal[None]])
        flat = torch.linalg.qr(columns.mT, mode="r").R.mT
        parts, aim = flat[:-1].reshape(len(m), -1, flat.shape[1]), flat[-1]

        def excess(z: Tensor) -> Tensor:
            """‖output − target‖ − tol, for normal numbers z (points, directions)."""
            output = torch.einsum("h,phk,hkd->pd", weights, few.weights(z), parts)
            return torch.linalg.vector_norm(output - aim, dim=-1) - radius

        p, error = _measure(excess, moves.shape[0])
        return SuccessProbability(p, max(0.0, p - error), min(1.0, p + error), "quadrature", radius, 0, 1.0)
    drawn = readings(keys, queries, weights, n_draws, generator(seed))
    return counted(sum(near(alpha.double(), memory, goal, radius) for alpha in drawn), n_draws, radius, confidence)


def near(weights: Tensor, memory: Memory, goal: Tensor, tol: float) -> int:
    """How many of some readings' outputs are within tol of the target."""
    return int((torch.linalg.vector_norm(weights @ memory.values - goal, dim=-1) <= tol).sum())


def counted(hits: int, draws: int, tol: float, confidence: float) -> SuccessProbability:
    """The probability that so many hits among so many draws tell."""
    low, high = binomial_interval(hits, draws, confidence)
    return SuccessProbability(hits / draws, low, high, "sampling", tol, draws, confidence)


def target_of(asked: str, memory: Memory, target: Any) -> Tensor:
    """A vector of the values' dimension, given as such or as the blend of items it should be."""
    if isinstance(target, Mapping):
        blend = BlendSpec.of(memory, target, 0.5)
        return torch.tensor(blend.weights, dtype=torch.float64) @ memory.values[list(blend.items)]
    goal = tensor("target", target, "dv")
    same_width(asked, target=goal, values=memory.values)
    return goal


@dataclass(frozen=True, eq=False)
class LowRankScores:
    """Few items that move, and all others as one: their scores do not move, so each keeps its share among them."""

    places: Tensor
    still: Tensor
    scores: Tensor  # (h, moving + 1)
    moves: Tensor  # (directions, h, moving + 1)
    shares: Tensor  # (h, still): of each still item among them

    def weights(self, z: Tensor) -> Tensor:
        """Weights of the moving items and of all others together, (points, h, moving + 1)."""
        return torch.softmax(self.scores + torch.einsum("pr,rhk->phk", z, self.moves), -1)

    def values(self, values: Tensor) -> Tensor:
        """What each column reads, (h, moving + 1, dv)."""
        own = values[self.places].expand(len(self.scores), -1, -1)
        return torch.cat([own, (self.shares @ values[self.still])[:, None, :]], dim=1)

    def of(self, item: int) -> tuple[int, Tensor]:
        """The column that an item is in, and its share of it under each head."""
        moving = (self.places == item).nonzero().flatten()
        if len(moving):
            return int(moving[0]), torch.ones(len(self.scores), dtype=torch.float64)
        return len(self.places), self.shares[:, int((self.still == item).nonzero()[0])]


def gathered(m: Tensor, moves: Tensor) -> LowRankScores:
    """Items whose scores move in few directions, apart from all others."""
    moving = (moves != 0).any(0).any(0)
    places, still = moving.nonzero().flatten(), (~moving).nonzero().flatten()
    rest = torch.logsumexp(m[:, still], -1, keepdim=True)
    return LowRankScores(
        places,
        still,
        torch.cat([m[:, places], rest], dim=1),
        torch.cat([moves[:, :, places], moves.new_zeros(*moves.shape[:2], 1)], dim=2),
        torch.softmax(m[:, still], -1),
    )


def few_directions(C: Tensor) -> Tensor | None:
    """How each of few independent normal numbers moves the scores, (numbers, h, n); None if they are many."""
    H = C.shape[1]
    out = []
    noisy = (C.diagonal(dim1=1, dim2=2) > 0).any(1).nonzero().flatten().tolist()
    if len(noisy) > FEW:
        return None
    for j in noisy:
        values, vectors = torch.linalg.eigh(C[j])
        for k in (values > 1e-14 * values[-1]).nonzero().flatten().tolist():
            move = torch.zeros(H, C.shape[0], dtype=torch.float64)
            move[:, j] = vectors[:, k] * values[k].sqrt()
            out.append(move)
    if len(out) > FEW:
        return None
    return torch.stack(out) if out else torch.zeros(0, H, C.shape[0], dtype=torch.float64)


def _measure(excess: Callable[[Tensor], Tensor], directions: int) -> tuple[float, float]:
    """The normal measure of the points where the excess is not positive, and how sure it is."""
    if directions == 0:
        return float(excess(torch.zeros(1, 0, dtype=torch.float64))[0] <= 0), 0.0
    if directions == 1:
        fine, coarse = (_line(excess, count) for count in (LINE, LINE // 2 + 1))
        return fine, 2 * abs(fine - coarse) + 1e-12
    fine, coarse = (_sheet(excess, count) for count in (SHEET, SHEET // 2 + 1))
    return fine, 2 * abs(fine - coarse) + 1e-9


def _line(excess: Callable[[Tensor], Tensor], count: int) -> float:
    z = torch.linspace(-CUT, CUT, count, dtype=torch.float64)
    f = torch.cat([excess(part[:, None]) for part in z.split(4096)])
    inside = f <= 0
    turn = (inside[1:] != inside[:-1]).nonzero().flatten()
    low, high = z[turn], z[turn + 1]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (excess(middle[:, None]) <= 0) == inside[turn]
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return _between(torch.cat([z[:1], low, z[-1:]]), bool(inside[0]))


def _between(ends: Tensor, inside: bool) -> float:
    """Φ of every second interval between the ends, from the first one if that is inside."""
    below = 0.5 * torch.special.erfc(-ends / math.sqrt(2))
    below[0], below[-1] = 0.0, 1.0
    pieces = below.diff()
    return float(pieces[0 if inside else 1 :: 2].sum())


def _sheet(excess: Callable[[Tensor], Tensor], count: int) -> float:
    """For each z₀ the measure along z₁, by linear placing of crossings; then the trapezoid rule over z₀."""
    z = torch.linspace(-CUT, CUT, count, dtype=torch.float64)
    below = 0.5 * torch.special.erfc(-z / math.sqrt(2))
    density = torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (2 * CUT / (count - 1))
    total = 0.0
    for first, share in zip(z, density, strict=True):
        f = excess(torch.stack([first.expand(count), z], dim=1))
        a, b = f[:-1], f[1:]
        cross = (a <= 0) != (b <= 0)
        at = torch.where(cross, a / torch.where(cross, a - b, torch.ones_like(a)), torch.zeros_like(a))
        middle = 0.5 * torch.special.erfc(-(z[:-1] + at * z.diff()) / math.sqrt(2))
        left = torch.where(a <= 0, torch.where(cross, middle, below[1:]) - below[:-1], torch.zeros_like(a))
        right = torch.where(cross & (b <= 0), below[1:] - middle, torch.zeros_like(a))
        total += float(share * (left + right).sum())
    return total
