"""copyable: for every key a query that selects it, or a convex combination of other keys that excludes it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qkv.core.display import Card, Displayable, lower_bound, number, plain, power, vector
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike, FloatArray, Item, Labels
from qkv.design.certificates.certificate import Certificate
from qkv.design.certificates.results.copyable import negligible_margin
from qkv.design.hull.active_set import decide
from qkv.design.hull.cascade import decide_all
from qkv.parallel import Progress, WorkerPool

MAX_CARD_ROWS = 12


@dataclass(frozen=True, eq=False)
class KeySelectability(Displayable):
    """Whether some query can select one key: a unit query that does, or a convex combination of other keys.

    Attributes:
        item: Label of the key.
        possible: Whether some query scores it above every other key.
        query: A unit query that does, or None.
        margin: Certified lower bound on that query's margin over the strongest other key; others may do better.
        combination: Other keys with convex weights whose average is this key, or None.
        margin_at_most: Certified upper bound on the margin of any unit query: 0, or of the size of rounding errors.
        keys: All keys.
        index: Index of the key.
        members: Indices of the keys in `combination`.
        decided: Whether `margin_at_most` is negligible where there is no query; normally it is. JSON has null as
            `possible` where it is not.
    """

    item: Item
    possible: bool
    query: Tensor | None
    margin: float | None
    combination: dict[Item, float] | None
    margin_at_most: float | None
    keys: Tensor = field(repr=False)
    index: int = field(repr=False)
    members: tuple[int, ...] = field(default=(), repr=False)
    decided: bool = field(default=True, repr=False)

    def __bool__(self) -> bool:
        return self.possible

    @property
    def certificate(self) -> Certificate:
        """The decision about this key as a certificate."""
        data: dict[str, Any] = {"keys": self.keys.numpy(), "item": self.index}
        if self.query is not None:
            return Certificate("selects", data | {"query": self.query.numpy()}, {"margin": self.margin})
        data["indices"] = np.array(self.members, dtype=np.int64)
        data["weights"] = np.array(list((self.combination or {}).values()))
        return Certificate("inside", data, {"margin_at_most": self.margin_at_most})

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | ({} if self.decided else {"possible": None})

    def card(self) -> Card:
        if self.query is not None and self.margin is not None:
            facts = (("margin", f"at least {lower_bound(self.margin)}"), ("query", vector(self.query.tolist())))
            return Card(f"Key {self.item} can be selected", facts)
        rows = [(str(i), number(w)) for i, w in (self.combination or {}).items()]
        most = power(self.margin_at_most or 0.0)
        note = f"… and {len(rows) - MAX_CARD_ROWS} more" if len(rows) > MAX_CARD_ROWS else ""
        if not self.decided:
            facts = (("no query was found", "and no proof that there is none"), ("any margin", f"at most {most}"))
            return Card(f"Key {self.item} is undecided", facts)
        because = "it is this average of other keys" if len(rows) > 1 else "it is equal to another key"
        facts = (("because", because), ("any margin", f"at most {most}"))
        return Card(f"Key {self.item} cannot be selected", facts, ("key", "weight"), tuple(rows[:MAX_CARD_ROWS]), note)


@dataclass(frozen=True, eq=False)
class Copyable(Displayable):
    """For every key, whether some query can select it; `result[item]` and iteration give a `KeySelectability` each.

    Attributes:
        memory: The memory.
        possible: Booleans, (n,): whether some query scores the key above every other one.
        queries: A unit query for each possible key, in order, as rows.
        margins: Certified lower bounds on the margins of `queries`.
        offsets: Row r of the sparse weights of the other keys is indices[offsets[r]:offsets[r + 1]].
        indices: Keys of the convex combinations.
        weights: Their weights.
        margins_at_most: Certified upper bounds on the margin of any unit query, per key that is not possible.
    """

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

    def __getitem__(self, item: Item) -> KeySelectability:
        return self.at(self.memory.index(item))

    def at(self, j: int) -> KeySelectability:
        """The decision about the key at an index, whatever its label."""
        row = int(self.possible[:j].sum())
        label, keys = self.memory.labels[j], self.memory.keys
        if self.possible[j]:
            return KeySelectability(label, True, self.queries[row], float(self.margins[row]), None, None, keys, j)
        row = j - row
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        members = tuple(self.indices[span].tolist())
        pairs = dict(zip((self.memory.labels[i] for i in members), self.weights[span].tolist(), strict=True))
        most = float(self.margins_at_most[row])
        return KeySelectability(label, False, None, None, pairs, most, keys, j, members, most <= self._negligible)

    @functools.cached_property
    def _negligible(self) -> float:
        return negligible_margin(self.memory.keys.numpy())

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
        """Those of `interior` whose bound on the margin is not negligible; normally there are none."""
        return self.interior[self.margins_at_most > self._negligible]

    @property
    def certificate(self) -> Certificate:
        """All decisions as one certificate."""
        data = {
            "keys": self.memory.keys, "possible": self.possible, "queries": self.queries,
            "offsets": self.offsets, "indices": self.indices, "weights": self.weights,
        }  # fmt: skip
        arrays = {name: value.numpy() for name, value in data.items()}
        claims = {"margin": self.margins.numpy(), "margin_at_most": self.margins_at_most.numpy()}
        return Certificate("copyable", arrays, claims)

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result."""
        return [self.certificate]

    def card(self) -> Card:
        n, undecided = len(self), self.undecided.tolist()
        inside = [j for j in self.interior.tolist() if j not in set(undecided)]
        facts = [("can be selected", f"{len(self.vertices)} of {n}"), ("cannot", str(len(inside)))]
        if len(self.vertices):
            low, middle = float(self.margins.min()), float(self.margins.median())
            facts.append(("margin", f"at least {lower_bound(low)}, median {number(middle)}"))
        if inside or undecided:
            facts.append(("any margin of the others", f"at most {power(float(self.margins_at_most.max()))}"))
        if undecided:
            facts.append(("undecided", f"{len(undecided)}: no query was found, and no proof that there is none"))
        rows = []
        for j in inside[:MAX_CARD_ROWS]:
            row = j - int(self.possible[:j].sum())
            members = self.indices[int(self.offsets[row]) : int(self.offsets[row + 1])].tolist()
            label = self.memory.labels[members[0]]
            what = f"equal to {label}" if len(members) == 1 else f"an average of {len(members)} other keys"
            rows.append((str(self.memory.labels[j]), what))
        note = f"… and {len(inside) - MAX_CARD_ROWS} more that cannot" if len(inside) > MAX_CARD_ROWS else ""
        return Card("Which keys can be selected", tuple(facts), ("key", "is") if rows else (), tuple(rows), note)

    def to_json(self) -> dict[str, Any]:
        """Every decision with its query or combination; `possible` is null for keys that are undecided."""
        undecided = len(self.undecided)
        counts = {
            "keys": len(self), "possible": len(self.vertices), "impossible": len(self.interior) - undecided,
            "undecided": undecided,
        }  # fmt: skip
        return {**counts, "answers": [plain(a) for a in self]}


def copyable(
    keys: ArrayLike | Memory,
    *,
    labels: Labels | None = None,
    executor: Executor | None = None,
    processes: int | None = None,
    cluster: str | None = None,
    callback: Progress | None = None,
) -> Copyable:
    """Decide for every key whether some query selects it, that is, scores it above every other key.

    A key can be selected if and only if it is a vertex of the convex hull of the keys. Work that takes more than a
    few seconds is distributed over local processes unless one of `executor`, `processes` and `cluster` says
    otherwise; the result does not depend on it.

    Args:
        keys: Keys as rows, (n, d), or a memory.
        labels: Labels of the keys; 0..n-1 if None.
        executor: A concurrent.futures executor to run the work.
        processes: Number of local processes; 1 computes in this process.
        cluster: Address of a Dask scheduler, such as "tcp://HOST:8786"; needs the extra `cluster`.
        callback: Called with the numbers of finished and of all pieces of work, in each of at most two passes.

    Returns:
        A `Copyable`. A single key is selected by every query, with an infinite margin.

    Raises:
        QkvError: If the keys are not finite numbers, if more than one of executor, processes and cluster is given,
            if the cluster does not answer, or if a worker process dies.

    Example:
        >>> import qkv
        >>> result = qkv.design.copyable([[0, 0], [4, 0], [0, 4], [1, 1]])
        >>> result.possible.tolist()
        [True, True, True, False]
        >>> {key: round(weight, 6) for key, weight in sorted(result[3].combination.items())}
        {0: 0.5, 1: 0.25, 2: 0.25}
        >>> bool(result.certificate.verify())
        True
    """
    memory = keys if isinstance(keys, Memory) else Memory(keys, labels=labels)
    with WorkerPool(executor, processes, cluster) as pool:
        decisions = decide_all(memory.keys.numpy(), pool, callback)
    return Copyable(memory, *(torch.from_numpy(array) for array in decisions))


def selecting_query(keys: FloatArray, item: int) -> FloatArray | None:
    """A unit query that scores one key above all others; None if there is none."""
    found = decide(keys, np.array([item]), np.arange(len(keys)))
    return found.queries[0] / np.linalg.norm(found.queries[0]) if found.found[0] else None


def inside_certificate(keys: FloatArray, item: int) -> Certificate | None:
    """A proof that one key is a convex combination of others, exact where fractions show it; None if it is not."""
    found = decide(keys, np.array([item]), np.arange(len(keys)))
    if found.found[0]:
        return None
    data = {"keys": keys, "item": item, "indices": found.indices, "weights": found.weights}
    exact = Certificate.issue("inside", data)
    return exact if exact.claims["exact"] <= 0 else Certificate.issue("inside", data, "margin_at_most")
