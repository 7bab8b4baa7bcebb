"""Expressions to symbolic values, against NumPy on explicit vectors, bases and tokens."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.symbolic import evaluator
from qkv.claims.symbolic.errors import TooLarge, Unsupported, WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.unknowns import InnerProduct, NoiseScore, UnreducedProduct

N, BETA, T = 5, 1.7, 0.6
U = BETA * np.eye(6)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("u_a'u_a", BETA**2),
        ("u_a'u_b", 0.0),
        ("(u_a + 2*u_b)'*(u_a - u_b)", -(BETA**2)),
        ("norm(u_a + u_b)", BETA * np.sqrt(2)),
        ("u_a'*(u_a*u_b')*u_b", BETA**4),
        ("sum_i u_i'u_i", N * BETA**2),
        ("(sum_i u_i)'*(sum_i u_i)", N * BETA**2),
        ("(sum_{i != a} u_i)'*u_a", 0.0),
        ("(sum_{i != a, b} u_i)'*(sum_i u_i)", (N - 2) * BETA**2),
        ("sum_i exp(t)", N * np.exp(T)),
        ("exp(t)^2/exp(t)", np.exp(T)),
        ("log(exp(2*t))", 2 * T),
        ("sqrt(t^2)", T),
        ("Phi(0)", 0.5),
        ("-(t - 1)^3", -((T - 1) ** 3)),
        ("u_a'*I*u_a", BETA**2),
    ],
)
def test_numbers_agree_with_numpy(text, value):
    context = context_of("u_1..u_n orthogonal of norm beta, n >= 2, t > 0", "", f"u_a'u_b = {text}")
    algebra = Evaluator(context)
    found = algebra.number(expression(text))
    values = {algebra.symbol("n"): N, algebra.symbol("beta"): BETA, algebra.symbol("t"): T}
    assert float(sp.sympify(found).subs(values)) == pytest.approx(value, rel=1e-12, abs=1e-12)


def matrix_of(found, factors, values):
    """A matrix polynomial with arrays put in for its factors."""
    total = 0
    for word, coefficient in found.terms.items():
        product = np.eye(6)
        for part in word:
            product = product @ (factors[part.name].T if part.flipped else factors[part.name])
        total = total + float(sp.sympify(coefficient).subs(values)) * product
    return total


def test_matrices_of_bases_agree_with_numpy():
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    arrays = {"A": q[:, :2], "B": q[:, 2:5], "x": rng.standard_normal((2, 1)), "y": rng.standard_normal((3, 1))}
    given = "A, B orthonormal bases at right angles, x in R^m, y in R^p"
    algebra = Evaluator(context_of(given, "", "A*x = B*y"))
    for text, array in [
        ("A*A'*(A*x + B*y)", arrays["A"] @ arrays["x"]),
        ("(A*A' + B*B')*B*y", arrays["B"] @ arrays["y"]),
        ("A*x*y'*B'", arrays["A"] @ arrays["x"] @ arrays["y"].T @ arrays["B"].T),
        ("(A*A' - 2*B*B')*(A*A' - 2*B*B')", arrays["A"] @ arrays["A"].T + 4 * arrays["B"] @ arrays["B"].T),
    ]:
        np.testing.assert_allclose(matrix_of(algebra.value(expression(text)), arrays, {}), array, atol=1e-12)


def test_tokens_make_queries_keys_and_values_of_matrices():
    given = "u_a, u_b orthogonal of norm beta"
    let = "x_1 = u_a + 2*u_b, x_2 = u_b, Q = u_a*u_b', V = 3*I"
    algebra = Evaluator(context_of(given, let, "alpha_{1,2} = 1"))
    beta = algebra.symbol("beta")
    x = np.array([[1.0, 2.0], [0.0, 1.0]]) * BETA
    query = np.outer([BETA, 0], [0, BETA]) @ x[0]
    for item in (1, 2):
        score = algebra.number(expression(f"k_{item}'q_1")).subs(beta, BETA)
        assert float(score) == pytest.approx(x[item - 1] @ query)
    assert algebra.number(expression("v_1'v_2")).subs(beta, BETA) == pytest.approx(9 * x[0] @ x[1])


def test_unknown_products_are_typed():
    algebra = Evaluator(context_of("k_1..k_n free, q free, mu_1..mu_n orthonormal, x real", "", "k_a'q = x"))
    assert isinstance(algebra.number(expression("k_a'q")), InnerProduct)
    assert isinstance(algebra.number(expression("k_a'*R(x)*q")), UnreducedProduct)
    noisy = Evaluator(context_of("mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I)", "q = mu_b", "k_a'q = 0"))
    assert any(isinstance(s, NoiseScore) for s in noisy.number(expression("k_a'q")).free_symbols)
    assert Evaluator(noisy.context, frozenset({"eps"})).number(expression("k_a'mu_a")) == 1


def test_a_single_vector_is_no_member_of_the_family_of_the_same_letter():
    algebra = Evaluator(context_of("q_1..q_n orthonormal, q free", "", "q'q = 1"))
    assert algebra.number(expression("q_a'q_a")) == 1
    assert isinstance(algebra.number(expression("q'q")), InnerProduct)
    assert isinstance(algebra.number(expression("q'q_a")), InnerProduct)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("k_a*k_b", WrongShape),
        ("k_a + 1", WrongShape),
        ("norm(t)", WrongShape),
        ("exp(k_a)", WrongShape),
        ("1/0", Unsupported),
        ("t^13", Unsupported),
        ("0^(-1)", Unsupported),
        ("log(-1)", Unsupported),
        ("sum_i (k_i'k_a)*(sum_j k_j'k_i)", Unsupported),
        ("sum_i alpha_i*alpha_i", Unsupported),
    ],
)
def test_what_has_no_value_here_raises(text, error):
    given = "k_1..k_n free, q free, t > 0" if "alpha" in text else "k_1..k_n orthonormal, t > 0"
    algebra = Evaluator(context_of(given, "", "t > 0"))
    with pytest.raises(error):
        algebra.value(expression(text))


def test_an_expression_that_grows_too_large_is_refused(monkeypatch):
    algebra = Evaluator(context_of("t > 0", "", "t > 0"))
    monkeypatch.setattr(evaluator, "MAX_EXPRESSION_NODES", 8)
    assert algebra.value(expression("exp(t) + 1")).scalar
    with pytest.raises(TooLarge):
        algebra.value(expression("exp(t) + log(t) + sqrt(t) + 1/t"))
