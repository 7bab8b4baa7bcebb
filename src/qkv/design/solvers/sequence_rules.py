"""SequenceRules: which keys each position of a sequence should read, as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from qkv.core.types import BoolArray, FloatArray, IntArray
from qkv.errors import QkvError


@dataclasses.dataclass(frozen=True, eq=False)
class SequenceRules:
    """The rules of one sequence, as arrays.

    Attributes:
        queries: Vectors on the side of the query, one row per position, (n, dq).
        keys: Vectors on the side of the key, (m, dk).
        mask: True where a position may attend to a key, (n, m), or None where all may.
        readers: The positions that have a rule, (rules,).
        offsets: Rule r owns items[offsets[r]:offsets[r + 1]], (rules + 1,).
        items: The keys that are read.
        weights: Their wanted weights, positive, with sum 1 for each rule.
    """

    queries: FloatArray
    keys: FloatArray
    mask: BoolArray | None
    readers: IntArray
    offsets: IntArray
    items: IntArray
    weights: FloatArray

    @classmethod
    def of(
        cls,
        queries: FloatArray,
        keys: FloatArray | None,
        reads: Sequence[int | Mapping[int, float] | None],
        mask: BoolArray | None = None,
    ) -> SequenceRules:
        """Rules from one entry per position: the key that it reads, a blend {key: weight}, or None for no rule.

        Args:
            queries: Vectors on the side of the query, (n, dq).
            keys: Vectors on the side of the key, (m, dk); the queries if None.
            reads: One entry per position.
            mask: True where a position may attend to a key, (n, m); None where all may.

        Returns:
            The rules.

        Raises:
            QkvError: If sizes do not fit, a key is unknown or hidden by the mask, or weights do not sum to 1.
        """
        keys = queries if keys is None else keys
        readers: list[int] = []
        offsets, items, weights = [0], list[int](), list[float]()
        for position, read in enumerate(reads):
            if read is None:
                continue
            blend = read if isinstance(read, Mapping) else {int(read): 1.0}
            chosen = [(int(j), float(w)) for j, w in blend.items() if w != 0]
            readers.append(position)
            items.extend(j for j, _ in chosen)
            weights.extend(w for _, w in chosen)
            offsets.append(len(items))
        out = cls(
            np.asarray(queries, dtype=np.float64), np.asarray(keys, dtype=np.float64),
            None if mask is None else np.asarray(mask, dtype=bool),
            np.array(readers, dtype=np.int64), np.array(offsets, dtype=np.int64),
            np.array(items, dtype=np.int64), np.array(weights, dtype=np.float64),
        )  # fmt: skip
        out.check(len(reads))
        return out

    def check(self, entries: int) -> None:
        """Refuse rules that make no sense."""
        request = f"rules for a sequence of {len(self.queries)} positions"
        n, m = len(self.queries), len(self.keys)
        if entries != n:
            raise QkvError(request, f"there are {entries} entries", "Give one entry per position, None for no rule")
        if self.mask is not None and self.mask.shape != (n, m):
            raise QkvError(request, f"the mask has shape {self.mask.shape}", f"Give a mask of shape {(n, m)}")
        for row, i in enumerate(self.readers.tolist()):
            part = slice(self.offsets[row], self.offsets[row + 1])
            items, weights = self.items[part], self.weights[part]
            if not len(items) or (items < 0).any() or (items >= m).any() or len(set(items.tolist())) != len(items):
                raise QkvError(
                    request, f"position {i} reads {items.tolist()}", f"Name keys from 0 to {m - 1}, each once"
                )
            if (weights <= 0).any() or abs(float(weights.sum()) - 1) > 1e-9:
                raise QkvError(request, f"position {i} has weights {weights.tolist()}", "Give weights that sum to 1")
            if self.mask is not None and not self.mask[i, items].all():
                hidden = int(items[~self.mask[i, items]][0])
                raise QkvError(request, f"position {i} reads {hidden}, which the mask hides", "Change the rule")
