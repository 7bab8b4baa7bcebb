"""Grids of b bits for keys: the step of each channel or token, rounding to the nearest level, what stays exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from qkv.core.validation import whole
from qkv.errors import QkvError

Per = Literal["channel", "token"]
MAX_BITS = 8
HALF = torch.float16


@dataclass(frozen=True, eq=False)
class KeyGrid:
    """Equally spaced levels low, low + step, … for each channel, or for each token.

    Attributes:
        low: The lowest level, broadcast over the keys.
        step: The distance between levels; 0 where all entries are equal, and each then rounds to itself.
        last: Number of the highest level, 2^bits - 1.
    """

    low: Tensor
    step: Tensor
    last: Tensor

    def codes(self, keys: Tensor) -> Tensor:
        """The number of the level nearest to each entry."""
        steps = torch.where(self.step > 0, self.step, torch.ones_like(self.step)).to(keys.dtype)
        return ((keys - self.low.to(keys.dtype)) / steps).round().clamp(min=0).minimum(self.last.to(keys.dtype))

    def values(self, codes: Tensor) -> Tensor:
        """The levels of the given numbers."""
        return self.low.to(codes.dtype) + codes * self.step.to(codes.dtype)

    def rounded(self, keys: Tensor) -> Tensor:
        """Each entry replaced by the nearest level."""
        return self.values(self.codes(keys))


def inexact(keys: Tensor, per: Per = "channel") -> Tensor:
    """Which entries rounding can change: the least and the largest of a channel (or token) are levels themselves."""
    axis = -2 if per == "channel" else -1
    return (keys > keys.amin(axis, keepdim=True)) & (keys < keys.amax(axis, keepdim=True))


def key_grid(keys: Tensor, bits: int | Tensor, per: Per = "channel", *, stored: bool = False) -> KeyGrid:
    """The grid that spans each channel (or each token) from its least entry to its largest.

    Args:
        keys: (..., tokens, size).
        bits: Bits of an entry, one number or one for each channel, (..., 1, size).
        per: Whether a channel or a token has a grid of its own.
        stored: Whether low and step are numbers of 16 bits, as a cache stores them; the grid then reaches a little
            beyond the entries.

    Returns:
        The grid.
    """
    axis = -2 if per == "channel" else -1
    low, high = keys.amin(axis, keepdim=True), keys.amax(axis, keepdim=True)
    last = 2.0 ** torch.as_tensor(bits, dtype=keys.dtype, device=keys.device) - 1
    if not stored:
        return KeyGrid(low, (high - low) / last, last)
    low = _half(low, -torch.inf)
    return KeyGrid(low, _half((high - low.to(keys.dtype)) / last, torch.inf), last)


def _half(numbers: Tensor, towards: float) -> Tensor:
    """The next number of 16 bits in the given direction, or the number itself if it has no more."""
    found = numbers.to(HALF)
    if not bool(found.isfinite().all()):
        problem = f"an entry is {float(numbers.abs().max()):.4g}, more than 16 bits can hold"
        raise QkvError("storing a grid of keys", problem, "Keep the keys of this model whole")
    beyond = found.to(numbers.dtype) > numbers if towards < 0 else found.to(numbers.dtype) < numbers
    return torch.where(beyond, torch.nextafter(found, torch.full_like(found, towards)), found)


def checked_bits(request: str, bits: Any, empty: bool = False) -> tuple[int, ...]:
    """Numbers of bits from 1 to 8, from one number or several; from none as well if `empty`.

    Raises:
        QkvError: A number is none of these, or there is none.
    """
    several = isinstance(bits, Iterable) and not isinstance(bits, str)
    found = tuple(whole(request, "bits", one) for one in (bits if several else (bits,)))
    if not (found or empty) or max(found, default=1) > MAX_BITS or len(set(found)) < len(found):
        problem = f"bits are {', '.join(map(str, found))}" if found else "no bits are given"
        raise QkvError(request, problem, f"Give different numbers from 1 to {MAX_BITS}")
    return found


def checked_per(request: str, per: Any) -> Per:
    """The word "channel" or "token"."""
    if per not in get_args(Per):
        raise QkvError(request, f"per is {per!r:.40}", "Choose channel or token")
    return per
