"""Places at which an order fails: ends of ranges, ties of two numbers, few items."""

import pytest
from claim_builders import context_of

from qkv.claims.symbolic.proof import REFUTED
from qkv.claims.symbolic.relations import relation


def decided(given, let, then):
    context = context_of(given, let, then)
    return relation(context, context.claim.statement.core)


@pytest.mark.parametrize(
    ("given", "let", "then", "place"),
    [
        ("s >= 0, t >= 0", "", "exp(s) + exp(t) > 2", {"s": 0, "t": 0}),
        ("s >= 0, t >= 0", "", "s^2 + t^2 > 2*s*t", None),
        ("0 <= s <= 1, 0 <= t <= 1", "", "s + t - s*t < 1", None),
        ("k_1..k_n orthonormal, t > 5", "q = t*k_a", "alpha_a > 1/2 when n < 1000", None),
    ],
)
def test_a_place_of_failure_is_found(given, let, then, place):
    found = decided(given, let, then)
    assert found.kind == REFUTED and found.place
    values = {str(one.sides[0]): one.sides[1].value for one in found.place}
    assert place is None or values == place


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        ("s >= 0, t >= 0", "", "exp(s) + exp(t) >= 2"),
        ("0 <= s <= 1, 0 <= t <= 1", "", "exp(s)*t <= exp(1)"),
        ("k_1..k_n orthonormal, t > 5", "q = t*k_a", "alpha_a > 1/2 when n < 149"),
    ],
)
def test_true_orders_have_none(given, let, then):
    assert not decided(given, let, then).place
