"""Points at which an expression differs from 0: found for false identities, never for true ones."""

import pytest
import sympy as sp
from build import argued, assume, number

from qkv.claims.symbolic.distinguishing_points import differs

T, S, N = number("t", "(0, oo)"), number("s", "(-2, -1)"), number("n", "[2, 2]", whole=True)
t, s, n = T.symbol, S.symbol, N.symbol


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (sp.exp(t) - 1, True),
        (t - s, True),
        (sp.Abs(s) + s, False),
        (sp.log(2 * t) - sp.log(2) - sp.log(t), False),
        (sp.erf(t) + sp.erf(-t), False),
        ((t + 1) ** 2 - t**2 - 2 * t - 1, False),
        ((n - 2) * t, False),
        (sp.exp(t) / 10**30, True),
    ],
)
def test_a_difference_is_found_if_there_is_one(expr, wanted):
    assert differs(expr, assume(T, S, N)) is wanted


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("s < 0", "sqrt(s^2) = -s"),
        ("t > 0", "log(2*t) = log(2) + log(t)"),
        ("t > 0, s real", "(t^s)^2 = t^(2*s)"),
        ("s real", "Phi(s) + Phi(-s) = 1"),
        ("k_1..k_n orthonormal, q free", "k_a'*(sum_{i != a} alpha_i k_i) = 0"),
    ],
)
def test_a_true_identity_is_not_refuted(given, then):
    assert argued(given, "", then) != "refuted"
