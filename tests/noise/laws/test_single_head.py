"""The exact law of a weight: closed forms, nested integrals, and Kolmogorov and Smirnov's test against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logsumexp, ndtr
from scipy.stats import kstest

from qkv.noise.laws.lognormal_sum import MAX_NARROW_VARIANCE
from qkv.noise.laws.single_head import MIN_WIDE_VARIANCE, weight_law
from qkv.noise.moments.single_head import head_moments

RNG = np.random.default_rng(3)


def tensors(*rows):
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (1e-8, 1e-8),
        (1e-2, 1e-6),
        (1e-6, 1e-2),
        (0.0, 0.2),
        (0.09, 0.09),
        (0.11, 0.24),
        (1, 1),
        (0.2, 4),
        (4, 400),
        (1e4, 1),
    ],
)
def test_of_two_keys_the_difference_of_scores_is_normal(own, other):
    law = weight_law(*tensors([0.7, -0.4], [own, other]), 0)
    deviation = math.sqrt(own + other)
    x = 1.1 + deviation * np.linspace(-6, 6, 301)
    assert float(np.abs(law.logit(x) - ndtr((x - 1.1) / deviation)).max()) <= law.law_error


@pytest.mark.parametrize("v", [(0.02, 0.05, 0.01), (0.3, 0.2, 0.15), (2.0, 0.5, 3.0)])
def test_of_three_keys_it_is_an_integral_of_an_integral(v):
    m = (0.3, 0.0, -0.5)
    law = weight_law(*tensors(m, v), 0)
    a, b, c = (math.sqrt(x) for x in v)

    def density(z):
        return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    for x in (-1.0, -0.4, 0.5):

        def given_b(z, x=x):
            def given_c(y):
                rest = math.log(math.exp(m[1] + b * z) + math.exp(m[2] + c * y))
                return density(y) * ndtr((x + rest - m[0]) / a)

            return density(z) * quad(given_c, -9, 9, epsabs=1e-12, limit=200)[0]

        assert float(law.logit(np.array([x]))[0]) == pytest.approx(
            quad(given_b, -9, 9, epsabs=1e-11)[0], abs=law.law_error
        )


def drawn_logits(m, v, item, draws=20_000, seed=0):
    scores = m + np.sqrt(v) * np.random.default_rng(seed).standard_normal((draws, len(m)))
    return scores[:, item] - logsumexp(np.delete(scores, item, 1), axis=1)


def drawn(*case, **more):
    return expit(drawn_logits(*case, **more))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 30),
    own=st.floats(-8, 3).map(lambda x: 10.0**x),
    other=st.floats(-8, 2).map(lambda x: 10.0**x),
    gap=st.floats(0, 8),
    seed=st.integers(0, 1000),
)
def test_draws_follow_the_law_and_moments_are_those_of_the_spread(n, own, other, gap, seed):
    m, v = np.zeros(n), np.full(n, other)
    m[0], v[0] = gap, own
    law = weight_law(*tensors(m, v), 0)
    if law is None:
        assert own < MIN_WIDE_VARIANCE and other > MAX_NARROW_VARIANCE  # the only scores that are left out
        return
    # Weights may round to 0 or 1, their logits do not.
    assert kstest(drawn_logits(m, v, 0, 4000, seed), law.logit).pvalue > 1e-5
    exact = head_moments(*tensors(m, v), torch.zeros(n, 1, dtype=torch.float64))
    assert law.mean == pytest.approx(float(exact.mean[0]), abs=law.error + exact.error)
    assert law.square == pytest.approx(float(exact.square[0]), abs=law.error + exact.error)


def test_a_law_of_other_noise_is_told_from_the_draws():
    m, v = np.array([1.0, 1.0, 0.0, 0.0]), np.full(4, 0.3)
    found = drawn(m, v, 0)
    assert kstest(found, weight_law(*tensors(m, v), 0).below).pvalue > 1e-4
    assert kstest(found, weight_law(*tensors(m, 1.1 * v), 0).below).pvalue < 1e-4
    assert kstest(found, weight_law(*tensors(m + 0.05 * np.eye(4)[0], v), 0).below).pvalue < 1e-4


def test_keys_of_every_kind_together():
    n = 40
    m, v = RNG.normal(size=n), RNG.uniform(0, 0.2, size=n)
    v[3] = 0.0
    for item in (0, 3, 7):
        law = weight_law(*tensors(m, v), item)
        assert kstest(drawn(m, v, item), law.below).pvalue > 1e-4


def test_a_weight_that_does_not_vary_jumps_once():
    law = weight_law(*tensors([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), 0)
    at = float(expit(1 - math.log(2)))
    assert law.below(np.array([0.0, at - 1e-12, at + 1e-12, 1.0])).tolist() == [0, 0, 1, 1]
    assert law.variance < 1e-14
