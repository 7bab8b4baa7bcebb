"""Moments and probabilities of normal numbers, against closed forms of scipy.stats."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from build import argued, number
from claim_builders import context_of, expression
from scipy import stats

import qkv
from qkv.claims.symbolic.conditions import assumptions_of
from qkv.claims.symbolic.errors import Unsupported, WrongShape
from qkv.claims.symbolic.evaluator import Evaluator
from qkv.claims.symbolic.sign_analysis import Assumptions
from qkv.claims.symbolic.statistics import (
    _certain,
    _far_along,
    interval_probability,
    normal_cdf,
    random_symbols,
    region_probability,
    regions,
    statistic_limit,
)
from qkv.claims.symbolic.unknowns import Statistic

GAMMA = "gamma ~ N(1, 4)"
LINES = [(2.0, -1.0), (-3.0, 0.5), (1.0, 0.0), (-1.0, 2.0)]  # a*gamma + b


@pytest.mark.parametrize(("a", "b"), LINES)
def test_moments_of_a_line(a, b):
    line = stats.norm(loc=a + b, scale=2 * abs(a))
    text = f"({a:g})*gamma + ({b:g})"
    assert argued(GAMMA, "", f"E[{text}] = {line.mean():g}") == "proved"
    assert argued(GAMMA, "", f"Var[{text}] = {line.var():g}") == "proved"
    assert argued(GAMMA, "", f"Cov[{text}, gamma] = {4 * a:g}") == "proved"
    assert argued(GAMMA, "", f"Var[{text}] = {line.var() + 1:g}") != "proved"


@pytest.mark.parametrize(("a", "b"), LINES)
@pytest.mark.parametrize("op", ["<", ">"])
def test_the_probability_of_a_line(a, b, op):
    line = stats.norm(loc=a + b, scale=2 * abs(a))
    truth = line.cdf(0) if op == "<" else line.sf(0)
    assert argued(GAMMA, "", f"P[({a:g})*gamma + ({b:g}) {op} 0] > {truth - 1e-3:.6f}") == "proved"
    assert argued(GAMMA, "", f"P[({a:g})*gamma + ({b:g}) {op} 0] < {truth + 1e-3:.6f}") == "proved"
    assert argued(GAMMA, "", f"P[({a:g})*gamma + ({b:g}) {op} 0] < {truth - 1e-3:.6f}") != "proved"


def test_a_wrong_probability_is_noticed_by_draws():
    drawn = np.random.default_rng(1).normal(1, 2, size=200_000)
    assert abs(np.mean(2 * drawn - 1 > 0) - stats.norm(loc=1, scale=4).sf(0)) < 5e-3
    assert np.mean(0 * (drawn - 1) > 0) == 0  # and not 1/2


@pytest.mark.parametrize(
    ("given_text", "then"),
    [
        ("gamma ~ N(1, 1), s real", "P[s*(gamma - 1) > 0] = 1/2"),
        ("gamma ~ N(0, 1), s real", "P[(s - 1/7)*gamma > 0] = 1/2"),
        ("gamma ~ N(1, 1), 0 <= s <= 1", "P[s*(gamma - 1) > 0] = 1/2"),
        ("gamma ~ N(0, 1), s real", "Corr[s^2*gamma, gamma] = 1"),
        ("gamma ~ N(0, 1), s real", "Corr[s*gamma, s*gamma] = 1"),
        ("gamma ~ N(0, 1), s real", "P[s*gamma != 0] = 1"),
        ("gamma ~ N(0, 1), s real", "P[s*gamma^3 > 0] = P[s*gamma^3 >= 0]"),
    ],
)
def test_a_spread_that_vanishes_at_one_value_of_a_parameter(given_text, then):
    """The variance s^2 is 0 at s = 0, where the number is no longer random."""
    assert argued(given_text, "", then) != "proved"


@pytest.mark.parametrize(
    "event", ["k_a'mu_b > 0", "k_a'mu_b >= 0", "k_a'mu_b < eps", "k_a'mu_a > 1", "alpha_a > alpha_b", "k_a'mu_b = 0"]
)
@pytest.mark.parametrize("limit", ["0", "1/2", "1"])
def test_a_tie_that_vanishing_noise_leaves_does_not_settle_a_probability(event, limit):
    """P[k_a'mu_b > 0] is 1/2 for every eps > 0, though k_a'mu_b is 0 at eps = 0."""
    head = "given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3, t > 0\nlet q = t*(mu_a + mu_b)"
    (verdict,) = qkv.check(f"```claim x\n{head}\nthen P[{event}] -> {limit} as eps -> 0\n```")
    assert verdict.verdict == "undecided" and "bug" not in verdict.because


def test_a_strict_event_keeps_its_probability_as_the_noise_vanishes():
    head = "given mu_1..mu_n orthonormal, k_i ~ N(mu_i, eps*I), n >= 3"
    (verdict,) = qkv.check(f"```claim x\n{head}\nthen P[k_a'mu_a > 0] -> 1 as eps -> 0\n```")
    assert verdict.verdict == "proved"


# Single steps.
def value(given_text, text, let=""):
    algebra = Evaluator(context_of(given_text, let, "alpha_a = alpha_b" if let.startswith("q") else "1 = 1"))
    return algebra.number(expression(text))


def moments(mean, variance):
    """Mean and variance of powers of a normal number, by SciPy's moments."""
    law = stats.norm(mean, variance**0.5)
    return {k: law.moment(k) for k in range(1, 7)}


M = moments(1, 4)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("E[gamma]", M[1]),
        ("E[gamma^2]", M[2]),
        ("E[gamma^3 - 2*gamma]", M[3] - 2 * M[1]),
        ("E[3]", 3),
        ("Var[gamma^2]", M[4] - M[2] ** 2),
        ("Cov[gamma, gamma^2]", M[3] - M[1] * M[2]),
        ("Cov[gamma^2, gamma^3]", M[5] - M[2] * M[3]),
        ("Var[2*gamma + 1]", 16),
        ("Cov[gamma, 3]", 0),
        ("Cov[3, gamma]", 0),
        ("Corr[gamma, -gamma]", -1),
        ("Corr[gamma, 2*gamma + 3]", 1),
        ("Corr[gamma, gamma^2]", (M[3] - M[1] * M[2]) / np.sqrt(4 * (M[4] - M[2] ** 2))),
        ("E[exp(gamma)]", np.exp(1 + 2)),
        ("Var[exp(gamma)]", np.exp(2 + 8) - np.exp(6)),
        ("Cov[gamma, exp(gamma)]", 4 * np.exp(3)),  # Stein
        ("P[gamma > 2]", stats.norm(1, 2).sf(2)),
        ("P[gamma >= 2]", stats.norm(1, 2).sf(2)),
        ("P[gamma < 2]", stats.norm(1, 2).cdf(2)),
        ("P[gamma <= 2]", stats.norm(1, 2).cdf(2)),
        ("P[2 < gamma]", stats.norm(1, 2).sf(2)),
        ("P[3*gamma - 1 > gamma]", stats.norm(1, 2).sf(0.5)),
        ("P[gamma = 2]", 0),
        ("P[gamma != 2]", 1),
        ("P[1 > 0]", 1),
        ("P[1 < 0]", 0),
    ],
)
def test_statistics_of_one_number_agree_with_scipy(text, wanted):
    assert float(value(GAMMA, text)) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


TWO = "gamma ~ N(1, 4), delta ~ N(-1, 9)"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Cov[gamma, delta]", 0),
        ("Var[gamma - delta]", 13),
        ("Cov[gamma + delta, gamma - delta]", 4 - 9),
        ("E[gamma*delta]", -1),
        ("Var[gamma*delta]", (4 + 1) * (9 + 1) - 1),
        ("Corr[gamma, gamma + delta]", 2 / 13**0.5),
        ("P[gamma > delta]", stats.norm(2, 13**0.5).sf(0)),
        ("P[gamma + delta > 1]", stats.norm(0, 13**0.5).sf(1)),
    ],
)
def test_statistics_of_two_independent_numbers(text, wanted):
    assert float(value(TWO, text)) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


NOISY = "mu_1..mu_n orthogonal of norm 3, k_i ~ N(mu_i, 2*I), n = 5"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Var[k_a'mu_b]", 18),  # 2 |mu_b|^2
        ("Cov[k_a'mu_b, k_a'mu_d]", 0),
        ("Cov[k_a'mu_b, k_b'mu_b]", 0),
        ("Cov[k_a'mu_b, k_a'(mu_b + mu_d)]", 18),
        ("E[k_a'mu_a]", 9),
        ("E[k_a'mu_b]", 0),
        ("P[k_a'mu_a > 0]", stats.norm(9, 18**0.5).sf(0)),
        ("P[k_a'mu_a > k_b'mu_b]", 0.5),
    ],
)
def test_scores_of_noisy_keys_have_the_covariance_of_their_directions(text, wanted):
    found = value(NOISY, text.replace("k_a'(", "k_a'*("))
    assert float(found) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_a_sum_over_unnamed_keys_counts_each_of_them():
    algebra = Evaluator(context_of("mu_1..mu_n orthonormal, k_i ~ N(mu_i, 2*I), n >= 3", "", "k_a'mu_b = 0"))
    n = algebra.symbol("n")
    assert sp.expand(algebra.number(expression("Var[(sum_{i != a, b} k_i)'*mu_a]")) - 2 * (n - 2)) == 0
    assert sp.expand(algebra.number(expression("Var[(sum_i k_i)'*mu_a]")) - 2 * n) == 0


@pytest.mark.parametrize(
    ("given_text", "text", "error"),
    [
        (GAMMA, "P[0 < gamma < 1]", Unsupported),
        (GAMMA, "P[gamma^2 = 1]", Unsupported),
        (GAMMA, "E[1/gamma]", Unsupported),
        (GAMMA, "Corr[gamma, 3]", Unsupported),
        (GAMMA, "Corr[3, gamma]", Unsupported),
        (f"{GAMMA}, s real", "Corr[s*gamma, gamma]", Unsupported),
        (f"{GAMMA}, s real", "P[s*gamma > 0]", Unsupported),
        (f"{GAMMA}, u free, w free", "norm(Corr[gamma*u, gamma*w])", WrongShape),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "mu_a'*Var[k_a]*mu_a", Unsupported),
        ("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "mu_a'*E[(k_b'mu_a)*k_a]", Unsupported),
    ],
)
def test_statistics_without_a_value(given_text, text, error):
    with pytest.raises(error):
        value(given_text, text)


def test_vectors_have_means_and_covariance_matrices():
    given_text = f"{TWO}, u_a, u_b orthonormal"
    assert value(given_text, "u_a'*E[gamma*u_a + delta*u_b]") == 1
    assert value(given_text, "u_b'*E[gamma*u_a + delta*u_b]") == -1
    let = "x = gamma*u_a + delta*u_b"
    for text, wanted in [
        ("u_a'*Var[x]*u_a", 4),
        ("u_b'*Var[x]*u_b", 9),
        ("u_a'*Var[x]*u_b", 0),
        ("u_a'*Cov[x, gamma*u_b]*u_b", 4),
        ("u_b'*Cov[x, gamma*u_b]*u_a", 0),
    ]:
        assert value(given_text, text, let) == wanted, text
    assert value("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I)", "mu_a'*E[2*k_a]") == 2


def test_weights_have_no_closed_form_and_equal_ones_are_equal():
    given_text, let = "mu_1..mu_n orthonormal, k_i ~ N(mu_i, I), n >= 3, t > 0", "q = t*mu_a"
    one = value(given_text, "Var[alpha_a]", let)
    assert isinstance(one, Statistic) and one.function == "Var" and len(one.inner) == 1
    assert value(given_text, "Cov[alpha_a, alpha_a]", let) == one
    assert value(given_text, "Cov[alpha_a, alpha_b]", let) == value(given_text, "Cov[alpha_b, alpha_a]", let)
    assert value(given_text, "E[alpha_a]", let).function == "E"
    over = value(given_text, "P[alpha_a > 1/2]", let)
    assert over.function == "P" and value(given_text, "P[1/2 < alpha_a]", let) == over
    assert sp.expand(value(given_text, "P[alpha_a <= 1/2]", let) - 1 + over) == 0
    under = value(given_text, "P[alpha_a < 1/2]", let)
    assert under.function == "P" and under != over
    assert sp.expand(value(given_text, "P[alpha_a >= 1/2]", let) - 1 + under) == 0


@pytest.mark.parametrize("interval", ["(-oo, oo)", "(0, oo)", "(-oo, 2]", "[-1, 3/2]"])
def test_the_probability_of_an_interval_is_that_of_scipy(interval):
    where = number("x", interval).range
    law = stats.norm(1, 2)
    low, high = (default if end is None else float(end) for end, default in ((where.lo, -np.inf), (where.hi, np.inf)))
    found = interval_probability(where, sp.Integer(1), sp.Integer(4))
    assert float(found) == pytest.approx(law.cdf(high) - law.cdf(low), abs=1e-14)
    assert float(normal_cdf(sp.Rational(7, 10))) == pytest.approx(stats.norm.cdf(0.7), abs=1e-14)


OPS = {
    "=": lambda v: v == 0, "!=": lambda v: v != 0, ">": lambda v: v > 0,
    ">=": lambda v: v >= 0, "<": lambda v: v < 0, "<=": lambda v: v <= 0,
}  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_an_event_that_is_not_random_has_probability_one_or_zero(op):
    for difference in (-2, 0, 3):
        assert _certain(sp.Integer(difference), op) == int(OPS[op](difference))
    assert _certain(sp.Symbol("s", real=True), op) is None


def test_random_symbols_are_normal_numbers_and_functions_of_random_keys():
    algebra = Evaluator(context_of("mu_1..mu_n orthonormal, k_i ~ N(mu_i, I), n >= 3, t > 0", "q = t*mu_a", "1 = 1"))
    score = algebra.number(expression("k_a'q"))
    assert random_symbols(algebra, score) and not random_symbols(algebra, algebra.symbol("t"))
    weight = algebra.number(expression("alpha_a"))
    assert len(random_symbols(algebra, weight)) == 2  # the noise of k_a, and the rest
    free = Evaluator(context_of("k_1..k_n free, q free, n >= 3", "", "alpha_a = 1"))
    assert not random_symbols(free, free.number(expression("alpha_a")))
    both = Evaluator(context_of("k_1..k_n free, q free, n >= 3, gamma ~ N(0, 1)", "", "alpha_a = 1"))
    assert random_symbols(both, both.number(expression("gamma*2"))) == {both.symbol("gamma")}


def test_numbers_that_go_to_infinity_are_positive_there():
    algebra = Evaluator(context_of("t real, s real, w < 3, v > 1", "", "t*s*w*v -> 0 as t -> oo, s -> 0, v -> oo"))
    found = _far_along(algebra).ranges
    t, s, w, v = (algebra.symbol(name) for name in "tswv")
    assert (found[t].lo, found[t].lo_open) == (Fraction(0), True)
    assert found[s].lo is None and found[w].lo is None and found[v].lo == Fraction(1)


def cells():
    """gamma ~ N(1, 4), and a follower that is the sign of what it is given."""
    algebra = Evaluator(context_of(GAMMA, "", "gamma = 1"))
    gamma = algebra.symbol("gamma")

    def follow(expr, assumptions):
        from qkv.claims.symbolic.errors import NeedSign
        from qkv.claims.symbolic.sign_analysis import sign

        how = sign(expr, assumptions)
        if how not in ("+", "-"):
            raise NeedSign(expr)
        return sp.Integer(1 if how == "+" else -1)

    return algebra, gamma, assumptions_of(algebra), follow


def test_limits_of_statistics_are_sums_over_regions():
    algebra, gamma, here, follow = cells()
    above = stats.norm(1, 2).sf(0)
    found = regions(algebra, here, (gamma,), follow)
    assert sorted((int(v[0]), round(float(p), 12)) for p, v, _ in found) == [
        (-1, round(1 - above, 12)),
        (1, round(above, 12)),
    ]
    for function, inner, wanted in [
        ("E", (gamma,), 2 * above - 1),
        ("P", (gamma,), above),
        ("P", (-gamma,), 1 - above),
        ("Var", (gamma,), 1 - (2 * above - 1) ** 2),
        ("Cov", (gamma, -gamma), -(1 - (2 * above - 1) ** 2)),
        ("Cov", (gamma, gamma - 2), None),
    ]:
        if wanted is None:  # regions below 0, between 0 and 2, and above 2
            p, q = stats.norm(1, 2).sf(0), stats.norm(1, 2).sf(2)
            wanted = (1 - 2 * (p - q)) - (2 * p - 1) * (2 * q - 1)
        got = statistic_limit(algebra, here, Statistic(function, inner), follow)
        assert float(got) == pytest.approx(wanted, abs=1e-12), (function, inner)


def test_limits_that_are_still_random_or_on_the_edge_are_refused():
    algebra, gamma, here, _ = cells()
    for follow in (lambda e, f: e, lambda e, f: sp.oo):
        with pytest.raises(Unsupported, match="still random"):
            statistic_limit(algebra, here, Statistic("E", (gamma,)), follow)
    with pytest.raises(Unsupported, match="edge"):
        statistic_limit(algebra, here, Statistic("P", (gamma,)), lambda e, f: sp.Integer(0))


def test_the_probability_of_a_region_is_the_product_over_its_numbers():
    algebra = Evaluator(context_of(TWO, "", "gamma = delta"))
    gamma, delta = algebra.symbol("gamma"), algebra.symbol("delta")
    ranges = {gamma: number("x", "(0, oo)").range, delta: number("x", "(-oo, 1)").range}
    found = region_probability(algebra, Assumptions(ranges), frozenset({gamma, delta}))
    assert float(found) == pytest.approx(stats.norm(1, 2).sf(0) * stats.norm(-1, 3).cdf(1), abs=1e-14)
    assert region_probability(algebra, Assumptions(), frozenset({gamma})) == 1
    assert region_probability(algebra, Assumptions(ranges), frozenset()) == 1
    with pytest.raises(Unsupported):
        region_probability(algebra, Assumptions(), frozenset({sp.Symbol("z")}))
    algebra.random[gamma] = (sp.Integer(0), sp.Symbol("s", positive=True))
    with pytest.raises(Unsupported, match="depends on a number"):
        region_probability(algebra, Assumptions({gamma: number("x", "(1, oo)").range}), frozenset({gamma}))
