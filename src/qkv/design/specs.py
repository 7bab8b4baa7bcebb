"""What is wanted of a head, as frozen values that have been checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, tensor, tolerance
from qkv.errors import QkvError

LEAST_WEIGHT, MOST_WEIGHT = 1e-200, 1e6


@dataclasses.dataclass(frozen=True)
class BlendSpec:
    """Wanted weights on some items of a memory, to a tolerance; everything else should get nothing."""

    items: tuple[int, ...]
    weights: tuple[float, ...]
    tol: float

    @classmethod
    def of(cls, memory: Memory, weights: Mapping[Any, float], tol: float) -> BlendSpec:
        """Checked wishes: known items, positive weights that sum to 1, a tolerance between 0 and 1."""
        asked = f"blending {_short(weights)}"
        if not isinstance(weights, Mapping) or not weights:
            came = f"the weights are a {type(weights).__name__}" if weights else "there are no weights"
            raise QkvError(asked, came, "Give a mapping of items to weights, such as {0: 0.5, 1: 0.5}")
        tol = tolerance(asked, tol)
        pairs = {}
        for item, weight in weights.items():
            index = memory.index(item)
            if index in pairs:
                raise QkvError(asked, f"item {item!r} is named twice", "Name each item once")
            try:
                value = float(weight)
            except (TypeError, ValueError, OverflowError):
                raise QkvError(asked, f"the weight of {item!r} is {weight!r}", "Give numbers as weights") from None
            if not 0 <= value <= MOST_WEIGHT or 0 < value < LEAST_WEIGHT:
                remedy = f"Give 0, or weights from {LEAST_WEIGHT:g} to 1"
                raise QkvError(asked, f"the weight of {item!r} is {weight!r}", remedy)
            pairs[index] = value
        total = math.fsum(pairs.values())
        if abs(total - 1) > 1e-9:
            scaled = ", ".join(f"{v / total:.15g}" for v in list(pairs.values())[:6]) if total > 0 else ""
            remedy = f"Divide them by their sum: {scaled}" if total > 0 else "Give positive weights"
            raise QkvError(asked, f"the weights sum to {total:.12g}, not 1", remedy)
        kept = {i: w / total for i, w in pairs.items() if w > 0}
        return cls(tuple(kept), tuple(kept.values()), tol)

    @property
    def wanted(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The weights as an array, in the order of the items."""
        return np.array(self.weights)


@dataclasses.dataclass(frozen=True, eq=False)
class WiringSpec:
    """Rules "token i reads these tokens and writes y_i" over tokens X."""

    tokens: torch.Tensor
    rules: tuple[int, ...]
    wanted: torch.Tensor
    writes: torch.Tensor
    tol: float

    @classmethod
    def of(cls, X: ArrayLike, reads: Mapping[Any, Any], writes: Mapping[Any, ArrayLike], tol: float) -> WiringSpec:
        """Checked rules: known tokens, weights that sum to 1, one vector to write for each."""
        tokens = tensor("the tokens X", X, "tokens d")
        asked = f"wiring {len(tokens)} tokens"
        tol = tolerance(asked, tol)
        if not isinstance(reads, Mapping) or not reads:
            raise QkvError(asked, "there are no rules", "Give reads such as {0: 2}, so that token 0 reads token 2")
        if not isinstance(writes, Mapping) or set(reads) != set(writes):
            writers = sorted(writes, key=str) if isinstance(writes, Mapping) else "none"
            readers = f"tokens {sorted(reads, key=str)} read and {writers} write"
            raise QkvError(asked, readers, "Give each reading token one vector to write")
        as_memory = Memory(tokens)
        rules = tuple(as_memory.index(i) for i in reads)
        wanted = torch.zeros(len(rules), len(tokens), dtype=torch.float64)
        for row, read in enumerate(reads.values()):
            blend = BlendSpec.of(as_memory, read if isinstance(read, Mapping) else {as_memory.index(read): 1.0}, tol)
            wanted[row, list(blend.items)] = torch.tensor(blend.weights, dtype=torch.float64)
        vectors = [tensor(f"what token {i} writes", writes[i], "d") for i in reads]
        if len({len(v) for v in vectors}) != 1:
            raise QkvError(asked, f"the written vectors have lengths {[len(v) for v in vectors]}", "Give one length")
        return cls(tokens, rules, wanted, torch.stack(vectors), tol)


def covariances(noise: ArrayLike, n: int, d: int) -> torch.Tensor:
    """One covariance a key, (n, d, d), from that, from one (d, d) for all, or from n variances."""
    asked = f"noise for {n} keys in {d} dimensions"
    found = tensor("noise", noise)
    if found.shape == (d, d):
        found = found.expand(n, d, d)
    elif found.shape == (n,):
        found = found[:, None, None] * torch.eye(d, dtype=torch.float64)
    if found.shape != (n, d, d):
        shapes = f"({n}, {d}, {d}), ({d}, {d}) or ({n},)"
        raise QkvError(asked, f"its shape is {tuple(found.shape)}", f"Give covariances of shape {shapes}")
    if not torch.allclose(found, found.mT, rtol=1e-9, atol=1e-12):
        raise QkvError(asked, "a covariance is not symmetric", "Give symmetric matrices")
    lowest = torch.linalg.eigvalsh(found)[:, 0]
    worst = int(lowest.argmin())
    if float(lowest[worst]) < -1e-10 * max(1.0, float(found.abs().max())):
        came = f"the covariance of key {worst} has the eigenvalue {float(lowest[worst]):.4g}"
        raise QkvError(asked, came, "Give positive semidefinite covariances")
    return found


def _short(weights: Any) -> str:
    if isinstance(weights, Mapping):
        parts = [f"{k}: {v}" for k, v in list(weights.items())[:4]]
        return "{" + ", ".join(parts) + (", …" if len(weights) > 4 else "") + "}"
    return repr(weights)[:60] if not isinstance(weights, Sequence) else f"a {type(weights).__name__}"
