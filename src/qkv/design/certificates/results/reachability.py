"""The result of reach: how near a multiple brings a token, and how near none can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb, arb_mat, ctx

from qkv.design.certificates.ball_arithmetic import exponentials, flat, matrix, norm
from qkv.design.certificates.results.base import (
    PRECISION,
    Family,
    Saved,
    is_number,
    numbers,
    of_claim,
    tolerance,
    verdict,
)

OUT_OF_REACH = "unreachable"
PRECISIONS = (512, 2048, 8192)
"""Bits that are tried in turn."""
LAST_DIGITS = 1e-13
"""Part of a distance that rounding to float64 may change."""
SMALLEST = 5e-324
"""What rounding may change in a distance of any size."""


def _possible(saved: Saved, value: Any) -> str:
    """Whether the multiple brings the token to within tol of the target, or no multiple does."""
    if value is True:
        return verdict(is_within(saved.first.data, _multiple_of(saved), saved.tol))
    with ctx.workprec(PRECISION):
        wanted = arb(saved.tol) * norm(flat(matrix(numbers(saved.first.data["target"]))))
        return verdict(value is False and bool(arb(float(saved.first.claims["distance"])) > wanted))


def _nearness(saved: Saved, value: Any) -> str:
    """The distance that the multiple leaves, computed again in balls; where they cannot tell, it is refused."""
    if not is_number(value) or value < float(saved.first.claims["distance"]):
        return verdict(False)
    left = distance_left(saved.first.data, _multiple_of(saved))
    with ctx.workprec(PRECISION):
        return verdict(bool(abs(left - arb(float(value))) <= arb(LAST_DIGITS) * left + arb(SMALLEST)))


def _multiple_of(saved: Saved) -> float:
    multiple = saved.result["multiple"]
    if not is_number(multiple):
        raise ValueError("multiple is no number")
    return float(multiple)


def distance_left(data: Mapping[str, Any], multiple: float) -> arb:
    """How far a multiple leaves a token's output from the target.

    Args:
        data: The data of a certificate: X, Q, K, V, along, target and token.
        multiple: The multiple of the direction that is added to the token.

    Returns:
        The distance, as a ball.
    """
    for bits in PRECISIONS:  # of scores near 10^200 and more, the differences need them all
        with ctx.workprec(bits):
            left = _left(data, multiple)
            if bool(left.rad() <= arb(LAST_DIGITS) * left.mid()):
                break
    return left


def is_within(data: Mapping[str, Any], multiple: float, tol: float) -> bool:
    """Whether a multiple is proved to bring the output to within tol times the length of the target."""
    left = distance_left(data, multiple)
    with ctx.workprec(PRECISION):
        return bool(left <= arb(tol) * norm(flat(matrix(numbers(data["target"])))))


def _left(data: Mapping[str, Any], multiple: float) -> arb:
    x, q, k, v, along = (matrix(numbers(data[name])) for name in ("X", "Q", "K", "V", "along"))
    token, wanted = int(data["token"]), flat(matrix(numbers(data["target"])))
    for i in range(x.ncols()):
        x[token, i] += arb(multiple) * along[i, 0]
    own = q * arb_mat([[x[token, i]] for i in range(x.ncols())])
    raw, total = exponentials(flat(x * (k.transpose() * own)))
    output = [each / total for each in flat(arb_mat(1, len(raw), raw) * (x * v.transpose()))]
    return norm([o - t for o, t in zip(output, wanted, strict=True)])


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
