"""Geometry of keys and subspaces against scipy's general solvers, cvxpy and closed forms."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.optimize import minimize

from qkv.core import geometry


def test_orthogonal_vectors_of_one_length_are_recognised_and_others_are_not():
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    assert geometry.common_norm(3 * frame[:4]) == pytest.approx(3)
    assert geometry.common_norm(0.5 * frame[:4]) == pytest.approx(0.5)
    assert geometry.common_norm(np.diag([1.0, 2.0])) is None
    assert geometry.common_norm(np.ones((2, 3))) is None
    assert geometry.common_norm(np.zeros((1, 3))) is None
    assert geometry.common_norm(np.ones((3, 2))) is None


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 8))
def test_the_point_of_least_norm_in_a_hull_is_what_a_general_minimiser_finds(seed, d, n):
    points = np.random.default_rng(seed).standard_normal((n, d)) + 0.7
    found = geometry.min_norm_point(points)
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(
        lambda w: ((w @ points) ** 2).sum(),
        np.full(n, 1 / n),
        bounds=[(0, 1)] * n,
        constraints=simplex,
        options={"ftol": 1e-13, "maxiter": 500},  # its default stops early where the least norm is near 0
    )
    weights = np.clip(best.x, 0, None) / np.clip(best.x, 0, None).sum()  # it lets them sum to a little less than 1
    theirs = np.linalg.norm(weights @ points)
    assert np.linalg.norm(found) == pytest.approx(theirs, abs=2e-3)
    assert np.linalg.norm(found) <= theirs + 1e-9
    # Optimality: the whole hull lies beyond the plane through the found point.
    assert (points @ found >= found @ found - 1e-9).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6), st.integers(0, 3))
def test_the_combination_of_least_norm_is_what_cvxpy_finds(seed, d, n, m):
    random = np.random.default_rng(seed)
    points, free = random.standard_normal((n, d)) + 0.5, random.standard_normal((m, d))
    weights, coefficients = geometry.min_norm_combination(points, free)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert coefficients.shape == (m,)
    w = cp.Variable(n, nonneg=True)
    total = w @ points if m == 0 else w @ points + cp.Variable(m) @ free
    best = cp.Problem(cp.Minimize(cp.norm(total)), [cp.sum(w) == 1]).solve(solver=cp.CLARABEL)
    assert np.linalg.norm(weights @ points + coefficients @ free) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e8])
def test_free_vectors_of_any_length_span_the_same(scale):
    random = np.random.default_rng(3)
    points, free = random.standard_normal((4, 6)) + 0.5, random.standard_normal((2, 6))
    twice = np.vstack((free, free[0] + free[1]))
    best, coefficients = geometry.min_norm_combination(points, free)
    nearest = best @ points + coefficients @ free
    for vectors in (free, twice):
        weights, found = geometry.min_norm_combination(points, scale * vectors)
        assert weights == pytest.approx(best, abs=1e-7)
        assert weights @ points + found @ (scale * vectors) == pytest.approx(nearest, abs=1e-7)


def test_orthogonality_is_looked_for_among_so_many_rows(monkeypatch):
    monkeypatch.setattr(geometry, "MAX_ORTHOGONAL_ROWS", 3)
    assert geometry.common_norm(np.eye(5)[:3]) == 1 and geometry.common_norm(np.eye(5)[:4]) is None


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))
def test_principal_vectors_are_unit_vectors_at_the_smallest_angle(seed, m, k):
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((6, m)), random.standard_normal((6, k))
    x, y = geometry.principal_vectors(a, b)
    u, v = a @ x, b @ y
    assert np.linalg.norm(u) == pytest.approx(1) and np.linalg.norm(v) == pytest.approx(1)
    assert np.arccos(np.clip(u @ v, -1, 1)) == pytest.approx(subspace_angles(a, b).min(), abs=1e-7)


@given(st.integers(0, 10**6))
def test_the_oblique_projector_keeps_one_span_removes_the_other_and_has_least_norm(seed):
    random = np.random.default_rng(seed)
    keep, remove = random.standard_normal((6, 2)), random.standard_normal((6, 3))
    m = geometry.oblique_projector(keep, remove)
    assert np.allclose(m @ keep, keep) and np.allclose(m @ remove, 0, atol=1e-9)
    # Any other such matrix differs by one that vanishes on both spans, and is no shorter.
    normal = np.linalg.svd(np.hstack([keep, remove]))[0][:, -1]
    other = m + np.outer(random.standard_normal(6), normal)
    assert np.allclose(other @ keep, keep) and np.linalg.norm(m) <= np.linalg.norm(other) + 1e-9


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 3))
def test_the_rank_counts_independent_columns_and_ignores_rounding(seed, r, more):
    random = np.random.default_rng(seed)
    basis = random.standard_normal((6, r))
    columns = np.hstack([basis, basis @ random.standard_normal((r, more))])
    assert geometry.rank(columns) == r == np.linalg.matrix_rank(columns)
    assert geometry.rank(np.zeros((3, 2))) == 0


def test_orthonormal_columns_are_recognised():
    frame = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 3)))[0]
    assert geometry.are_orthonormal(frame)
    assert not geometry.are_orthonormal(2 * frame)
    assert not geometry.are_orthonormal(frame + 1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_rank_does_not_depend_on_the_scale(scale):
    columns = scale * np.array([[1.0, 2.0, 1e-12], [0.0, 1.0, 0.0], [1.0, 3.0, 0.0]])
    assert geometry.rank(columns) == 2 and geometry.rank(0 * columns) == 0
    assert geometry.common_norm(scale * np.eye(3)) == pytest.approx(scale)


@pytest.mark.parametrize("sizes", [(1e8, 1e-8), (1e-8, 1e8), (1e150, 1e-150), (1.0, 1e-30)])
def test_a_short_basis_beside_a_long_one_is_kept_and_removed_as_well(sizes):
    keep, remove = np.array([[1.0], [0.3], [0.7]]), np.array([[1.0, 0.0], [0.301, 0.0], [0.7007, 1.0]])
    m = geometry.oblique_projector(sizes[0] * keep, sizes[1] * remove * [1.0, 1e5])
    np.testing.assert_allclose(m @ keep, keep, rtol=1e-9)
    np.testing.assert_allclose(m @ remove, 0.0, atol=1e-9)
