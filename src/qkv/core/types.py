"""Array types that appear in signatures throughout the package."""

# Worker processes of qkv.parallel import this module, so it does not import torch.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

if TYPE_CHECKING:  # at run time the checks of qkv.core.validation refuse other types, with messages of their own

    class SupportsArray(Protocol):
        """An array of another library, such as a pandas column."""

        def __array__(self) -> NDArray[Any]: ...

    # numpy.typing.ArrayLike also allows strings. Nested sequences are spelled out: a recursive type would too.
    Entry = float | np.number[Any] | np.bool_ | torch.Tensor | NDArray[Any] | SupportsArray
    Row = Sequence[Entry]
    ArrayLike = Entry | Row | Sequence[Row] | Sequence[Sequence[Row]] | Sequence[Sequence[Sequence[Row]]]
    Item = str | int
    # A mapping is invariant in its keys, so that each kind of key is listed.
    Weights = Mapping[str, float] | Mapping[int, float] | Mapping[str | int, float]
    Arrays = Mapping[str, ArrayLike] | Mapping[int, ArrayLike] | Mapping[str | int, ArrayLike]
    Labels = Sequence[str] | Sequence[int] | Sequence[str | int] | NDArray[Any] | torch.Tensor
else:
    ArrayLike = Item = Weights = Arrays = Labels = Any
"""ArrayLike is a torch tensor, a numpy array, or nested lists of numbers; `qkv.core.validation.tensor` checks and
converts it, and raises QkvError for anything else. Item is a label or an index; Weights and Arrays are numbers and
vectors by item; Labels is one label per item."""
