"""leak: the weight that falls outside the wanted items, against scale, with a scale that is certified to be enough."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from qkv.core.attention import check_range
from qkv.core.display import Card, Displayable, number
from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, same_width, tensor, tolerance
from qkv.design.certificates.certificate import Certificate
from qkv.errors import QkvError

POINTS = 61
MOST_SCALE = 1e6
HALVINGS = 60


@dataclasses.dataclass(frozen=True, eq=False)
class Leak(Displayable):
    """How much weight misses the wanted items at each scale in front of one query.

    `scale` is the smallest at which the leak is at most `tol`, rounded up; from there on it only falls, since every
    wanted item scores above every other. It is None where one does not. `certificate` proves the leak at `scale`.
    """

    items: tuple[Any, ...]
    scales: torch.Tensor
    leaks: torch.Tensor
    tol: float | None
    scale: float | None
    certificate: Certificate | None = dataclasses.field(default=None, repr=False)

    def card(self) -> Card:
        found = "none: another item scores as high" if self.scale is None else f"{number(self.scale, 6)}, certified"
        facts = () if self.tol is None else ((f"scale for {number(self.tol)}", found),)
        rows = tuple((number(float(s)), number(float(x))) for s, x in zip(self.scales, self.leaks, strict=True))
        wanted = ", ".join(map(str, self.items))
        title = f"Leak of a query for {wanted}"
        return Card(title, facts, ("scale", "leak"), rows[:: max(1, POINTS // 8)])


def leak(
    memory: Memory,
    query: ArrayLike,
    wanted: Sequence[Any] | None = None,
    *,
    scales: ArrayLike | None = None,
    tol: float | None = 1e-3,
) -> Leak:
    """The leak of `query` at each of the scales, and the smallest scale that keeps it within `tol`.

    Without `wanted`, it is the item that the query scores highest. Without `scales`, they run from 0 to half as far
    again as that scale, or to 10. With `tol=None` no such scale is looked for.
    """
    asked = "the leak of a query"
    q = tensor("query", query, "d")
    same_width(asked, query=q, keys=memory.keys)
    tol = None if tol is None else tolerance(asked, tol)
    scores = memory.keys @ q
    check_range(asked, scores * MOST_SCALE)
    items = [int(scores.argmax())] if wanted is None else sorted({memory.index(item) for item in wanted})
    if not items:
        raise QkvError(asked, "no item is wanted", "Name at least one item")
    scale, proof = _smallest(memory, q, scores, items, tol) if tol is not None else (None, None)
    if scales is None:
        grid = torch.linspace(0, 10.0 if scale is None or scale == 0 else 1.5 * scale, POINTS, dtype=torch.float64)
    else:
        grid = tensor("scales", scales, "points")
    return Leak(tuple(memory.labels[i] for i in items), grid, _leaks(scores, items, grid), tol, scale, proof)


def _leaks(scores: torch.Tensor, items: list[int], scales: torch.Tensor) -> torch.Tensor:
    """The others' weights are added up, not subtracted from 1, so that a small leak keeps its digits."""
    rest = torch.ones(len(scores), dtype=torch.bool)
    rest[items] = False
    return torch.softmax(scales[:, None] * scores, -1)[:, rest].sum(-1)


def _smallest(
    memory: Memory, q: torch.Tensor, scores: torch.Tensor, items: list[int], tol: float
) -> tuple[float | None, Certificate | None]:
    """Leak/(1 − leak) = Σ e^(s x_j) / Σ e^(s x_i) over others j and wanted i; it falls if all x_i are above all x_j."""
    rest = np.delete(scores.numpy(), items)
    if len(rest) and float(scores[items].min()) <= rest.max():
        return None, None

    def proved(scale: float) -> Certificate:
        # Beside the ratios it has, a reading's distance in total variation is its leak.
        alpha = torch.softmax(scale * scores, -1)[items]
        data = {"keys": memory.keys.numpy(), "values": memory.values.numpy(), "query": (scale * q).numpy()}
        return Certificate.issue(
            "weights", {**data, "items": items, "wanted": (alpha / alpha.sum()).numpy()}, "distance"
        )

    x = scores.numpy() - float(scores[items].max())
    wanted, odds = x[items], float(np.log(tol / (1 - tol)))

    def excess(scale: float) -> tuple[float, float]:
        """The logarithm of the odds of a leak above those of tol, and its slope: both softmax means differ by it."""
        top = scale * rest_x.max()
        others, own = np.exp(scale * rest_x - top), np.exp(scale * wanted)
        slope = others @ rest_x / others.sum() - own @ wanted / own.sum()
        return float(np.log(others.sum()) + top - np.log(own.sum()) - odds), float(slope)

    rest_x = np.delete(x, items)
    high = 0.0
    if len(rest_x):
        # The excess is concave or nearly so far out; Newton from below, kept between what is known, finds its root.
        low, far = 0.0, MOST_SCALE
        for _ in range(HALVINGS):
            value, slope = excess(high)
            if value > 0:
                low = high
            else:
                far = high
            step = high - value / slope if slope < 0 else math.inf
            after = step if low < step < far else (low + min(far, 2 * low + 1)) / 2
            if abs(after - high) <= 1e-15 * high:
                break
            high = after
        if high >= MOST_SCALE or (low == 0.0 and far == 0.0):
            high = 0.0 if excess(0.0)[0] <= 0 else MOST_SCALE
    if high >= MOST_SCALE:
        return None, None
    for more in (0.0, 1e-12, 1e-9, 1e-6):
        certificate = proved(high * (1 + more))
        if float(certificate.claims["distance"]) <= tol:
            return high * (1 + more), certificate
    return None, None
