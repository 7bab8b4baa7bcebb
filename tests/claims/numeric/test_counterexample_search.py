"""The search suggests instances that exact arithmetic confirms, where a claim fails: edges, ties, vectors."""

import pytest
from claim_builders import cases_of, context_of

from qkv.claims.numeric.counterexample_search import _item_counts
from qkv.claims.numeric.evidence import gather
from qkv.claims.numeric.instances import MAX_ITEMS

FREE = "k_1..k_n free, q free, n >= 2"


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("t real", "exp(-t)*(t - 5/2)^2 > 0"),
        ("s real, t real", "exp(t)*(t - 1/7)^2 + s^2 > 0"),
        ("t real", "(t - 1.2345)^2 >= 1/10000000"),
        ("s >= t, t >= 0", "exp(s) > exp(t)"),
        ("t > 0", "sqrt(t) < 900"),
        ("t > 0", "exp(-t) > 1/100000"),
        ("t > 0", "t*exp(-t) < 36787/100000"),
        ("0 < t <= 2", "exp(t)*t < 2*exp(2)"),
        ("n >= 1", "2^n > n^3"),
        ("t > 0", "t^2 != 11"),
        (FREE, "norm(k_a - k_b) > 0"),
        (FREE, "norm(q + k_a) >= norm(q)"),
        (FREE, "0 - k_a'q <= 9/10*norm(k_a)*norm(q)"),
        (FREE, "norm(c) <= norm(v_a) + norm(v_b)"),
        (FREE, "alpha_a*(1 - alpha_a) < 1/4"),
        (f"{FREE}, k_a'q >= k_b'q", "alpha_a > alpha_b"),
        (f"{FREE}, k_j'q - k_i'q >= 2 for i != j", "alpha_j >= 9/10"),
    ],
)
def test_a_false_comparison_is_found_and_confirmed(given, then):
    found = gather(cases_of(given, "", then), thorough=True)
    assert found.confirmed and found.counterexample


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("t > 0", "(t^2 - 5)^2 > 0"),
        ("t > 1", "(log(t) - 1)^2 > 0"),
    ],
)
def test_a_tie_between_floats_is_at_least_not_clear(given, then):
    found = gather(cases_of(given, "", then), thorough=True)
    assert found.unclear or found.disagree


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("t > 0", "log(1 + t) < t"),
        ("t > 0", "exp(t) > 1 + t + t^2/2"),
        ("t > 0", "t + 1/t >= 2"),
        ("t real", "exp(-t) > 0"),
        ("s > t, t real", "exp(s) > exp(t)"),
        (FREE, "norm(k_a + k_b) <= norm(k_a) + norm(k_b)"),
        (FREE, "k_a'q <= norm(k_a)*norm(q)"),
        (FREE, "alpha_a < 1"),
        (f"{FREE}, k_a'q >= k_b'q", "alpha_a >= alpha_b"),
    ],
)
def test_nothing_is_found_against_what_is_true(given, then):
    assert not gather(cases_of(given, "", then), thorough=True).disagree


def test_more_items_than_can_be_tried_are_not_tried():
    for given, counts in (("n = 999999999", []), ("n >= 3", None), ("n = 1000", [1000])):
        found = _item_counts(context_of(f"k_1..k_n orthonormal, {given}", "q = k_a", "alpha_a > 1/2"))
        assert (counts is None or found == counts) and all(n <= MAX_ITEMS for n in found)
