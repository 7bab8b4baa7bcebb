"""Argument checks: arrays, masks, shapes, integers, finite numbers, tolerances, confidence levels.

Each function takes the request in words, so that its QkvError can name it, and returns the value in canonical form.
"""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from qkv.core.types import ArrayLike as ArrayLike
from qkv.core.types import Arrays as Arrays
from qkv.core.types import Item as Item
from qkv.core.types import Labels as Labels
from qkv.core.types import Weights as Weights
from qkv.errors import QkvError, kind_of

MIN_TOLERANCE = 1e-200
MAX_SHOWN = 60
"""Characters of an argument in an error message."""


def tensor(name: str, value: ArrayLike, dims: str | None = None) -> torch.Tensor:
    """`value` as a finite real float64 tensor; `dims` names its axes ("n d"), and so how many it must have."""
    refuse_masked(f"reading {name}", name, value)
    try:
        if isinstance(value, torch.Tensor):
            if value.is_complex():
                raise TypeError("it is complex")
            dense = value if value.layout == torch.strided else value.to_dense()
            out = dense.detach().to(device="cpu", dtype=torch.float64)
        else:
            array = np.asarray(value)
            if array.dtype.kind not in "fiub":
                _refuse_column(name, value)
                raise TypeError(_odd_entry(value) or f"its entries are of type {array.dtype}")
            out = torch.from_numpy(np.array(array, dtype=np.float64, order="C"))  # a copy: the caller's may change
    except QkvError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError) as why:
        problem = _odd_entry(value) or str(why)
        raise QkvError(
            f"reading {name} as an array of numbers", problem, "Give a tensor, a numpy array or nested lists"
        ) from None
    if out.numel() == 0:
        raise QkvError(f"reading {name}", f"it is empty, of shape {tuple(out.shape)}", "Give at least one entry")
    if dims is not None and out.dim() != len(dims.split()):
        raise QkvError(
            f"reading {name} with shape ({', '.join(dims.split())})",
            f"its shape is {tuple(out.shape)}",
            _reshape_hint(out, dims),
        )
    is_finite = torch.isfinite(out)
    if not bool(is_finite.all()):
        where = tuple(int(i) for i in (~is_finite).nonzero()[0])
        count = int((~is_finite).sum())
        raise QkvError(
            f"reading {name}",
            f"{count} of its {out.numel()} entries are NaN or infinite, the first at {where}",
            "Replace or drop them first",
        )
    return out


def refuse_masked(request: str, name: str, value: Any) -> None:
    """Refuse numpy's masked arrays, alone or in a list: numpy would drop the mask and use the numbers under it.

    Raises:
        QkvError: `value` is a masked array, or a list or tuple that holds one.
    """
    entries = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(entry, np.ma.MaskedArray) for entry in entries):
        hint = "Fill or drop the masked entries first: x.filled(0.0) or x.compressed()"
        raise QkvError(request, f"{name} is a masked array, whose mask would be lost", hint)


def index_labels(value: Any) -> list[Any] | None:
    """The index of a table with rows and columns, such as a pandas DataFrame, as labels of its rows; else None."""
    index: Any = getattr(value, "index", None)
    if getattr(value, "ndim", None) != 2 or not hasattr(value, "columns") or not hasattr(index, "tolist"):
        return None
    return list(index.tolist())


def _refuse_column(name: str, value: Any) -> None:
    """Name the first column of a table that does not hold numbers."""
    if index_labels(value) is None:
        return
    for column in value.columns:
        kind = np.asarray(value[column]).dtype
        if kind.kind not in "fiub":
            problem = f"the column {column!r} holds entries of type {kind}"
            hint = f"Drop it, or make it the index, which gives the labels: set_index({column!r})"
            raise QkvError(f"reading {name} as an array of numbers", problem, hint)


def _odd_entry(value: Any, at: tuple[int, ...] = ()) -> str:
    """What keeps nested lists from being an array: a row of another length, or an entry that is no number.

    Example:
        >>> from qkv.core.validation import _odd_entry
        >>> _odd_entry([[1, 2], [3]]), _odd_entry([[1, 2], [3, "z"]])
        ('row 1 has length 1, and row 0 has length 2', "entry (1, 1) is 'z'")
    """
    if not isinstance(value, list | tuple):
        is_number = isinstance(value, int | float | np.number | np.ndarray | Tensor) or hasattr(value, "__array__")
        if is_number:
            return ""
        return (
            f"entry {at if len(at) != 1 else at[0]} is {reprlib.repr(value)}"
            if at
            else f"it is of type {type(value).__name__}"
        )
    if not at and not value:
        return ""
    sizes = [len(each) if isinstance(each, list | tuple) else -1 for each in value]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            return f"row {i} {_length(size)}, and row 0 {_length(sizes[0])}"
    return next((found for i, each in enumerate(value) if (found := _odd_entry(each, (*at, i)))), "")


def _length(size: int) -> str:
    return "is no list" if size < 0 else f"has length {size}"


def booleans(request: str, mask: ArrayLike) -> Bool[Tensor, " ..."]:
    """`mask` as a boolean tensor; masks of any other type are refused."""
    refuse_masked(request, "the mask", mask)
    try:
        out = mask.detach().cpu() if isinstance(mask, Tensor) else torch.from_numpy(np.array(mask))
    except (TypeError, ValueError) as why:
        raise QkvError(request, f"the mask is not an array ({why})", "Give an array of booleans") from None
    if out.dtype != torch.bool:
        # A 0/1 or additive mask is refused rather than guessed at: both conventions for its sign exist.
        raise QkvError(request, f"the mask holds {out.dtype}", "Give booleans, True where an item may be attended")
    return out


def same_length(request: str, **named: torch.Tensor) -> int:
    """The common first dimension of the named tensors."""
    sizes = {name: int(t.shape[0]) for name, t in named.items()}
    if len(set(sizes.values())) != 1:
        counts = " and ".join(f"{size} {name}" for name, size in sizes.items())
        raise QkvError(request, f"there are {counts}", "Give the same number of each")
    return next(iter(sizes.values()))


def same_width(request: str, **named: torch.Tensor) -> int:
    """The common last dimension of the named tensors."""
    sizes = {name: int(t.shape[-1]) for name, t in named.items()}
    if len(set(sizes.values())) != 1:
        dimensions = ", ".join(f"{name} of dimension {size}" for name, size in sizes.items())
        raise QkvError(request, f"the vectors are in different spaces: {dimensions}", "Give vectors of one dimension")
    return next(iter(sizes.values()))


def check_range(request: str, *results: Tensor) -> None:
    """Refuse results that are not finite: products of finite inputs can overflow, and softmax then gives NaN."""
    if not all(bool(torch.isfinite(result).all()) for result in results):
        raise QkvError(
            request,
            "the products of its inputs exceed the range of float64",
            "Use smaller vectors or a smaller scale",
        )


def mapping(request: str, name: str, value: Any, hint: str) -> dict[Any, Any]:
    """`value` as a dict that is not empty: a mapping, or an object with to_dict() such as a pandas Series."""
    if isinstance(value, Mapping):
        found = dict(value)
    elif callable(getattr(value, "to_dict", None)) and hasattr(value, "index"):
        found = dict(value.to_dict())
        if len(found) != len(value.index) and getattr(value, "ndim", 1) == 1:
            raise QkvError(request, f"the index of the {name} holds a label twice", "Name each item once")
    else:
        raise QkvError(request, f"the {name} are {kind_of(value)}", hint)
    if not found:
        raise QkvError(request, f"there are no {name}", hint)
    return found


def whole(request: str, name: str, value: Any, least: int = 1) -> int:
    """`value` as an int of at least `least`; any integral type is accepted, 2.0 and True are refused."""
    try:
        out = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        out = None
    if out is None or out < least:
        raise QkvError(request, f"{name} is {shown(value)}", f"Give a whole number, {least} or more")
    return out


def finite(request: str, name: str, value: Any) -> float:
    """`value` as a finite float."""
    refuse_masked(request, name, value)
    try:
        out = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        out = math.nan
    if isinstance(value, str) or not math.isfinite(out):
        raise QkvError(request, f"{name} is {shown(value)}", "Give a finite number")
    return out


def shown(value: Any) -> str:
    """A value of any type, in an error message: one line of at most MAX_SHOWN characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an object whose repr fails, or an integer with too many digits
        return kind_of(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def tolerance(request: str, tol: Any) -> float:
    """A tolerance strictly between 0 and 1."""
    ok = isinstance(tol, Real) and not isinstance(tol, bool) and MIN_TOLERANCE <= float(tol) < 1
    if not ok:
        raise QkvError(
            request, f"tol is {shown(tol)}", f"Give a tolerance from {MIN_TOLERANCE:g} to below 1, such as 1e-3"
        )
    return float(tol)


def check_confidence(request: str, confidence: Any) -> float:
    """A confidence level strictly between 0 and 1."""
    if not (isinstance(confidence, int | float) and 0 < confidence < 1):
        raise QkvError(request, f"confidence is {shown(confidence)}", "Give a number between 0 and 1, such as 0.95")
    return float(confidence)


def _reshape_hint(out: torch.Tensor, dims: str) -> str:
    if out.dim() == 1 and len(dims.split()) == 2:
        kind = "a column: [[x] for x in v]" if dims == "d m" else "one row: [v]"
        return f"Give a single vector v as {kind}"
    return f"Give an array with the {len(dims.split())} axes {dims}"
