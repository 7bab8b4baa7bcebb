"""What the noise on the keys is: Gaussian covariances key by key, or rounding to b bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, finite, tensor, whole
from qkv.errors import QkvError

ASKED = "noise on the keys"
MOST_BITS = 32
APART = 1e-12
"""Two heads' scores of a key whose correlation is below this count as independent."""


def laid_on(asked: str, noise: Any, memory: Memory) -> KeyNoise:
    """The noise on the keys of a memory, or a refusal of what is no noise."""
    if not isinstance(noise, Gaussian | Quantised):
        raise QkvError(
            asked, f"noise is a {type(noise).__name__}", "Give a qkv.noise.Gaussian or a qkv.noise.Quantised"
        )
    return noise.on(memory)


@dataclass(frozen=True, eq=False)
class KeyNoise:
    """The covariance of each of n keys, as a sum of parts that never needs to be written out:
    isotropic_j I + along_j μ_j μ_jᵀ + diag(diagonal_j) + Σ F Fᵀ over the factors of key j.

    `steps`, where the noise is rounding, holds each channel's step; sampling then rounds for real.
    """

    keys: Tensor
    isotropic: Tensor
    along: Tensor
    diagonal: Tensor
    factors: tuple[tuple[Tensor | None, Tensor], ...]  # (which keys, or None for all; F of shape (keys, d, r))
    steps: Tensor | None = None

    def score_means(self, queries: Tensor) -> Tensor:
        """μ_j·q_h, of shape (h, n)."""
        return queries @ self.keys.mT

    def score_covariance(self, queries: Tensor) -> Tensor:
        """q_gᵀ Σ_j q_h for every key j, of shape (n, h, h); differentiable in the queries, O(n d) a pair."""
        own = (queries @ self.keys.mT).mT  # μ_j·q_h
        out = self.isotropic[:, None, None] * (queries @ queries.mT)
        out = out + self.along[:, None, None] * own[:, :, None] * own[:, None, :]
        if bool((self.diagonal != 0).any()):
            if len(self.diagonal) == 1:
                out = out + (queries * self.diagonal) @ queries.mT
            else:
                pairs = queries[:, None, :] * queries[None, :, :]
                out = out + torch.einsum("ghd,nd->ngh", pairs, self.diagonal)
        for rows, F in self.factors:
            seen = torch.einsum("ndr,hd->nhr", F, queries)
            part = seen @ seen.mT
            out = out + part if rows is None else out.index_add(0, rows, part)
        return out

    def score_variances(self, queries: Tensor) -> Tensor:
        """q_hᵀ Σ_j q_h, of shape (h, n): each query on its own, for many of them."""
        out = queries.square().sum(-1, keepdim=True) * self.isotropic
        out = out + self.along * (queries @ self.keys.mT).square() + queries.square() @ self.diagonal.mT
        for rows, F in self.factors:
            part = torch.einsum("ndr,hd->nhr", F, queries).square().sum(-1).mT
            out = out + part if rows is None else out.index_add(1, rows, part)
        return out

    def covariance(self, item: int) -> Tensor:
        """Σ_j of one key, written out."""
        mu = self.keys[item]
        out = self.isotropic[item] * torch.eye(len(mu), dtype=torch.float64)
        out = out + self.along[item] * torch.outer(mu, mu)
        out = out + torch.diag(self.diagonal[item if len(self.diagonal) > 1 else 0])
        for rows, F in self.factors:
            if rows is None:
                own = F[0] if len(F) == 1 else F[item]
                out = out + own @ own.mT
            for at in [] if rows is None else (rows == item).nonzero().flatten().tolist():
                out = out + F[at] @ F[at].mT
        return out


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Keys k_j ~ N(μ_j, Σ_j), independent of each other; Σ_j is the sum of all that is given.

    isotropic: variance in every direction. along: along the key's own mean, as along · μ_j μ_jᵀ.
    diagonal: d variances. factors: a matrix F (d, r), giving F Fᵀ. full: a covariance (d, d). Each is one for
    all keys, or a mapping from items to their own (items left out have none of it).
    """

    isotropic: Any = 0.0
    along: Any = None
    diagonal: Any = None
    factors: Any = None
    full: Any = None

    def __post_init__(self) -> None:
        for name in ("isotropic", "along"):
            given = getattr(self, name)
            for item, value in _entries(given):
                _not_negative(f"{name} noise{_of(item)}", finite(ASKED, f"{name}{_of(item)}", value))
        for item, value in _entries(self.diagonal):
            _not_negative(f"diagonal noise{_of(item)}", float(tensor(f"diagonal{_of(item)}", value, "d").min()))
        for item, value in _entries(self.factors):
            tensor(f"factors{_of(item)}", value, "d r")
        for item, value in _entries(self.full):
            root(f"covariance{_of(item)}", value)

    def on(self, memory: Memory) -> KeyNoise:
        """This noise on a memory's keys; refuses items it does not have and vectors of another length."""
        find = _finder(memory)
        factors: list[tuple[Tensor | None, Tensor]] = []
        for name, given, read in (
            ("factors", self.factors, lambda what, value: tensor(what, value, "d r")),
            ("full", self.full, root),
        ):
            for item, value in _entries(given):
                F = read(f"{name}{_of(item)}", value)
                _same_d(f"{name}{_of(item)}", F, memory)
                rows = None if item is EVERY else torch.tensor([find(item)])
                factors.append((rows, F[None]))
        return KeyNoise(
            keys=memory.keys,
            isotropic=_one_each(self.isotropic, memory, find),
            along=_one_each(self.along, memory, find),
            diagonal=self._diagonal(memory, find),
            factors=tuple(_stacked(factors)),
        )

    def _diagonal(self, memory: Memory, find: Any) -> Tensor:
        if not isinstance(self.diagonal, Mapping):
            if self.diagonal is None:
                return torch.zeros(1, memory.d, dtype=torch.float64)
            row = tensor("diagonal", self.diagonal, "d")
            _same_d("diagonal", row, memory)
            return row[None]
        out = torch.zeros(memory.n, memory.d, dtype=torch.float64)
        for item, value in self.diagonal.items():
            row = tensor(f"diagonal of {item!r}", value, "d")
            _same_d(f"diagonal of {item!r}", row, memory)
            out[find(item)] = row
        return out


@dataclass(frozen=True, eq=False)
class Quantised:
    """Keys rounded channel by channel to 2^bits levels between each channel's least and largest entry.

    `spread` takes the Gaussian with the same score variance: an error uniform on a step Δ has variance Δ²/12.
    `sample` and `within` round for real, to grids at random places: each key's error is then uniform on a
    step, but keys share the grid of their channel.
    """

    bits: int
    symmetric: bool = field(default=False)

    def __post_init__(self) -> None:
        bits = whole("rounding keys", "bits", self.bits)
        if bits > MOST_BITS:
            raise QkvError("rounding keys", f"bits is {bits}", f"Give from 1 to {MOST_BITS} bits")

    def steps(self, memory: Memory) -> Tensor:
        """The step of each channel's grid; a symmetric grid spans ± the largest size in the channel."""
        if self.symmetric:
            span = 2 * memory.keys.abs().max(dim=0).values
        else:
            span = memory.keys.max(dim=0).values - memory.keys.min(dim=0).values
        return span / (2**self.bits - 1)

    def on(self, memory: Memory) -> KeyNoise:
        steps = self.steps(memory)
        nothing = torch.zeros(memory.n, dtype=torch.float64)
        return KeyNoise(memory.keys, nothing, nothing, (steps**2 / 12)[None], (), steps)


Noise = Gaussian | Quantised

EVERY = object()  # stands for "all items", where an item could be any string or number


def _entries(given: Any) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(EVERY, given)]


def _of(item: Any) -> str:
    return "" if item is EVERY else f" of {item!r}"


def _not_negative(what: str, value: float) -> None:
    if value < 0:
        raise QkvError(ASKED, f"{what} has the eigenvalue {value:.6g}", "Give variances of at least 0")


def independent(C: Tensor) -> bool:
    """Whether no key's scores under two heads hang together, for covariances (n, h, h)."""
    if C.shape[1] == 1:
        return True
    own = C.diagonal(dim1=1, dim2=2)
    size = (own[:, :, None] * own[:, None, :]).sqrt()
    return not bool(((C - torch.diag_embed(own)).abs() > APART * size).any())


def root(what: str, value: ArrayLike) -> Tensor:
    """F with F Fᵀ the given covariance, which must be symmetric and positive semidefinite."""
    S = tensor(what, value, "d d")
    if S.shape[0] != S.shape[1]:
        raise QkvError(ASKED, f"the {what} has shape {tuple(S.shape)}", "Give a square matrix")
    size = float(S.abs().max())
    if float((S - S.mT).abs().max()) > 1e-9 * size:
        raise QkvError(ASKED, f"the {what} is not symmetric", "Give a symmetric matrix, such as (S + Sᵀ)/2")
    values, vectors = torch.linalg.eigh((S + S.mT) / 2)
    lowest = float(values[0])
    if lowest < -1e-10 * size:  # rounding of a true covariance stays far above this
        raise QkvError(
            ASKED,
            f"the {what} has the eigenvalue {lowest:.6g}",
            "Give a positive semidefinite matrix; clipping its eigenvalues at 0 gives the nearest one",
        )
    kept = values > 0
    return vectors[:, kept] * values[kept].sqrt() if bool(kept.any()) else S[:, :1] * 0


def _finder(memory: Memory) -> Any:
    """Where an item is, in constant time for labels that exist; memory.index words the refusals."""
    known = {label: i for i, label in enumerate(memory.labels)}

    def find(item: Any) -> int:
        plain = isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool))
        return known[item] if plain and item in known else memory.index(item)

    return find


def _one_each(given: Any, memory: Memory, find: Any) -> Tensor:
    if not isinstance(given, Mapping):
        value = 0.0 if given is None else float(given)
        return torch.full((memory.n,), value, dtype=torch.float64)
    out = torch.zeros(memory.n, dtype=torch.float64)
    for item, value in given.items():
        out[find(item)] = float(value)
    return out


def _same_d(what: str, found: Tensor, memory: Memory) -> None:
    if len(found) != memory.d:
        raise QkvError(ASKED, f"the {what} is for {len(found)} dimensions", f"The keys have {memory.d}")


def _stacked(factors: list[tuple[Tensor | None, Tensor]]) -> list[tuple[Tensor | None, Tensor]]:
    """Factors of single keys with as many columns, stacked into one, so that n of them cost one product."""
    out: list[tuple[Tensor | None, Tensor]] = [(rows, F) for rows, F in factors if rows is None]
    widths: dict[int, list[tuple[Tensor, Tensor]]] = {}
    for rows, F in factors:
        if rows is not None:
            widths.setdefault(F.shape[2], []).append((rows, F))
    for group in widths.values():
        out.append((torch.cat([rows for rows, _ in group]), torch.cat([F for _, F in group])))
    return out
