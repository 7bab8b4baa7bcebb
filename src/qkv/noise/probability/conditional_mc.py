"""Chance and law of a reading by drawing all noise but its largest part, which is integrated in closed form."""

# One key's noise often moves the scores far more than the rest: its leading normal number z moves one score, under one
# head h, by λz. Draw everything else. Then that item's weight under h is p = 1/(1 + e^(r − s − λz)), with r the
# logsumexp of the other scores; the output is A + pW with A and W known; ‖A + pW − target‖ ≤ tol is an interval of
# p, so of z, and Φ measures it. Any item's weight is monotone in p, so its distribution function is Φ of something too.
# What is left to chance is how these vary between draws: nothing at all, where the other noise is small.

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.noise.key_noise import KeyNoise, independent
from qkv.noise.monte_carlo import generator

FLAT = 1e-300
LEADS = 4.0
"""How many times larger the leading variance must be than any other: else plain draws tell as much, more simply."""


@dataclass(frozen=True, eq=False)
class ConditionalDraws:
    """Draws of all but the leading number: the leading item's logit under its head is `logit` + `size` z."""

    item: int
    head: int
    size: float
    logit: Tensor  # (draws,)
    weights: Tensor  # (draws, h, n): of the other items among themselves under the head that leads, in full elsewhere
    mix: Tensor

    def chance(self, values: Tensor, goal: Tensor, tol: float) -> tuple[float, float]:
        """The probability that the output is within tol of the goal, and its standard error."""
        # With p = 0 the others share everything; W is what changes as p goes to 1.
        at_zero = torch.einsum("h,mhn->mn", self.mix, self.weights) @ values - goal
        W = self.mix[self.head] * (values[self.item] - self.weights[:, self.head] @ values)
        a, b = W.square().sum(-1), (at_zero * W).sum(-1)
        nearest = (-b / a.clamp(min=FLAT)).clamp(0, 1)
        far = (at_zero + nearest[:, None] * W).norm(dim=-1)
        # |A + pW|² is least at p* = −b/a; it is at most tol² within √((tol² − least²)/a) of it.
        least = (at_zero - (b / a.clamp(min=FLAT))[:, None] * W).square().sum(-1)
        half = ((tol**2 - least).clamp(min=0) / a.clamp(min=FLAT)).sqrt()
        middle = -b / a.clamp(min=FLAT)
        inside = self._below(middle + half) - self._below(middle - half)
        return _mean(torch.where(far <= tol, inside, torch.zeros_like(inside)))

    def below(self, item: int, edges: Tensor) -> tuple[Tensor, float]:
        """P(weight of the item ≤ edge), and how far it may be off by its standard error."""
        fixed = torch.einsum("h,mh->m", self.mix, self.weights[:, :, item])
        if item == self.item:
            start, slope = fixed, torch.full_like(fixed, float(self.mix[self.head]))
        else:
            start, slope = fixed, -self.mix[self.head] * self.weights[:, self.head, item]
        p = (edges - start[:, None]) / torch.where(slope.abs() < FLAT, torch.full_like(slope, FLAT), slope)[:, None]
        under = self._below(p)
        each = under if item == self.item else 1 - under
        error = each.std(0, correction=0).max() / math.sqrt(len(each))
        return each.mean(0), float(error)

    def _below(self, p: Tensor) -> Tensor:
        """P(the leading item's weight under its head ≤ p), draw by draw."""
        z = torch.logit(p.clamp(0, 1)) - (self.logit if p.dim() == 1 else self.logit[:, None])
        return 0.5 * torch.special.erfc(-z / (self.size * math.sqrt(2)))


def led(keys: KeyNoise, queries: Tensor, mix: Tensor, draws: int, seed: int) -> ConditionalDraws | None:
    """Draws of all but the leading normal number; None where none leads, or it moves several heads."""
    if keys.steps is not None or len(keys.keys) < 2 or float(mix.min()) <= 0:
        return None
    m, C = keys.score_means(queries), keys.score_covariance(queries)
    own = C.diagonal(dim1=1, dim2=2)  # (n, h)
    item, head = divmod(int(own.argmax()), own.shape[1])
    size = math.sqrt(float(own[item, head]))
    if size == 0 or float(C[item, head].abs().sum() - own[item, head].abs()) > 1e-12 * size**2:
        return None
    rest = C.clone()
    rest[item, head, :] = rest[item, :, head] = 0.0
    if LEADS * float(rest.diagonal(dim1=1, dim2=2).max()) > size**2:
        return None
    if not bool((rest != 0).any()):
        draws = 1
    z = torch.from_numpy(generator(seed).standard_normal((draws, *m.shape)))
    if independent(rest):
        scores = m + z * rest.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt().mT
    else:
        values, vectors = torch.linalg.eigh(rest)
        F = vectors * values.clamp(min=0).sqrt()[:, None, :]  # (n, h, r)
        scores = m + torch.einsum("nhr,mrn->mhn", F, z)
    own_score = scores[:, head, item].clone()
    scores[:, head, item] = -math.inf
    r = torch.logsumexp(scores[:, head], -1)
    return ConditionalDraws(item, head, size, own_score - r, torch.softmax(scores, -1), mix)


def _mean(each: Tensor) -> tuple[float, float]:
    return float(each.mean()), float(each.std(correction=0)) / math.sqrt(len(each))
