"""Conditional Monte Carlo: draw all noise but its largest part, and integrate that in closed form."""

# The noise of one key often moves the scores far more than the rest: its leading normal variable z moves one score,
# under one head h, by λz. Draw everything else. Then that item's weight under h is p = 1/(1 + e^(r − s − λz)), with r
# the logsumexp of the other scores; the output is A + pW with A and W known; ‖A + pW − target‖ ≤ radius is an interval
# of p, so of z, and Φ gives its probability. Any item's weight is monotone in p, so its distribution function is also
# a value of Φ. Only the variation between draws is left as an error.

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy.optimize import brentq
from scipy.special import rel_entr
from torch import Tensor
from torch.special import ndtr

from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import KeyNoise, heads_independent, without_rounding
from qkv.noise.monte_carlo import generator
from qkv.noise.probability.ball_on_segment import Array, ball_on_segment, normal_mass

MIN_SLOPE = 1e-300
"""Replaces a slope of 0 in a division; the quotient is then not used, or clamped."""
MIN_VARIANCE_RATIO = 4.0
"""How many times larger the leading variance must be than any other: else plain Monte Carlo does as well."""
TINY, EPSILON = 1e-300, 1e-16
"""The ends of probabilities between which roots are searched."""
TAIL, TAIL_MASS = 7.0, 2.6e-12
"""P(|N(0,1)| > 7) = 2.6e-12: no other score is further from its mean, up to so much for each."""
ROUNDING = 1e-9
"""Rounding of one draw's probability."""


@dataclass(frozen=True, eq=False)
class ConditionalDraws:
    """Draws of all noise but the leading variable z: the leading item's logit under its head is `logit` + `size` z.

    The last draw is none: it has all other scores at their means. `change` bounds how much the other noise changes the
    weights of each head, (h,), as a total-variation distance, except with probability `tail`.
    """

    item: int
    head: int
    size: float
    logits: Tensor  # (draws + 1,)
    all_weights: Tensor  # (draws + 1, h, n); under the leading head, of the other items without the leading one
    mix: Tensor
    change: Tensor
    tail: float

    @property
    def logit(self) -> Tensor:
        """Logits of the draws, (draws,)."""
        return self.logits[:-1]

    @property
    def weights(self) -> Tensor:
        """Weights of the draws, (draws, h, n)."""
        return self.all_weights[:-1]

    def probability_within(
        self, values: Tensor, target: Tensor, radius: float, confidence: float
    ) -> tuple[float, float, float]:
        """P(‖output − target‖ ≤ radius), and the ends of an interval that holds it with this confidence.

        For every z the other noise moves the output by at most some distance, so each draw's probability lies between
        those of a smaller and of a larger ball without other noise.
        """
        # With p = 0 the others have all the weight of the leading head; W is the change as p goes to 1.
        start = (torch.einsum("h,mhn->mn", self.mix, self.all_weights) @ values - target).numpy()
        W = (self.mix[self.head] * (values[self.item] - self.all_weights[:, self.head] @ values)).numpy()
        logits = self.logits.numpy()

        def masses(rows: slice, r: float) -> Array:
            low, high = ball_on_segment(start[rows], start[rows] + W[rows], r)
            return normal_mass((low - logits[rows]) / self.size, (high - logits[rows]) / self.size)

        drawn = masses(slice(0, -1), radius)
        moved = float(self.mix.abs() @ self.change) * _diameter(values)
        least = float(masses(slice(-1, None), radius - moved)[0]) if radius > moved else 0.0
        most = float(masses(slice(-1, None), radius + moved)[0])
        p, low, high = bounded_mean(drawn, max(0.0, least - ROUNDING), min(1.0, most + ROUNDING), confidence)
        return p, max(0.0, low - self.tail - ROUNDING), min(1.0, high + self.tail + ROUNDING)

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


def bounded_mean(drawn: Array, least: float, most: float, confidence: float) -> tuple[float, float, float]:
    """The mean of independent draws that lie between two numbers, and an interval that holds their expectation.

    It is the intersection of Maurer and Pontil's empirical Bernstein interval, which is short if the draws vary little,
    and of Chernoff and Hoeffding's, which is short near the ends; each holds with half of the error probability.
    """
    n, width = len(drawn), most - least
    p = float(drawn.mean())
    if width <= 0 or n < 2:
        return p, min(p, least), max(p, most)
    at_most = (1 - confidence) / 2
    spread = float(drawn.var(ddof=1))
    bernstein = math.sqrt(2 * spread * math.log(4 / at_most) / n) + 7 * width * math.log(4 / at_most) / (3 * (n - 1))
    share, limit = min(1.0, max(0.0, (p - least) / width)), math.log(2 / at_most) / n

    def excess(q: float) -> float:
        return float(rel_entr(share, q) + rel_entr(1 - share, 1 - q)) - limit

    low = 0.0 if share == 0 or excess(TINY) <= 0 else float(brentq(excess, TINY, share))
    high = 1.0 if share == 1 or excess(1 - EPSILON) <= 0 else float(brentq(excess, share, 1 - EPSILON))
    low, high = least + width * low, least + width * high
    return p, min(p, max(low, p - bernstein)), max(p, min(high, p + bernstein))


def _diameter(values: Tensor) -> float:
    """Bound on the largest distance between two values."""
    return 2 * float(torch.linalg.vector_norm(values - values.mean(0), dim=1).max())


def conditional_draws(keys: KeyNoise, heads: HeadMix, n_draws: int, seed: int) -> ConditionalDraws | None:
    """Draws of all but the leading variable.

    None where no variable dominates, where it moves several heads, or where there is no other noise.
    """
    if keys.steps is not None or len(keys.keys) < 2 or float(heads.mix.min()) <= 0:
        return None
    m = keys.score_means(heads.queries)
    C = without_rounding(keys.score_covariance(heads.queries), keys.score_rounding(heads.queries))
    own = C.diagonal(dim1=1, dim2=2)  # (n, h)
    item, head = divmod(int(own.argmax()), own.shape[1])
    size = math.sqrt(float(own[item, head]))
    if size == 0 or float(C[item, head].abs().sum() - own[item, head].abs()) > 1e-12 * size**2:
        return None
    rest = C.clone()
    rest[item, head, :] = rest[item, :, head] = 0.0
    if not bool((rest != 0).any()) or MIN_VARIANCE_RATIO * float(rest.diagonal(dim1=1, dim2=2).max()) > size**2:
        return None
    z = torch.from_numpy(generator(seed).standard_normal((n_draws + 1, *m.shape)))
    z[-1] = 0.0
    if heads_independent(rest):
        scores = m + z * rest.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt().mT
    else:
        values, vectors = torch.linalg.eigh(rest)
        F = vectors * values.clamp(min=0).sqrt()[:, None, :]  # (n, h, r)
        scores = m + torch.einsum("nhr,mrn->mhn", F, z)
    own_score = scores[:, head, item].clone()
    scores[:, head, item] = -math.inf
    r = torch.logsumexp(scores[:, head], -1)
    # Scores that move by at most t change the odds of any set of items by at most e^(2t), so its weight by tanh(t/2).
    t = TAIL * rest.diagonal(dim1=1, dim2=2).amax(0).clamp(min=0).sqrt()
    change, tail = torch.tanh(t / 2), TAIL_MASS * m.numel()
    return ConditionalDraws(item, head, size, own_score - r, torch.softmax(scores, -1), heads.mix, change, tail)
