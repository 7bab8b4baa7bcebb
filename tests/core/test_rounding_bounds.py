"""Rounding bounds hold against exact rational arithmetic, and refuse what is not so."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qkv.core import rounding_bounds

SIZES = st.tuples(st.integers(2, 6), st.integers(1, 5))
PLAIN = st.floats(-4, 4, allow_subnormal=False)
WILD = st.one_of(PLAIN, st.sampled_from([1e150, -1e150, 1e-150, 3.0**-300, 1 / 3, 1 + 2**-52, 2.0**-1070, 1e300, 0.0]))


def fractions(row):
    return [Fraction(float(x)) for x in row]


def exact_margin(keys, item, query):
    """The smallest (k_j - k_i)·q as a rational number, and ‖q‖²."""
    q, own = fractions(query), fractions(keys[item])
    gaps = [
        sum((a - b) * c for a, b, c in zip(own, fractions(row), q, strict=True))
        for i, row in enumerate(keys)
        if i != item
    ]
    return min(gaps), sum(c * c for c in q)


def at_most_root(bound, square, sign):
    """Is the float `bound` <= sign·√square?"""
    b = Fraction(bound)
    if sign >= 0:
        return b <= 0 or b * b <= square
    return b <= 0 and b * b >= square


def is_lower(bound, gap, norm2):
    return bound == -inf or at_most_root(bound, gap * gap / norm2, 1 if gap >= 0 else -1)


def exact_residual_square(keys, item, others, weights):
    own, w = fractions(keys[item]), fractions(weights)
    rows = [fractions(keys[i]) for i in others]
    sums = [sum(a * (row[c] - own[c]) for a, row in zip(w, rows, strict=True)) / sum(w) for c in range(len(own))]
    return sum(s * s for s in sums)


@pytest.mark.parametrize("entries", [PLAIN, WILD], ids=["plain", "wild"])
@given(data=st.data())
@settings(max_examples=settings.default.max_examples * 3 // 2, deadline=None)
def test_a_margin_bound_is_never_above_the_exact_margin(entries, data):
    n, d = data.draw(SIZES)
    keys = data.draw(arrays(np.float64, (n, d), elements=entries))
    query = data.draw(arrays(np.float64, d, elements=entries))
    item = data.draw(st.integers(0, n - 1))
    bound = rounding_bounds.margin_lower_bounds(keys, [item], [query])[0]
    claim = rounding_bounds.margin_lower_bounds(keys, [item], [query], slack=4.0)[0]
    if not query.any():
        assert bound == -inf
        return
    gap, norm2 = exact_margin(keys, item, query)
    assert is_lower(bound, gap, norm2)
    assert claim <= bound


@pytest.mark.parametrize("entries", [PLAIN, WILD], ids=["plain", "wild"])
@given(data=st.data())
@settings(max_examples=settings.default.max_examples * 3 // 2, deadline=None)
def test_a_residual_bound_is_never_below_the_exact_residual(entries, data):
    n, d = data.draw(SIZES)
    keys = data.draw(arrays(np.float64, (n, d), elements=entries))
    weights = data.draw(arrays(np.float64, n - 1, elements=st.floats(0, 1e10)))
    if not weights.any():
        weights[0] = 1.0
    others = np.arange(1, n)
    bound = rounding_bounds.residual_upper_bounds(keys, [0], [0, n - 1], others, weights)[0]
    square = exact_residual_square(keys, 0, others, weights)
    assert bound == inf or Fraction(float(bound)) ** 2 >= square


def test_bounds_are_tight():
    random = np.random.default_rng(0)
    keys, queries = random.standard_normal((60, 12)) + 5.0, random.standard_normal((20, 12))
    bounds = rounding_bounds.margin_lower_bounds(keys, np.arange(20), queries)
    for j in range(20):
        gap, norm2 = exact_margin(keys, j, queries[j])
        assert 0 <= float(gap) / float(norm2) ** 0.5 - bounds[j] < 1e-12
    weights = random.uniform(size=5)
    bound = rounding_bounds.residual_upper_bounds(keys, [0], [0, 5], [1, 2, 3, 4, 5], weights)[0]
    true = float(exact_residual_square(keys, 0, [1, 2, 3, 4, 5], weights)) ** 0.5
    assert 0 <= bound - true < 1e-12


def test_a_near_neighbour_is_told_apart_by_its_own_distance():
    # One part in 10^14 apart: far below the error of two separate scores of size 1, but not of their
    # difference.
    keys = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-14], [-1.0, -3.0]])
    bound = rounding_bounds.margin_lower_bounds(keys, [0], [[0.0, 1.0]])[0]
    assert 0.99e-14 < bound <= 1e-14


def test_equal_keys_have_residual_zero_and_no_margin():
    keys = np.array([[0.1, 0.2], [0.1, 0.2], [3.0, 4.0]])
    assert rounding_bounds.residual_upper_bounds(keys, [0], [0, 1], [1], [0.3])[0] == 0.0
    assert rounding_bounds.margin_lower_bounds(keys, [0], [[-1.0, 0.5]])[0] <= 0


def test_a_weight_that_vanishes_beside_another_still_counts():
    keys = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    bound = rounding_bounds.residual_upper_bounds(keys, [0], [0, 2], [1, 2], [1e300, 1e-300])
    assert bound[0] > 0
    assert rounding_bounds.residual_upper_bounds(keys, [0], [0, 2], [1, 2], [1e300, 0.0])[0] == 0


def test_a_claim_with_slack_survives_another_order_of_summation():
    random = np.random.default_rng(1)
    keys = random.standard_normal((400, 40)) * 10.0 ** random.uniform(-6, 6, 40)
    queries = keys - keys.mean(axis=0)
    claims = rounding_bounds.margin_lower_bounds(keys, np.arange(400), queries, slack=4.0)
    shuffle = random.permutation(40)
    again = rounding_bounds.margin_lower_bounds(keys[:, shuffle], np.arange(400), queries[:, shuffle])
    assert (again >= claims).all()
    assert (claims > 0).any()


@pytest.mark.parametrize("seed", range(4))
def test_margins_among_the_keys_that_a_query_sees(seed):
    random = np.random.default_rng(seed)
    n, d, m = 7, 5, 60
    keys, queries = random.normal(size=(n, d)), random.normal(size=(m, d)) * 10.0 ** random.integers(-3, 4, (m, 1))
    first, last = np.sort(random.integers(0, n, (2, m)), axis=0)
    items = random.integers(first, last + 1)
    bounds = rounding_bounds.top_margin_lower_bounds(keys, queries, items, first, last)
    for q, item, low, high, bound in zip(queries, items, first, last, bounds, strict=True):
        unit = q / np.linalg.norm(q)
        others = [(keys[item] - keys[i]) @ unit for i in range(low, high + 1) if i != item]
        if not others:
            assert bound == inf
            continue
        assert min(others) - 1e-12 < bound < min(others) + 1e-14
    assert rounding_bounds.top_margin_lower_bounds(keys, 0 * queries, items, first, last).max() == -inf


def test_many_tiles_agree_with_one(monkeypatch):
    random = np.random.default_rng(2)
    keys = random.standard_normal((300, 6))
    queries = keys - keys.mean(axis=0)
    whole = rounding_bounds.margin_lower_bounds(keys, np.arange(300), queries)
    monkeypatch.setattr(rounding_bounds, "TILE_ROWS", 7)
    monkeypatch.setattr(rounding_bounds, "TILE_COLUMNS", 11)
    assert np.allclose(rounding_bounds.margin_lower_bounds(keys, np.arange(300), queries), whole, rtol=0, atol=1e-13)


def test_a_sharp_margin_is_the_same_in_many_tiles(monkeypatch):
    points = np.random.default_rng(7).standard_normal((9, 3))
    query = points[4] / np.linalg.norm(points[4])
    whole = [rounding_bounds._sharp_margin(points, item, query, 1.0, 1.0) for item in range(9)]
    monkeypatch.setattr(rounding_bounds, "TILE_COLUMNS", 2)
    tiled = [rounding_bounds._sharp_margin(points, item, query, 1.0, 1.0) for item in range(9)]
    assert tiled == pytest.approx(whole, abs=1e-14) and len(set(whole)) == 9


def test_what_makes_no_sense_proves_nothing():
    keys = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    good = [1.0, 2.0]
    queries = [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], good, good]
    assert (rounding_bounds.margin_lower_bounds(keys, [1, 1, 1, 4, -1], queries) == -inf).all()
    third = [1 / 3] * 3
    assert rounding_bounds.residual_upper_bounds(keys, [0], [0, 3], [1, 2, 3], third)[0] < 1e-15
    broken = [
        ([0], [0, 3], [1, 2, 3], [1 / 3, 1 / 3, -1 / 3]),  # a negative weight
        ([0], [0, 3], [1, 2, 3], [1 / 3, np.nan, 1 / 3]),
        ([0], [0, 3], [1, 2, 3], [0.0, 0.0, 0.0]),
        ([0], [0, 3], [1, 2, 0], third),  # the key itself
        ([0], [0, 3], [1, 2, 9], third),  # nobody
        ([0], [0, 2], [1, 2, 3], third),  # rows that do not cover the entries
        ([7], [0, 3], [1, 2, 3], third),
        ([0], [0, 0], [], []),
    ]
    for case in broken:
        assert rounding_bounds.residual_upper_bounds(keys, *case)[0] == inf


def test_a_corrupted_claim_is_refused():
    random = np.random.default_rng(3)
    keys = random.standard_normal((50, 30))
    queries = keys - keys.mean(axis=0)
    items = np.arange(50)
    claims = rounding_bounds.margin_lower_bounds(keys, items, queries, slack=4.0)
    assert (claims > 0).all()
    assert (rounding_bounds.margin_lower_bounds(keys, items, queries, claimed=claims) >= claims).all()
    raised = claims * (1 + 1e-9)
    assert (rounding_bounds.margin_lower_bounds(keys, items, queries, claimed=raised) < raised).all()
    assert (rounding_bounds.margin_lower_bounds(keys, items, -queries) < 0).all()
    moved = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    honest = rounding_bounds.residual_upper_bounds(moved, [0], [0, 2], [1, 2], [0.5, 0.5], slack=4.0)[0]
    assert honest < 1e-14
    assert rounding_bounds.residual_upper_bounds(moved, [0], [0, 2], [1, 2], [0.5, 0.5001])[0] > 1e-5


def test_one_key_alone_has_an_infinite_margin():
    assert rounding_bounds.margin_lower_bounds(np.array([[1.0, 2.0]]), [0], [[1.0, 0.0]])[0] == inf


def test_huge_and_tiny_keys_neither_overflow_nor_vanish():
    for scale in (1e300, 1e-300, 1e-160):
        keys = np.array([[1.0, 0.0], [-1.0, 0.5], [-1.0, -0.5]]) * scale
        bound = rounding_bounds.margin_lower_bounds(keys, [0], [[1.0, 0.0]])[0]
        assert bound == pytest.approx(2 * scale, rel=1e-12)
        assert bound <= 2 * scale


def test_rows_that_do_not_begin_at_the_first_index_prove_nothing():
    keys = np.eye(4)
    assert np.isfinite(rounding_bounds.residual_upper_bounds(keys, [0], [0, 2], [1, 2], [1.0, 1.0])).all()
    assert (rounding_bounds.residual_upper_bounds(keys, [0], [1, 2], [1, 2], [1.0, 1.0]) == inf).all()
    empty, full = rounding_bounds.residual_upper_bounds(keys, [3, 0], [0, 0, 2], [1, 2], [1.0, 1.0])
    assert empty == inf and np.isfinite(full)


@pytest.mark.parametrize("size", [1e-300, 0.1, 0.5, 1.0, 7.0, 1e300])
def test_numbers_are_scaled_to_between_one_half_and_one(size):
    keys = np.array([[size, -size / 3]])
    assert 0.5 <= np.abs(np.ldexp(keys, -rounding_bounds._exponent(keys))).max() < 1


def test_so_many_roundings_have_this_relative_error():
    gamma = rounding_bounds.gamma
    assert gamma(3, 0.01) == pytest.approx(0.04 / 0.96) and gamma(0, 0.25) == pytest.approx(1 / 3)
    assert gamma(48, 0.01) == pytest.approx(0.49 / 0.51) and gamma(49, 0.01) == inf
    assert gamma(10) == pytest.approx(11 * 2.0**-53, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_residuals_of_several_items_are_those_of_each_alone(seed):
    random = np.random.default_rng(seed)
    n, d = 9, 4
    keys = random.standard_normal((n, d))
    items = np.array([0, 3, 20, 5, 7, 8, 2])
    counts = [3, 1, 2, 4, 0, 2, 3]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    others = [np.setdiff1d(np.arange(n), [j]) for j in items]
    indices = np.concatenate([random.choice(own, m, False) for own, m in zip(others, counts, strict=True)])
    weights = random.uniform(0.1, 2.0, len(indices))
    weights[offsets[5]] = -1.0  # proves nothing of item 8
    many = rounding_bounds.residual_upper_bounds(keys, items, offsets, indices, weights)
    assert np.isinf(many).tolist() == [False, False, True, False, True, True, False]
    for r in (0, 1, 3, 6):
        own = slice(offsets[r], offsets[r + 1])
        square = exact_residual_square(keys, items[r], indices[own], weights[own])
        assert float(square) ** 0.5 <= many[r] < float(square) ** 0.5 + 1e-13
    for wrong in (offsets[:-1], offsets[::-1], offsets + 1, np.append(offsets[:-1], 99)):
        assert np.isinf(rounding_bounds.residual_upper_bounds(keys, items, wrong, indices, weights)).all()
    assert np.isinf(rounding_bounds.residual_upper_bounds(keys, items[:1], [0, 3], indices[:3], np.zeros(3))).all()


# The allowance for rounding itself: with an error of a thousandth a rounding it is large enough to be seen, and must be
# what the derivations in the docstrings say, computed here item by item.

COARSE = 1e-3


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(rounding_bounds, "gamma", lambda k: k * COARSE)


def scaled(array):
    """An array over the power of two that brings its largest entry into [1/2, 1), and that power."""
    power = 2.0 ** np.ceil(np.log2(np.abs(array).max()))
    power *= 2.0 if np.abs(array).max() == power else 1.0
    return array / power, power


@pytest.mark.parametrize("slack", [1.0, 4.0])
def test_a_margin_allows_for_its_roundings(coarse, slack):
    random = np.random.default_rng(4)
    keys, queries = random.normal(size=(6, 2)) * 5, random.normal(size=(30, 2))
    items = random.integers(0, 6, 30)
    points, power = scaled(keys)
    x, finer = scaled(points - points.mean(axis=0))
    norms = np.linalg.norm(x, axis=1)
    bounds = rounding_bounds.margin_lower_bounds(keys, items, queries, claimed=-1e9, slack=slack)
    for j, q, bound in zip(items, queries, bounds, strict=True):
        margin = min((x[j] - x[i]) @ q for i in range(6) if i != j) / np.linalg.norm(q)
        error = (3 * 2 + 16) * COARSE * (norms[j] + norms.max())
        plain = (margin - slack * error) * power * finer
        unit = scaled(q)[0]
        size = np.linalg.norm(unit)
        gap = min(
            -(points[i] - points[j]) @ unit - slack * (2 + 4) * COARSE * np.abs(points[i] - points[j]) @ np.abs(unit)
            for i in range(6)
            if i != j
        )
        relative = slack * (2 + 6) * COARSE
        sharp = gap / (size * (1 + relative if gap > 0 else 1 - relative)) * power
        sharpened = -error < margin < 16 * error
        assert bound == pytest.approx(max(plain, sharp) if sharpened else plain, rel=1e-9)


@pytest.mark.parametrize("slack", [1.0, 4.0])
def test_a_top_margin_allows_for_its_roundings(coarse, slack):
    random = np.random.default_rng(5)
    n, d, m = 7, 3, 40
    keys, queries = random.normal(size=(n, d)) * 3, random.normal(size=(m, d)) * 10.0 ** random.integers(-2, 3, (m, 1))
    first, last = np.sort(random.integers(0, n, (2, m)), axis=0)
    last = np.where(first == last, n - 1, last)
    first = np.where(first == last, 0, first)
    items = random.integers(first, last + 1)
    points, power = scaled(keys)
    lengths = np.linalg.norm(points, axis=1)
    error, relative = slack * (2 * d + 16) * COARSE, slack * (d + 8) * COARSE
    bounds = rounding_bounds.top_margin_lower_bounds(keys, queries, items, first, last, slack=slack)
    signs = set()
    for query, j, low, high, bound in zip(queries, items, first, last, bounds, strict=True):
        q = scaled(query)[0]
        size = np.linalg.norm(q)
        other = max(points[i] @ q + error * size * lengths[i] for i in range(low, high + 1) if i != j)
        gap = points[j] @ q - error * size * lengths[j] - other
        gap -= error * (abs(points[j] @ q) + size * lengths.max())
        signs.add(gap > 0)
        assert bound == pytest.approx(gap / (size * (1 + relative if gap > 0 else 1 - relative)) * power, rel=1e-9)
    assert signs == {True, False} or slack == 4.0


@pytest.mark.parametrize("slack", [1.0, 4.0])
def test_a_residual_allows_for_its_roundings(coarse, slack):
    random = np.random.default_rng(6)
    n, d = 8, 3
    keys = random.normal(size=(n, d)) * 3
    counts = [2, 5, 3]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([random.choice(np.arange(1, n), m, False) for m in counts])
    weights = random.uniform(0.1, 5, len(indices))
    points, power = scaled(keys)
    bounds = rounding_bounds.residual_upper_bounds(keys, [0, 0, 0], offsets, indices, weights, slack=slack)
    for r, bound in enumerate(bounds):
        own = slice(offsets[r], offsets[r + 1])
        y, w = points[indices[own]] - points[0], weights[own]
        shift = np.abs(w @ y) + slack * (5 + 4) * COARSE * (w @ np.abs(y))
        size = np.linalg.norm(shift) * (1 + slack * (d + 5 + 12) * COARSE) / w.sum()
        assert bound == pytest.approx(size * power, rel=1e-9)


def test_a_claim_that_is_out_of_reach_is_not_sharpened_and_one_within_reach_is(coarse, monkeypatch):
    calls = []
    real = rounding_bounds._sharp_margin
    monkeypatch.setattr(rounding_bounds, "_sharp_margin", lambda *args: calls.append(1) or real(*args))
    keys = np.array([[1.0, 0.0], [-1.0, 0.0]])  # a margin of 2, offsets of norm 1/2: an error of 22 thousandths
    queries, error = [[1.0, 0.0]], 22 * COARSE * 2
    for claimed, sharpened in (
        (2.1, False),
        (2 + 0.9 * error, True),
        (2 - 0.9 * error, True),
        (2 - 1.1 * error, False),
    ):
        calls.clear()
        rounding_bounds.margin_lower_bounds(keys, [0], queries, claimed=claimed)
        assert bool(calls) == sharpened, claimed
    calls.clear()
    rounding_bounds.margin_lower_bounds(keys, [1], queries, claimed=-3.0)  # a negative margin needs no sharper bound
    assert not calls


def test_what_underflow_may_add_is_allowed_for(monkeypatch):
    monkeypatch.setattr(rounding_bounds, "gamma", lambda k: 0.0)
    monkeypatch.setattr(rounding_bounds, "TINY", 0.125)
    keys = np.array([[0.5, 0.0], [-0.5, 0.0]])
    queries = np.array([[0.5, 0.0]])
    assert rounding_bounds.margin_lower_bounds(keys, [0], queries)[0] == pytest.approx(1 - 0.125)
    ends = np.array([0]), np.array([1])
    top = rounding_bounds.top_margin_lower_bounds(keys, queries, np.array([0]), *ends)[0]
    assert top == pytest.approx((0.5 - 0.125) / 0.5)
    residual = rounding_bounds.residual_upper_bounds(keys, [0], [0, 1], [1], [1.0])[0]
    assert residual == pytest.approx(np.hypot(0.5 + 0.125, 0.125) / 0.5)  # a weight of 1 is scaled to 1/2
    near = np.array([[0.5, 0.5], [0.5, 0.25], [-0.5, -0.5]])  # 1 away, but 1/4 only by the small coordinate
    sharp = rounding_bounds._sharp_margin(near, 0, np.array([0.0, 0.5]), 0.5, 1.0)
    assert sharp == pytest.approx((0.125 - 0.125) / 0.5)


@given(value=WILD, exponent=st.integers(-1100, 1100))
def test_a_number_is_rounded_down(value, exponent):
    (found,) = rounding_bounds.rounded_down(np.array([value]), exponent)
    exact = Fraction(value) * Fraction(2) ** exponent
    assert found < np.inf and (found == -np.inf or Fraction(float(found)) < exact)
    with np.errstate(over="ignore"):
        nearest = np.ldexp(value, exponent)
    if np.isfinite(nearest) and abs(nearest) > 1e-300:
        assert abs(found - nearest) <= 2 * np.spacing(abs(nearest))


def test_equal_keys_of_one_item_say_nothing_of_the_others():
    keys = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    items, offsets = np.array([0, 2, 3]), np.array([0, 1, 2, 3])
    found = rounding_bounds.residual_upper_bounds(keys, items, offsets, np.array([1, 3, 0]), np.ones(3))
    assert found[0] == 0 and found[1] == pytest.approx(2) and found[2] == pytest.approx(2**0.5)


@pytest.mark.parametrize("coordinates", [(1.5, 0.5), (3.5, 1.5), (3.5, 0.5)])
def test_what_the_scale_of_a_large_key_takes_from_small_coordinates_is_allowed_for(coordinates):
    keys = np.array([[2.0**1000, x * 2.0**-74] for x in coordinates])
    query = np.array([[0.0, 1.0]])
    bound = rounding_bounds.margin_lower_bounds(keys, [0], query)[0]
    gap, norm2 = exact_margin(keys, 0, query[0])
    assert is_lower(bound, gap, norm2)
    scaled = rounding_bounds.scaled_keys(keys)
    assert scaled.fine < -1060
    assert (scaled.error(np.array([0, 1])) >= 2.0 ** (-1074 - scaled.fine)).all()
