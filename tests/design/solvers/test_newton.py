"""Newton's method against general minimisers and against the conditions of optimality."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, rel_entr, softmax

from qkv.design.solvers import newton


def problem(seed, n, d, m):
    """Rows of the rivals, the wanted row, and equality constraints that some query meets."""
    random = np.random.default_rng(seed)
    rivals, own, ratios = random.standard_normal((n, d)), random.standard_normal(d), random.standard_normal((m, d))
    return rivals, own, ratios, ratios @ random.standard_normal(d)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(4, 7), st.integers(0, 2))
def test_the_query_of_least_norm_is_what_cvxpy_finds(seed, n, d, m):
    rivals, own, ratios, logs = problem(seed, n, d, m)
    edge = math.log(0.05 / 0.95)
    q = cp.Variable(d)
    constraints = [cp.log_sum_exp(rivals @ q) - own @ q <= edge] + ([ratios @ q == logs] if m else [])
    best = cp.Problem(cp.Minimize(cp.sum_squares(q)), constraints).solve(solver=cp.CLARABEL)
    found = newton.min_norm_query(rivals, own, edge, ratios, logs, None, np.zeros(d))
    if not math.isfinite(best) or best > 1e6:
        return  # infeasible, or barely feasible: the conic solver decides those
    assert found is not None
    assert found @ found == pytest.approx(best, rel=1e-5, abs=1e-7)
    assert logsumexp(rivals @ found) - own @ found <= edge + 1e-8
    assert np.allclose(ratios @ found, logs, atol=1e-8)


def test_constraints_that_no_query_meets_give_none():
    own = np.zeros(2)
    rivals = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])  # 0 is in their hull
    assert newton.min_norm_query(rivals, own, -3.0, np.zeros((0, 2)), np.zeros(0), None, np.zeros(2)) is None
    ratios, logs = np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([1.0, 3.0])  # contradictory
    assert newton.min_norm_query(rivals, own, -3.0, ratios, logs, None, np.zeros(2)) is None


def test_a_constraint_that_the_smallest_query_meets_costs_nothing():
    ratios, logs = np.array([[2.0, 0.0]]), np.array([4.0])
    found = newton.min_norm_query(np.array([[0.0, 1.0]]), np.array([9.0, 0.0]), 0.0, ratios, logs, None, np.zeros(2))
    assert found.tolist() == [2.0, 0.0]


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(3, 12), st.integers(1, 3))
def test_the_query_of_least_divergence_matches_the_mean_key(seed, n, d):
    """KL is stationary where the weighted mean key equals the wanted one; the ridge leaves at most 1e-9 |q|."""
    random = np.random.default_rng(seed)
    keys, wanted = random.standard_normal((n, d)), random.dirichlet(np.ones(3))
    query = newton.min_kl_query(keys, [0, 1, 2], wanted)
    difference = softmax(keys @ query) @ keys - wanted @ keys[:3]
    assert np.linalg.norm(difference) <= 1e-6 * (1 + np.linalg.norm(query))
    divergence = rel_entr(wanted, softmax(keys @ query)[:3]).sum()
    best = minimize(lambda q: logsumexp(keys @ q) - wanted @ keys[:3] @ q, np.zeros(d))
    theirs = rel_entr(wanted, softmax(keys @ best.x)[:3]).sum()
    assert divergence <= theirs + 1e-6


@given(st.integers(0, 10**6), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_centred_keys_do_not_depend_on_origin_and_scale(seed, size, shift):
    keys = np.random.default_rng(seed).standard_normal((9, 4))
    plain, unit = newton.centred_on(keys, [1, 3])
    moved, other = newton.centred_on(size * (keys + shift), [1, 3])
    assert np.allclose(moved, plain, atol=1e-8) and other == pytest.approx(size * unit, rel=1e-8)
    assert np.allclose(plain[[1, 3]].mean(axis=0), 0)


def test_equal_keys_have_a_unit_of_one():
    keys, unit = newton.centred_on(np.ones((3, 2)), [0])
    assert unit == 1.0 and not keys.any()
