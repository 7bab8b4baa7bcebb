"""Is 0 in the hull of a few directions? Weights and queries against linear programming and exact fractions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from qkv.design.hull import origin_in_hull


def test_the_query_of_the_least_squares_problem_is_the_steepest():
    random = np.random.default_rng(12)
    rows, lengths = origin_in_hull.unit_rows(random.standard_normal((30, 8)) + 1.0)
    weights, query, gap = origin_in_hull.least_squares(rows)
    assert gap > 0.01
    assert np.allclose(np.linalg.norm(rows[:, :-1], axis=1), 1)
    assert (rows[:, :-1] @ query <= -(gap**2) * (1 - 1e-9)).all()
    steep = origin_in_hull.refine_query(rows, weights)
    assert np.allclose(steep / np.linalg.norm(steep), query / np.linalg.norm(query), atol=1e-9)
    assert lengths.min() > 0


def separable(y):
    """HiGHS: is there a q with y_i·q <= -1 for all i?"""
    return linprog(np.zeros(y.shape[1]), y, -np.ones(len(y)), bounds=(None, None)).status == 0


@settings(max_examples=settings.default.max_examples * 3 // 5)
@given(
    st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5), st.sampled_from(["least_squares", "linear_program"])
)
def test_either_the_weights_balance_or_the_query_separates(seed, n, d, method):
    y = np.random.default_rng(seed).standard_normal((n, d)) + 0.4
    rows, _ = origin_in_hull.unit_rows(y)
    weights, query, gap = getattr(origin_in_hull, method)(rows)
    if separable(y):
        assert gap > 0 and (y @ query < 0).all()
    else:
        refined, left = origin_in_hull.refine_weights(rows, weights)
        assert left < 1e-12 and refined.min() >= 0 and refined.sum() == pytest.approx(1)
        assert np.linalg.norm(refined @ rows[:, :-1]) == pytest.approx(left)


def test_unit_rows_keep_directions_and_lengths_of_huge_tiny_and_zero_vectors():
    y = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0]])
    rows, lengths = origin_in_hull.unit_rows(y)
    assert np.allclose(rows, [[0.6, 0.8, 1], [0.6, 0.8, 1], [0, 0, 1]])
    assert lengths == pytest.approx([5e200, 5e-200, 0.0])


def test_a_nearly_balanced_set_still_gets_an_accurate_query():
    """The origin is 1e-9 outside a segment: the residual is tiny, the refined query is exact to many digits."""
    y = np.array([[1.0, 1e-9], [-1.0, 1e-9]])
    rows, _ = origin_in_hull.unit_rows(y)
    weights, _, gap = origin_in_hull.least_squares(rows)
    assert gap < origin_in_hull.ACCURATE_GAP
    query = origin_in_hull.refine_query(rows, weights)
    assert np.allclose(query / np.linalg.norm(query), [0.0, -1.0], atol=1e-6)
    assert (y @ query < 0).all()


def test_a_program_that_fails_falls_back_to_the_mean(monkeypatch):
    class Nothing:
        x = None

    monkeypatch.setattr(origin_in_hull, "linprog", lambda *a, **k: Nothing())
    rows, _ = origin_in_hull.unit_rows(np.array([[1.0, 0.0], [0.0, 1.0]]))
    weights, query, gap = origin_in_hull.linear_program(rows)
    assert weights.tolist() == [0.5, 0.5] and query.tolist() == [-0.5, -0.5] and gap > 0
