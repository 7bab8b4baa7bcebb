"""Bounds on every query within tol in total variation: true, sharp where that can be known, and absent otherwise."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import qkv
from qkv.design.solvers import near
from qkv.design.specs import BlendSpec


def spec(keys, wanted, tol):
    return BlendSpec.of(qkv.Memory(keys), wanted, tol)


def test_the_bound_covers_shorter_queries_with_other_ratios():
    """Keys 0 and 1 nearly agree: the exact ratios need a norm of 20, but (3, 0) is within 0.0056."""
    keys = [[1, 0], [1, 1e-3], [-1, 0]]
    d = qkv.design.blend(keys, {0: 0.505, 1: 0.495}, tol=0.01)
    assert d.status == "exact" and d.least_norm == pytest.approx(20.0961, abs=1e-4)
    assert 1.95 < d.least_norm_within_tol < 1.951 and d.within_bound.verify()
    assert "these exact ratios" in d.certificate.statement and "total variation" in d.within_bound.statement
    # The shortest query within tol, by hand: equal weights on both, and 0.01 on the third.
    assert d.least_norm_within_tol == pytest.approx(0.5 * math.log(0.99 / 0.01 / 2), abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_no_query_found_by_a_penalty_method_is_shorter_than_the_bound(seed):
    rng = np.random.default_rng(seed)
    keys, tol = rng.standard_normal((5, 4)), float(10 ** rng.uniform(-2, -0.7))
    d = qkv.design.blend(keys, {0: 0.6, 1: 0.4}, tol=tol)
    assert d.possible and d.least_norm_within_tol is not None

    def shortfall(q):
        s = keys @ q
        alpha = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        return tol - max(0.6 - alpha[0], 0) - max(0.4 - alpha[1], 0)

    for scale in (1.0, 0.95):
        found = minimize(lambda q: q @ q, scale * d.query.numpy(), constraints={"type": "ineq", "fun": shortfall})
        if shortfall(found.x) >= -1e-9:
            assert d.least_norm_within_tol <= np.linalg.norm(found.x) * (1 + 1e-6)
    assert d.least_norm_within_tol <= float(d.query.norm())


def test_copying_has_one_bound_for_both_statements():
    d = qkv.design.copy(np.random.default_rng(0).standard_normal((40, 12)), 0, tol=1e-3)
    assert d.least_norm_within_tol == pytest.approx(d.least_norm, rel=1e-6)


def test_a_tolerance_above_every_wanted_weight_bounds_nothing():
    keys = np.eye(3)
    assert near.norm_bound_within_tol(keys, spec(keys, {0: 0.5, 1: 0.5}, 0.6), np.ones(3)) is None
    assert near.exclusion_within_tol(keys, spec(keys, {0: 0.5, 1: 0.5}, 0.6)) is None


def test_equal_keys_give_a_distance_that_no_query_at_all_goes_below():
    keys = np.array([[0.0], [1.0], [1.0]])
    found = near.distance_bound(keys, spec(keys, {1: 1.0}, 0.1))
    assert near.excludes_all(found) and found.verify() and found.data["tol"] == pytest.approx(0.5, abs=1e-6)
    assert found.statement.startswith("no query at all reads 1 of item 1 to within 0.4999")


def test_copying_a_key_inside_the_hull_has_a_sharp_bound_on_the_distance():
    keys = np.array([[0.0, 0], [4, 0], [0, 4], [1, 1.5]])
    d = qkv.design.copy(keys, 3)
    assert d.status == "out of reach" and d.distance_bound.verify()
    assert d.distance_at_least == pytest.approx(d.distance, abs=1e-5) and d.distance_at_least <= d.distance


def test_the_limit_of_long_queries_is_bounded_too():
    """Half of both ends of a line: reading one end alone is the infimum, approached by long queries."""
    d = qkv.design.blend(np.arange(5.0)[:, None], {0: 0.5, 4: 0.5}, tol=0.01)
    assert d.status == "out of reach" and 0.3 < d.distance_at_least <= d.distance <= 0.5 + 1e-9


def test_what_can_be_read_is_not_excluded():
    keys = np.random.default_rng(3).standard_normal((6, 6))
    assert near.distance_bound(keys, spec(keys, {0: 0.5, 1: 0.5}, 1e-3)) is None
    assert near.exclusion_within_tol(keys, spec(keys, {0: 0.5, 1: 0.5}, 1e-3)) is None


def test_large_keys_have_no_such_bound(monkeypatch):
    monkeypatch.setattr(near, "MAX_BOUND_SIZE", 5)
    keys = np.eye(3)
    wanted = spec(keys, {0: 1.0}, 0.1)
    assert near.norm_bound_within_tol(keys, wanted, np.ones(3)) is None
    assert near.distance_bound(keys, wanted) is None and near.exclusion_within_tol(keys, wanted) is None
