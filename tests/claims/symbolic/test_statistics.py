"""Moments and probabilities of normal numbers, against closed forms of scipy.stats."""

import numpy as np
import pytest
from build import argued
from scipy import stats

import qkv

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
