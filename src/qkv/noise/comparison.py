"""compare: one head against several, on the same noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, times
from qkv.core.memory import Memory
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.key_noise import Noise, laid_on
from qkv.noise.moments.mixture import ReadingMoments, heads_of, spread_of

SHOWN_ITEMS = 3
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True, eq=False)
class Comparison(Displayable):
    """Layouts of heads by name, with the spread of each; `errors` are E‖output − wanted output‖².

    Without wanted weights, the wanted output of a layout is its own reading of the keys without noise.
    `leaks` are mean weights outside the wanted items.
    """

    names: tuple[str, ...]
    moments: tuple[ReadingMoments, ...] = field(repr=False)
    heads: tuple[int, ...]
    variances: tuple[float, ...]
    errors: tuple[float, ...]
    leaks: tuple[float, ...]
    items: tuple[int, ...]

    def __getitem__(self, name: str) -> ReadingMoments:
        if name not in self.names:
            raise QkvError(f"the layout {name!r}", "it was not compared", f"Use one of {', '.join(self.names)}")
        return self.moments[self.names.index(name)]

    @property
    def best(self) -> str:
        """The layout of least mean squared error."""
        return self.names[min(range(len(self.names)), key=self.errors.__getitem__)]

    def card(self) -> Card:
        labels = self.moments[0].labels
        shown = self.items[:SHOWN_ITEMS]
        rows = []
        for i, name in enumerate(self.names):
            s = self.moments[i]
            cells = [f"{number(float(s.weights_mean[j]))} (var {number(float(s.weights_var[j]), 3)})" for j in shown]
            rows.append((name, str(self.heads[i]), *cells, number(self.leaks[i], 3), number(self.errors[i])))
        worst = max(self.errors)
        ratio = worst / min(self.errors) if min(self.errors) > 0 else float("inf")
        return Card(
            title=f"{len(self.names)} layouts under the same noise",
            columns=("layout", "heads", *(f"weight of {labels[j]}" for j in shown), "leak", "squared error"),
            rows=tuple(rows),
            note=f"{self.best} has the least squared error, {times(ratio)} less than the largest.",
        )


def compare(
    memory: Memory, layouts: Mapping[str, Any], noise: Noise, weights: Mapping[Any, float] | None = None
) -> Comparison:
    """The spreads of several layouts: each a query, a list of queries, a pair (queries, mix), or a design.

    `weights`, the wanted blend, sets what errors and leaks are measured from.
    """
    asked = "comparing layouts of heads"
    if not isinstance(layouts, Mapping) or not layouts:
        raise QkvError(asked, "there are none", 'Give a mapping such as {"one head": q, "two heads": [q1, q2]}')
    wanted = None if weights is None else BlendSpec.of(memory, weights, 0.5)
    keys = laid_on(asked, noise, memory)
    spreads, plains, counts = [], [], []
    with torch.no_grad():
        for name, layout in layouts.items():
            queries, mix = layout_of(f"{asked}, {name!r}", memory, layout)
            spreads.append(spread_of(keys, memory, queries, mix))
            plains.append(mix @ torch.softmax(queries @ memory.keys.mT, -1))
            counts.append(len(queries))
    items = tuple(torch.stack(plains).mean(0).topk(min(SHOWN_ITEMS - 1, memory.n)).indices.tolist())
    if wanted is not None:
        items = wanted.items
    errors, leaks = [], []
    for s, plain in zip(spreads, plains, strict=True):
        goal = plain if wanted is None else _full(wanted, memory.n)
        errors.append(float(s.squared_error(goal @ memory.values)))
        leaks.append(float(s.weights_mean.sum() - s.weights_mean[list(items)].sum()))
    return Comparison(
        names=tuple(map(str, layouts)),
        moments=tuple(spreads),
        heads=tuple(counts),
        variances=tuple(float(s.weights_var[list(items)].max()) for s in spreads),
        errors=tuple(errors),
        leaks=tuple(leaks),
        items=items,
    )


def head_count(many: int) -> str:
    """The name of a layout of so many heads: in words up to eight."""
    return f"{COUNTS[many] if many < len(COUNTS) else many} head{'s' * (many != 1)}"


def layout_of(asked: str, memory: Memory, layout: Any) -> tuple[Tensor, Tensor]:
    """Queries and mix of a layout, however it was given."""
    if isinstance(layout, tuple) and len(layout) == 2 and _several(layout[0]):
        return heads_of(asked, memory, layout[0], layout[1])
    return heads_of(asked, memory, layout, None)


def _several(value: Any) -> bool:
    """Whether this is a list of queries, so that (value, mix) can be told from a pair of two queries."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(value, list | tuple) and bool(value) and hasattr(value[0], "__len__")


def _full(wanted: BlendSpec, n: int) -> Tensor:
    out = torch.zeros(n, dtype=torch.float64)
    out[list(wanted.items)] = torch.tensor(wanted.weights, dtype=torch.float64)
    return out
