"""Which keys a query of bounded length could read: a query that does, or a proof that none does.

Item j has a weight of at least w if and only if f(q) = log Σ_i exp((k_i − k_j)·q + c_i) ≤ −log(w / (1 − w)), where the
sum runs over its rivals (c_i is 0, or a sink's score, whose key is 0). f is convex, so a query of length at most L that
minimises it decides. A query is a witness if f(q) is small enough. For any distribution p on the rivals, Jensen's
inequality gives f(q) ≥ H(p) + Σ p_i c_i + (Σ p_i (k_i − k_j))·q ≥ H(p) + Σ p_i c_i − L ‖Σ p_i (k_i − k_j)‖, and a p for
which the right side is too large is a proof that no query does. At the minimum the softmax weights give equality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.core.rounding_bounds import gamma
from qkv.heads.adapter import AttentionCall, per_head
from qkv.heads.patterns import SKIPPED

FIRM = 0.9
"""A query that puts at least this weight on one item is said to read it."""
SAMPLED = 128
"""Keys of a text that are asked about, at even distances, if it has more."""

MAX_STEPS = 60
"""Newton steps after which a key stays open."""
STARTS = (1.0, 0.5, 0.25, 0.1)
"""Lengths of the first query, as shares of the longest that is allowed, of which the best is taken."""
SPREADS = (1.0, 4.0)
"""Further lengths: those at which the scores of the rivals have this standard deviation."""
SECULAR_STEPS = 40
HALVINGS = 60


@dataclass(frozen=True)
class ReadableKeys:
    """Which keys a query of bounded length could read.

    Attributes:
        possible: A query was found that reads the key, which is checked with rounding errors.
        impossible: It is proved that no query does; where neither holds, the key is open.
        queries: The witnesses; elsewhere the last query that was tried.
    """

    possible: Tensor
    impossible: Tensor
    queries: Tensor


def readable_keys(
    keys: Tensor, items: Tensor, visible: Tensor, length: Tensor, *, weight: float = 0.9, sinks: Tensor | None = None
) -> ReadableKeys:
    """Decide for each item whether some query no longer than `length` gives it at least `weight`.

    Args:
        keys: (heads, n, d) in float64.
        items: (m,), the keys asked about, the same for every head.
        visible: (m, n), which keys compete with each item; the item itself is among them.
        length: (heads,), the longest query allowed.
        weight: The weight wanted, between 0 and 1.
        sinks: (heads,), a score without a value that takes weight; None without.

    Returns:
        Answers of shape (heads, m).
    """
    heads, n, d = keys.shape
    offsets = torch.zeros(heads, n, dtype=torch.float64)
    rivals = visible.clone()
    rivals[torch.arange(len(items)), items] = False
    if sinks is not None:
        keys = torch.cat([keys, keys.new_zeros(heads, 1, d)], 1)
        offsets = torch.cat([offsets, sinks.double()[:, None]], 1)
        rivals = torch.cat([rivals, torch.ones(len(items), 1, dtype=torch.bool)], 1)
    problems = _Problems(keys, offsets, rivals, items, length, math.log(weight / (1 - weight)))
    return problems.solve()


@dataclass(frozen=True)
class KeyShares:
    """How many of its keys every head could read at 90 %, and how many it does; (layers, heads), NaN where unknown.

    Attributes:
        readable: Share of the keys that a query no longer than the head's longest in the window reads.
        at_most: The same, with the keys that are still open.
        read: Share of the same keys that one of the head's own queries reads.
    """

    readable: Tensor
    at_most: Tensor
    read: Tensor


class KeyShareParts:
    """Adds up, layer by layer, which keys could be read and which are.

    A key is asked about at the moment when it is written: it competes with the keys that its own token sees. Later it
    competes with more, so one that cannot be read then can never be (in a layer without a sliding window).

    Args:
        layers: Number of layers.
        heads: Number of heads of a layer.
        sizes: Tokens of each window.
        sampled: Keys asked about in all.
    """

    def __init__(self, layers: int, heads: int, sizes: Sequence[int], sampled: int = SAMPLED) -> None:
        self.counts = torch.zeros(3, layers, heads, dtype=torch.float64)
        places = [(w, i) for w, size in enumerate(sizes) for i in range(min(SKIPPED, size - 1), size)]
        step = max(1.0, len(places) / sampled)
        chosen = [places[int((i + 0.5) * step)] for i in range(min(sampled, len(places)))]
        self.items = {w: torch.tensor([i for v, i in chosen if v == w]) for w in {v for v, _ in chosen}}
        self.total = len(chosen)

    def add(self, number: int, call: AttentionCall, visible: Tensor) -> None:
        """Add one window.

        Args:
            number: Which window.
            call: The layer's attention there.
            visible: (tokens, tokens), which keys each token sees.
        """
        items = self.items.get(number)
        if items is None:
            return
        if call.softcap is not None:  # the function is not convex then
            self.counts[:, call.layer] = torch.nan
            return
        rows = slice(min(SKIPPED, len(visible) - 1), None)
        keys = per_head(call.key, call.groups)[0].double() * call.scaling
        length = call.query[0, :, rows].double().norm(dim=-1).amax(-1)
        found = readable_keys(keys, items, visible[items], length, weight=FIRM, sinks=call.sinks)
        self.counts[0, call.layer] += found.possible.sum(-1)
        self.counts[1, call.layer] += (~found.impossible).sum(-1)
        self.counts[2, call.layer] += (call.weights[0, :, rows][..., items].amax(1) >= FIRM).sum(-1)

    def result(self) -> KeyShares:
        """Shares of all keys that were asked about."""
        return KeyShares(*(self.counts / self.total))


class _Problems:
    """One problem for each head and item, numbered head by head; those that are decided are dropped."""

    def __init__(
        self, keys: Tensor, offsets: Tensor, rivals: Tensor, items: Tensor, length: Tensor, needed: float
    ) -> None:
        heads, n, d = keys.shape
        self.keys, self.offsets, self.needed = keys, offsets, needed
        self.shape = (heads, len(items))
        self.head = torch.arange(heads).repeat_interleave(len(items))
        self.rivals = rivals.repeat(heads, 1)
        self.own = keys[:, items].reshape(-1, d)
        self.length = length.double().repeat_interleave(len(items))
        # Every computed f and every computed bound is off by at most this. Scores (k_i − k_j)·q carry gamma(2d) times
        # 2 L max ‖k‖, a log-sum-exp gamma(n) more and one rounding of each score; an entropy gamma(n)(1 + log n), a
        # weighted sum of keys gamma(n) times 2 max ‖k‖. All of it together is well below eight times gamma(2n + 2d).
        size = keys.norm(dim=-1).amax(-1).repeat_interleave(len(items))
        scale = 1 + math.log(n + 1) + self.length * size + offsets.abs().amax(-1).repeat_interleave(len(items))
        self.error = 8 * gamma(2 * n + 2 * d + 64) * scale
        shorter = 1 - gamma(2 * d + 32)
        self.inner, self.outer = self.length * shorter, self.length / shorter

    def solve(self) -> ReadableKeys:
        count, d = self.own.shape
        yes, no = torch.zeros(count, dtype=torch.bool), torch.zeros(count, dtype=torch.bool)
        alone = ~self.rivals.any(-1)
        yes[alone] = True  # nothing competes
        queries = torch.zeros(count, d, dtype=torch.float64)
        active = (~alone).nonzero()[:, 0]
        if len(active):
            queries[active] = self._start(active)
        for _ in range(MAX_STEPS):
            if not len(active):
                break
            q = queries[active]
            scores = self._scores(active, q)
            f = scores.logsumexp(-1)
            p = (scores - f[:, None]).exp()
            mean = self._average(active, p) - self.own[active]
            entropy = -(p * p.clamp_min(1e-300).log()).sum(-1) + (p * self.offsets[self.head[active]]).sum(-1)
            bound = entropy - self.outer[active] * mean.norm(dim=-1)
            yes[active] = f <= -self.needed - self.error[active]
            no[active] = bound > -self.needed + self.error[active]
            left = ~(yes[active] | no[active])
            active, q, p, mean, f = active[left], q[left], p[left], mean[left], f[left]
            if len(active):
                queries[active] = self._step(active, q, p, mean, f)
        shape = self.shape
        return ReadableKeys(yes.reshape(shape), no.reshape(shape), queries.reshape(*shape, d))

    def _differences(self, active: Tensor) -> Tensor:
        """Each rival's key less the item's, (problems, n, d)."""
        return self.keys[self.head[active]] - self.own[active][:, None]

    def _scores(self, active: Tensor, q: Tensor) -> Tensor:
        """Scores of the rivals less that of the item, −inf for what does not compete."""
        head = self.head[active]
        if len(active) == len(self.head):  # all of them, so that one product a head will do
            raw = (q.reshape(*self.shape, -1) @ self.keys.mT).reshape(len(active), -1)
        else:
            raw = torch.einsum("bnd,bd->bn", self.keys[head], q)
        found = raw - (self.own[active] * q).sum(-1, keepdim=True)
        return (found + self.offsets[head]).masked_fill(~self.rivals[active], -torch.inf)

    def _average(self, active: Tensor, p: Tensor) -> Tensor:
        """The keys averaged by weights."""
        if len(active) == len(self.head):
            return (p.reshape(*self.shape, -1) @ self.keys).reshape(len(active), -1)
        return torch.einsum("bn,bnd->bd", p, self.keys[self.head[active]])

    def _start(self, active: Tensor) -> Tensor:
        """The direction that separates the item from the mean of the keys in the metric of their spread."""
        centred = self.keys - self.keys.mean(1, keepdim=True)
        spread = centred.mT @ centred / centred.shape[1]
        ridge = 0.05 * spread.diagonal(dim1=-2, dim2=-1).mean(-1).clamp_min(1e-300)
        spread = spread + ridge[:, None, None] * torch.eye(spread.shape[-1], dtype=torch.float64)
        aim = self.own[active] - self.keys.mean(1)[self.head[active]]
        heads = self.head[active]
        solved = torch.linalg.solve(spread, torch.eye(spread.shape[-1], dtype=torch.float64).expand_as(spread))
        way = torch.einsum("bij,bj->bi", solved[heads], aim)
        way = way / way.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        full = way * self.inner[active][:, None]
        unit = self._scores(active, full) - self.offsets[heads]
        raw = torch.einsum("bij,bj->bi", spread[heads], full)
        deviation = (raw * full).sum(-1).clamp_min(1e-300).sqrt()  # of the scores of all keys
        shares = torch.stack([torch.full_like(deviation, s) for s in STARTS] + [c / deviation for c in SPREADS])
        shares = shares.clamp_max(1.0)
        values = torch.stack([(s[:, None] * unit + self.offsets[heads]).logsumexp(-1) for s in shares])
        return full * shares.gather(0, values.argmin(0)[None])[0][:, None]

    def _step(self, active: Tensor, q: Tensor, p: Tensor, mean: Tensor, f: Tensor) -> Tensor:
        """One Newton step inside the ball, halved until the function falls."""
        x = self._differences(active)
        hessian = (x * p[..., None]).mT @ x - mean[:, :, None] * mean[:, None]
        target = _in_ball(hessian, torch.einsum("bij,bj->bi", hessian, q) - mean, self.inner[active])
        before, after = self._scores(active, q), self._scores(active, target)
        slope = (mean * (target - q)).sum(-1)
        share = torch.ones_like(f)
        for _ in range(HALVINGS):
            moved = before + share[:, None] * (after - before).nan_to_num(0.0)
            bad = moved.logsumexp(-1) > f + 1e-4 * share * slope
            if not bad.any():
                break
            share[bad] /= 2
        new = q + share[:, None] * (target - q)
        return new * (self.inner[active] / new.norm(dim=-1).clamp_min(1e-300)).clamp_max(1.0)[:, None]


def _in_ball(hessian: Tensor, right: Tensor, radius: Tensor) -> Tensor:
    """The y with ‖y‖ ≤ radius that minimises y·Hy/2 − right·y, for positive semidefinite H."""
    levels, vectors = torch.linalg.eigh(hessian)
    b = torch.einsum("bij,bi->bj", vectors, right)
    # Where H is almost 0, y would be longer than float64 can square; 1e-12 of |right| / radius changes no answer.
    floor = (1e-14 * levels[:, -1:]).maximum(1e-12 * b.norm(dim=-1, keepdim=True) / radius[:, None]).clamp_min(1e-150)
    levels = levels.clamp_min(0) + floor
    shift = torch.zeros_like(radius)
    for _ in range(SECULAR_STEPS):  # Newton's method on 1/‖y‖ − 1/radius, which is concave and increasing in the shift
        y = b / (levels + shift[:, None])
        size = y.norm(dim=-1).clamp_min(1e-300)
        growth = (y * y / (levels + shift[:, None])).sum(-1) / size**2
        change = (size - radius) / (radius * growth.clamp_min(1e-300))
        shift = (shift + change).clamp_min(0)
        if bool((change.abs() <= 1e-10 * (shift + floor[:, 0])).all()):
            break
    y = b / (levels + shift[:, None])
    return torch.einsum("bij,bj->bi", vectors, y * (radius / y.norm(dim=-1).clamp_min(1e-300)).clamp_max(1.0)[:, None])
