"""Scopes: free indices, letters with two meanings, misplaced infinity, circular definitions."""

import pytest
from claim_builders import claim_of

from qkv.claims.semantics.declarations import build_context
from qkv.claims.syntax.nodes import Malformed

KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"


@pytest.mark.parametrize(
    ("let", "then", "message"),
    [
        ("q = t*k_i", "alpha_a = 1", "without saying what i runs over"),
        ("q = t*k_j", "sum_j k_j'q = t", "two different letters"),
        ("q = t*k_j", "k_j'q = 0 for j != a", "two different letters"),
        ("q = q", "alpha_a = 1", "rests on itself"),
        ("q = t*c", "alpha_a = 1", "rests on itself"),
        ("q = p, p = w, w = t*q", "alpha_a = 1", "rests on itself"),
        ("q = t*k_a", "alpha_a < oo", "oo only behind ->"),
        ("q = t*k_a", "1/oo -> 0 as t -> oo", "oo only behind ->"),
        ("q = oo*k_a", "alpha_a = 1", "oo only behind ->"),
    ],
)
def test_what_has_no_meaning_is_malformed(let, then, message):
    with pytest.raises(Malformed) as refused:
        build_context(claim_of(KEYS, let, then))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("let", "then"),
    [
        ("q = t*k_a", "alpha_i > 0"),
        ("q = sum_i k_i", "alpha_a = 1/n"),
        ("k_b = k_a, q = t*k_a", "1/t -> 0 as t -> oo"),
        ("q = t*k_a", "k_a'q -> oo as t -> oo"),
        ("q = t*k_a", "-k_a'q -> -oo as t -> oo"),
        ("w = t*k_a, q = w + w", "alpha_a > 0"),
        ("q = t*k_a", "sum_i sum_j k_i'k_j = n"),
    ],
)
def test_what_has_a_meaning_is_not(let, then):
    given = KEYS if "k_b" not in let else "mu_1..mu_n orthonormal, n >= 3, t > 0"
    let = let if "k_b" not in let else "k_i = mu_i, q = t*mu_a"
    build_context(claim_of(given, let, then))
