"""HeadMix: queries of one or several heads, and the weights with which their readings are mixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, same_length, same_width, tensor
from qkv.errors import QkvError

REQUEST = "reading with one or several heads"


@runtime_checkable
class HasHeads(Protocol):
    """A result that holds several queries and their mix: RobustQuery, HeadMix."""

    @property
    def queries(self) -> Tensor:
        """The queries, (h, d)."""

    @property
    def mix(self) -> Tensor:
        """The weight of each head, (h,)."""


@runtime_checkable
class HasQuery(Protocol):
    """A result that holds one query: Design, MinVarianceQuery."""

    @property
    def query(self) -> Tensor:
        """The query, (d,)."""


if TYPE_CHECKING:
    Layout = HasHeads | HasQuery | ArrayLike | tuple[ArrayLike, ArrayLike]
else:
    Layout = Any
"""What `HeadMix.of` accepts: one query, several, a pair (queries, mix), or a result that holds them."""


@dataclass(frozen=True, eq=False)
class HeadMix:
    """A head layout: h queries on the same keys, whose readings are summed with the weights `mix`.

    Every function of `qkv.noise` that takes a query takes anything that `HeadMix.of` accepts.

    Attributes:
        queries: The queries, a float64 tensor (h, d).
        mix: The weight of each head's reading, a float64 tensor (h,).

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4)
        >>> heads = qkv.noise.HeadMix.of(memory, [memory.keys[0], memory.keys[1]])
        >>> len(heads), heads.mix.tolist()
        (2, [0.5, 0.5])
    """

    queries: Tensor
    mix: Tensor

    @classmethod
    def of(cls, memory: Memory, value: Layout, mix: ArrayLike | None = None, *, request: str = REQUEST) -> HeadMix:
        """Queries and mix from any of the forms in which a layout can be given.

        A torch tensor that requires gradients keeps them.

        Args:
            memory: The memory whose keys the queries are for.
            value: One query (d,); several queries, as an array (h, d) or a list; a pair (queries (h, d), mix (h,));
                a `qkv.design.Design`; a RobustQuery; a MinVarianceQuery; or a HeadMix.
            mix: The weight of each head; by default those that `value` holds, or else 1/h for each.
            request: What the caller was asked for, to begin an error message with.

        Returns:
            The layout, with queries and mix in float64.

        Raises:
            QkvError: The queries do not have the dimension of the keys, are not finite, or are not as many as the mix;
                or a pair (queries, mix) comes with another mix.

        Example:
            >>> import qkv
            >>> memory = qkv.Memory.orthonormal(4, 4)
            >>> qkv.noise.HeadMix.of(memory, (memory.keys[:2], [0.25, 0.75])).mix.tolist()
            [0.25, 0.75]
        """
        if _is_pair(value):
            if mix is not None:
                raise QkvError(request, "a mix was given twice", "Give (queries, mix), or queries and a mix")
            value, mix = cast(tuple[ArrayLike, ArrayLike], value)
        elif isinstance(value, Tensor | np.ndarray):
            pass  # by far the most frequent, and checks of a protocol are slow
        elif isinstance(value, HasHeads):
            mix = value.mix if mix is None else mix
            value = value.queries
        elif isinstance(value, HasQuery):
            value = value.query
        queries = _queries(request, memory, value)
        if mix is None:
            return cls(queries, torch.full((len(queries),), 1 / len(queries), dtype=torch.float64))
        weights = tensor("mix", mix, "h")
        same_length(request, queries=queries, mix=weights)
        if isinstance(mix, Tensor) and mix.requires_grad:
            weights = mix.to(torch.float64)
        return cls(queries, weights)

    @classmethod
    def single(cls, query: Tensor) -> HeadMix:
        """One head with a float64 query (d,), unchecked."""
        return cls(query[None], torch.ones(1, dtype=torch.float64))

    def __len__(self) -> int:
        """The number of heads."""
        return len(self.queries)

    def detach(self) -> HeadMix:
        """The same layout without gradients."""
        return HeadMix(self.queries.detach(), self.mix.detach())

    def weights(self, keys: Tensor) -> Tensor:
        """The mixed attention weights on keys (n, d) without noise, (n,)."""
        return self.mix @ torch.softmax(self.queries @ keys.mT, -1)


def _queries(request: str, memory: Memory, value: Any) -> Tensor:
    """One query or several as a float64 tensor (h, d)."""
    if isinstance(value, list | tuple) and value and all(_is_vector(q) for q in value):
        rows = [_float64(q, "d") for q in value]
        for row in rows:
            same_width(request, query=row, keys=memory.keys)
        queries = torch.stack(rows)
    else:
        queries = torch.atleast_2d(_float64(value, None))
    if queries.dim() != 2:
        raise QkvError(request, f"query has shape {tuple(queries.shape)}", "Give one query (d,), or several (h, d)")
    same_width(request, query=queries, keys=memory.keys)
    return queries


def _is_pair(value: Any) -> bool:
    """Whether this is (queries, mix) and not a pair of two queries: the first entry then has two axes."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    shape = getattr(value[0], "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(value[0], list | tuple) and bool(value[0]) and hasattr(value[0][0], "__len__")


def _is_vector(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _float64(value: Any, dims: str | None) -> Tensor:
    """A checked float64 tensor, which keeps the gradient of a torch tensor that requires one."""
    checked = tensor("query", value, dims)
    return value.to(torch.float64) if isinstance(value, Tensor) and value.requires_grad else checked
