"""Rules of the outer integral: their error for every value of the sum, and bounds on that sum."""

from __future__ import annotations

import math
import time

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import ndtr

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, reading_moments
from qkv.noise.moments import head_pairs, single_head
from qkv.noise.moments import outer_rule as outer_rules
from qkv.noise.moments.outer_rule import (
    ROUNDING,
    OuterRule,
    _left_rule,
    compressed_rule,
    outer_error,
    upper_bound_of_log_sum,
)


def scores(seed, n, mean_sd=1.0, sd=1.0):
    random = np.random.default_rng(seed)
    v = (sd * random.lognormal(0, 0.5, n)) ** 2
    v[random.random(n) < 0.2] = 0
    return torch.from_numpy(mean_sd * random.standard_normal(n)), torch.from_numpy(v)


@pytest.mark.parametrize(("step", "reach"), [(0.25, 37.0), (0.32, 32.0), (0.5, 18.0), (0.55, 16.0)])
def test_the_rule_replaces_1_over_Z_and_its_square_for_every_Z_up_to_its_bound(step, reach):
    """Both sums with 40 digits, at Z from the lower end of its law to beyond the upper bound."""
    for seed, n in ((0, 3), (1, 50), (2, 400)):
        m, v = scores(seed, n)
        rule = compressed_rule(m, v, step, reach)
        top, _ = upper_bound_of_log_sum(m, v, reach)
        end = float(rule.u[-1])
        with mpmath.workdps(40):
            nodes = [
                (mpmath.exp(mpmath.mpf(u)), mpmath.mpf(w))
                for u, w in zip(rule.u.tolist(), rule.weight.tolist(), strict=True)
            ]
            for log_z in np.linspace(math.log(reach + 5) - end, top + 3, 25):
                Z = mpmath.exp(mpmath.mpf(log_z))
                first = mpmath.fsum(w * x * Z * mpmath.exp(-x * Z) for x, w in nodes)
                second = mpmath.fsum(w * (x * Z) ** 2 * mpmath.exp(-x * Z) for x, w in nodes)
                if log_z <= top:
                    assert abs(first - 1) <= outer_error(step, 1) + rule.error
                    assert abs(second - 1) <= outer_error(step, 2) + rule.error
                else:
                    assert 0 <= first <= 1 + outer_error(step, 1) + 1e-14
                    assert 0 <= second <= 1.48
        assert float(rule.weight.sum()) <= rule.length
        assert bool((rule.u.diff() > 0).all()) and bool((rule.weight > 0).all())


def test_the_bound_on_the_sum_holds_with_its_probability():
    for reach in (3.0, 5.0, 8.0):
        for seed, n, sd in ((0, 2, 0.3), (1, 5, 2.0), (2, 60, 1.0), (3, 300, 0.1)):
            m, v = scores(seed, n, sd=sd)
            bound, doubt = upper_bound_of_log_sum(m, v, reach)
            z = np.random.default_rng(seed).standard_normal((20_000, n))
            drawn = torch.logsumexp(m + v.sqrt() * torch.from_numpy(z), 1)
            above = float((drawn > bound).double().mean())
            assert above <= doubt + 5 * math.sqrt(doubt / 20_000)
    one, doubt = upper_bound_of_log_sum(torch.tensor([1.5]).double(), torch.tensor([4.0]).double(), 20.0)
    assert ndtr(-(one - 1.5) / 2) <= doubt
    still, doubt = upper_bound_of_log_sum(torch.zeros(8).double(), torch.zeros(8).double())
    assert still == pytest.approx(math.log(8), abs=1e-12) and doubt == 0


def equal_steps(m, v, step, reach):
    u = single_head.outer_nodes(m, v, step, reach)
    return OuterRule(u, torch.full_like(u, step), float(u[-1] - u[0]), outer_error(step, 2))


@pytest.mark.parametrize("seed", range(8))
def test_few_nodes_give_the_digits_of_equal_steps(seed, monkeypatch):
    random = np.random.default_rng(seed)
    n = int(random.choice([400, 900, 2000]))
    m, v = scores(seed, n, random.choice([0.1, 1.0, 4.0]), 10 ** random.uniform(-2, 0.7))
    values = torch.from_numpy(random.standard_normal((n, 3)))
    found = single_head.head_moments(m, v, values)
    monkeypatch.setattr(single_head, "outer_rule", equal_steps)
    plain = single_head.head_moments(m, v, values)
    for name in ("mean", "square"):
        assert float((getattr(found, name) - getattr(plain, name)).abs().max()) <= min(found.error, 2e-13)
    assert float((found.output_square - plain.output_square).abs().max()) <= found.total_error * 20
    assert float(found.mean.sum()) == pytest.approx(1, abs=found.total_error)


def test_many_keys_take_a_fraction_of_the_nodes():
    m, v = scores(0, 2048)[0], torch.ones(2048, dtype=torch.float64)
    assert 3 * len(single_head.outer_rule(m, v, 0.25).u) < len(single_head.outer_nodes(m, v, 0.25))


def test_wide_noise_on_every_score_takes_long_steps(monkeypatch):
    """The step used to be a quarter whatever the noise."""
    random = np.random.default_rng(3)
    m, v = torch.from_numpy(40 * random.standard_normal(7)), torch.from_numpy(random.uniform(30, 90, 7) ** 2)
    rule = single_head.outer_rule(m, v, 0.25)
    assert len(rule.u) < 300 and rule.error < 1e-14
    values = torch.eye(7, dtype=torch.float64)
    found = single_head.head_moments(m, v, values)
    monkeypatch.setattr(single_head, "outer_rule", equal_steps)
    plain = single_head.head_moments(m, v, values)
    assert float((found.mean - plain.mean).abs().max()) < 1e-13
    assert float((found.square - plain.square).abs().max()) < 1e-13


def test_sixty_very_wide_scores_are_integrated_at_once():
    """They used to take over a minute: 60 scores of equal law have means of 1/60, whatever the deviation."""
    memory = qkv.Memory(np.zeros((60, 1)), np.eye(60))
    start = time.process_time()
    found = reading_moments(memory, [1.0], Gaussian(diagonal=[5000.0**2]))
    assert time.process_time() - start < 10
    assert float((found.weights_mean - 1 / 60).abs().max()) <= found.error_bound < 1e-7
    # Two scores are within a few units of each other once in thousands: α is 0 or 1, up to that.
    assert float(found.weights_var[0]) == pytest.approx(59 / 3600, abs=1e-3)


def test_very_wide_scores_beside_still_ones_are_refused_with_a_sentence():
    memory = qkv.Memory(np.zeros((61, 1)), np.eye(61))
    noise = Gaussian(diagonal={i: [5000.0**2] for i in range(60)})
    with pytest.raises(QkvError, match=r"60 scores vary .* qkv\.noise\.sample"):
        reading_moments(memory, [1.0], noise)


def test_keys_that_are_hardly_read_count_as_uncorrelated():
    """Their effect is bounded by their weights, and the bound is part of the error."""
    random = np.random.default_rng(0)
    m = torch.from_numpy(np.concatenate([random.standard_normal((2, 4)), np.full((2, 40), -60.0)], 1))
    C = torch.tensor([[1.0, 0.6], [0.6, 1.0]], dtype=torch.float64).expand(44, 2, 2)
    values = torch.from_numpy(random.standard_normal((44, 2)))
    squares = torch.stack([single_head.head_moments(m[h], C[:, h, h], values).square for h in (0, 1)])
    correlated, ignored = head_pairs._split_by_effect(C[:, 0, 1].abs(), squares)
    assert correlated.tolist() == [0, 1, 2, 3] and ignored < 1e-11
    full = head_pairs.cross_moments(m, C, values)
    few = head_pairs.cross_moments(m, C, values, squares=squares)
    assert float((full.square - few.square).abs().max()) <= min(ignored + 2e-14, few.error)
    assert float((full.output_square - few.output_square).abs().max()) <= 10 * few.total_error


@pytest.mark.parametrize("seed", range(6))
def test_the_effect_of_a_correlation_is_below_its_bound(seed):
    """With and without the correlation of the last key: |c| √(E α¹² E α²²) bounds the change."""
    random = np.random.default_rng(seed)
    m = torch.from_numpy(random.standard_normal((2, 5)) * 2)
    sd, rho = random.uniform(0.2, 2.0, 2), random.uniform(-1, 1)
    C = torch.zeros(5, 2, 2, dtype=torch.float64)
    C[0] = torch.tensor([[1.0, 0.3], [0.3, 0.5]])
    C[4] = torch.tensor([[sd[0] ** 2, rho * sd.prod()], [rho * sd.prod(), sd[1] ** 2]])
    apart = C.clone()
    apart[4, 0, 1] = apart[4, 1, 0] = 0
    eye = torch.eye(5, dtype=torch.float64)
    squares = [float(single_head.head_moments(m[h], C[:, h, h], eye).square[4]) for h in (0, 1)]
    change = (
        head_pairs.cross_moments(m, C, eye, full=True).product - head_pairs.cross_moments(m, apart, eye, True).product
    )
    bound = abs(rho) * sd.prod() * min(1 / 16, math.sqrt(squares[0] * squares[1]))
    assert 0 < float(change.abs().max()) <= bound
    assert float(change.abs().sum()) <= 4 * bound


def test_narrow_and_wide_common_parts_agree_with_a_double_integral():
    """Any split of the covariance into slopes gives the same integral: one key, against Gauss and Hermite's rule."""
    x, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    m = np.array([[0.4, 0.0], [-0.3, 0.0]])
    for sds, rho in (((0.3, 1.5), 0.9), ((1.5, 0.3), -0.9), ((0.2, 0.1), 1.0), ((1.0, 1.0), 0.05), ((0.02, 1.0), 0.5)):
        S = np.array([[sds[0] ** 2, rho * sds[0] * sds[1]], [rho * sds[0] * sds[1], sds[1] ** 2]])
        one = 1 / (1 + np.exp(-(m[0, 0] + sds[0] * x[:, None] + 0 * x)))
        two = 1 / (1 + np.exp(-(m[1, 0] + sds[1] * (rho * x[:, None] + math.sqrt(1 - rho**2) * x))))
        truth = float(w @ (one * two) @ w)
        C = torch.zeros(2, 2, 2, dtype=torch.float64)
        C[0] = torch.from_numpy(S)
        found = head_pairs.cross_moments(torch.from_numpy(m), C, torch.eye(2, dtype=torch.float64))
        assert float(found.square[0]) == pytest.approx(truth, abs=2e-11), (sds, rho)


def test_the_error_of_a_compressed_rule_holds_the_rounding_of_its_sums():
    m, v = torch.zeros(3).double(), torch.ones(3).double()
    assert compressed_rule(m, v, 0.28, 32.0).error >= ROUNDING
    assert _left_rule(0.28, 32.0)[2] >= ROUNDING


# Each function by itself


def double(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def test_limits_are_what_they_are_said_to_be():
    assert (outer_rules.LEFT_REACH, outer_rules.MAX_LEFT_NODES, outer_rules.MAX_COMPRESSED_STEP) == (8.0, 16, 0.6)
    assert tuple(2.0**k for k in range(-2, 6)) == outer_rules.CHERNOFF_FACTORS
    assert (outer_rules.N_CANDIDATES, outer_rules.MIN_END_KEYS, outer_rules.MAX_ENTRIES) == (17, 256, 2**20)
    assert math.exp(-outer_rules.MAX_TAIL_REACH) == pytest.approx(1.27e-14, rel=0.01) and ROUNDING == 4e-15
    assert (outer_rules.WIDE_NOISE_SD, outer_rules.UPPER_END_MARGIN) == (2.0, 5.0)


@pytest.mark.parametrize(("step", "order", "variance"), [(0.9, 1, 0.0), (0.9, 2, 0.0), (2.0, 2, 0.3), (8.0, 1, 0.01)])
def test_the_error_of_the_trapezoid_rule_is_poissons(step, order, variance):
    tau = 2 * mpmath.pi / step
    first = 2 * abs(mpmath.gamma(order + 1j * tau)) * mpmath.exp(-(tau**2) * variance / 2)
    assert outer_error(step, order, variance) == pytest.approx(1.01 * float(first), rel=1e-12)
    rest = sum(2 * abs(mpmath.gamma(order + 1j * tau * k)) * mpmath.exp(-((tau * k) ** 2) * variance / 2)
               for k in range(2, 6))  # fmt: skip
    assert step > 1 or first + rest <= outer_error(step, order, variance)
    assert outer_error(0.25, 1, 1e6) == pytest.approx(2.02 * abs(complex(mpmath.gamma(1 + 8j * mpmath.pi)))
                                                       * math.exp(-700), rel=1e-9, abs=0)  # fmt: skip


def test_the_common_shift_has_the_variance_of_a_weighted_mean():
    assert outer_rules.shift_variance(double(2.0, 3.0, 6.0)) == pytest.approx(1.0)
    assert outer_rules.shift_variance(double(2.0, 0.0)) == 0.0
    assert outer_rules.shift_variance(double(1e-300, 1.0)) == pytest.approx(1e-300, abs=0)


def test_the_step_grows_with_wide_noise_and_leaves_the_same_error():
    """A variance of the shift of 4 or more: e^(-τ²v/2) is then a little below the error of the given step."""
    just_below, at = double(math.nextafter(4.0, 0)), double(4.0)
    assert outer_rules.widest_step(0.25, just_below) == 0.25
    wide = outer_rules.widest_step(0.25, at)
    assert wide == pytest.approx(2 * math.pi * math.sqrt(4 / (2 * (1 - math.log(outer_error(0.25, 2))))), rel=1e-12)
    assert outer_error(wide, 2, 4.0) <= outer_error(0.25, 2)
    assert outer_rules.widest_step(0.25, double(400.0)) == pytest.approx(10 * wide, rel=1e-12)


def test_compression_is_the_part_that_is_left_for_equal_steps():
    m, v = scores(0, 20)
    top, _ = upper_bound_of_log_sum(m, v)
    assert outer_rules.compression(m, v, -40.0, 10.0) == pytest.approx((10 - (math.log(8) - top)) / 50, rel=1e-12)


def gauss_moments(nodes, weights, k):
    return float(np.sum(weights * nodes**k))


@pytest.mark.parametrize(("step", "reach"), [(0.25, 37.0), (0.5, 18.0)])
def test_the_left_rule_has_the_moments_of_its_measure(step, reach):
    """A Gauss rule of k nodes is exact for powers up to 2k - 1, and errs by no more than is said for e^(-8x)."""
    nodes, weights, error = _left_rule(step, reach)
    x = [mpmath.exp(-step * i) for i in range(math.ceil((reach + 8) / step) + 1)]
    k = len(nodes)
    for power in (0, 1, 2, k, 2 * k - 1):
        true = float(mpmath.fsum(step * v ** (power + 1) for v in x))
        assert gauss_moments(nodes, weights, power) == pytest.approx(true, rel=1e-12)
    true = float(mpmath.fsum(step * v ** (2 * k + 1) for v in x))
    assert abs(gauss_moments(nodes, weights, 2 * k) - true) > 1e-20
    assert ((nodes > 0) & (nodes < 1 + 1e-12)).all() and (weights > 0).all() and k <= 16
    assert error - ROUNDING <= 0.1 * math.exp(-reach)
    for order in (0, 1):  # of x^order e^(-8x), relative to the integral from 0 to 1/8th of infinity
        whole = mpmath.fsum(step * v ** (order + 1) * mpmath.exp(-8 * v) for v in x)
        found = mpmath.fsum(w * mpmath.mpf(n) ** order * mpmath.exp(-8 * mpmath.mpf(n))
                            for n, w in zip(nodes.tolist(), weights.tolist(), strict=True))  # fmt: skip
        assert 8 ** (order + 1) * abs(found - whole) <= error


def test_the_error_of_the_left_rule_is_that_of_a_gauss_rule():
    """norm · y^(2k+1) max(2k, y)/(2k)! with the norm of the next orthogonal polynomial, from moments in fractions."""
    nodes, _, error = _left_rule(0.5, 6.0)
    with mpmath.workdps(60):
        x = [mpmath.exp(mpmath.mpf(-0.5) * i) for i in range(math.ceil(14 / 0.5) + 1)]
        k = len(nodes)
        moments = [mpmath.fsum(v ** (p + 1) / 2 for v in x) for p in range(2 * k + 1)]

        def hankel(n):
            return mpmath.det(mpmath.matrix(n, n)) if n == 0 else mpmath.det(
                mpmath.matrix([[moments[i + j] for j in range(n)] for i in range(n)])
            )  # fmt: skip

        norm = hankel(k + 1) / hankel(k)
        expected = norm * mpmath.mpf(8) ** (2 * k + 1) * max(2 * k, 8) / mpmath.factorial(2 * k)
    assert error - ROUNDING == pytest.approx(float(expected), rel=1e-6, abs=0)
    assert error - ROUNDING <= 0.1 * math.exp(-6.0)


def test_a_compressed_rule_is_a_left_rule_and_equal_steps_up_to_its_end():
    m, v, step, reach = *scores(1, 50), 0.25, 20.0
    rule = compressed_rule(m, v, step, reach)
    top, tail = upper_bound_of_log_sum(m, v, reach)
    start = math.log(8) - top
    nodes, weights, error = _left_rule(step, reach)
    k = len(nodes)
    assert rule.u[:k].tolist() == pytest.approx((start + np.log(nodes)).tolist(), rel=1e-12)
    assert rule.weight[:k].tolist() == pytest.approx((weights / nodes).tolist(), rel=1e-12)
    assert rule.u[k:].tolist() == pytest.approx([start + step * (i + 1) for i in range(len(rule.u) - k)], rel=1e-12)
    assert (rule.weight[k:] == step).all()
    end = outer_rules._upper_end(m, v, start, reach)
    assert end <= float(rule.u[-1]) < end + step
    assert rule.length == pytest.approx(float(rule.u[-1]) - start + reach + math.log(8) + step, rel=1e-12)
    assert rule.error == pytest.approx(error + 1.48 * tail + 2 * math.exp(-reach), rel=1e-12)
    alone = compressed_rule(double(0.0), double(0.0), 0.5, 4.0)
    assert len(alone.u) > len(_left_rule(0.5, 4.0)[0])


def test_the_bound_on_the_sum_is_bennetts_or_that_of_the_ends():
    """One score: its own quantile. Many equal ones: total + (reach + λ² Σ E X² (e^y - 1 - y)/y²)/λ at the best λ."""
    found, doubt = upper_bound_of_log_sum(double(1.5), double(4.0), 20.0)
    assert found == pytest.approx(1.5 - 2 * outer_rules._normal_quantile(20.0), rel=1e-12)
    assert doubt == pytest.approx(math.exp(-20), rel=1e-12)
    n, sd, reach, mean = 200, 0.7, 12.0, 0.25
    found, doubt = upper_bound_of_log_sum(torch.full((n,), mean).double(), torch.full((n,), sd**2).double(), reach)
    end = mean - outer_rules._normal_quantile(reach + math.log(n)) * sd
    first, second = math.exp(mean - end + sd**2 / 2), math.exp(2 * (mean - end + sd**2))
    best = min(
        n * first + (reach + y * y * n * min(second, first) * (math.expm1(y) - y) / y**2) / y
        for y in (0.25, 0.5, 1, 2, 4, 8, 16, 32)
    )
    assert found == pytest.approx(end + math.log(best), rel=1e-9) and found < end + math.log(n)
    assert doubt == pytest.approx(2 * math.exp(-reach), rel=1e-12)
    capped = upper_bound_of_log_sum(double(1.5), double(4.0), 50.0)
    assert capped == upper_bound_of_log_sum(double(1.5), double(4.0), 32.0)
    # Scores without noise have no second moment: Λ is then their sum and a little more
    mixed, _ = upper_bound_of_log_sum(double(*[0.0] * 100, -3.0), double(*[0.0] * 100, 0.01), 12.0)
    assert math.log(100) < mixed < math.log(100) + 0.01


def test_the_end_is_where_the_product_has_vanished():
    m, v = double(*[0.0] * 300), double(*[0.0] * 300)
    low, reach = -20.0, 10.0
    high = max(low + 1, 3.9)
    grid = np.linspace(low, high, 17)
    # Of keys without noise, log Λ = -n e^u; the 256 strongest of 300 are evaluated.
    expected = next(u for u in grid if 256 * math.exp(u) > 15.0)
    assert outer_rules._upper_end(m, v, low, reach) == pytest.approx(expected, rel=1e-12)
    few = next(u for u in grid if 100 * math.exp(u) > 15.0)
    assert outer_rules._upper_end(m[:100], v[:100], low, reach) == pytest.approx(few, rel=1e-12)
    many = torch.zeros(4096, dtype=torch.float64)
    expected = next(u for u in grid if 512 * math.exp(u) > 15.0)
    assert outer_rules._upper_end(many, many, low, reach) == pytest.approx(expected, rel=1e-12)
    assert outer_rules._upper_end(double(0.0), double(0.0), 50.0, reach) == 50.0


def test_the_product_is_that_of_all_keys_in_parts(monkeypatch):
    m, u = double(0.0, 1.0, -1.0, 0.5, 0.25), double(-2.0, 0.0, 1.0)
    expected = (-torch.exp(m[:, None] + u)).sum(0)
    whole = outer_rules.log_product(m, torch.zeros(5).double(), u)
    assert torch.allclose(whole, expected, rtol=1e-14)
    sizes = []
    true = outer_rules.logs_and_ratios
    monkeypatch.setattr(outer_rules, "logs_and_ratios", lambda m, *a: sizes.append(len(m)) or true(m, *a))
    for entries, parts in ((6, [2, 2, 1]), (1, [1] * 5), (15, [5])):
        sizes.clear()
        monkeypatch.setattr(outer_rules, "MAX_ENTRIES", entries)
        assert torch.allclose(outer_rules.log_product(m, torch.zeros(5).double(), u), expected, rtol=1e-14)
        assert sizes == parts


def test_quantiles_of_the_normal_law():
    for reach in (2.0, 20.0, 32.0):
        assert math.log(ndtr(outer_rules._normal_quantile(reach))) == pytest.approx(-reach, rel=1e-12)


def test_small_keys_enter_the_bound_by_the_series_of_their_growth():
    """One key of size 1 without noise, and a hundred whose ends are at 3e-4 of it: λ = 32 is best, and y is 0.0096."""
    n, sd, reach = 100, 0.25, 12.0
    far = -outer_rules._normal_quantile(reach + math.log(n + 1)) * sd
    mean = math.log(3e-4) - far
    m, v = double(0.0, *[mean] * n), double(0.0, *[sd**2] * n)
    found, doubt = upper_bound_of_log_sum(m, v, reach)
    first, second = math.exp(mean + sd**2 / 2), min(math.exp(2 * (mean + sd**2)), 3e-4 * math.exp(mean + sd**2 / 2))
    y = 32 * 3e-4
    growth = float((mpmath.expm1(y) - y) / mpmath.mpf(y) ** 2)
    exact = math.log(1 + n * first + (reach + 32**2 * n * second * growth) / 32)
    highest = math.log(1 + n * 3e-4)
    assert found == pytest.approx(min(exact, highest), rel=1e-9)
    assert doubt == pytest.approx(math.exp(-reach), rel=1e-9) if highest < exact else doubt > math.exp(-reach)


def test_the_growth_of_small_keys_is_bounded_tightly_from_above(monkeypatch):
    """With one exponent that makes y = 0.0096 for every key, the bound shows the series itself."""
    n, sd, reach = 5000, 0.5, 12.0
    for bound, factor in ((0.0096, 0.5), (0.012, 0.5), (1.0, 1.0), (1e-4, 1.0)):
        monkeypatch.setattr(outer_rules, "CHERNOFF_FACTORS", (factor * bound,))
        m, v = torch.zeros(n).double(), torch.full((n,), sd**2).double()
        found, _ = upper_bound_of_log_sum(m, v, reach)
        end = -outer_rules._normal_quantile(reach + math.log(n)) * sd
        first = math.exp(-end + sd**2 / 2)
        second = min(math.exp(2 * (sd**2 - end)), first)
        y = mpmath.mpf(factor * bound)
        growth = (mpmath.expm1(y) - y) / y**2
        best = n * first + (reach + y**2 * n * second * growth) / y
        exact = min(end + math.log(n), float(end + mpmath.log(best)))
        assert exact - 1e-12 <= found <= exact + 1e-7


def test_where_the_product_never_vanishes_the_end_is_that_of_the_strongest_key():
    """What is left of one noisy key counts as 1e-15, which is above e^-65."""
    quantile = outer_rules._normal_quantile(60.0)
    assert quantile < -10
    assert outer_rules._upper_end(double(0.5), double(4.0), -9.0, 60.0) == pytest.approx(3.9 - 0.5 - 2 * quantile)
    two = outer_rules._upper_end(double(-30.0, 0.5), double(1.0, 4.0), -9.0, 60.0)
    assert two <= 3.9 - 0.5 - 2 * quantile + 1e-9
    assert outer_rules._upper_end(double(0.5), double(4.0), 80.0, 60.0) == pytest.approx(81.0)
