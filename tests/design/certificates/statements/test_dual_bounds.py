"""Inequalities behind lower bounds on norms: worked out by hand, and met by every query that reads as wanted."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from qkv.design.certificates.statements import dual_bounds
from qkv.design.certificates.statements.base import InvalidCertificate

KEYS = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [3.0, 1.0]])


def middles(balls):
    return [float(b.mid()) for b in balls]


def test_the_inequality_of_exact_ratios_worked_out_by_hand():
    """Items 3 and 0 as 1 : 3 with ν = 2, a leak of at most 1/4, and the mix 1, 3 on the others: f = 4."""
    g, b = dual_bounds.exact_ratios_inequality(
        KEYS, [3, 0], [0.25, 0.75], [arb(5), arb(2)], [1, 2], [arb(1), arb(3)], 0.25
    )
    # f k_a - Σ m_j k_j + ν (k_0 - k_3); ν of the first item has no effect
    expected = 4 * KEYS[3] - KEYS[1] - 3 * KEYS[2] + 2 * (KEYS[0] - KEYS[3])
    assert middles(g) == pytest.approx(expected.tolist())
    entropy = -(math.log(0.25) + 3 * math.log(0.75))
    assert float(b.mid()) == pytest.approx(
        4 * (math.log(0.25) - math.log(1 / 3)) + entropy + 2 * math.log(3), rel=1e-14
    )


def test_without_other_items_only_the_ratios_count():
    g, b = dual_bounds.exact_ratios_inequality(KEYS, [3, 0], [0.25, 0.75], [arb(5), arb(-2)], [], [], 0.25)
    assert middles(g) == [4.0, 2.0] and float(b.mid()) == pytest.approx(-2 * math.log(3), rel=1e-14)


def test_weights_that_sum_to_more_than_1_are_divided_by_their_sum():
    found = [
        dual_bounds.exact_ratios_inequality(KEYS, [0, 1], [s / 2, s / 2], [arb(0)] * 2, [2], [arb(1)], 0.25)[1]
        for s in (1.0, 1 + 2.0**-20)
    ]
    assert float(found[0].mid()) == pytest.approx(math.log(1.5), rel=1e-14)
    assert float(found[0].mid()) == pytest.approx(float(found[1].mid()), rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_every_query_with_the_exact_ratios_and_a_small_leak_meets_it(seed):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(5, 2))
    query = 3 * rng.normal(size=2)
    raw = np.exp(keys @ query)
    weights = raw[:2] / raw[:2].sum()
    leak = raw[2:].sum() / raw.sum()
    ratios, mix = [arb(0), arb(float(rng.normal()))], [arb(float(m)) for m in rng.random(3)]
    for tol, holds in ((leak, True), (1 - (1 - leak) / 50, True)):
        g, b = dual_bounds.exact_ratios_inequality(keys, [0, 1], weights, ratios, [2, 3, 4], mix, float(tol))
        assert (float(np.dot(middles(g), query)) >= float(b.mid()) - 1e-9) is holds


def within(wanted, multipliers, others, mix, tol=0.125):
    return dual_bounds.total_variation_inequality(
        KEYS, *map(np.array, (wanted, multipliers)), others, np.array(mix), tol
    )


def test_the_inequality_within_tol_worked_out_by_hand():
    """λ = 3, 1 on 3/4, 1/4, and the mix 1, 3 on items 0 and 3, of which 2 has none: everything times 4."""
    g, b = within([0.75, 0.25, 0, 0], [3.0, 1.0, 0, 0], [0, 2, 3], [1.0, 0.0, 3.0])
    expected = 4 * (3 * KEYS[0] + KEYS[1]) - 4 * (KEYS[0] + 3 * KEYS[3])
    assert middles(g) == expected.tolist()
    entropy = -(math.log(0.25) + 3 * math.log(0.75))
    gain = 3 * math.log(0.75) + math.log(0.25)
    worst = min(3 * math.log(1 - 0.125 / 0.75), math.log(1 - 0.125 / 0.25))
    assert float(b.mid()) == pytest.approx(4 * entropy + 4 * (gain + worst), rel=1e-14)
    _, b = within([0.25, 0.75, 0, 0], [1.0, 3.0, 0, 0], [0, 2, 3], [1.0, 0.0, 3.0])  # the worst is the first
    assert float(b.mid()) == pytest.approx(4 * entropy + 4 * (gain + worst), rel=1e-14)


def test_what_may_be_lost_grows_by_half_of_what_the_weights_exceed_1():
    more = 2.0**-10
    _, b = within([1 + more, 0, 0, 0], [1.0, 0, 0, 0], [3], [1.0], tol=0.25)
    assert float(b.mid()) == pytest.approx(math.log(1 + more - 0.25 - more / 2), rel=1e-12)


@pytest.mark.parametrize(("tol", "refused"), [(0.25, True), (math.nextafter(0.25, 0), False), (0.5, True)])
def test_a_multiplier_must_stand_on_a_weight_that_cannot_be_lost(tol, refused):
    given = ([0.25, 0.75, 0, 0], [1.0, 1.0, 0, 0], [3], [1.0], tol)
    if refused:
        with pytest.raises(InvalidCertificate, match="not above tol"):
            within(*given)
    else:
        assert within(*given)[1].is_finite()
    assert within([0.25, 0.75, 0, 0], [0.0, 1.0, 0, 0], [3], [1.0], tol)[1].is_finite()


def test_without_multipliers_nothing_is_gained():
    g, b = within([1.0, 0, 0, 0], [0.0, 0, 0, 0], [3], [2.0])
    assert middles(g) == [0.0, 0.0] and float(b) == 0


@pytest.mark.parametrize("seed", range(5))
def test_every_query_within_tol_meets_it(seed):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=2)
    raw = np.exp(KEYS @ query)
    alpha = raw / raw.sum()
    wanted = rng.dirichlet([1.0, 1.0])
    wanted = np.array([0.2 + 0.6 * wanted[0], 0.2 + 0.6 * wanted[1], 0, 0])
    tol = float(0.5 * np.abs(alpha - wanted).sum())
    lam = np.where(wanted > tol + 1e-9, 1.0 + rng.random(4), 0.0)
    g, b = within(wanted, lam, [0, 1, 2, 3], rng.random(4) + 0.01, tol)
    assert float(np.dot(middles(g), query)) >= float(b.mid()) - 1e-9


def test_a_norm_bound_is_the_quotient_and_infinite_only_where_g_vanishes():
    assert float(dual_bounds.norm_bound([arb(3), arb(4)], arb(10))) == 2.0
    assert float(dual_bounds.norm_bound([arb(3), arb(4)], arb(-10))) == -2.0
    assert dual_bounds.norm_bound([arb(0)], arb("1e-300")) == arb.pos_inf()
    for none in (arb(0), arb(-1), arb(0, 1)):
        assert dual_bounds.norm_bound([arb(0)], none) == 0
    assert dual_bounds.norm_bound([arb("1e-200")], arb(1)) < arb("1e201")


def test_a_bound_on_matrices_sums_the_inequalities_of_all_rules():
    x = np.array([[3.0, 4.0], [0.0, 2.0]])
    rules = [(0, [arb(1), arb(0)], arb(7)), (1, [arb(0), arb(6)], arb(6))]
    assert float(dual_bounds.matrix_norm_bound(x, rules).mid()) == pytest.approx(13 / (25 + 144) ** 0.5, rel=1e-14)
    opposed = [(0, [arb(1), arb(0)], arb(7)), (0, [arb(-1), arb(0)], arb(6))]
    assert dual_bounds.matrix_norm_bound(x, opposed) == arb.pos_inf()
    assert dual_bounds.matrix_norm_bound(x, []) == 0


def test_sums_that_cancel_do_so_exactly_at_the_precision_of_exactness():
    """1 + 2^-200 less 1 is lost in 53 bits and kept in 512."""
    assert dual_bounds.EXACT_BITS == 512
    x = np.array([[1.0], [2.0**-200]])
    rules = [(0, [arb(1)], arb(1)), (1, [arb(1)], arb(1)), (0, [arb(-1)], arb(1))]
    with ctx.workprec(53):
        found = dual_bounds.matrix_norm_bound(x, rules)
    assert float((found / arb(2) ** 200).mid()) == pytest.approx(3.0)
    with ctx.workprec(53):
        keys = np.array([[1.0], [2.0**-200], [-1.0]])
        g, _ = dual_bounds.total_variation_inequality(
            keys, np.array([0.5, 0.5, 0]), np.array([1.0, 1.0, 0]), [0, 1], np.array([1.0, 1.0]), 0.125
        )
    assert g[0].is_zero()


def test_entropies_of_weights_that_may_be_0():
    assert float(dual_bounds._entropy_term(arb(1), arb(4)).mid()) == pytest.approx(math.log(4), rel=1e-14)
    found = dual_bounds._entropy_term(arb(0, 0.25), arb(2))  # m/f is at most 1/8
    assert found.contains(0) and found.contains(2 * math.log(8) / 8 * (1 - 1e-9))
    assert float(found.upper()) == pytest.approx(2 * math.log(8) / 8, rel=1e-6)
    assert dual_bounds._entropy_term(arb(0, 0.5), arb(2)).is_nan()  # up to a quarter
    assert dual_bounds._entropy_term(arb(0, 0.9), arb(2)).is_nan()
    assert dual_bounds._entropy_term(arb(0), arb(2)).is_nan() or dual_bounds._entropy_term(arb(0), arb(2)) == 0
