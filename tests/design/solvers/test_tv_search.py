"""The search in total variation, against closed forms and an independent optimiser."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import spread

import qkv
from qkv.design.solvers import tv_search
from qkv.design.solvers.tv_search import nearest_query

sys.path.insert(0, str(Path(__file__).parents[1]))
import attack


def distance(keys, query, wanted):
    w = np.zeros(len(keys))
    w[list(wanted)] = list(wanted.values())
    return float(attack.distances(np.asarray(keys, dtype=float), np.asarray(query)[None], w)[0])


def nearest(keys, wanted, tol=1e-9):
    keys = np.asarray(keys, dtype=float)
    query = nearest_query(keys, list(wanted), np.array(list(wanted.values())), tol)
    assert query.shape == (keys.shape[1],) and np.isfinite(query).all()
    return distance(keys, query, wanted)


def test_the_ends_of_a_line_are_read_as_far_as_one_end_goes():
    """Of keys 0..20, no query reads both ends; with 0.99 wanted on one, reading that alone is 0.01 away."""
    assert nearest(np.arange(21)[:, None], {20: 0.99, 0: 0.01}) == pytest.approx(0.01, abs=1e-9)
    assert nearest(np.arange(21)[:, None], {20: 0.5, 0: 0.5}) == pytest.approx(0.5 - 2.0**-21, abs=1e-8)


def test_equal_keys_share_their_weight():
    assert nearest([[1.0, 0], [1, 0], [0, 1]], {0: 0.3, 1: 0.7}) == pytest.approx(0.2, abs=1e-9)
    assert nearest([[1.0], [1.0]], {0: 1.0}) == pytest.approx(0.5, abs=1e-12)
    assert nearest(np.ones((4, 2)), {0: 0.25, 2: 0.75}) == pytest.approx(0.5, abs=1e-12)


def test_keys_of_very_different_sizes_do_not_stop_the_search():
    keys = [[0, 0], [1, 0], [0, 1], [1e10, 1e10]]
    assert nearest(keys, {0: 0.3, 1: 0.3, 2: 0.4}) == pytest.approx(0.0291503, abs=1e-6)


@pytest.mark.parametrize(
    ("seed", "best"),
    spread([(22, 0.2249435281), (50, 0.1685044264), (55, 0.0851135), (72, 0.2088645435), (89, 0.0578290)], 3),
)
def test_minima_that_a_descent_from_the_divergence_misses_are_found(seed, best):
    """Cases in which an item keeps a tiny weight, or queries must be long in one direction; values by Nelder-Mead."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(3, 9))
    m, kind = int(rng.integers(1, min(n, 5))), rng.integers(4)
    keys = rng.standard_normal((n, d)) if kind == 0 else None
    if keys is None:
        keys = rng.uniform(-1, 1, (n, 1)) @ rng.standard_normal((1, d)) + 1e-3 * rng.standard_normal((n, d))
    items = rng.permutation(n)[:m].tolist()
    weights = np.maximum(rng.dirichlet(np.ones(m) * rng.choice([0.3, 1, 5])), 1e-6)
    assert nearest(keys, dict(zip(items, (weights / weights.sum()).tolist(), strict=True))) <= best + 1e-6


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_an_independent_search_comes_no_nearer(seed):
    keys, wanted, _ = attack.blend_case(seed)
    query = nearest_query(keys, list(wanted), np.array(list(wanted.values())), 1e-9)
    found = SimpleNamespace(distance=attack.total_variation(keys, query, wanted))
    assert attack.beaten_by(keys, wanted, found, np.random.default_rng(seed)) <= 1e-6


def test_one_item_takes_all_weight_beside_a_key_that_is_very_far_away():
    """A descent on the divergence alone stopped at a distance of 1e-3."""
    keys = np.array([[0.694227361], [0.263458438], [-3.57576158e4]])
    assert nearest(keys, {0: 1.0}) <= 1e-12


def test_the_search_ends_within_tol():
    keys = np.random.default_rng(0).standard_normal((8, 2))
    assert nearest(keys, {0: 0.5, 1: 0.5}, tol=0.9) <= 0.9


def test_score_axes_move_one_score_against_the_reference_and_keep_the_others():
    keys = np.array([[1e-6, 2e-6, 0.0], [1e3, -2e2, 4e3], [3e-4, -6e-4, -4e-4], [2e3, -3e3, -1e4], [5.0, 1.0, 2.0]])
    distance = tv_search._Distance(keys, [2, 1, 0], np.array([0.25, 0.45, 0.3]))
    axes = tv_search._score_axes(distance, np.array([1.0, 2.0, 3.0]), rival=3)
    moved = (keys - keys[2]) @ axes  # items 0 and 2 are the two that lie nearest to each other; 2 comes first
    np.testing.assert_allclose(moved[[1, 0, 3]], np.eye(3), atol=1e-6)
    np.testing.assert_allclose(moved[2], 0, atol=1e-12)


def test_wanted_keys_of_very_different_sizes_are_read_as_well_as_they_can_be():
    keys = np.array([
        [-1.0094933e-06, 7.98239882e-07, 1.9696452e-06], [1.05952154e03, 2.69731242e03, -2.78358322e03],
        [-1.71339379e04, 4.33539455e04, 1.10821374e05], [1.38473082e03, 2.1472425e02, 4.37701577e03],
        [2.67304016e-04, -5.82419422e-04, -4.34659217e-04], [-6.57023123e02, 7.27751392e02, 1.69644913e03],
        [-9.49972449e-05, 1.06712779e-05, 5.84140915e-05], [2.40683436e03, -2.9626024e03, -1.31312736e04],
    ])  # fmt: skip
    items, wanted = [4, 3, 0], np.array([0.2430580660, 0.4373844743, 0.3195574597])
    query = tv_search.nearest_query(keys, items, wanted, 1e-7)
    scores = keys @ query
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    short = np.maximum(wanted - weights[items], 0).sum()
    assert short < 0.16249  # steps in the query alone stop at 0.1638 or 0.1643, by the rounding of the processor


def test_keys_of_very_unlike_lengths_do_not_make_a_linear_program_cycle():
    """With this seed HiGHS went on for ever."""
    random = np.random.default_rng(2669)
    n = int(random.integers(3, 7))
    keys = random.standard_normal((n, n + int(random.integers(0, 2))))
    random.integers(0, 4)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    keys *= 10.0 ** random.choice([-6, 0, 6], (n, 1))
    tol, _ = float(random.choice([1e-3, 1e-2, 0.1])), random.integers(0, n)
    items = random.choice(n, int(random.integers(2, n)), replace=False)
    weights = random.dirichlet(np.ones(len(items)) * 3)
    found = qkv.design.blend(keys, dict(zip(items.tolist(), (weights / weights.sum()).tolist(), strict=True)), tol)
    assert found.certificate.verify() and found.distance < 0.01
