"""The active-set search decides keys as exact arithmetic, Qhull and HiGHS do."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from qkv.core import rounding_bounds
from qkv.design.hull import active_set, origin_in_hull


def decided(keys, items=None, candidates=None):
    """{item: True} where a certified query was found, {item: False} where a certified combination was."""
    everyone = np.arange(len(keys))
    items = everyone if items is None else np.asarray(items)
    out = active_set.decide(keys, items, everyone if candidates is None else candidates)
    yes, no = out.items[out.found], out.items[~out.found]
    assert (rounding_bounds.margin_lower_bounds(keys, yes, out.queries, slack=4.0) > 0).all()
    spread = np.abs(keys - keys.mean(axis=0)).max() + 1e-300
    assert (
        rounding_bounds.residual_upper_bounds(keys, no, out.offsets, out.indices, out.weights) <= 1e-12 * spread
    ).all()
    return dict(zip(items.tolist(), out.found.tolist(), strict=True))


def solves(rows, target):
    """Do non-negative rational weights with sum 1 combine these rows, if independent, to the target?"""
    columns = [[Fraction(float(x)) for x in row] + [Fraction(1)] for row in rows]
    table = [[c[r] for c in columns] + [t] for r, t in enumerate([Fraction(float(x)) for x in target] + [Fraction(1)])]
    pivot = 0
    for c in range(len(columns)):
        row = next((r for r in range(pivot, len(table)) if table[r][c]), None)
        if row is None:
            return False
        table[pivot], table[row] = table[row], table[pivot]
        table[pivot] = [x / table[pivot][c] for x in table[pivot]]
        for r in range(len(table)):
            if r != pivot and table[r][c]:
                table[r] = [x - table[r][c] * y for x, y in zip(table[r], table[pivot], strict=True)]
        pivot += 1
    return all(row[-1] == 0 for row in table[pivot:]) and all(row[-1] >= 0 for row in table[:pivot])


def inside_exactly(keys, j):
    """Carathéodory: a point of the hull lies in the hull of at most d + 1 affinely independent others."""
    others = [i for i in range(len(keys)) if i != j]
    sizes = range(1, keys.shape[1] + 2)
    return any(solves(keys[list(some)], keys[j]) for size in sizes for some in combinations(others, size))


def feasible(keys, j):
    """HiGHS: is there a q with (k_i - k_j)·q <= -1 for all i?"""
    y = np.delete(keys, j, axis=0) - keys[j]
    return linprog(np.zeros(keys.shape[1]), y, -np.ones(len(y)), bounds=(None, None)).status == 0


@given(
    keys=st.tuples(st.integers(2, 7), st.integers(1, 3)).flatmap(
        lambda s: arrays(np.int64, s, elements=st.integers(-2, 2))
    )
)
@settings(max_examples=settings.default.max_examples * 6 // 5, deadline=None)
def test_small_grids_are_decided_as_exact_arithmetic_decides_them(keys):
    keys = keys.astype(float)
    assert decided(keys) == {j: not inside_exactly(keys, j) for j in range(len(keys))}


@pytest.mark.parametrize(("n", "d"), [(60, 2), (120, 3), (200, 5)])
def test_gaussian_keys_are_decided_as_by_qhull(n, d):
    keys = np.random.default_rng(d).standard_normal((n, d))
    answers = decided(keys)
    assert {j for j, yes in answers.items() if yes} == set(ConvexHull(keys).vertices.tolist())


def test_only_the_corners_of_a_grid_are_vertices():
    keys = np.array([[x, y, z] for x in range(4) for y in range(4) for z in range(4)], dtype=float)
    corners = {j for j, k in enumerate(keys) if all(c in (0, 3) for c in k)}
    assert {j for j, yes in decided(keys).items() if yes} == corners


def test_midpoints_of_edges_are_not_vertices():
    random = np.random.default_rng(0)
    ends = random.standard_normal((12, 6))
    middles = np.array([(ends[a] + ends[b]) / 2 for a, b in combinations(range(12), 2)])
    answers = decided(np.vstack([ends, middles]))
    assert [answers[j] for j in range(12)] == [feasible(ends, j) for j in range(12)]
    assert not any(answers[j] for j in range(12, len(answers)))


@pytest.mark.parametrize("bump", [1e-3, 1e-6, 1e-9, 1e-12, 1e-13])
@pytest.mark.parametrize("d", [2, 5, 9])
def test_the_smallest_bump_on_a_facet_makes_a_vertex_and_the_smallest_dent_does_not(bump, d):
    # The simplex of unit vectors, and a point that sticks out of the middle of its slanted facet.
    simplex = np.vstack([np.zeros(d), np.eye(d)])
    middle = np.full(d, 1 / d)
    assert decided(np.vstack([simplex, middle + bump]))[d + 1]
    assert not decided(np.vstack([simplex, middle - bump]))[d + 1]


def test_wildly_scaled_coordinates_change_nothing():
    random = np.random.default_rng(4)
    keys = np.round(random.standard_normal((80, 5)) * 64) / 64
    plain = decided(keys)
    assert decided(np.ldexp(keys, [0, 40, -60, 200, -300])) == plain
    assert 0 < sum(plain.values()) < 80


def test_keys_in_a_plane_of_a_larger_space():
    random = np.random.default_rng(5)
    flat = random.standard_normal((50, 2))
    keys = flat @ random.standard_normal((2, 10)) + 3.0
    yes = {j for j, found in decided_flat(keys).items() if found}
    assert yes == set(ConvexHull(flat).vertices.tolist())


def decided_flat(keys):
    """Rounding lifts interior keys off the plane by 1e-16: whatever it is called, the bounds must say so."""
    out = active_set.decide(keys, np.arange(len(keys)), np.arange(len(keys)))
    margins = np.zeros(len(keys))
    margins[out.items[out.found]] = rounding_bounds.margin_lower_bounds(
        keys, out.items[out.found], out.queries, slack=4.0
    )
    return {j: bool(m > 1e-10) for j, m in enumerate(margins)}


def test_twins_and_crowds_of_equal_keys():
    keys = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [1.0, 2.0], [5.0, 5.0]])
    assert active_set.duplicates(keys, np.arange(6)) == {0: 2, 2: 0, 4: 0, 1: 3, 3: 1}
    assert decided(keys) == {0: False, 1: False, 2: False, 3: False, 4: False, 5: True}
    assert not any(decided(np.ones((5, 3))).values())


def test_a_tenth_of_an_ulp_is_reported_as_the_bound_not_as_a_guess():
    # Not representable between: the middle is off the segment by less than rounding can show.
    keys = np.array([[0.1, 0.1], [0.3, 0.3], [0.2, 0.2]])
    out = active_set.decide(keys, np.array([2]), np.arange(3))
    if out.found[0]:
        assert rounding_bounds.margin_lower_bounds(keys, [2], out.queries)[0] > 0
    else:
        assert rounding_bounds.residual_upper_bounds(keys, [2], out.offsets, out.indices, out.weights)[0] < 1e-15


def test_known_vertices_are_enough_to_show_that_a_key_is_inside():
    keys = np.random.default_rng(6).standard_normal((400, 3))
    vertices = ConvexHull(keys).vertices.astype(np.int64)
    rest = np.setdiff1d(np.arange(400), vertices)
    assert not any(decided(keys, rest, vertices).values())


def test_linear_programming_as_the_last_resort_agrees():
    keys = np.random.default_rng(7).standard_normal((60, 4))
    keys[-1] = (keys[0] + keys[1]) / 2
    out = active_set.decide_by_linear_program(keys, np.arange(60))
    assert dict(enumerate(out.found.tolist())) == decided(keys)
    assert (
        rounding_bounds.residual_upper_bounds(keys, out.items[~out.found], out.offsets, out.indices, out.weights)
        < 1e-13
    ).all()


def test_a_solver_that_gives_up_is_replaced(monkeypatch):
    keys = np.random.default_rng(8).standard_normal((40, 3))
    expected = decided(keys)

    def gives_up(a, b):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(origin_in_hull, "nnls", gives_up)
    assert decided(keys) == expected


def test_blocks_do_not_change_answers(monkeypatch):
    keys = np.random.default_rng(9).standard_normal((150, 4))
    expected = decided(keys)
    monkeypatch.setattr(active_set, "MAX_BLOCK_ITEMS", 7)
    assert decided(keys) == expected


def test_equal_keys_are_found_with_their_first_copy():
    keys = np.array([[1.0, 2.0], [0.0, -0.0], [1.0, 2.0], [3.0, 3.0], [-0.0, 0.0], [1.0, 2.0]])
    assert active_set.duplicates(keys, np.arange(6)) == {0: 2, 2: 0, 5: 0, 1: 4, 4: 1}
    assert active_set.duplicates(keys, np.array([0, 3])) == {}


@given(st.integers(1, 10**7))
def test_a_block_holds_at_least_one_item_and_bounded_scores(candidates):
    size = active_set.block_size(candidates)
    assert 1 <= size <= active_set.MAX_BLOCK_ITEMS
    assert size == 1 or size * candidates <= 2**22
