"""Batches without padding: examples of many lengths as one long row of tokens, and which batch comes at which step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from qkv.model.linear import STEADY
from qkv.model.packed_sequences import PackedLayout
from qkv.train.data.objectives import Document, Example, Objective
from qkv.train.tokenizers import PAD_ID

SHAPES = 16  # at most about this many shapes in a row: few enough calls of attention, little enough padding
MOST = 0.9  # picking out a larger share than this costs more than computing the rest
Source = Callable[[int], Sequence[Example]]
"""The examples of a step: a function of its number alone, so that a run can stop and go on anywhere."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples as a row of tokens: `keep` says at which tokens something is asked for, `targets` what.

    Where nearly all are asked for, `keep` is None, and a target of -1 stands for nothing.
    """

    tokens: Tensor
    layout: PackedLayout
    keep: Tensor | None
    targets: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        if device.type == "cpu":
            return self
        tokens, targets = (each.to(device, non_blocking=True) for each in (self.tokens, self.targets))
        keep = None if self.keep is None else self.keep.to(device, non_blocking=True)
        return Batch(tokens, self.layout.to(device), keep, targets)


def pack(examples: Sequence[Example], padded: int = 0, exact: bool = False) -> Batch:
    """Examples sorted by length, in shapes: lengths are rounded up to a common multiple, or `exact`.

    With `padded`, for comparison, all have that length, and everything is computed, asked for or not.
    """
    some = [e for e in examples if len(e.ids) > 1]
    longest = max(padded, *(len(e.ids) - 1 for e in some))
    if exact and not padded:
        some += _filling(-sum(len(e.ids) - 1 for e in some) % STEADY, longest)
    ordered = sorted(some, key=lambda e: len(e.ids))
    multiple = longest if padded else 1 if exact else max(1, longest // SHAPES)
    lengths = [min(longest, -(-(len(e.ids) - 1) // multiple) * multiple) for e in ordered]
    shapes = [(len(list(same)), t) for t, same in groupby(lengths)]
    tokens = np.full(sum(lengths), PAD_ID, dtype=np.int64)
    wanted = np.full(sum(lengths), -1, dtype=np.int64)
    at = 0
    for example, length in zip(ordered, lengths, strict=True):
        ids, start, head = example
        tokens[at : at + len(ids) - 1] = ids[:-1]
        wanted[at + start - 1 : at + len(ids) - 1] = ids[start:]
        wanted[at : at + head - 1] = ids[1:head]
        at += length
    keep = np.flatnonzero(wanted >= 0)
    if padded or len(keep) > MOST * len(wanted):
        return Batch(torch.from_numpy(tokens), PackedLayout(shapes), None, torch.from_numpy(wanted))
    return Batch(torch.from_numpy(tokens), PackedLayout(shapes), torch.from_numpy(keep), torch.from_numpy(wanted[keep]))


def _filling(tokens: int, longest: int) -> list[Example]:
    """Padding that asks for nothing, so that rows have few different lengths: products are faster then."""
    lengths = [longest] * (tokens // longest) + [tokens % longest] * (tokens % longest > 0)
    return [Example([PAD_ID] * (n + 1), n + 1) for n in lengths]


def asked(examples: Sequence[Example]) -> int:
    """How many tokens are asked for in all."""
    return sum(len(e.ids) - e.start + e.head - 1 for e in examples)


def shard(examples: Sequence[Example], part: int, parts: int) -> list[Example]:
    """One of several parts of a batch, with about the same lengths in each."""
    return sorted(examples, key=lambda e: len(e.ids))[part::parts]


def drawn(documents: Sequence[Document], objective: Objective, block: int, batch: int, seed: int) -> Source:
    """Batches from documents: every document once an epoch, in an order that seed and epoch decide."""
    orders: dict[int, np.ndarray] = {}

    def order(epoch: int) -> np.ndarray:
        if epoch not in orders:
            orders.clear()
            orders[epoch] = np.random.default_rng((seed, epoch)).permutation(len(documents))
        return orders[epoch]

    def source(step: int) -> list[Example]:
        random = np.random.default_rng((seed, step, 1))
        first = step * batch
        chosen = [int(order(i // len(documents))[i % len(documents)]) for i in range(first, first + batch)]
        return [objective(documents[d], block, random) for d in chosen]

    return source
