"""Ranges against brute force: a number lies in a range exactly when it meets every condition."""

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkv.claims.semantics.ranges import Range

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
bounds = st.fractions(-3, 3, max_denominator=3)
conditions = st.lists(st.tuples(st.sampled_from(list(OPS)), bounds), max_size=5)
GRID = [Fraction(j, 12) for j in range(-60, 61)]


def contains(where, x):
    """Exact membership, written from the fields."""
    over = where.lo is None or x > where.lo or (x == where.lo and not where.lo_open)
    under = where.hi is None or x < where.hi or (x == where.hi and not where.hi_open)
    return over and under and (not where.whole or x.denominator == 1)


@given(conditions, st.booleans())
def test_a_range_holds_the_numbers_that_meet_all_conditions(wanted, whole):
    where = Range(whole=whole)
    for op, bound in wanted:
        where = where.meet(op, bound)
    true = [x for x in GRID if all(OPS[op](x, b) for op, b in wanted) and (not whole or x.denominator == 1)]
    assert [x for x in GRID if contains(where, x)] == true
    if where.empty:
        assert not true
    if where.point is not None:
        assert true == [where.point] or abs(where.point) > 5


@given(conditions)
def test_floats_inside_are_held_and_floats_outside_are_not(wanted):
    where = Range()
    for op, bound in wanted:
        where = where.meet(op, bound)
    for x in GRID:
        if contains(where, x):
            assert where.holds(float(x))
        elif all(end is None or abs(x - end) > Fraction(1, 100) for end in (where.lo, where.hi)):
            assert not where.holds(float(x))


@pytest.mark.parametrize(
    ("where", "value", "inside"),
    [
        (Range(Fraction(0), None, True), 0.0, False),
        (Range(Fraction(0), None), -1e-13, True),
        (Range(Fraction(0), None, True), 1e-300, True),
        (Range(None, Fraction(1)), 1 + 1e-13, True),
        (Range(None, Fraction(1), hi_open=True), 1.0, False),
        (Range(), 1e300, True),
    ],
)
def test_rounding_counts_only_at_ends_that_belong_to_the_range(where, value, inside):
    assert where.holds(value) == inside


def test_whole_numbers_round_their_bounds_inwards():
    where = Range(whole=True).meet(">", Fraction(2)).meet("<", Fraction(7, 2))
    assert (where.lo, where.hi, where.lo_open, where.hi_open, where.point) == (3, 3, False, False, 3)
    assert where.meet("<", Fraction(3)).empty
