"""Causal attention of sequences of different lengths packed end to end: padded only inside a few matrix products.

Sequences of about one length form a group. Queries, keys and values are gathered into padded slots, group after group;
each group is one batched product; outputs are gathered back. Which vector goes to which slot depends on the lengths
alone, so a batch's `RaggedPlan` is made once and serves every layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qkv.core.kernels.causal import causal_bias
from qkv.core.kernels.softmax_backward import softmax_backward
from qkv.core.rotary import apply_rotary, apply_rotary_backward_

MAX_GROUPS = 6  # groups of lengths in a batch, about: more means less padding, but smaller products and more calls


class SlotMap:
    """The slot of each token: slot `offset` of the `width` slots that its sequence has from `first` on."""

    def __init__(self, first: np.ndarray, offset: np.ndarray, width: np.ndarray, n_slots: int) -> None:
        self.first, self.offset, self.width, self.n_slots = first, offset, width, n_slots
        self._inverse: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def slots(self, n_head: int) -> np.ndarray:
        """Slots (tokens, n_head) of each token's vectors, where the heads of a sequence lie one after another."""
        start = self.first * n_head + self.offset
        return start[:, None] + self.width[:, None] * np.arange(n_head)

    def gather_index(self, n_head: int, per_token: int, first_head: int) -> Tensor:
        """For each slot, the index of the vector that goes there; any valid index for padding.

        The vectors come from tokens of `per_token` vectors each, of which the heads are those from `first_head` on.
        """
        if n_head not in self._inverse:
            slots = self.slots(n_head)
            token, head = np.zeros((2, self.n_slots * n_head), dtype=np.int64)
            token[slots], head[slots] = np.arange(len(slots))[:, None], np.arange(n_head)
            self._inverse[n_head] = token, head
        token, head = self._inverse[n_head]
        return torch.from_numpy(token * per_token + (head + first_head))

    def padding(self, n_head: int) -> Tensor:
        """The slots that belong to no token."""
        if len(self.first) == self.n_slots:
            return torch.empty(0, dtype=torch.int64)
        free = np.ones(self.n_slots * n_head, dtype=bool)
        free[self.slots(n_head)] = False
        return torch.from_numpy(np.flatnonzero(free))


class Group(NamedTuple):
    """Sequences of about one length: the slots of their queries and keys, and the shape of their products."""

    number: int
    q_slots: slice
    k_slots: slice
    batch: int  # sequences times heads of keys
    length: int  # padded keys of a sequence


class GatherIndices(NamedTuple):
    """Where vectors come from and go to; `_slots` map packed vectors to slots, `from_` slots back to packed vectors."""

    q_slots: Tensor
    k_slots: Tensor
    v_slots: Tensor
    from_q: Tensor  # outputs, and gradients of queries that came alone
    from_gradients: Tensor  # gradients of (queries,) keys and values, concatenated
    grad_slots: Tensor  # the gradient of the outputs
    q_padding: Tensor


class RaggedPlan:
    """How packed sequences of given lengths are grouped, and which slot each query and key takes.

    Args:
        lengths: tokens of each sequence, in the order in which they are packed.
        keep: indices of the tokens that have a query; all tokens if it is None.
    """

    def __init__(self, lengths: Sequence[int], keep: Tensor | None = None) -> None:
        length = np.asarray(lengths, dtype=np.int64)
        # Lengths are rounded up to a multiple, so that there are at most about MAX_GROUPS different ones.
        multiple = -(-int(length.max()) // MAX_GROUPS)
        padded = np.minimum(-(-length // multiple) * multiple, length.max())
        start = np.cumsum(length) - length
        sequence = np.repeat(np.arange(len(length)), length)
        order = np.argsort(padded, kind="stable")
        self.keys = _slot_map(padded, order, sequence, np.arange(len(sequence)) - start[sequence])
        self.selects_queries = keep is not None
        if keep is None:
            self.queries, width = self.keys, padded
        else:
            kept = keep.numpy()
            of = sequence[kept]
            count = np.bincount(of, minlength=len(length))
            by_sequence = np.argsort(of, kind="stable")
            rank = np.empty(len(kept), dtype=np.int64)
            rank[by_sequence] = np.arange(len(kept)) - (np.cumsum(count) - count)[of[by_sequence]]
            # In each group as many slots for queries as its sequence with the most queries needs.
            largest = np.zeros(int(padded.max()) + 1, dtype=np.int64)
            np.maximum.at(largest, padded, count)
            width = np.maximum(largest, 1)[padded]
            self.queries = _slot_map(width, order, of, rank)
            self._query_positions = kept - start[of]
        sizes, counts = np.unique(padded, return_counts=True)
        widths = {int(t): int(m) for t, m in zip(padded, width, strict=True)}
        self._shapes = [(int(b), widths[int(t)], int(t)) for t, b in zip(sizes, counts, strict=True)]
        self._masks: dict[tuple[int, ...], Tensor] = {}
        self._indices: dict[tuple[int, int, bool], GatherIndices] = {}

    def groups(self, n_head: int, n_kv_head: int) -> Iterator[Group]:
        """The groups in the order of their slots."""
        q = k = 0
        for i, (b, m, t) in enumerate(self._shapes):
            yield Group(i, slice(q, q + b * m * n_head), slice(k, k + b * t * n_kv_head), b * n_kv_head, t)
            q, k = q + b * m * n_head, k + b * t * n_kv_head

    def mask(self, group: int, n_kv_head: int, repeat: int, dtype: torch.dtype) -> Tensor:
        """What is added to a group's scores (b · n_kv_head, repeat · m, t): -inf at keys after a query's position."""
        b, m, t = self._shapes[group]
        if not self.selects_queries:
            return causal_bias(t, dtype, repeat).expand(b * n_kv_head, repeat * m, t)
        key = (group, n_kv_head, repeat, dtype.itemsize)
        if key not in self._masks:
            first = sum(b * m for b, m, _ in self._shapes[:group])
            position = np.full(self.queries.n_slots, t)  # a padding query sees all keys: its softmax is finite
            position[self.queries.slots(1)[:, 0]] = self._query_positions
            later = np.arange(t) > position[first : first + b * m].reshape(b, 1, m, 1)
            out = torch.zeros(b, 1, m, t, dtype=dtype).masked_fill_(torch.from_numpy(later), -torch.inf)
            self._masks[key] = out.expand(b, n_kv_head * repeat, m, t).reshape(b * n_kv_head, repeat * m, t)
        return self._masks[key]

    def indices(self, n_head: int, n_kv_head: int, rotated: bool) -> GatherIndices:
        """All gathers of a forward and a backward pass.

        Queries and keys come from the packed projections or, if `rotated`, from a rotated copy of their part of them.
        """
        key = n_head, n_kv_head, rotated
        if key not in self._indices:
            per_token = n_head + 2 * n_kv_head
            if self.selects_queries:  # queries have a tensor of their own
                q, k = (n_head, 0), (n_kv_head if rotated else 2 * n_kv_head, 0)
                v = (2 * n_kv_head, n_kv_head)
            else:
                q, k = ((n_head + n_kv_head if rotated else per_token, first) for first in (0, n_head))
                v = (per_token, n_head + n_kv_head)
            q_slots, k_slots = self.queries.slots(n_head), self.keys.slots(n_kv_head)
            gradients = np.concatenate((k_slots, k_slots + self.keys.n_slots * n_kv_head), axis=1)
            if not self.selects_queries:
                gradients = np.concatenate((q_slots, gradients + self.queries.n_slots * n_head), axis=1)
            self._indices[key] = GatherIndices(
                q_slots=self.queries.gather_index(n_head, *q),
                k_slots=self.keys.gather_index(n_kv_head, *k),
                v_slots=self.keys.gather_index(n_kv_head, *v),
                from_q=torch.from_numpy(q_slots.ravel()),
                from_gradients=torch.from_numpy(gradients.ravel()),
                grad_slots=self.queries.gather_index(n_head, n_head, 0),
                q_padding=self.queries.padding(n_head),
            )
        return self._indices[key]


def _slot_map(width: np.ndarray, order: np.ndarray, sequence: np.ndarray, offset: np.ndarray) -> SlotMap:
    """Sequences take `width` slots each, in `order`; `sequence` and `offset` say where each token belongs."""
    first = np.empty(len(width), dtype=np.int64)
    first[order] = np.cumsum(width[order]) - width[order]
    return SlotMap(first[sequence], offset, width[sequence], int(width.sum()))


def ragged_causal(
    qkv: Tensor,
    plan: RaggedPlan,
    n_kv_head: int,
    scale: float,
    rotation: Tensor | None = None,
    *,
    queries: Tensor | None = None,
    query_rotation: Tensor | None = None,
) -> Tensor:
    """Outputs (M, heads, d) of the M tokens that have a query; M = N if all have one.

    Args:
        qkv: queries, keys and values of each token, (N, heads + 2·n_kv_head, d); with `queries`, keys and values only.
        plan: the grouping of these sequences, made with `keep` if and only if `queries` are given.
        n_kv_head: heads of keys and of values; heads/n_kv_head heads of queries share each.
        scale: factor of the scores.
        rotation: complex numbers (N, 1, d/2) that keys (and queries in `qkv`) are multiplied by first.
        queries: queries (M, heads, d) of the tokens that the plan keeps.
        query_rotation: complex numbers (M, 1, d/2) for `queries`.
    """
    out: Tensor = _RaggedCausal.apply(qkv, queries, rotation, query_rotation, plan, n_kv_head, scale)
    return out


class _RaggedCausal(torch.autograd.Function):
    """Gather into slots, the products of core/kernels/causal.py for each group, gather back."""

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, queries: Tensor | None, rotation: Tensor | None, query_rotation: Tensor | None,
        plan: RaggedPlan, n_kv_head: int, scale: float,
    ) -> Tensor:  # fmt: skip
        d = qkv.shape[-1]
        n_head = qkv.shape[1] - 2 * n_kv_head if queries is None else queries.shape[1]
        at = plan.indices(n_head, n_kv_head, rotation is not None)
        with torch.autocast("cpu", enabled=False):
            if rotation is None:
                q, k = qkv if queries is None else queries, qkv
            elif queries is None:
                q = k = apply_rotary(qkv[:, : n_head + n_kv_head], rotation)
            else:
                assert query_rotation is not None
                q, k = apply_rotary(queries, query_rotation), apply_rotary(qkv[:, :n_kv_head], rotation)
            q = q.reshape(-1, d).index_select(0, at.q_slots)
            k = k.reshape(-1, d).index_select(0, at.k_slots)
            v = qkv.reshape(-1, d).index_select(0, at.v_slots)
            out, saved = torch.empty_like(q), []
            # Heads that share keys are further queries of the same product.
            for group in plan.groups(n_head, n_kv_head):
                b, t = group.batch, group.length
                gq, gk, gv = q[group.q_slots].view(b, -1, d), k[group.k_slots].view(b, t, d), v[group.k_slots]
                mask = plan.mask(group.number, n_kv_head, n_head // n_kv_head, q.dtype)
                weights = torch.baddbmm(mask, gq, gk.mT, alpha=scale)
                torch.softmax(weights, dim=-1, out=weights)
                torch.bmm(weights, gv.view(b, t, d), out=out[group.q_slots].view(b, -1, d))
                saved.append(weights)
        ctx.save_for_backward(q, k, v, *saved)
        ctx.constants = plan, n_head, n_kv_head, scale, rotation, query_rotation
        return out.index_select(0, at.from_q).view(-1, n_head, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        plan, n_head, n_kv_head, scale, rotation, query_rotation = ctx.constants
        q, k, v, *saved = ctx.saved_tensors
        d = q.shape[-1]
        at = plan.indices(n_head, n_kv_head, rotation is not None)
        with torch.autocast("cpu", enabled=False):
            grad = grad.reshape(-1, d).index_select(0, at.grad_slots).index_fill_(0, at.q_padding, 0)
            gradients = q.new_empty(len(q) + 2 * len(k), d)
            dq, dk, dv = gradients.split((len(q), len(k), len(k)))
            for group, weights in zip(plan.groups(n_head, n_kv_head), saved, strict=True):
                b, t = group.batch, group.length
                gq, gk, gv = q[group.q_slots].view(b, -1, d), k[group.k_slots].view(b, t, d), v[group.k_slots]
                g = grad[group.q_slots].view(b, -1, d)
                dscores = softmax_backward(torch.bmm(g, gv.view(b, t, d).mT), weights)
                torch.bmm(dscores, gk, out=dq[group.q_slots].view(b, -1, d))
                torch.bmm(dscores.mT, gq, out=dk[group.k_slots].view(b, t, d))
                torch.bmm(weights.mT, g, out=dv[group.k_slots].view(b, t, d))
            gradients[: len(q) + len(k)].mul_(scale)
            if not plan.selects_queries:
                dqkv = gradients.index_select(0, at.from_gradients).view(-1, n_head + 2 * n_kv_head, d)
                if rotation is not None:
                    apply_rotary_backward_(dqkv[:, : n_head + n_kv_head], rotation)
                return dqkv, None, None, None, None, None, None
            dqueries = dq.index_select(0, at.from_q).view(-1, n_head, d)
            dkv = gradients[len(q) :].index_select(0, at.from_gradients).view(-1, 2 * n_kv_head, d)
            if rotation is not None:
                apply_rotary_backward_(dqueries, query_rotation)
                apply_rotary_backward_(dkv[:, :n_kv_head], rotation)
            return dkv, dqueries, None, None, None, None, None
