"""The situation of the noise page: memory, wanted weights, key noise and the three layouts that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qkv.errors import QkvError

if TYPE_CHECKING:
    from qkv.core.memory import Memory
    from qkv.noise.key_noise import Gaussian

WANTED_LABELS = "abcdefgh"
"""Labels of the items that can be wanted; those after them are numbered from 9."""


@dataclass(frozen=True)
class NoiseScenario:
    """n orthonormal keys under Gaussian noise; equal parts of the first `heads` items are wanted.

    Attributes:
        n: Number of items.
        along: Variance of the first key along itself.
        isotropic: Variance of every key in every direction.
        heads: Number of wanted items, which is also the number of heads of the second layout; fewer than n.
    """

    n: int
    along: float
    isotropic: float
    heads: int

    def __post_init__(self) -> None:
        if self.heads >= self.n:
            raise QkvError(
                "reading under noise", f"{self.heads} heads for {self.n} items", "Give fewer heads than items"
            )

    @property
    def memory(self) -> Memory:
        """Orthonormal keys; the values equal the keys, so that the error of the output is that of the weights."""
        return _orthonormal_memory(self.n)

    @property
    def wanted(self) -> dict[str, float]:
        """Wanted weights by label."""
        return dict.fromkeys(WANTED_LABELS[: self.heads], 1 / self.heads)

    @property
    def noise(self) -> Gaussian:
        """The noise of the keys."""
        from qkv.noise.key_noise import Gaussian

        return Gaussian(isotropic=self.isotropic, along={WANTED_LABELS[0]: self.along})


@lru_cache(maxsize=128)
def _orthonormal_memory(n: int) -> Memory:
    import torch

    from qkv.core.memory import Memory

    labels = [*WANTED_LABELS[:n], *range(len(WANTED_LABELS) + 1, n + 1)]
    return Memory(torch.eye(n, dtype=torch.float64), labels=labels)


@lru_cache(maxsize=128)
def layouts(scenario: NoiseScenario, scale: float) -> dict[str, Any]:
    """The three reference layouts at a scale; cached, since on the page most changes keep scenario and scale."""
    from qkv.noise.layout_report import reference_layouts

    return reference_layouts(scenario.memory, scenario.wanted, scenario.noise, scale)
