"""Balls and fractions on arrays against Python's fractions and mpmath."""

import math
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qkv.design.certificates import ball_arithmetic as balls

ENTRIES = st.floats(-1e6, 1e6, allow_subnormal=False)


def contains(ball, value):
    """Whether a ball contains a fraction: comparisons of balls are true only where they are certain."""
    exact = arb(value.numerator) / arb(value.denominator)
    return bool(ball.overlaps(exact))


@given(arrays(np.float64, (4, 3), elements=ENTRIES), arrays(np.float64, (3,), elements=ENTRIES))
def test_products_contain_the_exact_dot_products_and_are_narrow(a, x):
    for ball, row in zip(balls.products(a, x), a.tolist(), strict=True):
        exact = sum((Fraction(p) * Fraction(q) for p, q in zip(row, x.tolist(), strict=True)), Fraction(0))
        assert contains(ball, exact)
        assert float(ball.rad()) <= 1e-12 * (1 + abs(float(exact))) + 1e-3


def test_large_arrays_are_multiplied_in_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    a, x, w = rng.integers(-9, 9, (50, 3)).astype(float), np.array([1.0, 2.0, 3.0]), [arb(i) for i in range(50)]
    whole = balls.products(a, x), balls.combine(w, a)
    monkeypatch.setattr(balls, "CHUNK_NUMBERS", 7)
    pieces = balls.products(a, x), balls.combine(w, a)
    for one, other in zip(whole, pieces, strict=True):
        assert [float(b) for b in one] == [float(b) for b in other]
    assert [float(b) for b in whole[0]] == (a @ x).tolist()
    assert [float(b) for b in whole[1]] == (np.arange(50) @ a).tolist()


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_quotients_of_exponentials_contain_the_softmax(scores):
    with ctx.workprec(128), mpmath.workdps(60):
        raw, total = balls.exponentials([arb(s) for s in scores])
        powers = [mpmath.exp(mpmath.mpf(s)) for s in scores]
        for e, p in zip(raw, powers, strict=True):
            assert abs(mpmath.mpf(float((e / total).mid())) - p / sum(powers)) < mpmath.mpf(10) ** -15


def test_equal_scores_have_exactly_equal_weights():
    raw, total = balls.exponentials([arb(0.1)] * 12)
    nine = sum(raw[:9], arb(0))
    assert 4 * nine == 3 * total or (4 * nine - 3 * total).contains(0)
    assert balls.above(nine / total) <= 0.75 + 1e-15


@given(st.fractions(), st.sampled_from([53, 128]))
def test_rounded_floats_bound_the_number_from_both_sides(x, bits):
    with ctx.workprec(bits):
        ball = arb(x.numerator) / arb(x.denominator)
        low, high = balls.below(ball), balls.above(ball)
    assert Fraction(low) <= x <= Fraction(high)
    assert high - low <= 4 * math.ulp(float(x)) or bits == 53


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_rounded_to_itself(x):
    assert balls.above(arb(x)) == x == balls.below(arb(x))


@given(st.lists(ENTRIES, min_size=1, max_size=5))
def test_the_norm_contains_the_square_root_of_the_sum_of_squares(entries):
    square = sum(Fraction(e) ** 2 for e in entries)
    found = balls.norm(arb(e) for e in entries)
    assert Fraction(max(0.0, balls.below(found))) ** 2 <= square <= Fraction(balls.above(found)) ** 2


def combines(points, target):
    """Cramer's rule in fractions for d + 1 points in d dimensions: convex weights of the target, or None."""
    rows = [[*map(Fraction, p), Fraction(1)] for p in points]
    right = [*map(Fraction, target), Fraction(1)]

    def det(m):
        if len(m) == 1:
            return m[0][0]
        return sum((-1) ** i * m[i][0] * det([r[1:] for k, r in enumerate(m) if k != i]) for i in range(len(m)))

    whole = det(rows)
    if whole == 0:
        return None
    return [det([right if k == i else r for k, r in enumerate(rows)]) / whole for i in range(len(rows))]


@given(arrays(np.int64, (4, 2), elements=st.integers(-3, 3)))
def test_membership_in_a_triangle_is_what_cramers_rule_says(points):
    triangle, target = points[:3].astype(float), points[3].astype(float)
    weights = combines(triangle.tolist(), target.tolist())
    expected = weights is not None and min(weights) >= 0
    assert balls.in_hull_exactly(triangle, target) == expected


def test_dependent_points_and_points_off_the_span_decide_nothing():
    line = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    assert not balls.in_hull_exactly(line, np.array([0.5, 0.5]))  # dependent: weights are not unique
    assert balls.in_hull_exactly(line[:2], np.array([0.5, 0.5]))
    assert not balls.in_hull_exactly(line[:2], np.array([0.5, 0.25]))
    for some in combinations(range(3), 2):
        assert balls.in_hull_exactly(line[list(some)], line[some[0]])
    assert not balls.in_hull_exactly(np.zeros((5, 2)), np.zeros(2))  # more than d + 1 points


def test_fractions_of_floats_are_exact():
    m = balls.rational(np.array([[0.1, -2.5]]))
    assert Fraction(int(m[0, 0].p), int(m[0, 0].q)) == Fraction(0.1)
    assert Fraction(int(m[0, 1].p), int(m[0, 1].q)) == Fraction(-5, 2)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_arrays_become_exact_matrices(shape):
    a = np.random.default_rng(0).normal(size=shape)
    assert [float(x) for x in balls.flat(balls.matrix(a))] == a.ravel().tolist()
    assert all(x.rad() == 0 for x in balls.flat(balls.matrix(a)))


def test_gaps_of_weights_lose_nothing_where_one_item_is_wanted():
    raw = [arb(1), arb("1e-100"), arb("2e-100")]
    own, *others = balls.weight_gaps(raw, {0: 1.0})
    assert own.overlaps(-arb("3e-100")) and own.rel_accuracy_bits() > 40 and others == raw[1:]
    several = balls.weight_gaps([arb(3), arb(1), arb(4)], {0: 0.25, 2: 0.75})
    assert [float(g.mid()) for g in several] == [1.0, 1.0, -2.0]


def test_each_chunk_holds_at_least_one_row(monkeypatch):
    assert balls.CHUNK_NUMBERS == 2**18 and balls.MAX_SPLIT_ITEMS == 64
    monkeypatch.setattr(balls, "CHUNK_NUMBERS", 1)
    a = np.arange(6.0).reshape(3, 2)
    assert [float(b) for b in balls.products(a, np.array([1.0, 2.0]))] == [2.0, 8.0, 14.0]
    assert [float(b) for b in balls.combine([arb(1), arb(2), arb(3)], a)] == [16.0, 22.0]
    sizes = []
    true = balls.matrix
    monkeypatch.setattr(balls, "matrix", lambda m: sizes.append(np.shape(m)) or true(m))
    monkeypatch.setattr(balls, "CHUNK_NUMBERS", 4)
    balls.products(a, np.array([1.0, 2.0]))
    balls.combine([arb(1), arb(2), arb(3)], a)
    assert sizes == [(2,), (2, 2), (1, 2), (2, 2), (1, 2)]


@pytest.mark.parametrize("count", [64, 65])
def test_gaps_of_many_wanted_items_are_those_of_the_definition(count):
    raw = [arb(i + 1) for i in range(count + 2)]
    wanted = dict.fromkeys(range(count), 2.0 ** (-7))
    total = sum(range(1, count + 3))
    found = balls.weight_gaps(raw, wanted)
    assert [float(g.mid()) for g in found] == [i + 1 - wanted.get(i, 0) * total for i in range(count + 2)]


def test_a_leak_is_split_from_up_to_64_items_only():
    """Of 64 wanted items, 63 with nothing, one of weight 1 keeps the digits of a leak of 1e-100; of 65 it does not."""
    for count, digits in ((64, True), (65, False)):
        raw = [arb(1), arb("1e-100"), *[arb(0)] * (count - 1)]
        wanted = {0: 1.0} | dict.fromkeys(range(2, count + 1), 0.0)
        assert len(wanted) == count
        own = balls.weight_gaps(raw, wanted)[0]
        assert bool(own < 0) is digits


def test_bounds_of_what_no_float_is():
    third = arb(1) / 3
    assert balls.above(third) >= third and balls.below(third) <= third
    assert balls.above(third) - balls.below(third) <= 2 * math.ulp(1 / 3)
    wide = arb(1, 0.5)
    assert balls.below(wide) <= 0.5 and balls.above(wide) >= 1.5
    assert balls.above(wide) == pytest.approx(1.5) and balls.below(wide) == pytest.approx(0.5)


def test_a_point_may_be_a_corner_and_a_simplex_may_be_full():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    for target, inside in (((0, 0), True), ((0.5, 0.5), True), ((0.5, 0.5 + 2**-50), False), ((-(2**-50), 0), False)):
        assert balls.in_hull_exactly(corners, np.array(target, dtype=float)) is inside
    assert balls.in_hull_exactly(corners[:1], corners[0]) and not balls.in_hull_exactly(corners[:1], corners[1])
    assert not balls.in_hull_exactly(np.vstack([corners, [[1.0, 1.0]]]), np.array([0.5, 0.5]))


def test_more_points_than_can_be_independent_are_no_proof():
    from qkv.design.certificates.ball_arithmetic import in_hull_exactly

    assert in_hull_exactly(np.array([[0.0], [2.0]]), np.array([0.5]))
    for points in ([[0.0], [2.0], [1.0]], [[0.0], [1.0], [2.0], [3.0]]):
        assert not in_hull_exactly(np.array(points), np.array([0.5]))
