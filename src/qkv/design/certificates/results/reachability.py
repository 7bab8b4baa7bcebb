"""The result of reach: how near a multiple brings a token, and how near none can."""

from __future__ import annotations

from typing import Any

from flint import arb, ctx

from qkv.design.certificates.ball_arithmetic import exponentials, flat, matrix, norm
from qkv.design.certificates.results.base import (
    NEAR,
    PRECISION,
    Family,
    Saved,
    dot,
    is_number,
    numbers,
    of_claim,
    tolerance,
    verdict,
)

OUT_OF_REACH = "unreachable"


def _possible(saved: Saved, value: Any) -> str:
    """Whether the multiple brings the token to within tol of the target, or no multiple does."""
    tol = arb(saved.tol)
    with ctx.workprec(PRECISION):
        wanted = norm(flat(matrix(numbers(saved.first.data["target"]))))
        if value is False:
            return verdict(bool(arb(float(saved.first.claims["distance"])) > tol * wanted))
        distance, error = _distance(saved)
        return verdict(value is True and bool(distance <= tol * wanted + error))


def _nearness(saved: Saved, value: Any) -> str:
    """The distance that the multiple leaves, computed again in balls; where they cannot tell, it is refused."""
    if not is_number(value):
        return verdict(False)
    with ctx.workprec(PRECISION):
        distance, error = _distance(saved)
        return verdict(bool(abs(distance - arb(float(value))) <= error))


def _distance(saved: Saved) -> tuple[arb, arb]:
    """How far the token's output is from the target at the multiple, and the rounding that is allowed."""
    data, multiple = saved.first.data, saved.result["multiple"]
    if not is_number(multiple):
        raise ValueError("multiple is no number")
    q, k, v, along = (matrix(numbers(data[name])) for name in ("Q", "K", "V", "along"))
    rows, token = [matrix(row) for row in numbers(data["X"])], int(data["token"])
    rows[token] = rows[token] + arb(float(multiple)) * along
    own, keys, values = flat(q * rows[token]), [flat(k * row) for row in rows], [flat(v * row) for row in rows]
    raw, total = exponentials([dot(own, key) for key in keys])
    output = [dot(raw, column) / total for column in zip(*values, strict=True)]
    wanted = flat(matrix(numbers(data["target"])))
    off = norm([o - t for o, t in zip(output, wanted, strict=True)])
    return off, arb(NEAR) * (norm(output) + norm(wanted))


def _multiple(saved: Saved, value: Any) -> str:
    """Any number: what it does is said by the fields beside it."""
    return verdict(is_number(value))


FAMILY = Family(
    kinds=frozenset({OUT_OF_REACH}),
    fields={
        "multiple": _multiple,
        "distance": _nearness,
        "at_least": of_claim("distance"),
        "tol": lambda saved, value: tolerance(saved, value, ()),
        "possible": _possible,
    },
    unsaved=frozenset({"status", "says"}),
)
