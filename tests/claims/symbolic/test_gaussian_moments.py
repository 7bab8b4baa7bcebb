"""Moments of normal numbers in closed form, against Gauss-Hermite quadrature, and as claims."""

import random

import numpy as np
import pytest
import sympy as sp
from build import argued

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
