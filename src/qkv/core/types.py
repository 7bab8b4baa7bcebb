"""Array types that appear in signatures throughout the package."""

# Worker processes of qkv.parallel import this module, so it does not import torch.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy.typing
    import torch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

if TYPE_CHECKING:  # at run time `tensor` refuses what is none, with a message of its own
    ArrayLike = torch.Tensor | numpy.typing.ArrayLike
else:
    ArrayLike = Any
"""A torch tensor, a numpy array, or nested lists of numbers; `qkv.core.validation.tensor` checks and converts it."""
