"""Expressions to symbolic values, against NumPy on explicit vectors, bases and tokens."""

import numpy as np
import pytest
import sympy as sp
from claim_builders import context_of, expression

from qkv.claims.symbolic import evaluator
from qkv.claims.symbolic.errors import TooLarge, Unsupported, WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.matrix_polynomials import ZERO
from qkv.claims.symbolic.unknowns import InnerProduct, KeyLength, KeyShift, NoiseScore, RestSum, UnreducedProduct

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


def number_of(text, given="t > 0", let=""):
    algebra = Evaluator(context_of(given, let, "1 = 1"))
    return algebra.number(expression(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0*t", 0),
        ("2*0 + 3", 3),
        ("2^12", 4096),
        ("2^(-12)", sp.Rational(1, 4096)),
        ("4^(1/2)", 2),
        ("0^2", 0),
        ("7/2", sp.Rational(7, 2)),
        ("-(3)", -3),
        ("exp(0)", 1),
        ("exp(log(2))", 2),
        ("log(exp(1))", 1),
        ("sqrt(9)", 3),
        ("2*Phi(1) - 1", sp.erf(1 / sp.sqrt(2))),
        ("Phi(1) + Phi(-1)", 1),
    ],
)
def test_numbers_have_their_values(text, wanted):
    assert sp.simplify(number_of(text) - wanted) == 0


@pytest.mark.parametrize(
    "text", ["2^13", "2^(-13)", "2^sqrt(2)", "1/0", "1/(t - t)", "0^0", "0^(-2)", "log(0)", "log(-2)"]
)
def test_numbers_without_a_value_are_refused(text):
    with pytest.raises(Unsupported):
        number_of(text)


def test_a_power_that_moves_stays_a_power():
    t = sp.Symbol("t", positive=True)
    assert number_of("2^t") == 2**t and number_of("t^t") == t**t and number_of("(t + 1)^(1/2)") == sp.sqrt(t + 1)


def test_shapes_that_do_not_fit_are_told():
    given = "u free, w free, x in R^m, A orthonormal basis"
    algebra = Evaluator(context_of(given, "", "u = w"))
    for text, hard, expected in [
        ("u*w", True, "x'*y or x*y'"),
        ("u*x", True, "x'*y or x*y'"),
        ("A*u", False, ""),
        ("x'*A", False, ""),
        ("A*u'", True, ""),
        ("u + x", False, ""),
        ("u - 1", True, ""),
        ("norm(u')", True, ""),
        ("norm(A)", True, ""),
        ("norm(0)", True, ""),
        ("exp(u)", True, ""),
        ("1/u", True, ""),
        ("u^2", True, ""),
    ]:
        with pytest.raises(WrongShape) as wrong:
            algebra.value(expression(text))
        assert (wrong.value.hard, wrong.value.expected) == (hard, expected), text
    for text, shape in [
        ("u*w'", ("d", "d")),
        ("A*x", ("d", "1")),
        ("x'*x", ("1", "1")),
        ("A'*u", ("m", "1")),
        ("2*u", ("d", "1")),
    ]:
        assert algebra.value(expression(text)).shape == shape, text


def test_rotations_and_identities():
    algebra = Evaluator(context_of("u free, m real", "", "u = u"))
    assert algebra.value(expression("R(0)*u")).minus(algebra.value(expression("u"))).terms == {}
    assert algebra.value(expression("R(m)*R(-m)*u")).minus(algebra.value(expression("u"))).terms == {}
    assert algebra.value(expression("R(m)")).shape == ("d", "d")
    assert algebra.value(expression("I*u - u")).terms == {}


def test_sums_over_items():
    given = "u_1..u_n orthonormal, t > 0, n >= 5"
    algebra = Evaluator(context_of(given, "", "u_a = u_b"))
    n, t = algebra.symbol("n"), algebra.symbol("t")
    for text, wanted in [
        ("sum_i 1", n),
        ("sum_{i != a} 1", n - 1),
        ("sum_{i != a, b} t", (n - 2) * t),
        ("sum_i u_a'u_i", 1),
        ("sum_{i != a} u_a'u_i", 0),
        ("(sum_i u_i)'*(u_a + u_b)", 2),
        ("sum_i (sum_j 1)", n**2),
        ("sum_i (u_i'u_a + 1)", n + 1),
    ]:
        assert sp.expand(algebra.number(expression(text)) - wanted) == 0, text
    few = Evaluator(context_of("k_a, k_b orthonormal", "q = k_a", "alpha_a = alpha_b"))
    assert few.number(expression("sum_i 1")) == 2 and few.number(expression("sum_i k_i'k_a")) == 1
    fixed = Evaluator(context_of("k_1..k_n orthonormal, n = 2", "q = k_a", "alpha_a = alpha_b"))
    assert fixed.number(expression("sum_i 1")) == 2 and fixed.number(expression("sum_{i != a, b} 1")) == 0


def test_weights_sum_to_one_and_outputs_are_means():
    for given, let in (("k_1..k_n orthonormal, t > 0, n >= 3", "q = t*k_a"), ("k_1..k_n free, q free, n >= 3", "")):
        algebra = Evaluator(context_of(given, let, "alpha_a = alpha_b"))
        assert sp.simplify(algebra.number(expression("sum_i alpha_i"))) == 1
        assert sp.simplify(algebra.number(expression("sum_i 2*alpha_i + alpha_a - alpha_a"))) == 2
        one = algebra.value(expression("sum_i alpha_i*v_i - c"))
        assert all(sp.simplify(c) == 0 for c in one.terms.values())


def test_sums_of_exponentials_of_free_scores_are_multiples_of_the_rest():
    algebra = Evaluator(context_of("k_1..k_n free, q free, n >= 3", "", "alpha_a = 1"))
    found = algebra.number(expression("sum_{i != a} 3*exp(k_i'q)"))
    (rest,) = [s for s in found.free_symbols if isinstance(s, RestSum)]
    assert sp.expand(found - 3 * rest) == 0
    both = algebra.number(expression("sum_{i != a} (2*exp(k_i'q) + 5)"))
    assert sp.expand(both - 2 * rest - 5 * (algebra.symbol("n") - 1)) == 0
    whole = algebra.number(expression("sum_i exp(k_i'q)"))
    assert sp.expand(whole - rest - sp.exp(algebra.number(expression("k_a'q")))) == 0
    for text in (
        "sum_i exp(2*k_i'q)",
        "sum_i k_i'q",
        "sum_i exp(k_i'q)*k_i",
        "sum_i (sum_j k_i'k_j)",
        "sum_i alpha_i^2",
    ):
        with pytest.raises(Unsupported):
            algebra.value(expression(text))


def test_names_of_weights_and_heads():
    two = Evaluator(context_of("k_1..k_n orthonormal", "q_1 = k_a, q_2 = k_b", "alpha_{1,a} = 1"))
    for text in ("alpha_a", "alpha"):
        with pytest.raises(WrongShape):
            two.value(expression(text))
    one = Evaluator(context_of("k_1..k_n orthonormal", "q = k_a", "alpha_a = 1"))
    with pytest.raises(WrongShape):
        one.value(expression("alpha"))
    assert one.value(expression("alpha_a")).scalar and two.value(expression("alpha_{1,a}")).scalar
    assert two.value(expression("c_1")).shape == ("d", "1") == two.value(expression("c")).shape


NOISY = "mu_1..mu_n orthonormal"


def test_the_parts_of_a_noisy_key():
    """k = mean + sqrt(weight) z, and w u u' as a shift along u, or a length where u is the mean."""
    algebra = Evaluator(context_of(f"{NOISY}, k_a ~ N(mu_a, 4*I + 9*mu_a*mu_a' + 2*mu_b*mu_b')", "", "k_a'mu_b = 0"))
    found = algebra.value(expression("k_a"))
    coefficients = {str(word[0]): c for word, c in found.terms.items()}
    (length,) = [s for s in algebra.random if isinstance(s, KeyLength)]
    (shift,) = [s for s in algebra.random if isinstance(s, KeyShift)]
    assert coefficients["~_a"] == 2 and coefficients["mu_b"] == shift
    assert sp.expand(coefficients["mu_a"] - length) == 0
    assert algebra.random[length] == (1, 9) and algebra.random[shift] == (0, 2)
    assert (length.item, length.letter, shift.item) == ("a", "gamma", "a")


def test_a_letter_that_is_taken_is_not_used_for_the_length():
    algebra = Evaluator(context_of(f"{NOISY}, gamma_a real, k_a ~ N(mu_a, mu_a*mu_a')", "", "k_a'mu_a = gamma_a"))
    algebra.value(expression("k_a"))
    assert [s.letter for s in algebra.random] == ["length"]


def test_a_key_without_noise_is_its_mean():
    algebra = Evaluator(context_of(f"{NOISY}, k_i ~ N(mu_i, 0*I), k_a ~ N(2*mu_a, I)", "", "k_b'mu_b = 1"))
    assert algebra.number(expression("k_b'mu_b")) == 1 and algebra.number(expression("k_b'mu_a")) == 0
    assert algebra.value(expression("k_a")).terms != algebra.value(expression("2*mu_a")).terms


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (f"{NOISY}, k_i ~ N(mu_i, -2*I)", Unsupported),
        (f"{NOISY}, k_a ~ N(mu_a, mu_a*mu_b')", Unsupported),
        (f"{NOISY}, k_a ~ N(mu_a, mu_a*mu_b'*mu_b*mu_a' - I)", Unsupported),
        (f"{NOISY}, k_i ~ N(mu_i, 2)", WrongShape),
        (f"{NOISY}, k_b ~ N(mu_b, I)", Unsupported),
    ],
)
def test_covariances_of_other_forms_are_refused(given, error):
    algebra = Evaluator(context_of(given, "", "mu_a = mu_b"))
    with pytest.raises(error):
        algebra.value(expression("k_a"))


def test_the_limit_on_nodes_counts_them():
    x = sp.Symbol("x")
    expr = sp.exp(x) + 1  # Add, 1, exp, x
    assert not evaluator._more_nodes_than(expr, 4) and evaluator._more_nodes_than(expr, 3)
    assert ZERO.anything and Evaluator(context_of("t > 0")).value(expression("0")).anything


def test_statistics_and_names_of_infinity():
    algebra = Evaluator(context_of("gamma ~ N(2, 1), t > 0", "", "t = 1"))
    assert algebra.number(expression("E[gamma]")) == 2 and algebra.number(expression("P[gamma > 2]")) == sp.Rational(
        1, 2
    )
    assert algebra.number(expression("oo")) == sp.oo
    with pytest.raises(Unsupported):
        algebra.value(expression("softmax(gamma)"))
