"""The result of reach: how near a multiple brings a token, and how near none can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb, arb_mat, ctx

from qkv.design.certificates.ball_arithmetic import exponentials, flat, matrix, norm
from qkv.design.certificates.results.base import (
    NEAR,
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
PRECISIONS = (512, 2048)
"""Bits that are tried in turn."""


def _possible(saved: Saved, value: Any) -> str:
    """Whether the multiple brings the token to within tol of the target, or no multiple does."""
    with ctx.workprec(PRECISION):
        wanted = arb(saved.tol) * norm(flat(matrix(numbers(saved.first.data["target"]))))
        if value is False:
            return verdict(bool(arb(float(saved.first.claims["distance"])) > wanted))
        distance, error = _distance(saved)
        return verdict(value is True and bool(distance <= wanted + error))


def _nearness(saved: Saved, value: Any) -> str:
    """The distance that the multiple leaves, computed again in balls; where they cannot tell, it is refused."""
    if not is_number(value):
        return verdict(False)
    with ctx.workprec(PRECISION):
        distance, error = _distance(saved)
        return verdict(bool(abs(distance - arb(float(value))) <= error))


def _distance(saved: Saved) -> tuple[arb, arb]:
    multiple = saved.result["multiple"]
    if not is_number(multiple):
        raise ValueError("multiple is no number")
    return distance_left(saved.first.data, float(multiple))


def distance_left(data: Mapping[str, Any], multiple: float) -> tuple[arb, arb]:
    """How far a multiple leaves a token's output from the target, and the rounding that a result may have in it.

    Args:
        data: The data of a certificate: X, Q, K, V, along, target and token.
        multiple: The multiple of the direction that is added to the token.

    Returns:
        The distance and the allowance, as balls.
    """
    for bits in PRECISIONS:  # of scores near 10^200 and more, the differences need them all
        with ctx.workprec(bits):
            distance, error = _left(data, multiple)
            if bool(distance.rad() <= error / 2):
                break
    return distance, error


def _left(data: Mapping[str, Any], multiple: float) -> tuple[arb, arb]:
    x, q, k, v, along = (matrix(numbers(data[name])) for name in ("X", "Q", "K", "V", "along"))
    token, wanted = int(data["token"]), flat(matrix(numbers(data["target"])))
    for i in range(x.ncols()):
        x[token, i] += arb(multiple) * along[i, 0]
    own = q * arb_mat([[x[token, i]] for i in range(x.ncols())])
    raw, total = exponentials(flat(x * (k.transpose() * own)))
    output = [each / total for each in flat(arb_mat(1, len(raw), raw) * (x * v.transpose()))]
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
