"""Memory: named keys and values that can be read."""

from __future__ import annotations

import difflib
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from qkv.core.attention import SHOWN, Label, Number, Reading, attend, attend_heads
from qkv.core.display import Card, Displayable, number, vector
from qkv.core.files import pick, read_arrays
from qkv.core.masks import whole
from qkv.core.validation import ArrayLike, same_length, tensor
from qkv.errors import QkvError


@dataclass(frozen=True, eq=False, init=False)
class Memory(Displayable):
    """n items, each with a key, a value and a label; values default to the keys, labels to 0..n-1."""

    keys: Float[Tensor, "n d"]
    values: Float[Tensor, "n dv"]
    labels: tuple[Label, ...]

    def __init__(self, keys: ArrayLike, values: ArrayLike | None = None, labels: ArrayLike | None = None) -> None:
        asked = "making a memory"
        # Cloned, so that a later change to the caller's array does not change a frozen value.
        k = tensor("keys", keys, "n d").clone()
        v = k if values is None else tensor("values", values, "n dv").clone()
        n = same_length(asked, keys=k, values=v)
        object.__setattr__(self, "keys", k)
        object.__setattr__(self, "values", v)
        object.__setattr__(self, "labels", _labels(asked, labels, n))

    @classmethod
    def orthonormal(
        cls, n: int, d: int, seed: int = 0, dv: int | None = None, labels: ArrayLike | None = None
    ) -> Memory:
        """n random orthonormal keys in d dimensions, with standard normal values of dimension dv (or d)."""
        asked = f"a memory of {n!r} orthonormal keys in {d!r} dimensions"
        n, d = whole(asked, "n", n), whole(asked, "d", d)
        dv = d if dv is None else whole(asked, "dv", dv)
        if n > d:
            raise QkvError(
                asked,
                f"at most {d} vectors can be orthogonal to each other there",
                f"Raise d to {n} or lower n to {d}",
            )
        random = np.random.default_rng(whole(asked, "seed", seed, least=0))
        q, r = np.linalg.qr(random.standard_normal((d, n)))
        # QR leaves the columns' signs to the library; this choice makes q uniform over orthonormal frames.
        keys = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
        return cls(keys, random.standard_normal((n, dv)), labels)

    @classmethod
    def load(cls, path: str | Path, keys: str = "keys", values: str = "values") -> Memory:
        """The memory in a file: keys, and where the file has them, values and labels."""
        arrays = read_arrays(path)
        if values not in arrays and values != "values":
            # The usual name may be absent; one that was asked for by name may not.
            raise QkvError(
                f"reading '{values}' from {path}",
                f"the file holds {', '.join(sorted(arrays)) or 'nothing'}",
                "Give the name of one of these as values",
            )
        return cls(pick(arrays, keys, path), arrays.get(values), arrays.get("labels"))

    def __len__(self) -> int:
        return self.n

    @property
    def n(self) -> int:
        """How many items there are."""
        return int(self.keys.shape[0])

    @property
    def d(self) -> int:
        """The dimension of the keys, and so of a query."""
        return int(self.keys.shape[1])

    @property
    def dv(self) -> int:
        """The dimension of the values, and so of an output."""
        return int(self.values.shape[1])

    def read(self, query: ArrayLike, *, scale: Number = 1.0, mask: ArrayLike | None = None) -> Reading:
        """What one query (d,), or each of many (m, d), reads."""
        got = attend(query, self.keys, self.values, scale=scale, mask=mask)
        return Reading(got.weights, got.output, self.labels)

    def read_heads(
        self,
        queries: ArrayLike,
        mix: ArrayLike | None = None,
        *,
        scale: Number = 1.0,
        mask: ArrayLike | None = None,
    ) -> Reading:
        """What several heads (h, d) read together, mixed by `mix` or averaged."""
        got = attend_heads(queries, self.keys, self.values, mix=mix, scale=scale, mask=mask)
        return Reading(got.weights, got.output, self.labels, got.heads)

    def index(self, item: Any) -> int:
        """Where an item is, by its label or, when no label is a number, by its index."""
        asked = f"looking up {item!r} in a memory of {self.n} item{'s' * (self.n != 1)}"
        wanted = _label(item)
        if wanted is None:
            raise QkvError(asked, f"it is a {type(item).__name__}", "Give a label or a whole number")
        if wanted in self.labels:
            return self.labels.index(wanted)
        if isinstance(wanted, str):
            close = difflib.get_close_matches(wanted, [str(label) for label in self.labels], n=3, cutoff=0.5)
            found = f"Did you mean {' or '.join(close)}" if close else f"The labels are {_listed(self.labels)}"
            raise QkvError(asked, "no item has this label", found)
        if any(isinstance(label, int) for label in self.labels):
            # An index here would silently pick another item than the number names.
            raise QkvError(asked, "no item has this label", f"The labels are {_listed(self.labels)}")
        if not 0 <= wanted < self.n:
            raise QkvError(asked, "no item has this index", f"Give an index from 0 to {self.n - 1}")
        return wanted

    def card(self) -> Card:
        shown = range(min(self.n, SHOWN))
        return Card(
            title=f"Memory of {self.n} item{'s' * (self.n != 1)}",
            facts=(("keys", f"{self.n} × {self.d}"), ("values", f"{self.n} × {self.dv}")),
            columns=("item", "length of key", "key", "value"),
            rows=tuple(
                (
                    str(self.labels[i]),
                    number(float(torch.linalg.vector_norm(self.keys[i]))),
                    vector(self.keys[i].tolist(), most=4),
                    vector(self.values[i].tolist(), most=4),
                )
                for i in shown
            ),
            note=f"… {self.n - SHOWN} more" if self.n > SHOWN else "",
        )


def _labels(asked: str, labels: ArrayLike | None, n: int) -> tuple[Label, ...]:
    """One label for each item, all different; numpy's strings and integers become Python's."""
    if labels is None:
        return tuple(range(n))
    if isinstance(labels, str):
        raise QkvError(asked, f"labels is the single string {labels!r}", "Give a list with one label for each item")
    try:
        given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    except TypeError:
        raise QkvError(asked, f"labels is {labels!r}", "Give a list with one label for each item") from None
    given = given if isinstance(given, list) else [given]
    out = [_label(label) for label in given]
    if None in out:
        odd = given[out.index(None)]
        raise QkvError(asked, f"{odd!r} is given as a label", "Give strings or whole numbers as labels")
    if len(out) != n:
        raise QkvError(asked, f"there are {n} keys and {len(out)} labels", "Give one label for each key")
    known = tuple(label for label in out if label is not None)
    twice = sorted({str(label) for label in known if known.count(label) > 1}) if len(set(known)) < n else []
    if twice:
        raise QkvError(asked, f"two items share the label {_listed(twice)}", "Give each item a label of its own")
    return known


def _label(value: Any) -> Label | None:
    """`value` as a label if it can be one. True and 1.0 cannot: Python would take them for 1."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _listed(labels: tuple[Label, ...] | list[str], most: int = 12) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + more
