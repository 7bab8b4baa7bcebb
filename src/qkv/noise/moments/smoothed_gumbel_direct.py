"""The smoothed Gumbel functions for few keys whose scores vary little, by quadrature over the noise."""

# For s ~ N(m, σ²) and x = e^(u+m), L(u) = E exp(−x e^(σz)) is an integral over one normal variable z; P and Q have
# x e^(σz) and its square as a factor. With the line of integration moved by ic the trapezoid rule errs by e^(−2πc/h)
# times the integrand's size there: φ grows to e^(c²/2), and the rest stays bounded while σc is below π/2. So for σ < 1
# a few dozen nodes leave an error of e^−DIGITS, and few keys cost less than the matrix product of smoothed_gumbel.py,
# which reads its whole table of frequencies × nodes.

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

DIGITS = 37.0
"""The quadrature over z leaves an error of e^−37 = 9e-17."""
NORMAL_TAIL = 8.6
"""Where z ends: P(|N(0,1)| > 8.6) = 8e-18."""
GUMBEL_END = 4.0
"""exp(−e^4) = 2e-24: where the functions vanish, apart from the noise."""
MIN_EXPONENT = -100.0
"""e^−100 = 4e-44 stands for all smaller values: exp is several times slower where it underflows."""
MAX_DIRECT_ENTRIES = 2**20
"""Keys × nodes u × nodes z up to which direct quadrature is used."""


@functools.lru_cache(maxsize=16)
def _quadrature_rule(max_sd: float) -> tuple[Tensor, Tensor]:
    """Nodes z and weights for standard deviations up to max_sd."""
    c = min(0.75 * 0.5 * math.pi / max_sd, math.sqrt(2 * DIGITS))
    step = 2 * math.pi * c / (DIGITS + c**2 / 2)
    count = int(NORMAL_TAIL / step) + 1
    z = step * torch.arange(-count, count + 1, dtype=torch.float64)
    return z, step * torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def direct_is_cheaper(keys: int, nodes: int, max_sd: float) -> bool:
    """Whether so few keys and nodes are evaluated faster by direct quadrature."""
    return keys * nodes * len(_quadrature_rule(max_sd)[0]) <= MAX_DIRECT_ENTRIES


def smoothed_direct(m: Tensor, sd: Tensor, u: Tensor, parts: int, max_sd: float) -> Tensor:
    """The first `parts` of L, P, Q, (parts, keys, nodes), for standard deviations sd of at most max_sd."""
    z, weight = _quadrature_rule(max_sd)
    x = torch.exp((m[:, None] + u).clamp(max=GUMBEL_END + NORMAL_TAIL * max_sd))
    factor = torch.exp(sd[:, None] * z)  # (keys, z)
    survival = (x[:, :, None] * -factor[:, None, :]).clamp_(min=MIN_EXPONENT).exp_()
    weights = torch.stack([weight.expand_as(factor), weight * factor, weight * factor**2][:parts], dim=-1)
    found = (survival @ weights).permute(2, 0, 1).contiguous()  # E e^(kσz) exp(−x e^(σz)) for k = 0, 1, 2
    for k in range(1, parts):
        found[k:] *= x
    return found
