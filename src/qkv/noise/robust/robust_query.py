"""harden: the query, or the heads, that keep a wanted blend in spite of the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, times, vector
from qkv.core.geometry import common_norm
from qkv.core.memory import Memory
from qkv.core.validation import whole
from qkv.design.query import blend, copy
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.comparison import Comparison, compare, head_count
from qkv.noise.key_noise import Noise, laid_on
from qkv.noise.moments.mixture import ReadingMoments
from qkv.noise.robust.search import Heads, RobustProblem, best_of, dealt_out, one_head, refined, repeated

HELPS = 0.9
"""More heads help if they bring the squared error below this part of one head's."""


@dataclass(frozen=True, eq=False)
class RobustQuery(Displayable):
    """Queries and mix for a wanted blend under noise, their spread, and the usual answers beside them.

    `distance` is how far the reading without noise is from the wanted weights, in total variation;
    `squared_error` is E‖output − wanted output‖² under the noise. `gain` and `gain_over_heads` say how many
    times larger it is for the plain answer and for one plain head an item (None where there are none).
    `layouts` holds all that were compared, as (queries, mix) by name.
    """

    queries: Tensor
    mix: Tensor
    wanted: Mapping[Any, float]
    tol: float
    distance: float
    squared_error: float
    gain: float
    gain_over_heads: float | None
    more_heads_help: bool | None
    advice: str
    spread: ReadingMoments = field(repr=False)
    comparison: Comparison = field(repr=False)
    layouts: Mapping[str, Heads] = field(repr=False)

    @property
    def possible(self) -> bool:
        """Whether the reading without noise is within tol of what was wanted."""
        return self.distance <= self.tol

    @property
    def query(self) -> Tensor:
        """The one query (d,), or all of them (h, d)."""
        return self.queries[0] if len(self.queries) == 1 else self.queries

    def card(self) -> Card:
        wish = " + ".join(f"{number(w)} of {item}" for item, w in list(self.wanted.items())[:6])
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
        return Card(f"Hardened: {wish} by {heads}", tuple(facts), table.columns, table.rows, self.advice)


def harden(
    memory: Memory, weights: Mapping[Any, float], noise: Noise, tol: float = 1e-2, heads: int = 1
) -> RobustQuery:
    """The query, or `heads` queries with a mix, that reads a blend with small mean squared error under noise.

    Without noise the reading is within `tol` of the wanted weights in total variation, where that can be.
    """
    wanted = BlendSpec.of(memory, weights, tol)
    asked = f"hardening a blend of {len(wanted.items)} items"
    heads = whole(asked, "heads", heads)
    task = RobustProblem(memory, laid_on(asked, noise, memory), wanted)
    plain = _plain(memory, wanted)
    copies = _copies(memory, wanted)
    one = refined(task, one_head(task, plain))
    several = dealt_out(task, len(wanted.items) if heads == 1 else heads)
    if heads == 1:
        found = one
    else:
        starts = [repeated(start, heads) for start in (several, one) if start is not None]
        found = several = refined(task, best_of(task, starts))

    layouts: dict[str, Any] = {"one head": plain}
    if copies is not None:
        layouts[head_count(len(wanted.items))] = copies
    if heads > 1:
        layouts["one hardened head"] = one
    layouts["hardened"] = found
    comparison = compare(memory, layouts, noise, weights)
    errors = dict(zip(comparison.names, comparison.errors, strict=True))
    helps, advice = _advice(task, one, several)
    return RobustQuery(
        queries=found[0],
        mix=found[1],
        wanted={memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)},
        tol=wanted.tol,
        distance=float(task.distance(found)),
        squared_error=errors["hardened"],
        gain=_ratio(errors["one head"], errors["hardened"]),
        gain_over_heads=None if copies is None else _ratio(comparison.errors[1], errors["hardened"]),
        more_heads_help=helps,
        advice=advice,
        spread=comparison["hardened"],
        comparison=comparison,
        layouts=layouts,
    )


def _form(memory: Memory) -> str:
    return "smallest" if common_norm(memory.keys.numpy()) is None else "textbook"


def _plain(memory: Memory, wanted: BlendSpec) -> Heads:
    """The answer that ignores noise: t Σ μ_i where keys are orthogonal, the smallest query elsewhere."""
    named = {memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)}
    query = blend(memory, named, wanted.tol, _form(memory)).query
    return query[None], torch.ones(1, dtype=torch.float64)


def _copies(memory: Memory, wanted: BlendSpec) -> Heads | None:
    """One plain head an item, mixed as wanted; None for a single item, or if one cannot be copied."""
    if len(wanted.items) == 1:
        return None
    found = [copy(memory, memory.labels[i], wanted.tol, _form(memory)) for i in wanted.items]
    if not all(design.possible for design in found):
        return None
    return torch.stack([design.query for design in found]), torch.tensor(wanted.weights, dtype=torch.float64)


def _advice(task: RobustProblem, one: Heads, several: Heads | None) -> tuple[bool | None, str]:
    if several is None:
        return None, "More heads were not tried: no head reads a part of the wanted items alone."
    try:
        single, many = task.value(one), task.value(several)
    except QkvError:
        return None, "More heads were not tried: their exact spread is out of reach here."
    count = len(several[1])
    if many < HELPS * single:
        did = f"bring the squared error from {number(single)} to {number(many)}"
        return True, f"More heads help: {count} hardened heads {did}."
    did = f"the squared error is {number(many)}, with one {number(single)}"
    return False, f"More heads do not help: with {count} hardened heads {did}."


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else float("inf")
