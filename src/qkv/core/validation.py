"""Any array in, a checked float64 tensor out."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import torch

from qkv.errors import QkvError

LEAST_TOLERANCE = 1e-200

ArrayLike = Any
"""A torch tensor, a numpy array, or nested lists of numbers."""


def tensor(name: str, value: ArrayLike, dims: str | None = None) -> torch.Tensor:
    """`value` as a finite real float64 tensor; `dims` names its axes ("n d"), and how many there must be."""
    try:
        if isinstance(value, torch.Tensor):
            if value.is_complex():
                raise TypeError("it is complex")
            dense = value if value.layout == torch.strided else value.to_dense()
            out = dense.detach().to(device="cpu", dtype=torch.float64)
        else:
            array = np.asarray(value)
            if array.dtype.kind not in "fiub":
                raise TypeError(f"its entries are of type {array.dtype}")
            out = torch.from_numpy(np.array(array, dtype=np.float64, order="C"))  # a copy: the caller's may change
    except (TypeError, ValueError, RuntimeError) as why:
        raise QkvError(
            f"reading {name} as an array of numbers", str(why), "Give a tensor, a numpy array or nested lists"
        ) from None
    if out.numel() == 0:
        raise QkvError(f"reading {name}", f"it is empty, of shape {tuple(out.shape)}", "Give at least one entry")
    if dims is not None and out.dim() != len(dims.split()):
        wanted = f"({', '.join(dims.split())})"
        raise QkvError(
            f"reading {name} with shape {wanted}",
            f"its shape is {tuple(out.shape)}",
            _reshape_hint(out, dims),
        )
    finite = torch.isfinite(out)
    if not bool(finite.all()):
        where = tuple(int(i) for i in (~finite).nonzero()[0])
        count = int((~finite).sum())
        raise QkvError(
            f"reading {name}",
            f"{count} of its {out.numel()} entries are NaN or infinite, the first at {where}",
            "Replace or drop them first",
        )
    return out


def same_length(asked: str, **named: torch.Tensor) -> int:
    """The common first dimension of the named tensors."""
    sizes = {name: int(t.shape[0]) for name, t in named.items()}
    if len(set(sizes.values())) != 1:
        came = " and ".join(f"{size} {name}" for name, size in sizes.items())
        raise QkvError(asked, f"there are {came}", "Give as many of the one as of the other")
    return next(iter(sizes.values()))


def same_width(asked: str, **named: torch.Tensor) -> int:
    """The common last dimension of the named tensors."""
    sizes = {name: int(t.shape[-1]) for name, t in named.items()}
    if len(set(sizes.values())) != 1:
        came = ", ".join(f"{name} of dimension {size}" for name, size in sizes.items())
        raise QkvError(asked, f"they live in different spaces: {came}", "Give vectors of one dimension")
    return next(iter(sizes.values()))


def tolerance(asked: str, tol: Any) -> float:
    """A tolerance strictly between 0 and 1."""
    ok = isinstance(tol, Real) and not isinstance(tol, bool) and LEAST_TOLERANCE <= float(tol) < 1
    if not ok:
        raise QkvError(asked, f"tol is {tol!r}", f"Give a tolerance from {LEAST_TOLERANCE:g} to below 1, such as 1e-3")
    return float(tol)


def _reshape_hint(out: torch.Tensor, dims: str) -> str:
    if out.dim() == 1 and len(dims.split()) == 2:
        kind = "a column: [[x] for x in v]" if dims == "d m" else "one row: [v]"
        return f"Give a single vector v as {kind}"
    return f"Give an array with the {len(dims.split())} axes {dims}"
