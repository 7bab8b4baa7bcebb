"""Batches without padding: examples of different lengths packed into one row of tokens, and the batch of each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from qkv.model.linear import ONEDNN_ROW_MULTIPLE
from qkv.model.packed_sequences import PackedLayout
from qkv.train.data.objectives import Document, Example, Objective
from qkv.train.tokenizers import PAD_ID

MAX_LENGTHS = 16  # about so many different lengths in a batch: few calls of attention, and little padding
MAX_KEPT_FRACTION = 0.9  # selecting a larger fraction of the rows costs more than computing all of them
BatchSource = Callable[[int], Sequence[Example]]
"""The examples of a step: a function of its number alone, so that a run can be resumed anywhere."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Packed examples.

    Attributes:
        tokens: All input tokens, sequence after sequence.
        layout: Lengths of the sequences.
        keep: Places of the tokens whose next token is a target; None if nearly all are.
        targets: The targets, one per place in `keep`, or one per token with -1 for none.
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
    """Examples sorted by length and packed; lengths are rounded up to a common multiple unless `exact`.

    With `padded`, all are padded to that length and every logit is computed, for comparison.
    """
    some = [e for e in examples if len(e.ids) > 1]
    longest = max(padded, *(len(e.ids) - 1 for e in some))
    if exact and not padded:
        some += _filling(-sum(len(e.ids) - 1 for e in some) % ONEDNN_ROW_MULTIPLE, longest)
    ordered = sorted(some, key=lambda e: len(e.ids))
    multiple = longest if padded else 1 if exact else max(1, longest // MAX_LENGTHS)
    lengths = [min(longest, -(-(len(e.ids) - 1) // multiple) * multiple) for e in ordered]
    shapes = [(len(list(same)), t) for t, same in groupby(lengths)]
    tokens = np.full(sum(lengths), PAD_ID, dtype=np.int64)
    targets = np.full(sum(lengths), -1, dtype=np.int64)
    at = 0
    for example, length in zip(ordered, lengths, strict=True):
        ids, start, head = example
        tokens[at : at + len(ids) - 1] = ids[:-1]
        targets[at + start - 1 : at + len(ids) - 1] = ids[start:]
        targets[at : at + head - 1] = ids[1:head]
        at += length
    keep = np.flatnonzero(targets >= 0)
    layout = PackedLayout(shapes)
    if padded or len(keep) > MAX_KEPT_FRACTION * len(targets):
        return Batch(torch.from_numpy(tokens), layout, None, torch.from_numpy(targets))
    return Batch(torch.from_numpy(tokens), layout, torch.from_numpy(keep), torch.from_numpy(targets[keep]))


def _filling(tokens: int, longest: int) -> list[Example]:
    """Padding without targets: the number of tokens becomes a multiple of ONEDNN_ROW_MULTIPLE, for faster products."""
    lengths = [longest] * (tokens // longest) + [tokens % longest] * (tokens % longest > 0)
    return [Example([PAD_ID] * (n + 1), n + 1) for n in lengths]


def count_targets(examples: Sequence[Example]) -> int:
    """Number of target tokens in all examples."""
    return sum(len(e.ids) - e.start + e.head - 1 for e in examples)


def shard(examples: Sequence[Example], part: int, parts: int) -> list[Example]:
    """One of several parts of a batch, with about the same lengths in each."""
    return sorted(examples, key=lambda e: len(e.ids))[part::parts]


class EpochOrder:
    """Numbers below a count, each once per epoch, in an order that depends on the epoch; no other state.

    Args:
        count: How many numbers there are.
        seed_of: The seed of an epoch's order.
    """

    def __init__(self, count: int, seed_of: Callable[[int], tuple[int, ...]]) -> None:
        self._count, self._seed_of = count, seed_of
        self._orders: dict[int, np.ndarray] = {}

    def numbers(self, first: int, count: int) -> list[int]:
        """So many numbers of the endless sequence of epochs, from the `first` on."""
        return [int(self._order(i // self._count)[i % self._count]) for i in range(first, first + count)]

    def _order(self, epoch: int) -> np.ndarray:
        if epoch not in self._orders:
            for old in [e for e in self._orders if e < epoch - 1]:  # a batch spans two epochs now and then
                del self._orders[old]
            self._orders[epoch] = np.random.default_rng(self._seed_of(epoch)).permutation(self._count)
        return self._orders[epoch]


def batches(
    documents: Sequence[Document], objective: Objective, context_length: int, batch_size: int, seed: int
) -> BatchSource:
    """Batches of examples made from documents, each document once per epoch."""
    order = EpochOrder(len(documents), lambda epoch: (seed, epoch))

    def source(step: int) -> list[Example]:
        random = np.random.default_rng((seed, step, 1))
        return [
            objective(documents[number], context_length, random)
            for number in order.numbers(step * batch_size, batch_size)
        ]

    return source
