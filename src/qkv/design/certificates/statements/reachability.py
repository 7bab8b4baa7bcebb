"""Statement "no multiple of the direction, added to the token, brings its output near the target"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb

from qkv.core.display import lower_bound
from qkv.design.certificates.ball_arithmetic import flat, matrix, norm
from qkv.design.certificates.statements.base import (
    Bounds,
    Data,
    InvalidCertificate,
    Measured,
    Name,
    Statement,
    array,
    indices,
    matching,
    scalar,
)


def _parse(data: Data) -> dict[str, Any]:
    x, q, k, v = (array(data, name, 2) for name in ("X", "Q", "K", "V"))
    u, y, h = (array(data, name, 1) for name in ("along", "target", "normal"))
    matching("the tokens, Q, K, V and the direction", x.shape[1], q.shape[1], k.shape[1], v.shape[1], u.shape[0])
    matching("the rows of Q and K", q.shape[0], k.shape[0])
    matching("V, the target and the normal", v.shape[0], y.shape[0], h.shape[0])
    (token,) = indices(data, "token", x.shape[0])
    reach = scalar(data, "range")
    if not 0 < reach < float("inf"):
        raise InvalidCertificate(f"the range of multiples is {reach}, not a number above 0")
    if not h.any():
        raise InvalidCertificate("the normal of the hyperplane is zero")
    return {"X": x, "Q": q, "K": k, "V": v, "u": u, "y": y, "h": h, "token": token, "range": reach}


def _dot(a: list[Any], b: list[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _measure(p: dict[str, Any], in_float64: bool, claims: Bounds) -> Measured:
    """A bound from below on |c - y| over all real r, where token i is x_i + r u and c is its output.

    Own share: the own score is quadratic in r, the score of token j affine, so their difference
    D_j(r) = c2 r^2 + (c1 - b_j) r + (c0 - a_j) has a smallest value m_j where c2 > 0, and the weight on itself is
    at least s = 1/(1 + sum exp(-m_j)).
    Near, |r| <= range: c is a convex combination of the values with own weight >= s, so h·(c - y) is at least its
    smallest value at the corners of that set, less range·|h·Vu| for the value that moves with r.
    Far, |r| > range: along Vu the own value alone has grown past everything else.
    Where h is exactly orthogonal to Vu, the near bound holds for every r.
    """
    i, n = p["token"], p["X"].shape[0]
    q, k, v = matrix(p["Q"]), matrix(p["K"]), matrix(p["V"])
    x = [matrix(row) for row in p["X"]]
    u = matrix(p["u"])
    y, h = flat(matrix(p["y"])), flat(matrix(p["h"]))
    qx, qu, ku = flat(q * x[i]), flat(q * u), flat(k * u)
    keys = [flat(k * t) for t in x]
    values = [flat(v * t) for t in x]
    vu = flat(v * u)
    share = _own_share(i, qx, qu, keys, ku)

    sides = [_dot(h, [a - b for a, b in zip(value, y, strict=True)]) for value in values]
    corners = [sides[i]] + [share * sides[i] + (1 - share) * sides[j] for j in range(n) if j != i]
    near = _smallest(corners)
    drift = _dot(h, vu)
    free = near / norm(h)
    if drift.is_zero():
        return {"distance": free}
    near = (near - arb(p["range"]) * abs(drift)) / norm(h)
    own = arb(p["range"]) * _dot(vu, vu) - abs(_dot(vu, values[i]))
    others = _largest([abs(_dot(vu, values[j])) for j in range(n) if j != i] or [arb(0)])
    far = (share * own - others - abs(_dot(vu, y))) / norm(vu)
    distance = _smallest([near, far])
    return {"distance": distance.union(free) if drift.contains(0) else distance}


def _own_share(i: int, qx: list[Any], qu: list[Any], keys: list[list[Any]], ku: list[Any]) -> Any:
    """The own share s; the ball [0, 1] where more precision is needed to tell whether the difference has a minimum."""
    c0, c1, c2 = _dot(qx, keys[i]), _dot(qx, ku) + _dot(qu, keys[i]), _dot(qu, ku)
    rest = arb(0)
    for j, key in enumerate(keys):
        if j == i:
            continue
        linear, constant = c1 - _dot(qu, key), c0 - _dot(qx, key)
        if c2 > 0:
            lowest = constant - linear * linear / (4 * c2)
        elif c2.is_zero() and linear.is_zero():
            lowest = constant
        elif c2 < 0 or (c2.is_zero() and not linear.contains(0)):
            return arb(0)
        else:
            return arb(0).union(arb(1))
        rest = rest + (-lowest).exp()
    return 1 / (1 + rest)


def _smallest(balls: list[Any]) -> Any:
    out = balls[0]
    for b in balls[1:]:
        out = out.min(b)
    return out


def _largest(balls: list[Any]) -> Any:
    return -_smallest([-b for b in balls])


def _describe(data: Data, claims: Mapping[str, Any], name: Name = str) -> str:
    bound = lower_bound(float(claims["distance"]), 6)
    return (
        f"whatever multiple of the direction is added to token {name(int(data['token']))}, its output stays at least "
        f"{bound} away from the target"
    )


UNREACHABLE = Statement(
    fields=("X", "Q", "K", "V", "along", "target", "token", "normal", "range"),
    parse=_parse,
    measure=_measure,
    describe=_describe,
    senses={"distance": ">="},
    required=("distance",),
    positive=("distance",),
    claim_names={"distance": "distance from the target, for every multiple"},
)
