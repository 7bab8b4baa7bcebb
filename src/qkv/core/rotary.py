"""Rotary position embedding (RoPE): rotation tables, application to queries and keys, backward pass.

A vector of d coordinates is d/2 pairs. At position p, pair c is rotated by the angle p·θ^(-2c/d). With R_p for the
rotation at position p, R_p is orthogonal and R_iᵀR_j = R_{j-i}; so (R_i q)·(R_j k) = q·(R_{j-i} k) depends on the two
positions through their difference alone.

Two conventions say which coordinates form a pair; a permutation of coordinates maps one to the other and leaves q·k
unchanged:

* half-split (Llama, GPT-NeoX): (x_c, x_{c+d/2}). `rotate` and `rotate_half_split`; weights are stored this way.
* interleaved (RoFormer): (x_{2c}, x_{2c+1}). `apply_rotary`: a pair is a complex number in memory, so that the rotation
  is one complex product. `interleaved_order` permutes the rows of a projection's weights, so that its outputs come in
  this order.

`model/numpy_gpt.py` has its own NumPy version of `rotate_half_split`, since it must not import torch.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Num
from torch import Tensor

from qkv.errors import QkvError

THETA = 10_000.0  # θ, the base of the frequencies, as in RoFormer and Llama 2

# --- half-split pairs (x_c, x_{c+d/2}) ---


def rotate(
    x: Float[Tensor, "*batch n d"], positions: Num[Tensor, "*#batch n"], theta: float = THETA
) -> Float[Tensor, "*batch n d"]:
    """Rotate each pair (x_c, x_{c+d/2}) of each row by its position times the pair's frequency."""
    d = x.shape[-1]
    if d % 2:
        raise QkvError(
            "rotating vectors by their positions",
            f"their dimension is {d}",
            "Give vectors of even dimension: coordinates are rotated in pairs",
        )
    # Angles are float64 whatever x is: at large positions, float32 would lose the digits that cos and sin depend on.
    exponents = torch.arange(d // 2, dtype=torch.float64, device=x.device) / (d // 2)
    angles = positions[..., None].to(torch.float64) * theta**-exponents
    return rotate_half_split(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))


def rotate_half_split(
    x: Float[Tensor, "*batch d"], cos: Float[Tensor, "*#batch half"], sin: Float[Tensor, "*#batch half"]
) -> Float[Tensor, "*batch d"]:
    """Rotate each pair (x_c, x_{c+d/2}) by the angle whose cosine and sine are given."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


# --- interleaved pairs (x_{2c}, x_{2c+1}) as complex numbers ---


def rotary_table(n_positions: int, head_dim: int, theta: float) -> Tensor:
    """Cosines and sines (n_positions, head_dim/2, 2) of all angles, rounded to float32 at the same steps as Llama."""
    frequencies = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(n_positions).float(), frequencies)
    return torch.stack((angles.cos(), angles.sin()), dim=-1)


def interleaved_order(n_rotated: int, n_other: int, head_dim: int) -> Tensor:
    """Row order that makes the outputs of a half-split projection interleaved.

    The projection has `n_rotated` heads of `head_dim` rows whose rows c and c + head_dim/2 become neighbours, and then
    `n_other` heads (the values), which keep their order.
    """
    pairs = torch.arange(n_rotated * head_dim).view(n_rotated, 2, head_dim // 2).mT.flatten()
    return torch.cat((pairs, torch.arange(n_rotated * head_dim, (n_rotated + n_other) * head_dim)))


def rotations_at(table: Tensor, positions: Tensor) -> Tensor:
    """The table's rows at `positions` as complex numbers (n, 1, head_dim/2), to multiply heads (n, heads, head_dim)."""
    return _as_complex(table[positions])[:, None]


def apply_rotary(x: Tensor, rotation: Tensor) -> Tensor:
    """Multiply neighbouring coordinates of x, as complex numbers, by `rotation` (complex numbers of modulus one)."""
    return torch.view_as_real(_as_complex(x.unflatten(-1, (-1, 2))) * rotation).flatten(-2).to(x.dtype)


def apply_rotary_backward_(grad: Tensor, rotation: Tensor) -> None:
    """Turn the gradient of `apply_rotary`'s output into that of its input, in place: multiply by the conjugate."""
    if grad.dtype in (torch.float32, torch.float64):
        torch.view_as_complex(grad.unflatten(-1, (-1, 2))).mul_(rotation.conj())
    else:
        grad.copy_(apply_rotary(grad, rotation.conj()))


def _as_complex(x: Tensor) -> Tensor:
    """The last axis, of size 2, as complex numbers; half precision is converted to float32 first."""
    return torch.view_as_complex(x if x.dtype in (torch.float32, torch.float64) else x.float())
