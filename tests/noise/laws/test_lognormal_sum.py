"""A normal variable minus the log of a sum of narrow lognormals: closed forms, integrals and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr
from scipy.stats import kstest

from qkv.noise.laws.lognormal_sum import lognormal_sum_law


def arrays(*rows):
    return [np.array(row, dtype=np.float64) for row in rows]


@pytest.mark.parametrize(
    ("own_variance", "variance"), [(0.0, 0.1), (0.01, 0.2), (0.2, 0.01), (0.09, 0.09), (1e-6, 1e-6)]
)
def test_with_one_other_key_the_difference_is_normal(own_variance, variance):
    law, low, high = lognormal_sum_law(*arrays([-0.4], [variance], [1.0]), 0.7, own_variance)
    sd = math.sqrt(own_variance + variance)
    x = 1.1 + sd * np.linspace(-6, 6, 201)
    assert float(np.abs(law(x) - ndtr((x - 1.1) / sd)).max()) < 1e-9
    assert low < -0.4 - 6 * math.sqrt(variance) and -0.4 + 6 * math.sqrt(variance) < high


def density(z):
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(("own_variance", "v"), [(0.05, (0.02, 0.2)), (0.001, (0.1, 0.05))])
def test_with_two_other_keys_it_is_a_double_integral(own_variance, v):
    """The normal variable is integrated in closed form, the two others by adaptive quadrature."""
    m, sd = (0.0, -0.5), [math.sqrt(x) for x in v]
    law, _, _ = lognormal_sum_law(*arrays(m, v, [1.0, 1.0]), 0.3, own_variance)
    for x in (-0.8, -0.2, 0.1):

        def outer(z, x=x):
            def inner(y):
                rest = math.log(math.exp(m[0] + sd[0] * z) + math.exp(m[1] + sd[1] * y))
                return density(y) * ndtr((x + rest - 0.3) / math.sqrt(own_variance))

            return density(z) * quad(inner, -8, 8, epsabs=1e-11, limit=200)[0]

        assert float(law(np.array([x]))[0]) == pytest.approx(quad(outer, -8, 8, epsabs=1e-10, limit=200)[0], abs=1e-8)


def test_keys_that_are_counted_are_keys_that_are_listed():
    listed, _, _ = lognormal_sum_law(*arrays([0.1, 0.1, 0.1, -1.0], [0.2, 0.2, 0.2, 0.1], [1, 1, 1, 1]), 0.0, 0.1)
    counted, _, _ = lognormal_sum_law(*arrays([0.1, -1.0], [0.2, 0.1], [3, 1]), 0.0, 0.1)
    x = np.linspace(-3, 1, 101)
    assert np.allclose(listed(x), counted(x), atol=1e-12)


def test_draws_follow_the_law():
    m, v = np.linspace(-2, 0, 12), np.linspace(0.01, 0.24, 12)
    law, low, high = lognormal_sum_law(m, v, np.ones(12), 0.5, 0.03)
    rng = np.random.default_rng(1)
    logs = logsumexp(m + np.sqrt(v) * rng.standard_normal((20_000, 12)), axis=1)
    assert low < logs.min() and logs.max() < high
    assert kstest(0.5 + math.sqrt(0.03) * rng.standard_normal(20_000) - logs, law).pvalue > 1e-4
