"""Queries that resist noise: the query, or the heads, of least mean squared error for a blend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, times, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.types import Item, Weights
from qkv.core.validation import whole
from qkv.design.query import Form, blend, copy
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import Comparison, blend_text, compare, layout_name, weights_by_label
from qkv.noise.head_mix import HeadMix
from qkv.noise.key_noise import Noise, noise_on_keys
from qkv.noise.moments.mixture import ReadingMoments
from qkv.noise.robust.search import (
    MAX_ITERATIONS,
    RobustProblem,
    best_single_head,
    least_loss,
    refine,
    split_items_among_heads,
    with_more_heads,
)
from qkv.parallel import Progress

N_STEPS = MAX_ITERATIONS + 7
"""Steps that are reported: three before the search, each of its iterations, and four after it."""
MAX_HEADS = 64
MAX_HELPFUL_RATIO = 0.9
"""More heads help if their squared error is below this part of one head's."""


@dataclass(frozen=True, eq=False)
class RobustQuery(Displayable):
    """Queries and mix for a wanted blend under noise, compared with the usual layouts.

    Attributes:
        queries: The queries, (h, d).
        mix: The weight of each head, (h,).
        wanted: The wanted weights by label.
        tol: The largest total-variation distance that was allowed without noise.
        distance: The total-variation distance of the noise-free weights from the wanted ones.
        squared_error: E‖output − wanted output‖² under the noise.
        gain: How many times larger the squared error of the plain layout is.
        gain_over_heads: How many times larger that of one plain head for each item is; None where there are none.
        more_heads_help: Whether more heads have a smaller squared error; None if that was not computed.
        advice: The same as a sentence.
        moments: The moments of the reading.
        comparison: The moments of all layouts that were compared.
        layouts: These layouts by name.
    """

    queries: Tensor
    mix: Tensor
    wanted: Mapping[Item, float]
    tol: float
    distance: float
    squared_error: float
    gain: float
    gain_over_heads: float | None
    more_heads_help: bool | None
    advice: str
    moments: ReadingMoments = field(repr=False)
    comparison: Comparison = field(repr=False)
    layouts: Mapping[str, HeadMix] = field(repr=False)

    @property
    def possible(self) -> bool:
        """Whether the reading without noise is within tol of what was wanted."""
        return self.distance <= self.tol

    @property
    def query(self) -> Tensor:
        """The one query (d,), or all of them (h, d)."""
        return self.queries[0] if len(self.queries) == 1 else self.queries

    def card(self) -> Card:
        table = self.comparison.card()
        facts = [
            ("squared error", f"{number(self.squared_error)}, {times(self.gain)} less than plain"),
            ("distance without noise", f"{number(self.distance)} (tol {number(self.tol)})"),
        ]
        if len(self.queries) == 1:
            facts.append(("query", vector(self.query.tolist())))
        else:
            facts.append(("norms of queries", vector(self.queries.norm(dim=1).tolist())))
            facts.append(("mix", vector(self.mix.tolist())))
        heads = f"{len(self.queries)} head{'s' * (len(self.queries) != 1)}"
        return Card(
            f"Hardened: {blend_text(self.wanted)} by {heads}", tuple(facts), table.columns, table.rows, self.advice
        )


def harden(
    memory: Memory,
    weights: Weights,
    noise: Noise,
    tol: float = 1e-2,
    heads: int = 1,
    *,
    callback: Progress | None = None,
) -> RobustQuery:
    """The query, or several queries with a mix, that read a blend with small mean squared error under noise.

    The search is local: the result is never worse than the plain layout, but need not be the best there is.

    Args:
        memory: The memory whose keys are the means of the random keys.
        weights: The wanted weights of some items, which sum to 1.
        noise: The noise on the keys.
        tol: The largest total-variation distance of the noise-free weights from the wanted ones, where a query reaches
            that.
        heads: The number of heads to use, at most 64: every pair of them has moments of its own.
        callback: Called with the numbers of finished and of all steps: plain layouts, starts, searches, comparison.

    Returns:
        The layout found, with its moments, a comparison with plain layouts, and whether more heads would help.

    Raises:
        QkvError: The inputs do not fit together, or moments are out of reach (see `reading_moments`).

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
        >>> found = qkv.noise.harden(memory, {"a": 0.5, "b": 0.5}, noise)
        >>> found.distance <= 0.01, found.gain > 1000
        (True, True)
    """
    wanted = BlendSpec.of(memory, weights, tol)
    request = f"hardening a blend of {len(wanted.items)} items"
    heads = whole(request, "heads", heads)
    if heads > MAX_HEADS:
        raise QkvError(request, f"{heads} heads were asked for, and {MAX_HEADS} is the limit", "Ask for fewer heads")
    task = RobustProblem(memory, noise_on_keys(request, noise, memory), wanted)
    report = callback or (lambda done, total: None)
    plain = _plain_head(memory, wanted)
    report(1, N_STEPS)
    copies = _head_for_each_item(memory, wanted)
    report(2, N_STEPS)
    start = best_single_head(task, plain)
    report(3, N_STEPS)
    one = refine(task, start, lambda done, total: report(3 + MAX_ITERATIONS * done // total, N_STEPS))
    several = split_items_among_heads(task, len(wanted.items) if heads == 1 else heads)
    report(N_STEPS - 3, N_STEPS)
    if heads == 1:
        found = one
    else:
        starts = [with_more_heads(start, heads) for start in (several, one) if start is not None]
        found = several = refine(task, least_loss(task, starts))
    report(N_STEPS - 2, N_STEPS)

    layouts = {"one head": plain}
    if copies is not None:
        layouts[layout_name(len(wanted.items))] = copies
    if heads > 1:
        layouts["one hardened head"] = one
    layouts["hardened"] = found
    comparison = compare(memory, layouts, noise, weights)
    errors = dict(zip(comparison.names, comparison.errors, strict=True))
    report(N_STEPS - 1, N_STEPS)
    helps, advice = _advice(task, one, several)
    report(N_STEPS, N_STEPS)
    return RobustQuery(
        queries=found.queries,
        mix=found.mix,
        wanted=weights_by_label(memory, wanted),
        tol=wanted.tol,
        distance=float(task.distance(found)),
        squared_error=errors["hardened"],
        gain=_ratio(errors["one head"], errors["hardened"]),
        gain_over_heads=None if copies is None else _ratio(comparison.errors[1], errors["hardened"]),
        more_heads_help=helps,
        advice=advice,
        moments=comparison["hardened"],
        comparison=comparison,
        layouts=layouts,
    )


def _form(memory: Memory) -> Form:
    return "smallest" if common_norm(memory.keys.numpy()) is None else "textbook"


def _plain_head(memory: Memory, wanted: BlendSpec) -> HeadMix:
    """The query that ignores noise: t Σ μ_i where keys are orthogonal, the smallest query elsewhere."""
    return HeadMix.single(blend(memory, weights_by_label(memory, wanted), wanted.tol, _form(memory)).query)


def _head_for_each_item(memory: Memory, wanted: BlendSpec) -> HeadMix | None:
    """One plain head for each item, mixed as wanted; None for a single item, or if one cannot be copied."""
    if len(wanted.items) == 1:
        return None
    found = [copy(memory, memory.labels[i], wanted.tol, _form(memory)) for i in wanted.items]
    if not all(design.possible for design in found):
        return None
    mix = torch.tensor(wanted.weights, dtype=torch.float64)
    return HeadMix(torch.stack([design.query for design in found]), mix)


def _advice(task: RobustProblem, one: HeadMix, several: HeadMix | None) -> tuple[bool | None, str]:
    """Whether more heads help, and a sentence that says so."""
    if several is None:
        return None, "More heads were not tried: no head reads a part of the wanted items alone."
    try:
        single, many = task.value(one), task.value(several)
    except QkvError:
        return None, "More heads were not tried: their moments cannot be integrated here."
    if many < MAX_HELPFUL_RATIO * single:
        effect = f"bring the squared error from {number(single)} to {number(many)}"
        return True, f"More heads help: {len(several)} hardened heads {effect}."
    effect = f"the squared error is {number(many)}, with one {number(single)}"
    return False, f"More heads do not help: with {len(several)} hardened heads {effect}."


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else float("inf")
