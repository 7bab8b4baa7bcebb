"""How sequences lie end to end in one long row of tokens, and the shelves that remember their keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from qkv.core.kernels.equal_length import LARGE
from qkv.core.kernels.ragged import RaggedPlan
from qkv.errors import QkvError

Shape = tuple[int, int]
MOST = 0.7  # of a shelf: once so much of it is filled, it is faster to read it whole than to leave out the rest


class PackedLayout:
    """Sequences of several lengths without padding: shape (b, t) is b sequences of t tokens, one after another.

    Whatever treats tokens alike works on the whole row; attention works shape by shape, on views of it.
    With `after`, a cache remembers that many tokens of every sequence, and these come after them. With `places`,
    each sequence has one new token, at that place, after those that a cache remembers.
    """

    def __init__(
        self, shapes: Iterable[Shape], places: Tensor | None = None, rows: Tensor | None = None, after: int = 0
    ) -> None:
        self.shapes = tuple((int(b), int(t)) for b, t in shapes)
        self.after = after
        self.steps = places is not None
        self.device = places.device if places is not None else torch.device("cpu")
        self._places, self._rows = places, rows
        self._seen: Tensor | None = None

    @classmethod
    def step(cls, places: Tensor, rows: Tensor | None = None) -> PackedLayout:
        """One new token for each sequence; `rows` says which of the remembered ones they are, if not all."""
        return cls([(len(places), 1)], places, rows)

    def to(self, device: torch.device) -> PackedLayout:
        """The same on another device."""
        self.device = device
        return self

    @cached_property
    def sizes(self) -> list[int]:
        """Tokens of each shape."""
        return [b * t for b, t in self.shapes]

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest sequence, remembered ones included."""
        if self._places is not None:
            return max(1, int(self._places.max()) + 1)
        return self.after + max(t for _, t in self.shapes)

    @cached_property
    def positions(self) -> Tensor:
        """Each token's place in its sequence."""
        if self._places is not None:
            return self._places
        length = np.array(self._lengths)
        start = np.repeat(np.cumsum(length) - length, length)
        return torch.from_numpy(np.arange(self.after, self.after + len(start)) - start).to(self.device)

    @cached_property
    def rows(self) -> Tensor:
        """The number of the sequence that each token belongs to."""
        if self._rows is not None:
            return self._rows
        if self.steps:
            return torch.arange(len(self.positions), device=self.device)
        first, each = 0, []
        for b, t in self.shapes:
            each.append(torch.arange(first, first + b, device=self.device).repeat_interleave(t))
            first += b
        return torch.cat(each)

    @property
    def every(self) -> bool:
        """Whether a step has one token for every sequence that is remembered."""
        return self._rows is None

    def seen(self, places: int) -> Tensor:
        """In a step: which of so many remembered places each new token sees, itself included."""
        if self._seen is None or self._seen.shape[-1] != places:
            self._seen = (torch.arange(places, device=self.device) <= self.positions[:, None])[:, None, None, :]
        return self._seen

    @cached_property
    def _lengths(self) -> list[int]:
        return [t for b, t in self.shapes for _ in range(b)]

    @property
    def even(self) -> bool:
        """Whether all sequences have one length, and are enough for attention head by head."""
        return len(self.shapes) == 1 and self.shapes[0][0] * self.shapes[0][1] ** 2 >= LARGE

    @cached_property
    def _all_ask(self) -> RaggedPlan:
        return RaggedPlan(self._lengths)

    def taken(self, keep: Tensor | None = None) -> RaggedPlan:
        """How attention takes up the row if these tokens ask, or all."""
        return self._all_ask if keep is None else RaggedPlan(self._lengths, keep)

    def asking(self, keep: Tensor) -> PackedLayout:
        """These tokens of the row, each as a step of its sequence."""
        rows = self.rows[keep]
        every = torch.equal(rows, torch.arange(sum(b for b, _ in self.shapes), device=rows.device))
        return PackedLayout.step(self.positions[keep], None if every else rows)

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Views of the row, (b, heads, t, size) for each shape, from (N, heads, size)."""
        whole = [x] if len(self.shapes) == 1 else x.split(self.sizes)
        return [part.unflatten(0, shape).transpose(1, 2) for part, shape in zip(whole, self.shapes, strict=True)]

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """The row again, (N, heads · size), from (b, heads, t, size) for each shape."""
        flat = [part.transpose(1, 2).reshape(b * t, -1) for part, (b, t) in zip(parts, self.shapes, strict=True)]
        return flat[0] if len(flat) == 1 else torch.cat(flat)


class KVCache:
    """One layer's keys (rows, heads, size, places) and values (rows, heads, places, size) of many sequences.

    Keys lie the way in which one query's products with all of them are fastest.
    """

    def __init__(self, rows: int, places: int, heads: int, size: int, like: Tensor) -> None:
        self.k, self.v = like.new_zeros(rows, heads, size, places), like.new_zeros(rows, heads, places, size)

    def part(self, first: int, last: int) -> KVCache:
        """Some of the sequences: what is put there is put here."""
        out = object.__new__(KVCache)
        out.k, out.v = self.k[first:last], self.v[first:last]
        return out

    def put(self, layout: PackedLayout, k: Tensor, v: Tensor) -> None:
        """Remember the keys and values (N, heads, size) of a layout's tokens."""
        if layout.steps:
            self.k[layout.rows, :, :, layout.positions] = k
            self.v[layout.rows, :, layout.positions] = v
            return
        first, start = 0, layout.after
        for (b, t), one, two in zip(layout.shapes, layout.split(k), layout.split(v), strict=True):
            t = min(t, self.v.shape[2] - start)
            self.k[first : first + b, :, :, start : start + t] = one[:, :, :t].mT
            self.v[first : first + b, :, start : start + t] = two[:, :, :t]
            first += b

    def repeat(self, one: KVCache, places: int) -> None:
        """Let every sequence begin with what another shelf remembers of a single one."""
        self.k[..., :places] = one.k[..., :places]
        self.v[:, :, :places] = one.v[:, :, :places]

    def filled(self, layout: PackedLayout) -> list[tuple[Tensor, Tensor]]:
        """Keys and values (b, heads, places, size) of each shape's sequences, the remembered ones included."""
        out, first = [], 0
        for b, t in layout.shapes:
            rows, n = slice(first, first + b), layout.after + t
            out.append((self.k[rows, :, :, :n].mT, self.v[rows, :, :n]))
            first += b
        return out

    def get(self, layout: PackedLayout) -> tuple[Tensor, Tensor]:
        """Keys and values (rows, heads, places, size) of a step's sequences: what the longest of them fills, or all."""
        places = self.v.shape[2]
        n = places if layout.longest >= MOST * places else layout.longest
        k, v = (self.k, self.v) if layout.every else (self.k[layout.rows], self.v[layout.rows])
        return k[..., :n].mT, v[:, :, :n]


def fits(asked: str, longest: int, block: int) -> None:
    """Refuse what is longer than the model can hold."""
    if longest > block:
        raise QkvError(
            asked, f"the longest sequence has {longest} tokens", f"The model holds {block}: give shorter ones"
        )
