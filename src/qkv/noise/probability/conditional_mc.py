"""Conditional Monte Carlo: draw all noise but its largest part, and integrate that in closed form."""

# The noise of one key often moves the scores far more than the rest: its leading normal variable z moves one score,
# under one head h, by λz. Draw everything else. Then that item's weight under h is p = 1/(1 + e^(r − s − λz)), with r
# the logsumexp of the other scores; the output is A + pW with A and W known; ‖A + pW − target‖ ≤ radius is an interval
# of p, so of z, and Φ gives its probability. Any item's weight is monotone in p, so its distribution function is also
# a value of Φ. Only the variation between draws is left as an error: none, where there is no other noise.

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import ndtr

from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import KeyNoise, heads_independent
from qkv.noise.method import Method
from qkv.noise.monte_carlo import generator

MIN_SLOPE = 1e-300
"""Replaces a slope of 0 in a division; the quotient is then not used, or clamped."""
MIN_VARIANCE_RATIO = 4.0
"""How many times larger the leading variance must be than any other: else plain Monte Carlo does as well."""


@dataclass(frozen=True, eq=False)
class ConditionalDraws:
    """Draws of all noise but the leading variable z: the leading item's logit under its head is `logit` + `size` z."""

    item: int
    head: int
    size: float
    logit: Tensor  # (draws,)
    weights: Tensor  # (draws, h, n); under the leading head, of the other items without the leading one
    mix: Tensor

    @property
    def method(self) -> Method:
        """ "exact" if there is no other noise to draw."""
        return "exact" if len(self.logit) == 1 else "conditional_mc"

    def probability_within(self, values: Tensor, target: Tensor, radius: float) -> tuple[float, float]:
        """P(‖output − target‖ ≤ radius), and its standard error."""
        # With p = 0 the others have all the weight of the leading head; W is the change as p goes to 1.
        at_zero = torch.einsum("h,mhn->mn", self.mix, self.weights) @ values - target
        W = self.mix[self.head] * (values[self.item] - self.weights[:, self.head] @ values)
        a, b = W.square().sum(-1), (at_zero * W).sum(-1)
        centre = -b / a.clamp(min=MIN_SLOPE)
        distance = (at_zero + centre.clamp(0, 1)[:, None] * W).norm(dim=-1)
        # ‖A + pW‖² is least at the centre −b/a; it is at most radius² within √((radius² − least²)/a) of it.
        least = (at_zero + centre[:, None] * W).square().sum(-1)
        half = ((radius**2 - least).clamp(min=0) / a.clamp(min=MIN_SLOPE)).sqrt()
        inside = self._leading_below(centre + half) - self._leading_below(centre - half)
        inside = torch.where(distance <= radius, inside, torch.zeros_like(inside))
        return float(inside.mean()), float(inside.std(correction=0)) / math.sqrt(len(inside))

    def below(self, item: int, edges: Tensor) -> tuple[Tensor, float]:
        """P(weight of the item ≤ edge) for each edge, and the largest of their standard errors."""
        start = torch.einsum("h,mh->m", self.mix, self.weights[:, :, item])
        if item == self.item:
            slope = torch.full_like(start, float(self.mix[self.head]))
        else:
            slope = -self.mix[self.head] * self.weights[:, self.head, item]
        flat = slope.abs() < MIN_SLOPE
        p = (edges - start[:, None]) / torch.where(flat, torch.full_like(slope, MIN_SLOPE), slope)[:, None]
        under = self._leading_below(p)
        each = under if item == self.item else 1 - under
        error = each.std(0, correction=0).max() / math.sqrt(len(each))
        return each.mean(0), float(error)

    def _leading_below(self, p: Tensor) -> Tensor:
        """P(the leading item's weight under its head ≤ p), draw by draw."""
        z = torch.logit(p.clamp(0, 1)) - (self.logit if p.dim() == 1 else self.logit[:, None])
        return ndtr(z / self.size)


def conditional_draws(keys: KeyNoise, heads: HeadMix, n_draws: int, seed: int) -> ConditionalDraws | None:
    """Draws of all but the leading variable; None where no variable dominates, or where it moves several heads."""
    if keys.steps is not None or len(keys.keys) < 2 or float(heads.mix.min()) <= 0:
        return None
    m, C = keys.score_means(heads.queries), keys.score_covariance(heads.queries)
    own = C.diagonal(dim1=1, dim2=2)  # (n, h)
    item, head = divmod(int(own.argmax()), own.shape[1])
    size = math.sqrt(float(own[item, head]))
    if size == 0 or float(C[item, head].abs().sum() - own[item, head].abs()) > 1e-12 * size**2:
        return None
    rest = C.clone()
    rest[item, head, :] = rest[item, :, head] = 0.0
    if MIN_VARIANCE_RATIO * float(rest.diagonal(dim1=1, dim2=2).max()) > size**2:
        return None
    if not bool((rest != 0).any()):
        n_draws = 1
    z = torch.from_numpy(generator(seed).standard_normal((n_draws, *m.shape)))
    if heads_independent(rest):
        scores = m + z * rest.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt().mT
    else:
        values, vectors = torch.linalg.eigh(rest)
        F = vectors * values.clamp(min=0).sqrt()[:, None, :]  # (n, h, r)
        scores = m + torch.einsum("nhr,mrn->mhn", F, z)
    own_score = scores[:, head, item].clone()
    scores[:, head, item] = -math.inf
    r = torch.logsumexp(scores[:, head], -1)
    return ConditionalDraws(item, head, size, own_score - r, torch.softmax(scores, -1), heads.mix)
