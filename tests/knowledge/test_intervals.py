"""Intervals against SciPy, against the definition, and against Newcombe's paper."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qkv.errors import QkvError
from qkv.knowledge.intervals import Z95, difference_interval, mean_interval, wilson_interval


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilsons_interval_agrees_with_scipy(n, share):
    right = round(share * n)
    theirs = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson_interval(right, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 500), st.floats(0.01, 0.99), st.floats(0.5, 4))
def test_the_ends_of_wilsons_interval_solve_its_equation_for_fractional_counts(n, share, z):
    for p in wilson_interval(share * n, n, z):
        assert abs(share - p) == pytest.approx(z * math.sqrt(p * (1 - p) / n), abs=1e-9)


def test_newcombes_interval_for_a_difference_is_that_of_his_paper():
    assert difference_interval((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)  # 1998, method 10
    low, high = difference_interval((48, 80), (56, 70))
    assert (-high, -low) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=40).filter(lambda values: np.std(values) > 1e-3))
def test_the_interval_of_a_mean_is_that_of_scipys_t_distribution(values):
    mean, low, high = mean_interval(values)
    theirs = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (mean, low, high) == pytest.approx((np.mean(values), *theirs), abs=1e-9)


def test_one_value_has_an_unbounded_interval_and_none_is_refused():
    assert mean_interval([0.5]) == (0.5, -math.inf, math.inf)
    with pytest.raises(QkvError, match="mean"):
        mean_interval([])
    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-14) == Z95


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 2), (0, 0)])
def test_impossible_counts_are_refused(wrong):
    with pytest.raises(QkvError):
        wilson_interval(*wrong)
