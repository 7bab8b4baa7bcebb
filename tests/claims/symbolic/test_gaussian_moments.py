"""Moments of normal numbers in closed form, against Gauss-Hermite quadrature, and as claims."""

import random

import numpy as np
import pytest
import sympy as sp
from build import argued
from scipy import stats

from qkv.claims.symbolic import gaussian_moments
from qkv.claims.symbolic.errors import TooLarge
from qkv.claims.symbolic.gaussian_moments import NormalNumbers

x, y = sp.symbols("x y", real=True)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def by_quadrature(expr, means, root):
    """The mean of a function of means + root z with z standard normal in two dimensions."""
    one, other = np.meshgrid(NODES, NODES, indexing="ij")
    shares = np.outer(WEIGHTS, WEIGHTS) / WEIGHTS.sum() ** 2
    places = [means[j] + root[j][0] * one + root[j][1] * other for j in range(2)]
    return float((shares * sp.lambdify([x, y], expr, "numpy")(*places)).sum())


def test_polynomials_times_exponentials():
    rng = random.Random(5)
    for _ in range(60):
        means = [rng.choice([-1, 0, 2]) for _ in range(2)]
        root = [[rng.choice([0, 1, 0.5]) for _ in range(2)] for _ in range(2)]
        table = np.array(root) @ np.array(root).T
        numbers = NormalNumbers(
            {x: sp.Integer(means[0]), y: sp.Integer(means[1])},
            lambda a, b, table=table: sp.Rational(str(table[int(a == y)][int(b == y)])),
        )
        expr = sp.Integer(rng.choice([1, -2]))
        for _ in range(rng.randrange(1, 4)):
            line = rng.choice([x, y, x + y, x - 2 * y])
            expr = expr * rng.choice([line, line**2, sp.exp(line / 2), 1 + line]) + rng.choice([0, x, 1])
        found = numbers.mean(expr)
        assert found is not None and not found.free_symbols
        assert float(found) == pytest.approx(by_quadrature(expr, means, root), rel=1e-8, abs=1e-8), expr


@pytest.mark.parametrize("expr", [sp.exp(x**2), sp.log(x), 1 / x, sp.sqrt(x), x**y, sp.exp(x * y)])
def test_other_functions_have_no_closed_form_here(expr):
    assert NormalNumbers({x: sp.Integer(0), y: sp.Integer(0)}, lambda a, b: sp.Integer(int(a == b))).mean(expr) is None


KEYS = "k_i ~ N(0, I), w free, y free"
NOISE = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3, eps > 0, t > 0"


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("gamma ~ N(0, 1)", "E[gamma^6] = 15"),
        ("gamma ~ N(0, 1)", "E[gamma^5] = 0"),
        ("gamma ~ N(1, 4)", "E[gamma^4] = 73"),
        ("gamma ~ N(0, 1)", "Var[gamma^2] = 2"),
        ("gamma ~ N(0, 1), s real", "E[exp(s*gamma)] = exp(s^2/2)"),
        ("gamma_a ~ N(0, 1), gamma_b ~ N(0, 1)", "E[gamma_a*gamma_b] = 0"),
        ("gamma_a ~ N(0, 1), gamma_b ~ N(0, 1)", "Cov[gamma_a*gamma_b, gamma_a] = 0"),
        (KEYS, "E[exp(k_a'w)*exp(k_a'y)] = exp(norm(w + y)^2/2)"),
        (KEYS, "E[exp(k_a'w)*exp(k_b'y)] = exp(norm(w)^2/2 + norm(y)^2/2)"),
        (KEYS, "E[(k_a'w)*(k_a'y)] = w'y"),
        (NOISE, "Var[(sum_{i != a} k_i)'mu_a] = (n - 1)*eps"),
    ],
)
def test_true_moments_are_proved_and_others_are_not(given, then):
    assert argued(given, "", then) == "proved"
    left, right = then.split(" = ")
    assert argued(given, "", f"{left} = {right} + 1/1000") == "refuted"


@pytest.mark.parametrize(
    "then",
    [
        "Var[sum_{i != a} exp(k_i'q)] = 0",
        "E[sum_{i != a} exp(k_i'q)] = sum_{i != a} exp(k_i'q)",
        "Var[(sum_{i != a} k_i)'mu_a] = eps",
        "E[c] = c",
    ],
)
def test_sums_over_unnamed_random_keys_are_random(then):
    assert argued(NOISE, "q = t*mu_a", then) != "proved"


# Closed forms, against SciPy and Isserlis' theorem.
X, Y = sp.symbols("x y", real=True)
MEANS = {X: sp.Rational(1, 2), Y: sp.Integer(-1)}
TABLE = {(X, X): sp.Integer(2), (Y, Y): sp.Integer(3), (X, Y): sp.Integer(1), (Y, X): sp.Integer(1)}


def joint():
    return NormalNumbers(MEANS, lambda one, two: TABLE[one, two])


@pytest.mark.parametrize("power", range(13))
def test_powers_of_one_number_have_the_moments_of_scipy(power):
    law = stats.norm(0.5, 2**0.5)
    assert float(joint().mean(X**power)) == pytest.approx(law.moment(power) if power else 1.0, rel=1e-9)


def test_moments_of_high_degree_are_refused(monkeypatch):
    with pytest.raises(TooLarge, match="12th"):
        joint().mean(X**13)
    with pytest.raises(TooLarge):
        joint().mean(X**7 * Y**6)
    joint().mean(X**2 * Y**2)
    monkeypatch.setattr(gaussian_moments, "MAX_MOMENTS", 3)
    numbers = joint()
    numbers.mean(X**3)  # makes three moments
    with pytest.raises(TooLarge, match="too many"):
        numbers.mean(X**4)
    assert numbers.mean(X**2) == sp.Rational(9, 4)
    monkeypatch.setattr(gaussian_moments, "MAX_MOMENTS", 4)
    assert numbers.mean(X**4) > 0


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (X * Y, -sp.Rational(1, 2) + 1),
        (X**2 * Y, -(sp.Rational(1, 4) + 2) + 2 * sp.Rational(1, 2)),  # E[x^2] m_y + 2 m_x cov
        (3 * X - 2 * Y + 5, sp.Rational(3, 2) + 2 + 5),
        (sp.exp(X), sp.exp(sp.Rational(3, 2))),
        (sp.exp(X - Y), sp.exp(sp.Rational(3, 2) + sp.Rational(3, 2))),  # variance 2 + 3 - 2
        (sp.exp(2 * X + 1), sp.exp(2 + 4)),
        (X * sp.exp(X), sp.exp(sp.Rational(3, 2)) * (sp.Rational(1, 2) + 2)),
        (Y * sp.exp(X), sp.exp(sp.Rational(3, 2)) * (-1 + 1)),
        (X**2 * sp.exp(-X), sp.exp(sp.Rational(1, 2)) * ((sp.Rational(1, 2) - 2) ** 2 + 2)),
        (sp.Integer(7), 7),
        (sp.exp(3) * X, sp.exp(3) / 2),
        (sp.sqrt(2) * X**2, sp.sqrt(2) * sp.Rational(9, 4)),
    ],
    ids=str,
)
def test_means_of_two_correlated_numbers(expr, wanted):
    assert sp.simplify(joint().mean(expr) - wanted) == 0


@pytest.mark.parametrize("expr", [1 / X, sp.log(X), sp.exp(X**2), sp.sqrt(X), sp.exp(X * Y), 1 / (1 + sp.exp(X)), 2**X])
def test_what_has_no_closed_form(expr):
    assert joint().mean(expr) is None


def test_linear_functions():
    assert joint().linear(2 * X - Y + 3) == (3, {X: 2, Y: -1})
    assert joint().linear(sp.Symbol("t") + 1) == (sp.Symbol("t") + 1, {})
    assert joint().linear(sp.Symbol("t") * X) == (0, {X: sp.Symbol("t")})
    for expr in (X**2, X * Y, sp.exp(X), 1 / X):
        assert joint().linear(expr) is None
