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
