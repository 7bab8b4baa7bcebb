"""Which model a file belongs to: names and sizes of its weights, and a few of the weights themselves."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import torch

ARRAYS, ENTRIES = 16, 4
"""Arrays of weights that are looked at, at even distances, and entries of each."""
RELATIVE, ABSOLUTE = 2.0**-8, 1e-7
"""How far an entry may be off: a little more than bfloat16 and float16 round off."""


@dataclass(frozen=True)
class Fingerprint:
    """What tells a model from others; the same in float32, bfloat16 and float16.

    Attributes:
        layout: A hash of the names and sizes of all its weights.
        weights: Some of them, at fixed places, to five digits.
    """

    layout: str
    weights: tuple[float, ...]

    @classmethod
    def of(cls, model: torch.nn.Module) -> Fingerprint | None:
        """The fingerprint of a model; None if its weights are not at hand as numbers."""
        named = sorted(model.named_parameters())
        arrays = [weights.detach() for _, weights in named if weights.dim() > 1]
        if not arrays or any(weights.is_meta or not weights.is_floating_point() for weights in arrays):
            return None
        layout = hashlib.sha256("\n".join(f"{name} {tuple(weights.shape)}" for name, weights in named).encode())
        found: list[float] = []
        for array in _spread(arrays, ARRAYS):
            flat = array.flatten()
            found += [float(f"{float(flat[i]):.5g}") for i in _spread(range(len(flat)), ENTRIES)]
        return cls(layout.hexdigest()[:16], tuple(found))

    def fits(self, other: Fingerprint) -> bool:
        """Whether both are of the same model, up to what its weights lose in another type."""
        same = self.layout == other.layout and len(self.weights) == len(other.weights)
        return same and all(
            abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE
            for a, b in zip(self.weights, other.weights, strict=True)
        )

    def to_json(self) -> dict[str, Any]:
        """The fields."""
        return {"layout": self.layout, "weights": list(self.weights)}

    @classmethod
    def from_json(cls, content: Any) -> Fingerprint:
        """What `to_json` gave; ValueError if it is none."""
        fits = isinstance(content, dict) and set(content) == {"layout", "weights"}
        if not fits or not isinstance(content["layout"], str) or not isinstance(content["weights"], list):
            raise ValueError("the fingerprint of the model is damaged")
        if not all(type(w) in (int, float) and math.isfinite(w) for w in content["weights"]):
            raise ValueError("the fingerprint of the model has entries that are no finite numbers")
        return cls(content["layout"], tuple(float(w) for w in content["weights"]))


def _spread(items: Any, count: int) -> list[Any]:
    """At most so many of a sequence's items, at even distances."""
    step = max(1.0, len(items) / count)
    return [items[int((i + 0.5) * step)] for i in range(min(count, len(items)))]
