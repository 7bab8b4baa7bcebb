"""Tables of scores: every bound against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

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
