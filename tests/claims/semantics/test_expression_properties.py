"""Properties of expressions: bounded ones stay bounded on a grid of numbers, multiples of I hold no other matrix."""

import pytest
from claim_builders import context_of, expression

from qkv.claims.semantics.expression_properties import bare_identity, bounded, noise_degree


@pytest.mark.parametrize(
    ("text", "bare"),
    [("I", True), ("2*I", True), ("t*I + I", True), ("-I", True), ("A", False), ("I*A", False), ("t", False),
     ("I*k_a", False), ("I + M", False), ("2", False)],
)  # fmt: skip
def test_multiples_of_the_identity(text, bare):
    assert bare_identity(expression(text)) == bare


NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3, t > 0, v_1..v_n orthogonal of norm beta"


@pytest.mark.parametrize(
    ("text", "limit", "stays"),
    [
        ("alpha_a", "t -> oo", True),
        ("alpha_a*alpha_b + 2", "t -> oo", True),
        ("alpha_a^2", "t -> oo", True),
        ("sum_i alpha_i", "t -> oo", True),
        ("sum_i alpha_i", "n -> oo", False),
        ("t*alpha_a", "t -> oo", False),
        ("1/alpha_a", "t -> oo", False),
        ("alpha_a^(-1)", "t -> oo", False),
        ("exp(alpha_a)", "t -> oo", False),
        ("w", "t -> oo", False),
        ("u", "t -> oo", True),
        ("c", "t -> oo", True),
        ("c", "beta -> oo", False),
        ("k_a'q", "t -> oo", False),
        ("n*alpha_a", "t -> oo", True),
    ],
)
def test_polynomials_in_weights_and_constants_are_bounded(text, limit, stays):
    context = context_of(NOISE, "q = t*mu_a, w = t*alpha_a, u = alpha_a*alpha_b", f"alpha_a -> 1 as {limit}")
    assert bounded(context, expression(text)) == stays


@pytest.mark.parametrize(
    ("text", "degree"),
    [("t", 0), ("mu_a", 0), ("k_a'mu_a", 1), ("2*k_a'mu_a + t", 1), ("k_a'k_b", 2), ("(k_a'mu_b)^3", 3),
     ("norm(mu_a)", 0), ("k_a'mu_a*k_b'mu_b/t", 2), ("E[k_a'mu_a]", 0), ("sum_i k_i'mu_i", 1), ("exp(k_a'mu_a)", None),
     ("1/(k_a'mu_a)", None), ("alpha_a", None), ("norm(k_a)", None), ("t^2", 0), ("(k_a'mu_b)^(1/2)", None)],
)  # fmt: skip
def test_degrees_in_the_noise(text, degree):
    assert noise_degree(context_of(NOISE, "q = t*mu_a", f"{text} = {text}"), expression(text)) == degree
