"""reach: can some multiple of a direction, added to a token, steer its output to a target?"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from qkv.core.attention import self_attention
from qkv.core.display import Card, Displayable, number
from qkv.core.geometry import nearest_to_origin
from qkv.core.memory import Memory
from qkv.core.validation import ArrayLike, tensor, tolerance
from qkv.design.certificates.certificate import Certificate
from qkv.errors import QkvError

Array = np.ndarray[Any, np.dtype[np.float64]]


TITLES = {
    "reached": "The target can be reached",
    "out of reach": "The target stays out of reach",
    "undecided": "No multiple was found that reaches the target, and no proof that there is none",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Reachability(Displayable):
    """How near a token's output comes to a target as a multiple r of a direction is added to the token.

    `multiple` is the best r that was found and `distance` the distance there; `at_least` is a certified bound on the
    distance for every r, by a hyperplane that separates the target from all outputs (0, and no certificate, where
    none was found). `status` is "reached", "out of reach" or "undecided".
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
        """What there is to recheck."""
        return [] if self.certificate is None else [self.certificate]

    def card(self) -> Card:
        facts = [("best multiple", number(round(self.multiple, 4) + 0.0)), ("distance there", number(self.distance, 6))]
        if self.certificate is not None:
            facts.append(("distance for every multiple", f"≥ {number(self.at_least, 6)}, certified"))
        note = self.certificate.statement + "." if self.status == "out of reach" and self.certificate else ""
        return Card(TITLES[self.status], tuple(facts), note=note)

    def to_json(self) -> dict[str, Any]:
        says = self.certificate.statement if self.certificate else TITLES[self.status]
        return super().to_json() | {"possible": self.possible, "says": says}


def reach(
    X: ArrayLike,
    token: Any,
    along: ArrayLike,
    target: ArrayLike,
    tol: float = 1e-2,
    Q: ArrayLike | None = None,
    K: ArrayLike | None = None,
    V: ArrayLike | None = None,
) -> Reachability:
    """Whether x_token + r·along can make the token's output come within tol·|target| of the target, for any real r.

    Q, K and V are the identity unless given.
    """
    x = tensor("the tokens X", X, "tokens d")
    asked = "steering a token's output"
    tol = tolerance(asked, tol)
    i = Memory(x).index(token)
    u, y = tensor("the direction", along, "d"), tensor("the target", target, "d")
    identity = torch.eye(x.shape[1], dtype=torch.float64)
    q, k, v = (identity if m is None else tensor(name, m, "h d") for name, m in (("Q", Q), ("K", K), ("V", V)))
    if len(u) != x.shape[1] or len(y) != v.shape[0]:
        came = f"tokens of {x.shape[1]}, a direction of {len(u)} and a target of {len(y)} numbers"
        raise QkvError(asked, came, f"Give a direction of {x.shape[1]} and a target of {v.shape[0]}")
    if not bool(u.any()):
        raise QkvError(asked, "the direction is zero", "Give a direction along which the token can move")
    best, distance = _search(x, i, u, y, q, k, v)
    proof: Certificate | None = _separate(x, i, u, y, q, k, v)
    at_least = max(0.0, float(proof.claims["distance"])) if proof else 0.0
    proof = proof if at_least > 0 else None
    near = tol * float(y.norm())
    status = "reached" if distance <= near else "out of reach" if at_least > near else "undecided"
    return Reachability(status, best, distance, at_least, tol, proof)


def _search(x: Any, i: int, u: Any, y: Any, q: Any, k: Any, v: Any) -> tuple[float, float]:
    """The best multiple on a grid that is fine near 0 and reaches far out, then refined around the best."""

    def distance(r: float) -> float:
        moved = x.clone()
        moved[i] = moved[i] + r * u
        return float((self_attention(moved, q, k, v).output[i] - y).norm())

    size = max(1.0, float(x.norm())) / max(1e-12, float(u.norm()))
    side = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 120)]) * size
    grid = np.unique(np.concatenate([-side, side]))
    values = [distance(float(r)) for r in grid]
    at = int(np.argmin(values))
    low, high = grid[max(0, at - 1)], grid[min(len(grid) - 1, at + 1)]
    for _ in range(80):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, b) if distance(float(a)) < distance(float(b)) else (a, high)
    best = float(min((grid[at], (low + high) / 2), key=lambda r: distance(float(r))))
    return best, distance(best)


def _separate(x: Any, i: int, u: Any, y: Any, q: Any, k: Any, v: Any) -> Certificate:
    """The hyperplane: orthogonal to how the own value moves, and through the point of the outputs nearest to y.

    The weight on itself is at least `share` for every multiple (checks/reach.py derives it), so all outputs, seen
    along Vu, lie in the hull of share·v_i + (1-share)·v_j; its point nearest to y gives the normal.
    """
    values = (x @ v.T).numpy()
    drift = (v @ u).numpy()
    size = float(np.linalg.norm(drift))
    flatten = np.eye(len(drift)) - (np.outer(drift, drift) / size**2 if size > 0 else 0)
    share = _own_share(x, i, u, q, k)
    corners = np.vstack([values[i], share * values[i] + (1 - share) * np.delete(values, i, axis=0)])
    normal = nearest_to_origin((corners - y.numpy()) @ flatten)
    # Along entries where the direction is nonzero the normal is rounding noise; exact zeros make the proof exact.
    normal[np.abs(normal) < 1e-13 * max(1e-300, float(np.abs(normal).max()))] = 0.0
    if not normal.any():
        normal = values[i] - y.numpy() + 1e-300
    far = 4 * (np.abs(values).sum() + float(y.abs().sum()) + 1) / (max(share, 1e-3) * max(size, 1e-12))
    data = {
        "X": x, "Q": q, "K": k, "V": v, "along": u, "target": y,
        "token": i, "normal": normal, "range": float(far),
    }  # fmt: skip
    return Certificate.issue("unreachable", data)


def _own_share(x: Any, i: int, u: Any, q: Any, k: Any) -> float:
    qx, qu, keys, ku = q @ x[i], q @ u, x @ k.T, k @ u
    c2 = float(qu @ ku)
    if c2 <= 0:
        return 0.0
    linear = qx @ ku + qu @ keys[i] - keys @ qu
    lowest = qx @ keys[i] - keys @ qx - linear**2 / (4 * c2)
    others = torch.cat([lowest[:i], lowest[i + 1 :]])
    return float(1 / (1 + torch.exp(-others).sum()))
