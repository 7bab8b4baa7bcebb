"""Points at which an expression differs from 0: found for false identities, never for true ones."""

import pytest
import sympy as sp
from build import argued, assume, number

from qkv.claims.symbolic import distinguishing_points
from qkv.claims.symbolic.distinguishing_points import N_POINTS, SHARES, _value, differs
from qkv.claims.symbolic.factors import Factor
from qkv.claims.symbolic.unknowns import InnerProduct, Remainder, Statistic, Theta

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


def test_shares_have_different_primes_as_denominators():
    """Products and sums of them then rarely coincide."""
    assert all(0 < share < 1 and sp.isprime(share.q) for share in SHARES)
    assert len({share.q for share in SHARES}) == len(SHARES) == 8


HALF = sp.Rational(1, 2)


@pytest.mark.parametrize(
    ("interval", "whole", "values"),
    [
        ("(-oo, oo)", False, ["1/2", "-1", "3/2"]),
        ("(3, oo)", False, ["7/2", "4", "9/2"]),
        ("(-oo, 3)", False, ["5/2", "2", "3/2"]),
        ("(1, 5)", False, ["3", "3", "3"]),
        ("[2, oo)", True, ["2", "3", "4"]),
        ("[2, 3]", True, ["2", "3", "3"]),
        ("(-oo, oo)", True, ["0", "1", "2"]),
    ],
)
def test_values_lie_in_the_range_of_the_number(interval, whole, values):
    one = number("x", interval, whole=whole)
    found = [_value(one.symbol, assume(one), k, HALF) for k in range(3)]
    assert found == [sp.Rational(v) for v in values]


def test_values_of_unknowns_are_possible():
    u, w = Factor("u", "vector"), Factor("w", "vector")
    none = assume()
    for k, way in ((0, 1), (1, -1), (2, 1)):
        assert _value(InnerProduct(u, u), none, k, HALF) == sp.Rational(3, 2)
        assert _value(InnerProduct(u, w), none, k, HALF) == sp.Rational(way, 40)
        assert _value(Theta(""), none, k, HALF) == HALF
    gram = sp.Matrix([[1 + min(SHARES), max(SHARES) / 20], [max(SHARES) / 20, 1 + min(SHARES)]])
    assert gram.is_positive_definite  # there are vectors with these products


def test_several_points_are_tried_with_different_shares(monkeypatch):
    tried = []
    monkeypatch.setattr(distinguishing_points, "nonzero_sign", lambda expr, at: tried.append(dict(at)))
    x, y = number("x", "(0, 1)"), number("y", "(0, 1)")
    assert not differs(x.symbol - y.symbol, assume(x, y)) and len(tried) == N_POINTS == 6
    assert [point[x.symbol] for point in tried] == [SHARES[k] for k in (0, 3, 6, 1, 4, 7)]
    assert [point[y.symbol] for point in tried] == [SHARES[k] for k in (1, 4, 7, 2, 5, 0)]
    tried.clear()
    assert not differs(sp.sqrt(2) - 1, assume()) and tried == [{}]


@pytest.mark.parametrize("expr", [t * sp.oo, t - sp.oo, sp.nan, sp.zoo, Statistic("E", (t,)) + 1, Remainder(1) + 1])
def test_what_has_no_value_here_does_not_differ(expr):
    assert differs(sp.sympify(expr), assume(T)) is False


def test_constants_and_numbers_that_are_fixed():
    assert differs(sp.Integer(3), assume()) and not differs(sp.Integer(0), assume())
    assert not differs(t - s - 1, assume(T, S).fix(t, s + 1)) and differs(t - s - 2, assume(T, S).fix(t, s + 1))
