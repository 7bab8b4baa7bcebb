"""BlendSpec and WiringSpec: validated requests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from qkv.core.attention import Label
from qkv.core.masks import causal
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, BoolArray, FloatArray, Labels, Weights
from qkv.core.validation import booleans, mapping, tensor, tolerance
from qkv.errors import QkvError, kind_of

MIN_WEIGHT, MAX_WEIGHT = 1e-200, 1e6


@dataclasses.dataclass(frozen=True)
class BlendSpec:
    """Wanted weights of some items of a memory, and a tolerance; all other items should get no weight.

    Attributes:
        items: Indices of the items with positive weight.
        weights: Their weights, which sum to 1.
        tol: Largest total-variation distance allowed.
    """

    items: tuple[int, ...]
    weights: tuple[float, ...]
    tol: float

    @classmethod
    def of(cls, memory: Memory, weights: Weights, tol: float) -> BlendSpec:
        """Validate: known items, weights from 0 to 1 that sum to 1, a tolerance between 0 and 1."""
        request = f"blending {_summary(weights)}"
        hint = "Give a mapping of items to weights, such as {0: 0.5, 1: 0.5}"
        given = mapping(request, "weights", weights, hint)
        tol = tolerance(request, tol)
        pairs = {}
        for item, weight in given.items():
            index = memory.index(item)
            if index in pairs:
                raise QkvError(request, f"item {item!r} is named twice", "Name each item once")
            try:
                value = float(weight)
            except (TypeError, ValueError, OverflowError, RuntimeError):
                raise QkvError(request, f"the weight of {item!r} is {weight!r}", "Give numbers as weights") from None
            if not 0 <= value <= MAX_WEIGHT or 0 < value < MIN_WEIGHT:
                hint = f"Give 0, or weights from {MIN_WEIGHT:g} to 1"
                raise QkvError(request, f"the weight of {item!r} is {weight!r}", hint)
            pairs[index] = value
        total = math.fsum(pairs.values())
        if abs(total - 1) > 1e-9:
            scaled = ", ".join(f"{v / total:.15g}" for v in list(pairs.values())[:6]) if total > 0 else ""
            hint = f"Divide them by their sum: {scaled}" if total > 0 else "Give positive weights"
            raise QkvError(request, f"the weights sum to {total:.12g}, not 1", hint)
        kept = {i: w / total for i, w in pairs.items() if w > 0}
        return cls(tuple(kept), tuple(kept.values()), tol)

    @property
    def wanted(self) -> FloatArray:
        """The weights as an array, in the order of the items."""
        return np.array(self.weights)


@dataclasses.dataclass(frozen=True, eq=False)
class WiringSpec:
    """Rules "token i reads these tokens and writes y_i" over tokens X.

    Attributes:
        tokens: The tokens as rows, (n, d).
        rules: Index of the reading token, per rule.
        wanted: Wanted weights, (rules, n).
        writes: Vectors to write, (rules, dv).
        tol: Largest total-variation distance allowed, per rule.
        labels: Names of the tokens.
        mask: "causal", booleans (n, n) that are True where a token may attend to another, or None where all may.
    """

    tokens: torch.Tensor
    rules: tuple[int, ...]
    wanted: torch.Tensor
    writes: torch.Tensor
    tol: float
    labels: tuple[Label, ...]
    mask: torch.Tensor | Literal["causal"] | None = None

    @property
    def allowed(self) -> BoolArray | None:
        """The tokens that each rule's token may attend to, (rules, n); None where all may."""
        if self.mask is None:
            return None
        full = causal(len(self.tokens)) if isinstance(self.mask, str) else self.mask
        return np.asarray(full[list(self.rules)].numpy())

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        reads: Mapping[int, int | Mapping[int, float]],
        writes: Mapping[int, ArrayLike],
        tol: float,
        labels: Labels | None = None,
        mask: ArrayLike | Literal["causal"] | None = None,
    ) -> WiringSpec:
        """Validate: known tokens that the mask allows, weights that sum to 1, one vector to write for each rule."""
        tokens = tensor("the tokens X", X, "tokens d")
        request = f"wiring {len(tokens)} tokens"
        tol = tolerance(request, tol)
        reads = mapping(request, "rules", reads, "Give reads such as {0: 2}, so that token 0 reads token 2")
        writes = mapping(request, "writes", writes, "Give each reading token one vector to write")
        if set(reads) != set(writes):
            problem = f"tokens {sorted(reads, key=str)} read and {sorted(writes, key=str)} write"
            raise QkvError(request, problem, "Give each reading token one vector to write")
        as_memory = Memory(tokens, labels=labels)
        rules = tuple(as_memory.index(i) for i in reads)
        if len(set(rules)) != len(rules):
            raise QkvError(request, "a token has two rules", "Give each token one rule")
        wanted = torch.zeros(len(rules), len(tokens), dtype=torch.float64)
        for row, read in enumerate(reads.values()):
            several = isinstance(read, Mapping) or hasattr(read, "to_dict")
            blend = BlendSpec.of(as_memory, read if several else {as_memory.labels[as_memory.index(read)]: 1.0}, tol)
            wanted[row, list(blend.items)] = torch.tensor(blend.weights, dtype=torch.float64)
        vectors = [tensor(f"what token {i} writes", writes[i], "d") for i in reads]
        if len({len(v) for v in vectors}) != 1:
            raise QkvError(request, f"the written vectors have lengths {[len(v) for v in vectors]}", "Give one length")
        spec = cls(
            tokens, rules, wanted, torch.stack(vectors), tol, as_memory.labels, _mask(request, mask, len(tokens))
        )
        spec._check_mask(request)
        return spec

    def _check_mask(self, request: str) -> None:
        """Refuse rules that read what the mask hides, by the names of the tokens."""
        if self.allowed is None:
            return
        rows, items = np.nonzero((self.wanted.numpy() > 0) & ~self.allowed)
        if len(rows):
            reader, item = self.labels[self.rules[rows[0]]], self.labels[items[0]]
            which = "the causal mask, since it comes later" if isinstance(self.mask, str) else "the mask"
            more = f", and {len(rows) - 1} more rules do the like" if len(rows) > 1 else ""
            problem = f"token {reader} should read token {item}, which is hidden from it by {which}{more}"
            raise QkvError(request, problem, "Change the rule or the mask")


def _mask(request: str, mask: Any, tokens: int) -> torch.Tensor | Literal["causal"] | None:
    if mask is None:
        return None
    if isinstance(mask, str):
        if mask != "causal":
            raise QkvError(request, f"the mask is {mask!r}", "Give 'causal', or booleans with one row per token")
        return "causal"
    found = booleans(request, mask)
    if found.shape != (tokens, tokens):
        problem = f"the mask has shape {tuple(found.shape)}"
        raise QkvError(request, problem, f"Give booleans of shape ({tokens}, {tokens}), or 'causal'")
    return found.clone()


def covariances(noise: ArrayLike, n: int, d: int) -> torch.Tensor:
    """One covariance per key, (n, d, d), from that, from one (d, d) for all, or from n variances."""
    request = f"noise for {n} keys in {d} dimensions"
    found = tensor("noise", noise)
    if found.shape == (d, d):
        found = found.expand(n, d, d)
    elif found.shape == (n,):
        found = found[:, None, None] * torch.eye(d, dtype=torch.float64)
    if found.shape != (n, d, d):
        shapes = f"({n}, {d}, {d}), ({d}, {d}) or ({n},)"
        raise QkvError(request, f"its shape is {tuple(found.shape)}", f"Give covariances of shape {shapes}")
    if not torch.allclose(found, found.mT, rtol=1e-9, atol=1e-12):
        raise QkvError(request, "a covariance is not symmetric", "Give symmetric matrices")
    lowest = torch.linalg.eigvalsh(found)[:, 0]
    worst = int(lowest.argmin())
    if float(lowest[worst]) < -1e-10 * max(1.0, float(found.abs().max())):
        problem = f"the covariance of key {worst} has the eigenvalue {float(lowest[worst]):.4g}"
        raise QkvError(request, problem, "Give positive semidefinite covariances")
    return found


def _summary(weights: Any) -> str:
    if isinstance(weights, Mapping):
        parts = [f"{k}: {v}" for k, v in list(weights.items())[:4]]
        return "{" + ", ".join(parts) + (", …" if len(weights) > 4 else "") + "}"
    return repr(weights)[:60] if not isinstance(weights, Sequence) else kind_of(weights)
