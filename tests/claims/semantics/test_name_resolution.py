"""Name resolution: which names may be used, and the place of the first that may not."""

import pytest
from claim_builders import claim_of

from qkv.claims.semantics.declarations import build_context
from qkv.claims.syntax.nodes import Malformed

KEYS = "k_1..k_n orthonormal, n >= 3, t > 0"


@pytest.mark.parametrize(
    ("given", "let", "then"),
    [
        (KEYS, "q = t*k_a", "alpha_a = 1"),
        (KEYS, "q_1 = k_a, q_2 = k_b", "alpha_{1,a} = alpha_{2,b}"),
        (KEYS, "q = k_a", "v_a = c"),
        ("u_a, u_b orthonormal", "x_1 = u_a, x_2 = u_b", "alpha_{21} = k_1'q_2"),
        ("u_a, u_b orthonormal", "x_1 = u_a, x_2 = u_b", "V*x_1 = v_1"),
        ("A, B orthonormal bases, x in R^m", "", "A*x = sum_{i=1}^m a_i*a_i'*A*x"),
        (KEYS, "", "k_a = I*k_a"),
        (KEYS, "", "sum_i k_i'k_i = n"),
    ],
)
def test_declared_defined_and_built_in_names(given, let, then):
    build_context(claim_of(given, let, then))


@pytest.mark.parametrize(
    ("given", "let", "then", "message", "column"),
    [
        (KEYS, "", "foo = 1", "neither declared nor built in", 6),
        (KEYS, "", "1 = bar_a", "given bar_a real", 10),
        (KEYS, "", "alpha_a = 1", "without a query", 6),
        ("t > 0", "q = t", "alpha_a = 1", "without keys", 6),
        (KEYS, "q = k_a", "alpha_{3,a} = 1", "a query q_3", 6),
        (KEYS, "q_1 = k_a, q_2 = k_b", "alpha_a = 1", "with several queries", 6),
        (KEYS, "q = k_a", "k = 1", "without an index", 6),
        ("k_1..k_3 orthonormal", "q = k_1", "alpha_5 = 0", "not there", 6),
        ("k_1..k_3 orthonormal", "q = k_1", "k_5 = k_1", "not in the family", 6),
        (KEYS, "q = k_a", "k_{a,b} = k_a", "2 indices", 6),
        ("A, B orthonormal bases, x in R^m", "", "sum_{i=1}^n a_i*a_i'*A*x = A*x", "a sum up to n", 6),
    ],
)
def test_the_first_unknown_name_is_located(given, let, then, message, column):
    with pytest.raises(Malformed) as refused:
        build_context(claim_of(given, let, then))
    assert message in str(refused.value)
    assert refused.value.at == (2 + bool(let) + bool(given), column)
