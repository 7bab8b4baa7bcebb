"""Tables of scores: every bound against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from qkv.design.certificates.statements import score_tables
from qkv.design.certificates.statements.score_tables import Rows, table_error, token_table


def exactly(a):
    return [[Fraction(float(v)) for v in row] for row in np.asarray(a)]


def product(x, m):
    """x mᵀ in fractions; narrower rows of x stand for rows with zeros at their end."""
    return [[sum((a * b for a, b in zip(row, col, strict=False)), Fraction(0)) for col in m] for row in x]


@pytest.mark.parametrize("seed", range(20))
def test_the_error_and_the_size_of_rows_bound_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    scale = float(rng.choice([1e-150, 1e-3, 1.0, 1e8]))
    x, m, k = rng.normal(size=(4, 3)) * scale, rng.normal(size=(5, 6)), rng.normal(size=(2, 5))
    rows = Rows.exact(x).times(m).times(k)
    rows = rows.plus(Rows.exact(rng.normal(size=(4, 2))))
    added = rows.values - Rows.exact(x).times(m).times(k).values
    true = product(product(exactly(x), exactly(m)), exactly(k))
    for got, want, extra in zip(rows.values, true, added, strict=True):
        off = sum((Fraction(float(g)) - w - Fraction(float(e))) ** 2 for g, w, e in zip(got, want, extra, strict=True))
        # `added` is itself rounded once more, which is why its rounding is allowed for.
        assert off <= (Fraction(rows.error) + Fraction(2.0**-50) * Fraction(rows.size)) ** 2
        assert sum(Fraction(float(g)) ** 2 for g in got) <= Fraction(rows.size) ** 2


@pytest.mark.parametrize("seed", range(20))
def test_the_extremes_of_the_table_bound_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    n, h = int(rng.integers(1, 12)), int(rng.integers(1, 6))
    scale = float(rng.choice([1e-120, 1.0, 1e30]))
    a, c = rng.normal(size=(n, h)) * scale, rng.normal(size=(n, h)) / min(scale, 1.0)
    if seed % 4 == 0:
        a[0], c[-1] = 0, 0
    if seed % 5 == 0:
        c = a / scale**2
    reading = rng.random(n) < 0.8
    reading[0] = True
    table = token_table(Rows.exact(a), Rows.exact(c), 1.0, np.zeros(n), reading)
    error = Fraction(table_error(Rows.exact(a), Rows.exact(c)))
    true = product(exactly(a), exactly(c))
    for u in range(n):
        assert abs(Fraction(float(table.own[u])) - true[u][u]) <= error
        for v in range(n):
            assert Fraction(float(table.lowest[u])) - error <= true[u][v]
            assert v == u or true[u][v] <= Fraction(float(table.rival[u])) + error


def test_the_smallest_margin_is_as_sharp_as_float64():
    rng = np.random.default_rng(0)
    e = rng.normal(size=(200, 16))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    table = token_table(Rows.exact(e), Rows.exact(e), 1.0, np.zeros(200), np.ones(200, dtype=bool))
    scores = e @ e.T
    np.fill_diagonal(scores, -np.inf)
    true = (1 - scores.max(axis=1)).min()
    assert true - 1e-12 <= (table.own - table.rival).min() <= true + 1e-12
    assert (table.rival >= scores.max(axis=1) - 1e-15).all()


def test_a_negligible_table_is_bounded_without_being_computed():
    table = token_table(Rows.exact(np.zeros((3, 2))), Rows.exact(np.ones((3, 2))), 1.0, np.zeros(3), np.ones(3, bool))
    assert not table.rival.any() and not table.lowest.any()


# Each bound by itself, with the roundings that the module counts.

U, TINY = 2.0**-53, 2.0**-1000


def roundings(k, unit=53):
    """Bound on the relative error of k roundings of 2^-unit, counted once more for the bound itself, in fractions."""
    n = Fraction(k + 1, 2**unit)
    return float(n / (1 - n))


def near(value, rel=1e-9):
    return pytest.approx(value, rel=rel, abs=0)


def test_the_longest_row_has_room_for_its_roundings():
    longest = score_tables._longest(np.array([[0.0, 1.0], [3.0, 4.0]]))
    assert longest - 5 == pytest.approx(5 * roundings(2 + 8), abs=2.0**-49)
    assert score_tables._longest(np.zeros((2, 2))) == 0 and score_tables._longest(np.zeros((0, 2))) == 0
    assert score_tables._longest(np.array([[1.0, np.inf]])) == np.inf
    assert np.isnan(score_tables._longest(np.array([[1.0, np.nan]])))
    assert score_tables._longest(np.array([[3e-200, 4e-200]])) == near(5e-200, 1e-14)
    assert score_tables._longest(np.array([[3e200, 4e200]])) == near(5e200, 1e-14)


def test_the_error_of_a_product_is_that_of_the_rows_and_of_the_sums():
    """Rows of width 2 by a matrix of width 3, whose last column meets zeros."""
    rows = Rows(np.array([[3.0, 0.0], [0.0, -1.0]]), 2.0**-50, 3.0)
    matrix = np.array([[1.0, 2.0, 9.0], [-2.0, 4.0, 9.0]])
    found = rows.times(matrix)
    assert found.values.tolist() == [[3, -6], [-2, -4]]
    longest = 45**0.5
    assert found.error == near(2.0**-50 * 5 + roundings(2 + 2) * longest)
    assert found.size == near(longest + found.error, 1e-14)
    assert Rows.exact(np.zeros((1, 2))).times(np.zeros((1, 2))).error == TINY
    exact = Rows.exact(np.array([[3.0, 4.0]]))
    assert exact.error == 0 and exact.size == near(5.0, 1e-14)
    assert Rows(np.array([[3.0]]), 0.5, 3.0).times(np.array([[0.0]])).size >= 0


def test_the_size_of_a_product_holds_its_error():
    found = Rows(np.array([[1.0]]), 0.5, 1.5).times(np.array([[2.0]]))
    assert found.error == near(1.0) and found.size == near(3.0)


def test_the_error_of_a_sum_is_that_of_both_and_of_one_rounding():
    a, b = Rows(np.array([[1.0, 2.0]]), 2.0**-50, 3.0), Rows(np.array([[4.0, -7.0]]), 2.0**-49, 9.0)
    found = a.plus(b)
    assert found.values.tolist() == [[5.0, -5.0]]
    assert found.error == near(2.0**-50 + 2.0**-49 + 2 * U * 12) and found.size == near(12.0, 1e-14)
    none = Rows(np.zeros((1, 1)), 0.0, 0.0)
    assert none.plus(none).error == TINY and none.plus(none).size == 0


def test_the_error_of_a_score_is_that_of_both_sides_and_of_the_product():
    a, b = Rows(np.ones((1, 3)), 2.0**-50, 3.0), Rows(np.ones((1, 3)), 2.0**-48, 5.0)
    expected = 2.0**-50 * 5 + 3 * 2.0**-48 + 2.0**-98 + roundings(3 + 4) * 15
    assert table_error(a, b) == near(expected, 1e-12)
    assert table_error(Rows(np.ones((1, 3)), 0.5, 3.0), Rows(np.ones((1, 3)), 0.25, 5.0)) == near(2.5 + 0.75 + 0.125)
    assert table_error(Rows(np.zeros((1, 1)), 0, 0), Rows(np.zeros((1, 1)), 0, 0)) == TINY


SCORES = np.array([[8.0, 2.0, -4.0], [1.0, 16.0, 8.0], [-8.0, 2.0, 32.0]])


@pytest.mark.parametrize("slack", [1.0, 3.0])
@pytest.mark.parametrize("block", [1, 2, 512])
def test_rivals_are_exact_where_the_margin_is_smallest_and_wider_by_the_float32_error_elsewhere(
    monkeypatch, slack, block
):
    """With the identity for keys the table is the queries themselves; margins are 6, 8 and 30; row 1 is not asked."""
    monkeypatch.setattr(score_tables, "BLOCK_ROWS", block)
    queries, keys = Rows.exact(SCORES), Rows.exact(np.eye(3))
    # others - rival is smallest in row 2, where it is -40, unless that is not asked about
    others = np.array([0.0, 0.0, -38.0])
    table = token_table(queries, keys, slack, others, np.array([True, False, True]))
    longest = (64 + 4 + 1024) ** 0.5
    error = slack * roundings(3 + 8, 24) * longest
    assert table.own.tolist() == [8, 16, 32]
    assert table.rival.tolist() == near([2.0, 8 + error, 2.0], 1e-12)
    assert table.lowest.tolist() == near([-4 - error, 1 - error, -8 - error], 1e-12)
    unasked = token_table(queries, keys, slack, np.zeros(3), np.array([False, True, True]))
    assert unasked.rival.tolist() == near([2 + error, 8.0, 2 + error], 1e-12)


def test_the_lowest_score_may_be_the_own_one():
    table = token_table(Rows.exact(-SCORES), Rows.exact(np.eye(3)), 1.0, np.zeros(3), np.ones(3, bool))
    assert table.lowest.tolist() == pytest.approx([-8, -16, -32], abs=1e-3)
    assert table.rival.tolist() == pytest.approx([4, -1, 8], abs=1e-3)


def test_tables_of_other_sizes_are_scaled():
    table = token_table(Rows.exact(SCORES * 2.0**70), Rows.exact(np.eye(3) * 4), 1.0, np.zeros(3), np.ones(3, bool))
    assert (table.rival / 2.0**72).tolist() == pytest.approx([2, 8, 2], rel=1e-4)
    assert (table.lowest / 2.0**72).tolist() == pytest.approx([-4, 1, -8], rel=1e-4)


def test_only_tables_below_a_billionth_are_not_computed():
    small = np.array([[3e-10, 0.0], [0.0, 1e-10]])
    table = token_table(Rows.exact(small), Rows.exact(2 * np.eye(2)), 1.0, np.zeros(2), np.ones(2, bool))
    assert table.own.tolist() == [6e-10, 2e-10]
    assert table.rival.tolist() == near([6e-10] * 2) and table.lowest.tolist() == near([-6e-10] * 2)
    table = token_table(Rows.exact(4 * small), Rows.exact(2 * np.eye(2)), 1.0, np.zeros(2), np.ones(2, bool))
    assert table.rival.max() < 1e-12


def test_extremes_leave_out_the_own_key_and_nothing_else():
    keys = np.eye(4, dtype=np.float32)
    rows = np.array([[5, 1, 7, 2], [3, 9, 4, 8]], dtype=np.float32)
    highest, lowest = score_tables._extremes(rows, keys, 2)
    assert highest.tolist() == [5, 9] and lowest.tolist() == [1, 3]
    highest, lowest = score_tables._extremes(rows, keys, 0)
    assert highest.tolist() == [7, 8]
    alone, own = score_tables._extremes(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), 0)
    assert alone[0] == np.finfo(np.float32).min and own.tolist() == [1]


def test_a_vocabulary_of_one_token_has_no_rival():
    table = token_table(
        Rows.exact(np.array([[2.0]])), Rows.exact(np.array([[3.0]])), 1.0, np.zeros(1), np.ones(1, bool)
    )
    assert table.rival[0] == -np.finfo(np.float64).max and table.own.tolist() == [6.0]


def test_bounds_of_1_show_the_allowance_for_their_own_rounding():
    """The length of a row of one 1 is bounded by 1 + 10u, since 1 + 8 roundings are counted once more."""
    product = Rows(np.array([[0.0]]), 1.0, 1.0).times(np.array([[1.0]]))
    assert product.error == 1 + 10 * U + 8 * U and product.size == 1 + 22 * U
    total = Rows(np.zeros((1, 1)), 1.0, 0.0).plus(Rows(np.zeros((1, 1)), 0.0, 0.0))
    assert total.error == 1 + 8 * U
    total = Rows(np.zeros((1, 1)), 0.0, 1.0).plus(Rows(np.zeros((1, 1)), 0.0, 0.0))
    assert total.size == 1 + 4 * U
    assert table_error(Rows(np.zeros((1, 1)), 1.0, 0.0), Rows(np.zeros((1, 1)), 0.0, 1.0)) == 1 + 16 * U


def test_every_row_whose_margin_may_be_the_smallest_is_computed_in_float64():
    """Margins of 6, a little more than 6 and clearly more than 6, told by the float32 error of 2.4e-5."""
    scores = np.array([[8.0, 2.0, -4.0], [1.0, 16.0, 10 - 1e-5], [-8.0, 26 - 1e-3, 32.0]])
    table = token_table(Rows.exact(scores), Rows.exact(np.eye(3)), 1.0, np.array([0, 1e9, 1e9]), np.ones(3, bool))
    error = roundings(3 + 8, 24) * np.linalg.norm(scores, axis=1).max()
    assert table.rival[:2].tolist() == near([2.0, 10 - 1e-5], 1e-12)
    assert table.rival[2] - scores[2, 1] == pytest.approx(error, rel=0.2)
