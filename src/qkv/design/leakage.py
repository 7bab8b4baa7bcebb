"""leak: weight outside the wanted items as a function of scale, and the smallest scale that keeps it within tol."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from qkv.core.display import Card, Displayable, number, upper_bound
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, FloatArray, Item
from qkv.core.validation import check_range, same_width, shown, tensor, tolerance
from qkv.design.certificates.certificate import Certificate
from qkv.errors import QkvError

DEFAULT_SCALES = 61
MAX_SCALE = 1e6
MAX_STEPS = 60
SAFETY_MARGINS = (0.0, 1e-12, 1e-9, 1e-6)
"""The scale is raised this much (relatively) until the certificate confirms the leak."""


@dataclasses.dataclass(frozen=True, eq=False)
class Leak(Displayable):
    """Weight outside the wanted items at each scale in front of one query.

    Attributes:
        items: Labels of the wanted items.
        scales: The scales.
        leaks: The weight outside the wanted items at each scale.
        tol: The largest leak allowed, or None.
        scale: The smallest scale at which the leak is at most `tol`, rounded up; at larger scales it only falls, since
            every wanted item scores above every other. None where one does not, or where none below 10⁶ could be
            certified: with several wanted items, whose own weights are rounded, that is so for tol near 1e-17.
        certificate: Certificate of the leak at `scale`, or None.
    """

    items: tuple[Item, ...]
    scales: torch.Tensor
    leaks: torch.Tensor
    tol: float | None
    scale: float | None
    certificate: Certificate | None = dataclasses.field(default=None, repr=False)

    def card(self) -> Card:
        found = "none found" if self.scale is None else f"{upper_bound(self.scale, 6)}, certified"
        facts = () if self.tol is None else ((f"scale for {number(self.tol)}", found),)
        rows = tuple((number(float(s)), number(float(x))) for s, x in zip(self.scales, self.leaks, strict=True))
        wanted = ", ".join(map(str, self.items))
        title = f"Leak of a query for {wanted}"
        return Card(title, facts, ("scale", "leak"), rows[:: max(1, DEFAULT_SCALES // 8)])


def leak(
    memory: Memory | ArrayLike,
    query: ArrayLike,
    wanted: Sequence[Item] | Item | None = None,
    *,
    scales: ArrayLike | None = None,
    tol: float | None = 1e-3,
) -> Leak:
    """Compute the leak of a query at several scales, and the smallest scale that keeps it within `tol`.

    Args:
        memory: The memory, or keys as rows.
        query: The query, (d,).
        wanted: Labels or indices of the wanted items, or one of them; the item that the query scores highest if None.
        scales: Scales at which to compute the leak; if None, 61 from 0 to 1.5 times the smallest scale, or to 10.
        tol: The largest leak allowed; None skips the search for the smallest scale.

    Returns:
        A `Leak`.

    Raises:
        QkvError: If an item is unknown, no item is wanted, sizes do not fit or a score exceeds the range of float64.

    Example:
        >>> import qkv
        >>> found = qkv.design.leak(qkv.Memory([[1, 0], [0, 1]], labels=["a", "b"]), [1.0, 0.0], ["a"], tol=1e-3)
        >>> round(found.scale, 4), bool(found.certificate.verify())
        (6.9068, True)
    """
    request = "the leak of a query"
    memory = memory if isinstance(memory, Memory) else Memory(memory)
    q = tensor("query", query, "d")
    same_width(request, query=q, keys=memory.keys)
    tol = None if tol is None else tolerance(request, tol)
    scores = memory.keys @ q
    check_range(request, scores * MAX_SCALE)
    if isinstance(wanted, str | int):
        wanted = [wanted]
    if wanted is not None and not isinstance(wanted, Iterable):
        raise QkvError(request, f"wanted is {shown(wanted)}", "Give a label, an index, or a list of them")
    items = [int(scores.argmax())] if wanted is None else sorted({memory.index(item) for item in wanted})
    if not items:
        raise QkvError(request, "no item is wanted", "Name at least one item")
    scale, proof = _smallest_scale(memory, q, scores, items, tol) if tol is not None else (None, None)
    if scales is None:
        grid = torch.linspace(
            0, 10.0 if scale is None or scale == 0 else 1.5 * scale, DEFAULT_SCALES, dtype=torch.float64
        )
    else:
        grid = tensor("scales", scales, "points")
    return Leak(tuple(memory.labels[i] for i in items), grid, _leaks(scores, items, grid), tol, scale, proof)


def _leaks(scores: torch.Tensor, items: list[int], scales: torch.Tensor) -> torch.Tensor:
    """The leak at each scale, summed over the other items (not subtracted from 1), so that small ones are accurate."""
    rest = torch.ones(len(scores), dtype=torch.bool)
    rest[items] = False
    return torch.softmax(scales[:, None] * scores, -1)[:, rest].sum(-1)


def _smallest_scale(
    memory: Memory, q: torch.Tensor, scores: torch.Tensor, items: list[int], tol: float
) -> tuple[float | None, Certificate | None]:
    """The smallest scale with a leak of at most tol, rounded up until it is certified, and its certificate."""
    others = np.delete(scores.numpy(), items)
    if len(others) and float(scores[items].min()) <= others.max():
        return None, None
    top = float(scores[items].max())
    scale = _leak_root(scores.numpy()[items] - top, others - top, tol) if len(others) else 0.0
    if scale >= MAX_SCALE:
        return None, None
    for margin in SAFETY_MARGINS:
        certificate = _leak_certificate(memory, q, scores, items, scale * (1 + margin))
        if float(certificate.claims["distance"]) <= tol:
            return scale * (1 + margin), certificate
    return None, None


def _leak_root(wanted: FloatArray, others: FloatArray, tol: float) -> float:
    """The scale s at which the leak is tol: 0 if the leak is below tol there, MAX_SCALE if no smaller scale is enough.

    The odds of the leak are Σ e^(s x_j) / Σ e^(s x_i) over other scores x_j and wanted scores x_i, and fall with s,
    since all x_i are above all x_j.
    """
    odds = float(np.log(tol / (1 - tol)))

    def excess(scale: float) -> tuple[float, float]:
        """The log of the odds of the leak over those of tol, and its derivative: a difference of softmax means."""
        top = scale * others.max()
        other, own = np.exp(scale * others - top), np.exp(scale * wanted)
        slope = other @ others / other.sum() - own @ wanted / own.sum()
        return float(np.log(other.sum()) + top - np.log(own.sum()) - odds), float(slope)

    # Newton's method from below, with bisection where a step leaves the bracket [low, high].
    scale, low, high = 0.0, 0.0, MAX_SCALE
    for _ in range(MAX_STEPS):
        value, slope = excess(scale)
        if value > 0:
            low = scale
        else:
            high = scale
        step = scale - value / slope if slope < 0 else math.inf
        following = step if low < step < high else (low + min(high, 2 * low + 1)) / 2
        if abs(following - scale) <= 1e-15 * scale:
            break
        scale = following
    if scale >= MAX_SCALE or (low == 0.0 and high == 0.0):
        return 0.0 if excess(0.0)[0] <= 0 else MAX_SCALE
    return scale


def _leak_certificate(
    memory: Memory, q: torch.Tensor, scores: torch.Tensor, items: list[int], scale: float
) -> Certificate:
    """Certificate of the leak at one scale.

    The wanted weights are the query's own ratios, so the total-variation distance equals the leak.
    """
    alpha = torch.softmax(scale * scores, -1)[items]
    data = {"keys": memory.keys.numpy(), "values": memory.values.numpy(), "query": (scale * q).numpy()}
    return Certificate.issue("weights", {**data, "items": items, "wanted": (alpha / alpha.sum()).numpy()}, "distance")
