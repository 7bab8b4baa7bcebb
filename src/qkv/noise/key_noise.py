"""Noise on the keys: Gaussian with a covariance for each key, or rounding to b bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, Arrays, Weights, finite, tensor, whole
from qkv.errors import QkvError, kind_of

REQUEST = "noise on the keys"
MAX_BITS = 32
EPSILON = torch.finfo(torch.float64).eps
MAX_CORRELATION_OF_INDEPENDENT = 1e-12
"""Scores of one key under two heads count as independent if their correlation is at most this."""


def noise_on_keys(request: str, noise: Any, memory: Memory) -> KeyNoise:
    """The covariances that a noise model gives to the keys of a memory; other types raise QkvError."""
    if not isinstance(noise, Gaussian | Quantised):
        raise QkvError(request, f"noise is {kind_of(noise)}", "Give a qkv.noise.Gaussian or a qkv.noise.Quantised")
    return noise.on(memory)


@dataclass(frozen=True, eq=False)
class KeyNoise:
    """The covariance of each of n keys, kept as a sum of structured parts:
    isotropic_j I + along_j μ_j μ_jᵀ + diag(diagonal_j) + Σ F Fᵀ over the factors of key j.

    Where the noise is rounding, `steps` holds the step of each channel, and Monte Carlo rounds the keys.
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
            projected = torch.einsum("ndr,hd->nhr", F, queries)
            part = projected @ projected.mT
            out = out + part if rows is None else out.index_add(0, rows, part)
        return out

    def score_variances(self, queries: Tensor) -> Tensor:
        """q_hᵀ Σ_j q_h, of shape (h, n), without the covariances between queries."""
        out = queries.square().sum(-1, keepdim=True) * self.isotropic
        out = out + self.along * (queries @ self.keys.mT).square() + queries.square() @ self.diagonal.mT
        for rows, F in self.factors:
            part = torch.einsum("ndr,hd->nhr", F, queries).square().sum(-1).mT
            out = out + part if rows is None else out.index_add(1, rows, part)
        return out

    def score_rounding(self, queries: Tensor) -> Tensor:
        """Bound on the rounding of the scores of each query, (h,), up to 9 standard deviations from their means."""
        sizes, absolute = queries.abs(), self.keys.abs()
        largest = (sizes @ absolute.mT).max(-1).values
        variance = sizes.square().sum(-1) * self.isotropic.max() + self.along.max() * largest**2
        variance = variance + (sizes.square() @ self.diagonal.mT).max(-1).values
        for _, F in self.factors:
            variance = variance + torch.einsum("ndr,hd->nhr", F.abs(), sizes).square().sum(-1).max(0).values
        return (self.keys.shape[1] + 8) * EPSILON * (largest + 9 * variance.sqrt())

    def covariance(self, item: int) -> Tensor:
        """Σ_j of one key, as a dense matrix (d, d)."""
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
    """Independent Gaussian keys k_j ~ N(μ_j, Σ_j), where Σ_j is the sum of the parts that are given.

    Each part is one value for all keys, or a mapping from items to values; items that are left out have none of it.

    Attributes:
        isotropic: Variance in every direction, giving isotropic · I.
        along: Variance along the key's own mean, giving along · μ_j μ_jᵀ.
        diagonal: Variances of the d channels.
        factors: A matrix F (d, r), giving F Fᵀ.
        full: A covariance matrix (d, d).

    Raises:
        QkvError: A variance is negative or not finite, or a covariance is not symmetric positive semidefinite.

    Example:
        >>> import qkv
        >>> memory = qkv.Memory.orthonormal(4, 4, labels=list("abcd"))
        >>> noise = qkv.noise.Gaussian(isotropic=1e-6, along={"a": 0.5})
        >>> round(float(noise.on(memory).covariance(0).trace()), 6)
        0.500004
    """

    isotropic: float | Weights | None = 0.0
    along: float | Weights | None = None
    diagonal: ArrayLike | Arrays | None = None
    factors: ArrayLike | Arrays | None = None
    full: ArrayLike | Arrays | None = None

    def __post_init__(self) -> None:
        for name in ("isotropic", "along"):
            given = getattr(self, name)
            for item, value in _entries(given):
                _not_negative(f"{name} noise{_of_item(item)}", finite(REQUEST, f"{name}{_of_item(item)}", value))
        for item, value in _entries(self.diagonal):
            lowest = float(tensor(f"diagonal{_of_item(item)}", value, "d").min())
            _not_negative(f"diagonal noise{_of_item(item)}", lowest)
        for item, value in _entries(self.factors):
            tensor(f"factors{_of_item(item)}", value, "d r")
        for item, value in _entries(self.full):
            covariance_factor(f"covariance{_of_item(item)}", value)

    def on(self, memory: Memory) -> KeyNoise:
        """The covariances of a memory's keys; refuses unknown items and vectors of another length."""
        find = _index_lookup(memory)
        factors: list[tuple[Tensor | None, Tensor]] = []
        for name, given, read in (
            ("factors", self.factors, lambda what, value: tensor(what, value, "d r")),
            ("full", self.full, covariance_factor),
        ):
            for item, value in _entries(given):
                F = read(f"{name}{_of_item(item)}", value)
                _check_dimension(f"{name}{_of_item(item)}", F, memory)
                rows = None if item is ALL_ITEMS else torch.tensor([find(item)])
                factors.append((rows, F[None]))
        return KeyNoise(
            keys=memory.keys,
            isotropic=_per_key(self.isotropic, memory, find),
            along=_per_key(self.along, memory, find),
            diagonal=self._diagonal(memory, find),
            factors=tuple(_stack_factors(factors)),
        )

    def _diagonal(self, memory: Memory, find: Any) -> Tensor:
        if not isinstance(self.diagonal, Mapping):
            if self.diagonal is None:
                return torch.zeros(1, memory.d, dtype=torch.float64)
            row = tensor("diagonal", self.diagonal, "d")
            _check_dimension("diagonal", row, memory)
            return row[None]
        out = torch.zeros(memory.n, memory.d, dtype=torch.float64)
        for item, value in self.diagonal.items():
            row = tensor(f"diagonal of {item!r}", value, "d")
            _check_dimension(f"diagonal of {item!r}", row, memory)
            out[find(item)] = row
        return out


@dataclass(frozen=True, eq=False)
class Quantised:
    """Keys rounded channel by channel to 2^bits levels between each channel's least and largest entry.

    `reading_moments` takes independent Gaussian errors of the same variance: an error uniform on a step Δ has variance
    Δ²/12. For many keys that is a fair approximation; few or equal keys round together, and vary less than it says.
    Functions that draw (`sample`, `success_probability`, `weight_distribution`) round the keys, to grids with a random
    offset: each key's error is then uniform on a step, and keys share the grid of their channel.

    Attributes:
        bits: Bits a channel, from 1 to 32.
        symmetric: Whether the grid of a channel spans ± its largest absolute value instead of its range.

    Raises:
        QkvError: `bits` is not a whole number from 1 to 32.

    Example:
        >>> import qkv
        >>> qkv.noise.Quantised(2).steps(qkv.Memory([[0.0, 1.0], [3.0, -1.0]])).tolist()
        [1.0, 0.6666666666666666]
    """

    bits: int
    symmetric: bool = field(default=False)

    def __post_init__(self) -> None:
        bits = whole("rounding keys", "bits", self.bits)
        if bits > MAX_BITS:
            raise QkvError("rounding keys", f"bits is {bits}", f"Give from 1 to {MAX_BITS} bits")

    def steps(self, memory: Memory) -> Tensor:
        """The step of each channel's grid, (d,)."""
        if self.symmetric:
            span = 2 * memory.keys.abs().max(dim=0).values
        else:
            span = memory.keys.max(dim=0).values - memory.keys.min(dim=0).values
        return span / (2**self.bits - 1)

    def on(self, memory: Memory) -> KeyNoise:
        """The covariances of a memory's keys: Δ²/12 in each channel."""
        steps = self.steps(memory)
        zeros = torch.zeros(memory.n, dtype=torch.float64)
        return KeyNoise(memory.keys, zeros, zeros, (steps**2 / 12)[None], (), steps)


Noise = Gaussian | Quantised

ALL_ITEMS = object()  # the key of a value for all items; any string or number could be a label


def _entries(given: Any) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(ALL_ITEMS, given)]


def _of_item(item: Any) -> str:
    return "" if item is ALL_ITEMS else f" of {item!r}"


def _not_negative(what: str, value: float) -> None:
    if value < 0:
        raise QkvError(REQUEST, f"{what} has the eigenvalue {value:.6g}", "Give variances of at least 0")


def heads_independent(C: Tensor) -> bool:
    """Whether the scores of each key are uncorrelated across heads, for covariances (n, h, h)."""
    if C.shape[1] == 1:
        return True
    own = C.diagonal(dim1=1, dim2=2)
    size = (own[:, :, None] * own[:, None, :]).sqrt()
    return not bool(((C - torch.diag_embed(own)).abs() > MAX_CORRELATION_OF_INDEPENDENT * size).any())


def without_rounding(C: Tensor, rounding: Tensor) -> Tensor:
    """Score covariances (n, h, h) without the variances that rounding hides: up to 9 standard deviations, a score that
    is left out moves by less than the `rounding` of the scores of its head, (h,)."""
    kept = C.diagonal(dim1=1, dim2=2) > (rounding / 9) ** 2
    return C * (kept[:, :, None] & kept[:, None, :])


def covariance_factor(what: str, value: ArrayLike) -> Tensor:
    """F with F Fᵀ = the given covariance, which must be symmetric and positive semidefinite."""
    S = tensor(what, value, "d d")
    if S.shape[0] != S.shape[1]:
        raise QkvError(REQUEST, f"the {what} has shape {tuple(S.shape)}", "Give a square matrix")
    size = float(S.abs().max())
    if float((S - S.mT).abs().max()) > 1e-9 * size:
        raise QkvError(REQUEST, f"the {what} is not symmetric", "Give a symmetric matrix, such as (S + Sᵀ)/2")
    values, vectors = torch.linalg.eigh((S + S.mT) / 2)
    lowest = float(values[0])
    if lowest < -1e-10 * size:  # rounding of a positive semidefinite matrix stays far above this
        raise QkvError(
            REQUEST,
            f"the {what} has the eigenvalue {lowest:.6g}",
            "Give a positive semidefinite matrix; clipping its eigenvalues at 0 gives the nearest one",
        )
    kept = values > 0
    return vectors[:, kept] * values[kept].sqrt() if bool(kept.any()) else S[:, :1] * 0


def _index_lookup(memory: Memory) -> Any:
    """A function from items to indices: constant time for known labels, memory.index for refusals."""
    known = {label: i for i, label in enumerate(memory.labels)}

    def find(item: Any) -> int:
        plain = isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool))
        return known[item] if plain and item in known else memory.index(item)

    return find


def _per_key(given: Any, memory: Memory, find: Any) -> Tensor:
    """One number for each key, (n,)."""
    if not isinstance(given, Mapping):
        value = 0.0 if given is None else float(given)
        return torch.full((memory.n,), value, dtype=torch.float64)
    out = torch.zeros(memory.n, dtype=torch.float64)
    for item, value in given.items():
        out[find(item)] = float(value)
    return out


def _check_dimension(what: str, found: Tensor, memory: Memory) -> None:
    if len(found) != memory.d:
        raise QkvError(REQUEST, f"the {what} is for {len(found)} dimensions", f"The keys have {memory.d}")


def _stack_factors(factors: list[tuple[Tensor | None, Tensor]]) -> list[tuple[Tensor | None, Tensor]]:
    """Factors of single keys, stacked by their number of columns, so that n of them cost one product."""
    out: list[tuple[Tensor | None, Tensor]] = [(rows, F) for rows, F in factors if rows is None]
    widths: dict[int, list[tuple[Tensor, Tensor]]] = {}
    for rows, F in factors:
        if rows is not None:
            widths.setdefault(F.shape[2], []).append((rows, F))
    for group in widths.values():
        out.append((torch.cat([rows for rows, _ in group]), torch.cat([F for _, F in group])))
    return out
