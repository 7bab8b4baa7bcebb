"""Comparison of head layouts under the same noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, times
from qkv.core.memory import Memory
from qkv.core.types import Item, Weights
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise.head_mix import HeadMix, Layout
from qkv.noise.key_noise import Noise, noise_on_keys
from qkv.noise.moments.mixture import ReadingMoments, moments_of_heads

SHOWN_ITEMS = 3
"""Items that are printed at most."""
COUNT_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True, eq=False)
class Comparison(Displayable):
    """Moments of several head layouts under the same noise; `comparison[name]` are those of one layout.

    Attributes:
        names: The names of the layouts.
        moments: The moments of each layout.
        heads: The number of heads of each layout.
        variances: The largest variance of an item's weight, among `items`, of each layout.
        errors: E‖output − wanted output‖² of each layout. Without wanted weights, the wanted output of a layout is its
            own output without noise.
        leaks: The mean weight outside `items` of each layout.
        items: Indices of the wanted items, or, without wanted weights, of the two of largest weight.
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


def compare(memory: Memory, layouts: Mapping[str, Layout], noise: Noise, weights: Weights | None = None) -> Comparison:
    """Moments of several head layouts under the same noise.

    Args:
        memory: The memory whose keys are the means of the random keys.
        layouts: The layouts by name, each anything that `HeadMix.of` accepts.
        noise: The noise on the keys.
        weights: The wanted blend, from which errors and leaks are measured; by default each layout's own reading
            without noise.

    Returns:
        The moments of each layout, with squared errors and leaks.

    Raises:
        QkvError: There are no layouts, or the inputs do not fit together.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(10, 16, labels=list("abcdefghij"))
        >>> a, b = memory.keys[:2]
        >>> layouts = {"one head": 8 * (a + b), "two heads": [9 * a, 9 * b]}
        >>> noise = qkv.noise.Gaussian(along={"a": 0.5})
        >>> qkv.noise.compare(memory, layouts, noise, {"a": 0.5, "b": 0.5}).best
        'two heads'
    """
    request = "comparing layouts of heads"
    if not isinstance(layouts, Mapping) or not layouts:
        raise QkvError(request, "there are none", 'Give a mapping such as {"one head": q, "two heads": [q1, q2]}')
    names = tuple(map(str, layouts))
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise QkvError(request, f"two of them are named {twice!r}", "Give each layout a name of its own")
    wanted = None if weights is None else BlendSpec.of(memory, weights, 0.5)
    keys = noise_on_keys(request, noise, memory)
    with torch.no_grad():
        heads = [HeadMix.of(memory, value, request=f"{request}, {name!r}") for name, value in layouts.items()]
        moments = [moments_of_heads(keys, memory, one) for one in heads]
        noise_free = [one.weights(memory.keys) for one in heads]
    if wanted is None:
        items = tuple(torch.stack(noise_free).mean(0).topk(min(SHOWN_ITEMS - 1, memory.n)).indices.tolist())
    else:
        items = wanted.items
    errors, leaks = [], []
    for found, plain in zip(moments, noise_free, strict=True):
        goal = plain if wanted is None else weights_of_all_items(wanted, memory.n)
        errors.append(float(found.squared_error(goal @ memory.values)))
        leaks.append(float(found.weights_mean.sum() - found.weights_mean[list(items)].sum()))
    return Comparison(
        names=names,
        moments=tuple(moments),
        heads=tuple(map(len, heads)),
        variances=tuple(float(found.weights_var[list(items)].max()) for found in moments),
        errors=tuple(errors),
        leaks=tuple(leaks),
        items=items,
    )


def layout_name(n_heads: int) -> str:
    """The name of a layout of so many heads, such as "two heads"."""
    count = COUNT_WORDS[n_heads] if n_heads < len(COUNT_WORDS) else n_heads
    return f"{count} head{'s' * (n_heads != 1)}"


def weights_of_all_items(wanted: BlendSpec, n: int) -> Tensor:
    """Wanted weights of all n items, 0 where none is wanted."""
    out = torch.zeros(n, dtype=torch.float64)
    out[list(wanted.items)] = torch.tensor(wanted.weights, dtype=torch.float64)
    return out


def weights_by_label(memory: Memory, wanted: BlendSpec) -> dict[Item, float]:
    """Wanted weights by the labels of the items."""
    return {memory.labels[i]: w for i, w in zip(wanted.items, wanted.weights, strict=True)}


def blend_text(wanted: Mapping[Item, float]) -> str:
    """A wanted blend as text, such as "0.5 of a + 0.5 of b"."""
    return " + ".join(f"{number(w)} of {item}" for item, w in list(wanted.items())[:6])
