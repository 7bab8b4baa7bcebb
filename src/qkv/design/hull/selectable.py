"""Copyable: for every key the query that selects it, or the combination of other keys that forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, number, plain, power, vector
from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike
from qkv.design.hull.cascade import sieve
from qkv.parallel import Progress, WorkerPool

if TYPE_CHECKING:
    from qkv.design.certificates.certificate import Certificate

SHOWN = 12
"""Rows of a card."""
UNSETTLED = 1e-9
"""A bound on the margin above this part of the keys' spread is no answer: the key counts as undecided."""


@dataclass(frozen=True, eq=False)
class KeySelectability(Displayable):
    """About one key: a unit query that selects it and by how much at least, or others that dominate it.

    `margin` is a proven lower bound for that query; another query may do better. `margin_at_most` holds for every
    unit query: it is 0, or of rounding's size.
    """

    item: Any
    possible: bool
    query: Tensor | None
    margin: float | None
    combination: dict[Any, float] | None
    margin_at_most: float | None
    keys: Tensor = field(repr=False)
    index: int = field(repr=False)
    members: tuple[int, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return self.possible

    @property
    def certificate(self) -> Certificate:
        """The statement about this key, for anyone to recheck."""
        from qkv.design.certificates.certificate import Certificate

        data: dict[str, Any] = {"keys": self.keys.numpy(), "item": self.index}
        if self.query is not None:
            return Certificate("selects", data | {"query": self.query.numpy()}, {"margin": self.margin})
        data["indices"] = np.array(self.members, dtype=np.int64)
        data["weights"] = np.array(list((self.combination or {}).values()))
        return Certificate("inside", data, {"margin_at_most": self.margin_at_most})

    def card(self) -> Card:
        if self.query is not None and self.margin is not None:
            facts = (("margin", f"at least {number(self.margin)}"), ("query", vector(self.query.tolist())))
            return Card(f"Key {self.item} can be selected", facts)
        rows = [(str(i), number(w)) for i, w in (self.combination or {}).items()]
        most = power(self.margin_at_most or 0.0)
        note = f"… and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        because = "it is this average of other keys" if len(rows) > 1 else "it is equal to another key"
        facts = (("because", because), ("any margin", f"at most {most}"))
        return Card(f"Key {self.item} cannot be selected", facts, ("key", "weight"), tuple(rows[:SHOWN]), note)


@dataclass(frozen=True, eq=False)
class Copyable(Displayable):
    """An answer for every key: a row of `queries` for each vertex, a sparse row of weights for the others."""

    memory: Memory = field(repr=False)
    possible: Tensor
    queries: Tensor = field(repr=False)
    margins: Tensor
    offsets: Tensor = field(repr=False)
    indices: Tensor = field(repr=False)
    weights: Tensor = field(repr=False)
    margins_at_most: Tensor

    def __len__(self) -> int:
        return len(self.possible)

    def __getitem__(self, item: Any) -> KeySelectability:
        return self.at(self.memory.index(item))

    def at(self, j: int) -> KeySelectability:
        """The answer about the key at an index, whatever its label."""
        row = int(self.possible[:j].sum())
        label, keys = self.memory.labels[j], self.memory.keys
        if self.possible[j]:
            return KeySelectability(label, True, self.queries[row], float(self.margins[row]), None, None, keys, j)
        row = j - row
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        members = tuple(self.indices[span].tolist())
        pairs = dict(zip((self.memory.labels[i] for i in members), self.weights[span].tolist(), strict=True))
        return KeySelectability(label, False, None, None, pairs, float(self.margins_at_most[row]), keys, j, members)

    def __iter__(self) -> Iterator[KeySelectability]:
        return (self.at(j) for j in range(len(self)))

    @property
    def vertices(self) -> Tensor:
        """Indices of the keys that some query selects: the vertices of the hull."""
        return self.possible.nonzero()[:, 0]

    @property
    def interior(self) -> Tensor:
        """Indices of the keys that no query selects."""
        return (~self.possible).nonzero()[:, 0]

    @property
    def undecided(self) -> Tensor:
        """Those of `interior` whose margin is bounded by no negligible number. Normally there are none."""
        spread = (self.memory.keys - self.memory.keys.mean(0)).norm(dim=1).max()
        return self.interior[self.margins_at_most > UNSETTLED * spread]

    @property
    def certificate(self) -> Certificate:
        """All answers as one statement, for anyone to recheck."""
        from qkv.design.certificates.certificate import Certificate

        data = {
            "keys": self.memory.keys, "possible": self.possible, "queries": self.queries,
            "offsets": self.offsets, "indices": self.indices, "weights": self.weights,
        }  # fmt: skip
        arrays = {name: value.numpy() for name, value in data.items()}
        claims = {"margin": self.margins.numpy(), "margin_at_most": self.margins_at_most.numpy()}
        return Certificate("copyable", arrays, claims)

    @property
    def certificates(self) -> list[Certificate]:
        """What there is to recheck."""
        return [self.certificate]

    def card(self) -> Card:
        n, inside = len(self), self.interior.tolist()
        facts = [("can be selected", f"{n - len(inside)} of {n}"), ("cannot", str(len(inside)))]
        if len(inside) < n:
            low, middle = float(self.margins.min()), float(self.margins.median())
            facts.append(("margin", f"at least {number(low)}, median {number(middle)}"))
        if inside:
            facts.append(("any margin of the others", f"at most {power(float(self.margins_at_most.max()))}"))
        if len(self.undecided):
            facts.append(("undecided", str(len(self.undecided))))
        rows = []
        for row, j in enumerate(inside[:SHOWN]):
            members = self.indices[int(self.offsets[row]) : int(self.offsets[row + 1])].tolist()
            label = self.memory.labels[members[0]]
            what = f"equal to {label}" if len(members) == 1 else f"an average of {len(members)} other keys"
            rows.append((str(self.memory.labels[j]), what))
        note = f"… and {len(inside) - SHOWN} more that cannot" if len(inside) > SHOWN else ""
        return Card("Which keys can be selected", tuple(facts), ("key", "is") if rows else (), tuple(rows), note)

    def to_json(self) -> dict[str, Any]:
        """Every answer with its witness."""
        answers = [{k: v for k, v in plain(a).items() if v is not None} for a in self]
        counts = {"keys": len(self), "possible": len(self.vertices), "impossible": len(self.interior)}
        return {**counts, "answers": answers}


def copyable(
    keys: ArrayLike | Memory,
    *,
    labels: ArrayLike | None = None,
    executor: Any = None,
    processes: int | None = None,
    cluster: str | None = None,
    callback: Progress | None = None,
) -> Copyable:
    """Which keys can some query select, that is, score above every other key?

    Work that takes long is shared out: to `executor` (anything like those of concurrent.futures), to the Dask
    cluster at the address `cluster`, to so many local `processes`, or to as many as there are cores. The
    answers are the same. A single key is selected by every query, by an infinite margin.
    """
    memory = keys if isinstance(keys, Memory) else Memory(keys, labels=labels)
    with WorkerPool(executor, processes, cluster) as crew:
        sieved = sieve(memory.keys.numpy(), crew, callback)
    return Copyable(memory, *(torch.from_numpy(array) for array in sieved))
