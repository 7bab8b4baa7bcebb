"""How firmly a head looks something up: margins, and how far keys may move before another item is on top, certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from qkv.core.rounding_bounds import gamma, norms, top_margin_lower_bounds
from qkv.core.types import FloatArray, IntArray
from qkv.design.certificates.certificate import Certificate
from qkv.heads.adapter import AttentionCall
from qkv.heads.patterns import SKIPPED
from qkv.heads.readable_keys import FIRM


@dataclass(frozen=True)
class Firmness:
    """How firmly every head looks up; one row for each layer, one column for each head.

    Attributes:
        margin: Median difference of score between the first item and the second.
        radius: Median distance that every key may move without another item coming out on top, as a share of the
            median length of a key: margin / (2 · length of the query), which no smaller change can beat; rounded down.
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
        self.firm = torch.zeros(layers, heads, dtype=torch.float64)

    def add(self, call: AttentionCall, scores: Tensor) -> None:
        """Add one window.

        Args:
            call: The layer's attention, of one text.
            scores: Its scores without the soft cap, (heads, tokens, tokens), -inf where a token may not look: large
                ones are equal after a cap, and the top item could not be told.
        """
        rows = slice(min(SKIPPED, scores.shape[-1] - 1), None)
        seen = scores[:, rows].double()
        first, items = seen.max(-1)
        second = seen.scatter(-1, items[..., None], -torch.inf).amax(-1)
        self.margins[call.layer].append(call.capped(first) - call.capped(second))
        self.radii[call.layer].append(_relative_radii(call, torch.isfinite(scores[0]), rows, items))
        self.firm[call.layer] += (call.weights[0, :, rows].amax(-1) >= FIRM).sum(-1)

    def result(self) -> Firmness:
        """Medians and shares over all queries."""
        margin, radius = (
            torch.stack([torch.cat(of, -1).double() for of in parts]) for parts in (self.margins, self.radii)
        )
        return Firmness(_median(margin), _median(radius), self.firm / margin.shape[-1])


def _median(numbers: Tensor) -> Tensor:
    """Medians of the last axis; of an even count the mean of the middle two, where torch takes the lower one."""
    ordered, n = numbers.sort(-1).values, numbers.shape[-1]
    low, high = ordered[..., (n - 1) // 2], ordered[..., n // 2]
    return torch.where(low == high, low, (low + high) / 2)  # which also keeps two infinite ones


def _relative_radii(call: AttentionCall, visible: Tensor, rows: slice, items: Tensor) -> Tensor:
    """Lower bounds on the radii of a layer's queries, (heads, queries), as shares of the median length of a key."""
    first, last = (ends[rows] for ends in _ends(visible))
    out = []
    for head, chosen in enumerate(items.numpy()):
        keys, queries = _arrays(call, head)
        length = float(np.median(norms(keys))) * (1 + gamma(keys.shape[1] + 8))
        bounds = top_margin_lower_bounds(keys, queries[rows], chosen, first, last)
        if not length > 0:  # most keys are 0, and there is no length to compare with
            out.append(np.zeros_like(bounds))
            continue
        out.append(np.clip(bounds / 2 / length * (1 - gamma(8)), 0, None))
    return torch.from_numpy(np.stack(out))


def _ends(visible: Tensor) -> tuple[IntArray, IntArray]:
    """The first and the last key that each token sees; keys between them that it does not see only lower a radius."""
    seen = visible.numpy()
    return np.argmax(seen, axis=1), seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)


def _arrays(call: AttentionCall, head: int) -> tuple[FloatArray, FloatArray]:
    keys, queries = call.key[0, head // call.groups], call.query[0, head]
    return keys.double().numpy(), queries.double().numpy()


def radius_certificate(call: AttentionCall, head: int) -> Certificate | None:
    """A certificate of how far the keys of a head may move, each, before another item is on top.

    It speaks of the captured keys and queries as exact numbers. A soft cap does not change the order of scores, and a
    sink is no item, so it holds for heads with either. Queries that see one key only, and those whose first two items
    cannot be told apart, are left out.

    Args:
        call: The attention of the head's layer on one text.
        head: Its number in the layer.

    Returns:
        A certificate of the kind "top item"; None if no query is left.
    """
    visible = torch.isfinite(call.scores()[0, head])
    first, last = _ends(visible)
    keys, queries = _arrays(call, head)
    scores = np.where(visible.numpy(), queries @ keys.T, -np.inf)
    items = scores.argmax(1)
    bounds = top_margin_lower_bounds(keys, queries, items, first, last, slack=8.0)
    kept = np.flatnonzero((bounds > 0) & (first < last))
    if not len(kept):
        return None
    data = {
        "keys": keys, "queries": queries[kept], "items": items[kept].astype(float),
        "first": first[kept].astype(float), "last": last[kept].astype(float),
    }  # fmt: skip
    return Certificate.issue("top item", data)
