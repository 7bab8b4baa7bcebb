"""Causal attention of short sequences that lie end to end in a row: a few padded products, no padding elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qkv.core.kernels.causal import ahead
from qkv.core.rotary import turn_back, turned

GROUPS = 6  # sequences of about one length are padded and computed together, in at most about so many groups


class SlotMap:
    """Where each token of a row goes among slots: slot `place` of the `width` that its sequence has from `first` on."""

    def __init__(self, first: np.ndarray, place: np.ndarray, width: np.ndarray, slots: int) -> None:
        self.first, self.place, self.width, self.slots = first, place, width, slots
        self._vectors: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def slot(self, heads: int) -> np.ndarray:
        """(tokens, heads): the slot of each token's vector of each head, where heads of a sequence are neighbours."""
        start = self.first * heads + self.place
        return start[:, None] + self.width[:, None] * np.arange(heads)

    def source(self, heads: int, total: int, offset: int) -> Tensor:
        """For each slot the vector that goes there, of a row with `total` vectors to a token; any one for padding."""
        if heads not in self._vectors:
            slot = self.slot(heads)
            token, head = np.zeros((2, self.slots * heads), dtype=np.int64)
            token[slot], head[slot] = np.arange(len(slot))[:, None], np.arange(heads)
            self._vectors[heads] = token, head
        token, head = self._vectors[heads]
        return torch.from_numpy(token * total + (head + offset))

    def padding(self, heads: int) -> Tensor:
        """The slots that no token goes to."""
        if len(self.first) == self.slots:
            return torch.empty(0, dtype=torch.int64)
        free = np.ones(self.slots * heads, dtype=bool)
        free[self.slot(heads)] = False
        return torch.from_numpy(np.flatnonzero(free))


class RaggedPlan:
    """How attention takes up a row: lengths of its sequences, and which of its tokens ask (all, unless told)."""

    def __init__(self, lengths: Sequence[int], keep: Tensor | None = None) -> None:
        length = np.asarray(lengths, dtype=np.int64)
        multiple = -(-int(length.max()) // GROUPS)
        padded = np.minimum(-(-length // multiple) * multiple, length.max())
        start = np.cumsum(length) - length
        owner = np.repeat(np.arange(len(length)), length)
        place = np.arange(len(owner)) - start[owner]
        order = np.argsort(padded, kind="stable")
        self.keys = _placing(padded, order, owner, place)
        if keep is None:
            self.queries, asks = self.keys, padded
        else:
            kept = keep.numpy()
            mine = owner[kept]
            count = np.bincount(mine, minlength=len(length))
            by_owner = np.argsort(mine, kind="stable")
            rank = np.empty(len(kept), dtype=np.int64)
            rank[by_owner] = np.arange(len(kept)) - (np.cumsum(count) - count)[mine[by_owner]]
            most = np.zeros(int(padded.max()) + 1, dtype=np.int64)
            np.maximum.at(most, padded, count)
            asks = np.maximum(most, 1)[padded]
            self.queries = _placing(asks, order, mine, rank)
            self._asked = kept - start[mine]
        self.kept = keep is not None
        sizes, counts = np.unique(padded, return_counts=True)
        widths = {int(t): int(m) for t, m in zip(padded, asks, strict=True)}
        self.groups = [(int(b), widths[int(t)], int(t)) for t, b in zip(sizes, counts, strict=True)]
        self._known: dict[tuple[int, ...], Any] = {}

    def mask(self, group: int, shared: int, repeat: int, dtype: torch.dtype) -> Tensor:
        """What is added to a group's scores (b · shared, repeat · m, t): -inf at keys ahead of a query."""
        b, m, t = self.groups[group]
        if not self.kept:
            return ahead(t, dtype, repeat).expand(b * shared, repeat * m, t)
        key = (group, shared, repeat, dtype.itemsize)
        if key not in self._known:
            first = sum(b * m for b, m, _ in self.groups[:group])
            asked = np.full(self.queries.slots, t)
            asked[self.queries.slot(1)[:, 0]] = self._asked
            late = np.arange(t) > asked[first : first + b * m].reshape(b, 1, m, 1)
            out = torch.zeros(b, 1, m, t, dtype=dtype).masked_fill_(torch.from_numpy(late), -torch.inf)
            self._known[key] = out.expand(b, shared * repeat, m, t).reshape(b * shared, repeat * m, t)
        return self._known[key]

    def indices(self, heads: int, shared: int, turned: bool) -> tuple[Tensor, ...]:
        """Where queries, keys and values come from; where outputs, and gradients of the three, lie; and so back."""
        key = heads, shared, turned
        if key not in self._known:
            whole = heads + 2 * shared
            if self.kept:
                q, k = (heads, 0), (shared if turned else 2 * shared, 0)
                v = (2 * shared, shared)
            else:
                q, k = ((heads + shared if turned else whole, at) for at in (0, heads))
                v = (whole, heads + shared)
            back_q, back_k = self.queries.slot(heads), self.keys.slot(shared)
            both = np.concatenate((back_k, back_k + self.keys.slots * shared), axis=1)
            if not self.kept:
                both = np.concatenate((back_q, both + self.queries.slots * heads), axis=1)
            self._known[key] = (
                self.queries.source(heads, *q), self.keys.source(shared, *k), self.keys.source(shared, *v),
                torch.from_numpy(back_q.ravel()), torch.from_numpy(both.ravel()),
                self.queries.source(heads, heads, 0), self.queries.padding(heads),
            )  # fmt: skip
        return self._known[key]

    def pieces(self, heads: int, shared: int) -> Iterator[tuple[int, slice, slice, int, int, int]]:
        """Each group's number, its slots among queries and among keys, and the sizes of its products."""
        at_q = at_k = 0
        for i, (b, m, t) in enumerate(self.groups):
            yield i, slice(at_q, at_q + b * m * heads), slice(at_k, at_k + b * t * shared), b * shared, m, t
            at_q, at_k = at_q + b * m * heads, at_k + b * t * shared


def rows_causal(
    whole: Tensor,
    asking: Tensor | None,
    rows: RaggedPlan,
    shared: int,
    scale: float,
    turns: tuple[Tensor | None, ...] = (),
) -> Tensor:
    """What each token that asks reads, (M, heads, d).

    `whole` has each token's queries, keys and values, (N, heads + 2·shared, d). If only some tokens ask, it has keys
    and values only, and `asking` has those tokens' queries. With `turns`, complex numbers (N, 1, d/2) for each
    token (and for each that asks), queries and keys are multiplied by them first, as d/2 complex numbers.
    """
    turn, turn_asking = (*turns, None, None)[:2]
    out: Tensor = _Rows.apply(whole, asking, turn, turn_asking, rows, shared, scale)
    return out


class _Rows(torch.autograd.Function):
    """Gather into groups, attend as core/short.py does, gather back; several heads of queries may share keys."""

    @staticmethod
    def forward(
        ctx: Any, whole: Tensor, asking: Tensor | None, turn: Tensor | None, turn_asking: Tensor | None,
        rows: RaggedPlan, shared: int, scale: float,
    ) -> Tensor:  # fmt: skip
        d = whole.shape[-1]
        heads = whole.shape[1] - 2 * shared if asking is None else asking.shape[1]
        of_q, of_k, of_v, back_q, *_ = rows.indices(heads, shared, turn is not None)
        with torch.autocast("cpu", enabled=False):
            if turn is None:
                q, k = whole if asking is None else asking, whole
            elif asking is None:
                q = k = turned(whole[:, : heads + shared], turn)
            else:
                assert turn_asking is not None
                q, k = turned(asking, turn_asking), turned(whole[:, :shared], turn)
            q, k, v = (_flat(x, d).index_select(0, of) for x, of in ((q, of_q), (k, of_k), (whole, of_v)))
            out, saved = torch.empty_like(q), []
            for i, at_q, at_k, b, _, t in rows.pieces(heads, shared):
                one, two, three = q[at_q].view(b, -1, d), k[at_k].view(b, t, d), v[at_k].view(b, t, d)
                mask = rows.mask(i, shared, heads // shared, q.dtype)
                weights = torch.baddbmm(mask, one, two.mT, alpha=scale)
                torch.softmax(weights, dim=-1, out=weights)
                torch.bmm(weights, three, out=out[at_q].view(b, -1, d))
                saved.append(weights)
        ctx.save_for_backward(q, k, v, *saved)
        ctx.facts = rows, heads, shared, scale, turn, turn_asking
        return out.index_select(0, back_q).view(-1, heads, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, heads, shared, scale, turn, turn_asking = ctx.facts
        q, k, v, *saved = ctx.saved_tensors
        d = q.shape[-1]
        *_, back_q, back, of_grad, padding = rows.indices(heads, shared, turn is not None)
        with torch.autocast("cpu", enabled=False):
            g = _flat(grad, d).index_select(0, of_grad).index_fill_(0, padding, 0)
            both = q.new_empty(len(q) + 2 * len(k), d)
            dq, dk, dv = both.split((len(q), len(k), len(k)))
            for i, at_q, at_k, b, _, t in rows.pieces(heads, shared):
                weights, one, two, three = (
                    saved[i],
                    q[at_q].view(b, -1, d),
                    k[at_k].view(b, t, d),
                    v[at_k].view(b, t, d),
                )
                asked = g[at_q].view(b, -1, d)
                inner = torch._softmax_backward_data(torch.bmm(asked, three.mT), weights, -1, weights.dtype)
                torch.bmm(inner, two, out=dq[at_q].view(b, -1, d))
                torch.bmm(inner.mT, one, out=dk[at_k].view(b, t, d))
                torch.bmm(weights.mT, asked, out=dv[at_k].view(b, t, d))
            both[: len(q) + len(k)].mul_(scale)
            if not rows.kept:
                whole = both.index_select(0, back).view(-1, heads + 2 * shared, d)
                if turn is not None:
                    turn_back(whole[:, : heads + shared], turn)
                return whole, None, None, None, None, None, None
            asking = dq.index_select(0, back_q).view(-1, heads, d)
            whole = both[len(q) :].index_select(0, back).view(-1, 2 * shared, d)
            if turn is not None:
                turn_back(asking, turn_asking)
                turn_back(whole[:, :shared], turn)
            return whole, asking, None, None, None, None, None


def _flat(x: Tensor, d: int) -> Tensor:
    return x.reshape(-1, d)


def _placing(width: np.ndarray, order: np.ndarray, owner: np.ndarray, place: np.ndarray) -> SlotMap:
    """Sequences in an order, each with its width of slots; `owner` and `place` say which token is where."""
    first = np.empty(len(width), dtype=np.int64)
    first[order] = np.cumsum(width[order]) - width[order]
    return SlotMap(first[owner], place, width[owner], int(width.sum()))
