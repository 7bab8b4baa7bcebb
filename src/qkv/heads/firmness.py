"""How firmly a head looks something up: margins, and how far keys may move before another item is on top."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from qkv.heads.adapter import AttentionCall, per_head
from qkv.heads.patterns import SKIPPED

FIRM = 0.9
"""A query that puts at least this weight on one item is said to read it."""


@dataclass(frozen=True)
class Firmness:
    """How firmly every head looks up; one row for each layer, one column for each head.

    Attributes:
        margin: Median difference of score between the first item and the second.
        radius: Median distance that every key may move without another item coming out on top, as a share of the
            median length of a key: margin / (2 · length of the query), which no smaller change can beat.
        reads: Share of queries that put at least 90 % of their weight on one item.
    """

    margin: Tensor
    radius: Tensor
    reads: Tensor


class FirmnessParts:
    """Collects margins layer by layer.

    Args:
        layers: Number of layers.
        heads: Number of heads of a layer.
    """

    def __init__(self, layers: int, heads: int) -> None:
        self.margins: list[list[Tensor]] = [[] for _ in range(layers)]
        self.radii: list[list[Tensor]] = [[] for _ in range(layers)]
        self.firm: list[list[Tensor]] = [[] for _ in range(layers)]

    def add(self, call: AttentionCall, scores: Tensor) -> None:
        """Add one window.

        Args:
            call: The layer's attention, of one text.
            scores: Its scores, (heads, tokens, tokens), -inf where a token may not look.
        """
        rows = slice(min(SKIPPED, scores.shape[-1] - 1), None)
        top = scores[:, rows].topk(2, -1).values.double()
        margin = top[..., 0] - top[..., 1]
        # A soft cap has slope at most 1, so the bound holds for capped scores too.
        length = call.query[0, :, rows].double().norm(dim=-1) * call.scaling
        keys = per_head(call.key, call.groups)[0].double().norm(dim=-1).median(-1, keepdim=True).values
        self.margins[call.layer].append(margin)
        self.radii[call.layer].append(margin / (2 * length * keys))
        self.firm[call.layer].append((call.weights[0, :, rows].amax(-1) >= FIRM).double())

    def result(self) -> Firmness:
        """Medians and shares over all queries."""
        margin, radius, firm = (
            torch.stack([torch.cat(of, -1) if of else torch.full((1, 1), torch.nan) for of in parts])
            for parts in (self.margins, self.radii, self.firm)
        )
        return Firmness(margin.median(-1).values, radius.median(-1).values, firm.mean(-1))
