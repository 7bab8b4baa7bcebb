"""The conic programs against closed forms and cvxpy."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import qkv
from qkv.design.solvers import conic


@pytest.mark.parametrize("weights", [{0: 1.0}, {0: 0.5, 1: 0.5}, {3: 0.2, 1: 0.7, 5: 0.1}])
def test_the_convex_program_finds_the_closed_form_on_orthonormal_keys(weights):
    memory, tol = qkv.Memory.orthonormal(n=10, d=16, seed=0), 1e-3
    found = conic.smallest_query(memory.keys.numpy(), list(weights), np.array(list(weights.values())), tol)
    closed = qkv.design.blend(memory, weights, tol=tol)
    assert found.status == "solved"
    assert np.abs(found.x - closed.query.numpy()).max() < 1e-6


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3))
def test_the_smallest_query_for_random_keys_is_what_cvxpy_finds(seed, d, m):
    random = np.random.default_rng(seed)
    keys = random.standard_normal((12, d))
    items, wanted, tol = list(range(m)), random.dirichlet(np.ones(m) * 3), 0.05
    wanted = np.maximum(wanted, 0.02)
    wanted = wanted / wanted.sum()
    ours = conic.smallest_query(keys, items, wanted, tol)
    q = cp.Variable(d)
    scores = keys @ q
    limit = math.log(tol / (1 - tol)) - math.log(wanted[0])
    constraints = [cp.log_sum_exp(scores[m:]) - scores[0] <= limit]
    constraints += [scores[i] - scores[0] == math.log(wanted[i] / wanted[0]) for i in range(1, m)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(q)), constraints)
    try:
        problem.solve(solver=cp.SCS, eps=1e-8, max_iters=50_000)
    except cp.error.SolverError:
        return
    if problem.status == "optimal" and ours.status == "solved":
        assert np.linalg.norm(ours.x) == pytest.approx(math.sqrt(problem.value), rel=1e-3, abs=1e-3)
    else:
        assert (problem.status in ("infeasible", "infeasible_inaccurate")) == (ours.status == "infeasible") or (
            np.linalg.norm(ours.x) > 1e3
        )


@pytest.mark.parametrize("seed", range(6))
def test_a_metric_is_minimised_as_cvxpy_minimises_it(seed):
    random = np.random.default_rng(seed)
    keys, tol, wanted = random.standard_normal((9, 6)), 0.05, np.array([0.7, 0.3])
    root = random.standard_normal((6, 6))
    metric = root @ root.T + 0.1 * np.eye(6)
    ours = conic.smallest_query(keys, [0, 1], wanted, tol, metric)
    q = cp.Variable(6)
    scores = keys @ q
    limit = math.log(tol / (1 - tol)) - math.log(wanted[0])
    constraints = [cp.log_sum_exp(scores[2:]) - scores[0] <= limit, scores[1] - scores[0] == math.log(3 / 7)]
    best = cp.Problem(cp.Minimize(cp.quad_form(q, cp.psd_wrap(metric))), constraints).solve(solver=cp.CLARABEL)
    assert ours.status == "solved"
    assert ours.x @ metric @ ours.x == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_least_nuclear_norm_is_what_cvxpy_finds(seed):
    random = np.random.default_rng(seed)
    tokens, tol = random.standard_normal((4, 3)), 0.05
    rows = np.einsum("a,jb->jab", tokens[0], tokens).reshape(4, 9)
    rule = conic.Rule.of(rows, np.ones(1), [2], np.array([0, 1, 3]), tol)
    found = conic.solve([rule], 9, nuclear=3)
    Z = cp.Variable((3, 3))
    scores = tokens @ (Z.T @ tokens[0])
    constraint = cp.log_sum_exp(scores[[0, 1, 3]]) - scores[2] <= math.log(tol / (1 - tol))
    problem = cp.Problem(cp.Minimize(cp.normNuc(Z)), [constraint])
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.error.SolverError:
        return
    assert (problem.status == "optimal") == (found.status == "solved")
    if found.status == "solved":
        ours = np.linalg.svd(found.x.reshape(3, 3), compute_uv=False).sum()
        assert ours == pytest.approx(problem.value, rel=1e-4)


def test_several_rules_hold_together():
    random = np.random.default_rng(5)
    rows, tol = random.standard_normal((2, 6, 8)), 0.02
    wanted = [np.array([1.0]), np.array([0.25, 0.75])]
    inside = [[0], [1, 4]]
    rules = [conic.Rule.of(rows[r], wanted[r], inside[r], np.setdiff1d(np.arange(6), inside[r]), tol) for r in range(2)]
    found = conic.solve(rules, 8)
    assert found.status == "solved"
    for r in range(2):
        scores = rows[r] @ found.x
        rest = np.setdiff1d(np.arange(6), inside[r])
        leak = math.exp(logsumexp(scores[rest]) - logsumexp(scores))
        assert leak <= tol * (1 + 1e-6)
        assert np.allclose(scores[inside[r]] - scores[inside[r][0]], np.log(wanted[r] / wanted[r][0]), atol=1e-7)


def test_without_constraints_the_smallest_x_is_zero():
    rule = conic.Rule.of(np.eye(1), np.ones(1), [0], np.zeros(0, dtype=np.int64), 0.1)
    found = conic.solve([rule], 1)
    assert found.status == "solved" and found.x.tolist() == [0.0]


def test_evidence_of_infeasibility_is_a_nearly_vanishing_gradient():
    """A key at the mean of two others: the mix of the rivals puts their mean at the wanted key."""
    keys = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0], [0.0, 5.0]])
    found = conic.smallest_query(keys, [2], np.ones(1), 0.01)
    assert found.status == "infeasible"
    mix = found.mix[0] / found.mix[0].sum()
    assert mix.min() >= 0 and np.linalg.norm(mix @ keys - keys[2]) < 1e-5
