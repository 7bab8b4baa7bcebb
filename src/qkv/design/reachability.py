"""reach: can adding a multiple of a direction to a token bring its output to a target?"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from qkv.core.attention import self_attention
from qkv.core.display import Card, Displayable, lower_bound, number
from qkv.core.geometry import min_norm_point
from qkv.core.memory import Memory
from qkv.core.types import ArrayLike
from qkv.core.validation import tensor, tolerance
from qkv.design.certificates.certificate import Certificate
from qkv.design.certificates.results.reachability import distance_left, is_within
from qkv.errors import QkvError, with_full_stop

MAX_ENTRY = 1e60
"""Inputs whose largest entry is above this, or below its inverse, are refused: products would leave float64's range."""
TITLES = {
    "reached": "The target can be reached",
    "out of reach": "The target stays out of reach",
    "undecided": "No multiple was found that reaches the target, and no proof that there is none",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Reachability(Displayable):
    """How near a token's output comes to a target when a multiple r of a direction is added to the token.

    Attributes:
        status: "reached", "out of reach" (proved) or "undecided".
        multiple: The best r that was found.
        distance: Distance of the output from the target at that r.
        at_least: Certified lower bound on the distance for every r, from a hyperplane that separates the target from
            all outputs; 0 where none was found.
        tol: Distance that counts as reached, relative to the norm of the target.
        certificate: The certificate of `at_least`, or None.
    """

    status: str
    multiple: float
    distance: float
    at_least: float
    tol: float
    certificate: Certificate | None = dataclasses.field(repr=False)

    @property
    def possible(self) -> bool | None:
        """Whether the target can be reached; None where that is not known."""
        return {"reached": True, "out of reach": False, "undecided": None}[self.status]

    @property
    def certificates(self) -> list[Certificate]:
        """The certificates of this result."""
        return [] if self.certificate is None else [self.certificate]

    def card(self) -> Card:
        facts = [("best multiple", number(self.multiple + 0.0, 6)), ("distance there", number(self.distance, 6))]
        if self.certificate is not None:
            facts.append(("distance for every multiple", f"≥ {lower_bound(self.at_least, 6)}, certified"))
        note = with_full_stop(self.certificate.statement) if self.status == "out of reach" and self.certificate else ""
        return Card(TITLES[self.status], tuple(facts), note=note)

    def to_json(self) -> dict[str, Any]:
        says = self.certificate.statement if self.certificate else TITLES[self.status]
        return super().to_json() | {"possible": self.possible, "says": says}


def reach(
    X: ArrayLike,
    token: int,
    along: ArrayLike,
    target: ArrayLike,
    tol: float = 1e-2,
    Q: ArrayLike | None = None,
    K: ArrayLike | None = None,
    V: ArrayLike | None = None,
) -> Reachability:
    """Decide whether some real r makes the output of x_token + r·along come within tol·|target| of the target.

    Args:
        X: Tokens as rows, (n, d).
        token: The token that is changed.
        along: The direction that is added, (d,).
        target: The wanted output of the token, (dv,).
        tol: Distance that counts as reached, relative to the norm of the target.
        Q: Query matrix, (h, d); the identity if None.
        K: Key matrix, (h, d); the identity if None.
        V: Value matrix, (dv, d); the identity if None.

    Returns:
        A `Reachability`. Where the target is "out of reach", its certificate proves that for every r.

    Raises:
        QkvError: If the token is unknown, the direction is zero, or sizes do not fit.

    Example:
        >>> import qkv
        >>> found = qkv.design.reach([[0.0, 3.0], [3.0, 0.0]], token=0, along=[1.0, 0.0], target=[3.0, 3.0])
        >>> found.status
        'reached'
    """
    x = tensor("the tokens X", X, "tokens d")
    request = "reaching a target with a token's output"
    tol = tolerance(request, tol)
    i = Memory(x).index(token)
    u, y = tensor("the direction", along, "d"), tensor("the target", target, "d")
    identity = torch.eye(x.shape[1], dtype=torch.float64)
    q, k, v = (identity if m is None else tensor(name, m, "h d") for name, m in (("Q", Q), ("K", K), ("V", V)))
    if len(u) != x.shape[1] or len(y) != v.shape[0]:
        problem = f"tokens of {x.shape[1]}, a direction of {len(u)} and a target of {len(y)} numbers"
        raise QkvError(request, problem, f"Give a direction of {x.shape[1]} and a target of {v.shape[0]}")
    if not bool(u.any()):
        raise QkvError(request, "the direction is zero", "Give a direction along which the token can move")
    for name, given in (("the tokens", x), ("the direction", u), ("the target", y), ("Q", q), ("K", k), ("V", v)):
        size = float(given.abs().max())
        if size != 0 and not 1 / MAX_ENTRY < size < MAX_ENTRY:
            problem = f"the largest entry of {name} is {size:.3g}"
            raise QkvError(request, problem, f"Scale {name} to entries near 1")
    best = _best_multiple(x, i, u, y, q, k, v)
    separation = _separating_certificate(x, i, u, y, q, k, v)
    distance = float(distance_left(separation.data, best).mid())  # with large scores float64 alone loses it
    at_least = max(0.0, float(separation.claims["distance"]))
    proof = separation if at_least > 0 else None
    reached, near = is_within(separation.data, best, tol), tol * float(y.norm())
    status = "reached" if reached else "out of reach" if at_least > near * (1 + 1e-12) else "undecided"
    return Reachability(status, best, distance, at_least, tol, proof)


def _best_multiple(
    x: torch.Tensor, i: int, u: torch.Tensor, y: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> float:
    """The best multiple on a geometric grid, refined by golden-section search around the best point."""

    def distance(r: float) -> float:
        moved = x.clone()
        moved[i] = moved[i] + r * u
        return float((self_attention(moved, q, k, v).output[i] - y).norm())

    # The multiple matters where r u is as long as the tokens, and where it changes scores by about 1.
    lengths = {max(1.0, float(x.norm())), float(x.norm()) or 1.0}
    side = np.concatenate([[0.0], *(np.geomspace(1e-3, 1e3, 120) * (size / float(u.norm())) for size in lengths)])
    grid = np.unique(np.concatenate([-side, side]))
    values = [distance(float(r)) for r in grid]
    at = int(np.argmin(values))
    low, high = grid[max(0, at - 1)], grid[min(len(grid) - 1, at + 1)]
    for _ in range(80):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, b) if distance(float(a)) < distance(float(b)) else (a, high)
    return float(min((grid[at], (low + high) / 2), key=lambda r: distance(float(r))))


def _separating_certificate(
    x: torch.Tensor, i: int, u: torch.Tensor, y: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> Certificate:
    """The certificate of a hyperplane between y and all outputs, whose normal is orthogonal to Vu.

    The token's weight on itself is at least `share` for every multiple (derived in
    certificates/statements/reachability.py), so all outputs, projected along Vu, lie in the hull of
    share·v_i + (1-share)·v_j; the point of that hull nearest to y gives the normal.
    """
    values = (x @ v.T).numpy()
    drift = (v @ u).numpy()
    size = float(np.linalg.norm(drift))
    flatten = np.eye(len(drift)) - (np.outer(drift, drift) / size**2 if size > 0 else 0)
    share = _own_share(x, i, u, q, k)
    corners = np.vstack([values[i], share * values[i] + (1 - share) * np.delete(values, i, axis=0)])
    normal = min_norm_point((corners - y.numpy()) @ flatten)
    # Where the direction is nonzero the normal holds rounding errors only; exact zeros make the proof exact.
    normal[np.abs(normal) < 1e-13 * max(1e-300, float(np.abs(normal).max()))] = 0.0
    if not normal.any():
        normal = values[i] - y.numpy() + 1e-300
    far = 4 * (np.abs(values).sum() + float(y.abs().sum()) + 1) / (max(share, 1e-3) * (size or 1e-12))
    data = {
        "X": x, "Q": q, "K": k, "V": v, "along": u, "target": y,
        "token": i, "normal": normal, "range": float(far),
    }  # fmt: skip
    return Certificate.issue("unreachable", data)


def _own_share(x: torch.Tensor, i: int, u: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> float:
    """A lower bound on the token's weight on itself over all multiples; 0 where the bound does not apply."""
    qx, qu, keys, ku = q @ x[i], q @ u, x @ k.T, k @ u
    c2 = float(qu @ ku)
    if c2 <= 0:
        return 0.0
    linear = qx @ ku + qu @ keys[i] - keys @ qu
    lowest = qx @ keys[i] - keys @ qx - linear**2 / (4 * c2)
    others = torch.cat([lowest[:i], lowest[i + 1 :]])
    return float(1 / (1 + torch.exp(-others).sum()))
