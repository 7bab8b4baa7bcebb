"""Memory: labelled keys and values that queries read."""

from __future__ import annotations

import difflib
import operator
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from qkv.core.attention import MAX_ROWS_SHOWN, Label, Number, Reading, attend, attend_heads
from qkv.core.display import Card, Displayable, number, vector
from qkv.core.files import pick, read_arrays
from qkv.core.types import ArrayLike, Item, Labels
from qkv.core.validation import index_labels, same_length, tensor, whole
from qkv.errors import QkvError, kind_of

MAX_GENERATED = 2**28
"""Numbers in the generated keys and values, at most: their factorisation takes a few times as much memory."""
MAX_LABEL = 10**30
"""Whole numbers from here on are no labels: nobody could read them."""


@dataclass(frozen=True, eq=False, init=False)
class Memory(Displayable):
    """n items, each with a key, a value and a label.

    Args:
        keys: Keys as rows, (n, d).
        values: Values as rows, (n, dv); the keys if None.
        labels: One string or whole number per item, all different. If None, the index of keys that are a pandas
            DataFrame, and otherwise 0..n-1.

    Attributes:
        keys: Keys as a float64 tensor, (n, d).
        values: Values as a float64 tensor, (n, dv).
        labels: The labels, as Python strings and integers.

    Raises:
        QkvError: If an array is empty or not finite, if the numbers of keys, values and labels differ, or if a label
            is given twice.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory([[1, 0], [0, 1]], values=[[10.0], [20.0]], labels=["red", "green"])
        >>> memory.read([0.0, 50.0]).output.tolist()
        [20.0]
    """

    keys: Float[Tensor, "n d"]
    values: Float[Tensor, "n dv"]
    labels: tuple[Label, ...]

    def __init__(self, keys: ArrayLike, values: ArrayLike | None = None, labels: Labels | None = None) -> None:
        request = "making a memory"
        # Cloned, so that a later change to the caller's array does not change a frozen value.
        k = tensor("keys", keys, "n d").clone()
        v = k if values is None else tensor("values", values, "n dv").clone()
        n = same_length(request, keys=k, values=v)
        labels = _index(request, keys, values) if labels is None else labels
        object.__setattr__(self, "keys", k)
        object.__setattr__(self, "values", v)
        object.__setattr__(self, "labels", _labels(request, labels, n))

    @classmethod
    def orthonormal(cls, n: int, d: int, seed: int = 0, dv: int | None = None, labels: Labels | None = None) -> Memory:
        """n random orthonormal keys in d dimensions, with standard normal values.

        Args:
            n: Number of items, at most d.
            d: Dimension of the keys.
            seed: Seed of the random numbers.
            dv: Dimension of the values; d if None.
            labels: As for `Memory`.

        Returns:
            The memory; its keys are uniform over orthonormal frames.

        Raises:
            QkvError: If a number is not a whole number above 0, if n is larger than d, or if they are too large.

        Example:
            >>> import qkv
            >>> keys = qkv.Memory.orthonormal(n=3, d=5).keys
            >>> (keys @ keys.T).round(decimals=9).abs().tolist()
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        request = f"a memory of {n!r} orthonormal keys in {d!r} dimensions"
        n, d = whole(request, "n", n), whole(request, "d", d)
        dv = d if dv is None else whole(request, "dv", dv)
        if n > d:
            raise QkvError(
                request,
                f"at most {d} vectors can be orthogonal to each other there",
                f"Raise d to {n} or lower n to {d}",
            )
        if d * max(n, dv) > MAX_GENERATED:
            raise QkvError(
                request, f"that is more than {MAX_GENERATED:,} numbers", "Generate fewer, or load keys from a file"
            )
        random = np.random.default_rng(whole(request, "seed", seed, least=0))
        q, r = np.linalg.qr(random.standard_normal((d, n)))
        # QR leaves the columns' signs to the library; this choice makes q uniform over orthonormal frames.
        keys = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
        return cls(keys, random.standard_normal((n, dv)), labels)

    @classmethod
    def load(cls, path: str | Path, keys: str = "keys", values: str = "values") -> Memory:
        """The memory in a file: keys, and where the file has them, values and labels.

        Args:
            path: A .npz, .npy, .csv, .json or .safetensors file.
            keys: Name of the array of keys; a file's only array may have any name.
            values: Name of the array of values.

        Returns:
            The memory; `labels` of the file, or the first column of a .csv file that holds words, are its labels.

        Raises:
            QkvError: If the file cannot be read, or lacks an array that was named.
        """
        arrays = read_arrays(path)
        if values not in arrays and values != "values":
            # The default name may be absent; one that the caller gave may not.
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
        """Number of items."""
        return int(self.keys.shape[0])

    @property
    def d(self) -> int:
        """Dimension of the keys, and so of a query."""
        return int(self.keys.shape[1])

    @property
    def dv(self) -> int:
        """Dimension of the values, and so of an output."""
        return int(self.values.shape[1])

    def read(self, query: ArrayLike, *, scale: Number = 1.0, mask: ArrayLike | None = None) -> Reading:
        """Attention of one query (d,), or of each of several (m, d), over this memory.

        Args:
            query: One query (d,), or several as rows (m, d).
            scale: Factor in front of the scores.
            mask: Booleans that broadcast to (n,) or (m, n), True where an item may be attended; None allows all.

        Returns:
            A `Reading` with this memory's labels.

        Raises:
            QkvError: As for `qkv.attend`.
        """
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
        """Several heads over this memory, combined as Σ mix_h · reading_h.

        Args:
            queries: One query per head, as rows (h, d).
            mix: Factor of each head, (h,); None averages the heads.
            scale: Factor in front of the scores.
            mask: Booleans that broadcast to (h, n), True where an item may be attended; None allows all.

        Returns:
            A `Reading` with this memory's labels and each head's weights.

        Raises:
            QkvError: As for `qkv.attend_heads`.
        """
        got = attend_heads(queries, self.keys, self.values, mix=mix, scale=scale, mask=mask)
        return Reading(got.weights, got.output, self.labels, got.heads)

    def index(self, item: Item) -> int:
        """Index of an item, by its label or, if no label is a number, by its index.

        Args:
            item: A label, or an index.

        Returns:
            The row of the item in `keys` and `values`.

        Raises:
            QkvError: If there is no such item; the hint names similar labels.
        """
        request = f"looking up {item!r} in a memory of {self.n} item{'s' * (self.n != 1)}"
        wanted = _label(item)
        if wanted is None:
            raise QkvError(request, f"it is {kind_of(item)}", "Give a label or a whole number")
        if wanted in self.labels:
            return self.labels.index(wanted)
        if isinstance(wanted, str):
            close = difflib.get_close_matches(wanted, [str(label) for label in self.labels], n=3, cutoff=0.5)
            found = f"Did you mean {' or '.join(close)}?" if close else f"The labels are {_listed(self.labels)}"
            raise QkvError(request, "no item has this label", found)
        if any(isinstance(label, int) for label in self.labels):
            # Taking the number for an index would silently pick another item than the one it names.
            raise QkvError(request, "no item has this label", f"The labels are {_listed(self.labels)}")
        if not 0 <= wanted < self.n:
            raise QkvError(request, "no item has this index", f"Give an index from 0 to {self.n - 1}")
        return wanted

    def card(self) -> Card:
        shown = range(min(self.n, MAX_ROWS_SHOWN))
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
            note=f"… {self.n - MAX_ROWS_SHOWN} more" if self.n > MAX_ROWS_SHOWN else "",
        )


def _index(request: str, keys: Any, values: Any) -> list[Any] | None:
    """The labels from the index of keys that are a table; values that are one too must have the same index."""
    labels, others = index_labels(keys), index_labels(values)
    if labels is not None and others is not None and labels != others:
        raise QkvError(
            request,
            "keys and values are tables with different indices",
            "Sort one by the other: values.loc[keys.index]",
        )
    return others if labels is None else labels


def _labels(request: str, labels: Any, n: int) -> tuple[Label, ...]:
    """One label for each item, all different; numpy strings and integers become Python ones."""
    if labels is None:
        return tuple(range(n))
    if isinstance(labels, str):
        raise QkvError(request, f"labels is the single string {labels!r}", "Give a list with one label for each item")
    try:
        given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    except TypeError:
        raise QkvError(request, f"labels is {labels!r}", "Give a list with one label for each item") from None
    given = given if isinstance(given, list) else [given]
    out = [_label(label) for label in given]
    if None in out:
        odd = given[out.index(None)]
        shown = "a number of more than 30 digits" if isinstance(odd, int) and not isinstance(odd, bool) else f"{odd!r}"
        raise QkvError(request, f"{shown} is given as a label", "Give strings or whole numbers as labels")
    if len(out) != n:
        raise QkvError(request, f"there are {n} keys and {len(out)} labels", "Give one label for each key")
    known = tuple(label for label in out if label is not None)
    names = [str(label) for label in known]  # 1 and "1" look the same wherever they are shown, saved or typed
    twice = sorted({name for name, count in Counter(names).items() if count > 1})
    if twice:
        raise QkvError(request, f"two items share the label {_listed(twice)}", "Give each item a label of its own")
    return known


def _label(value: Any) -> Label | None:
    """`value` as a label if it can be one. True and 1.0 cannot: Python would take them for 1."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return None
    try:
        whole_number = operator.index(value)
    except TypeError:
        return None
    return whole_number if abs(whole_number) < MAX_LABEL else None


def _listed(labels: tuple[Label, ...] | list[str], most: int = 12) -> str:
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(str(label) for label in labels[:most]) + more
