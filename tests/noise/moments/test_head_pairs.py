"""Heads on shared keys: cross-moments against direct integrals over the scores they share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate
from scipy.stats import norm

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, reading_moments
from qkv.noise.moments import head_pairs
from qkv.noise.moments.head_pairs import (
    FINE,
    NORMAL_TAIL,
    ROUGH,
    CrossMoments,
    Grid,
    _group_by_width,
    cross_moments,
)
from qkv.noise.moments.outer_rule import compressed_rule, outer_error
from qkv.noise.moments.smoothed_gumbel import smoothed


def softmax(s):
    e = np.exp(s - np.max(s))
    return e / e.sum()


@pytest.mark.parametrize("t", [3.0, 50.0])
def test_two_heads_that_see_one_noisy_key_are_a_single_integral(t):
    """Both scores of key a move with one number z; everything else stands still."""
    memory = qkv.Memory(np.eye(4), np.eye(4), labels=["a", "b", "c", "d"])
    queries = t * np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    s = reading_moments(memory, queries, Gaussian(along={"a": 0.5}), mix=[0.4, 0.6], covariance=True)

    z = np.linspace(-9, 9, 400_001)
    moved = np.repeat((queries @ np.eye(4))[:, None, :], len(z), axis=1)
    moved[:, :, 0] *= 1 + math.sqrt(0.5) * z
    e = np.exp(moved - moved.max(-1, keepdims=True))
    alpha = np.tensordot([0.4, 0.6], e / e.sum(-1, keepdims=True), 1)
    density = norm.pdf(z) * (z[1] - z[0])
    mean = density @ alpha
    second = (alpha * density[:, None]).T @ alpha
    assert np.abs(s.weights_mean.numpy() - mean).max() < s.error_bound + 1e-12
    assert np.abs(s.weights_cov.numpy() - (second - np.outer(mean, mean))).max() < s.error_bound + 1e-12
    assert s.error_bound < 1e-8


def test_two_heads_whose_scores_are_partly_correlated_are_a_double_integral():
    m = np.array([[0.3, 0.8, -0.2], [-0.5, 0.1, 0.4]])
    S = np.array([[1.2, -0.5], [-0.5, 0.9]])
    root = np.linalg.cholesky(S)
    C = torch.zeros(3, 2, 2, dtype=torch.float64)
    C[0] = torch.from_numpy(S)
    values = torch.eye(3, dtype=torch.float64)
    found = cross_moments(torch.from_numpy(m), C, values, full=True)
    assert isinstance(found, CrossMoments)

    def expect(a: int, b: int) -> float:
        def integrand(x: float, y: float) -> float:
            moved = np.exp(m)
            moved[:, 0] *= np.exp(root @ [x, y])
            weights = moved / moved.sum(axis=1, keepdims=True)
            return weights[0, a] * weights[1, b] * math.exp(-(x * x + y * y) / 2) / (2 * math.pi)

        return integrate.dblquad(integrand, -8, 8, -8, 8, epsabs=1e-8, epsrel=1e-8)[0]

    assert float(found.product[0, 0]) == pytest.approx(expect(0, 0), abs=1e-7)
    assert float(found.product[0, 1]) == pytest.approx(expect(0, 1), abs=1e-7)
    assert float(found.product[2, 0]) == pytest.approx(expect(2, 0), abs=1e-7)
    assert torch.allclose(found.product, found.output_square, atol=1e-13)
    assert torch.allclose(found.product.diagonal(), found.square)


@pytest.mark.parametrize("size", [0.05, 0.25, 0.45, 0.6, 1.5, 6.0])
def test_finer_nodes_change_cross_moments_by_less_than_their_error(size):
    """Both grids are refined, the outer one and the one over what the two scores have in common."""
    rng = torch.Generator().manual_seed(2)
    m = torch.randn(2, 6, generator=rng, dtype=torch.float64)
    F = size * torch.randn(6, 2, 2, generator=rng, dtype=torch.float64)
    values = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    coarse, fine = (cross_moments(m, F @ F.mT, values, grid=grid) for grid in (FINE, Grid(0.23, 36.0, 60.0)))
    assert float((coarse.square - fine.square).abs().max()) < coarse.error < 1e-9
    assert float((coarse.output_square - fine.output_square).abs().max()) < coarse.total_error * 30
    inner = cross_moments(m, F @ F.mT, values, grid=replace(FINE, digits=60.0))
    assert float((inner.square - coarse.square).abs().max()) < 2e-13
    rough = cross_moments(m, F @ F.mT, values, grid=ROUGH)
    assert float((rough.square - fine.square).abs().max()) < rough.error < 1e-3


def test_the_same_head_twice_varies_like_the_one_head():
    rng = np.random.default_rng(4)
    memory = qkv.Memory(rng.normal(size=(5, 3)), rng.normal(size=(5, 2)))
    noise, q = Gaussian(isotropic=0.3, along={0: 0.5}), rng.normal(size=3)
    one, two = reading_moments(memory, q, noise), reading_moments(memory, [q, q], noise)
    assert torch.allclose(one.weights_var, two.weights_var, atol=two.error_bound)
    assert torch.allclose(one.output_cov, two.output_cov, atol=two.output_error_bound)
    assert torch.allclose(two.heads_output_cov[0, 0], two.heads_output_cov[0, 1], atol=two.output_error_bound)


def test_heads_that_share_no_noise_are_independent():
    memory = qkv.Memory(np.eye(3), np.eye(3))
    s = reading_moments(memory, 2 * np.eye(3)[:2], Gaussian(isotropic=0.2, along={0: 0.5}))
    assert float(s.heads_output_cov[0, 1].abs().max()) == 0
    alone = [reading_moments(memory, 2 * np.eye(3)[h], Gaussian(isotropic=0.2, along={0: 0.5})) for h in (0, 1)]
    assert torch.allclose(s.weights_var, (alone[0].weights_var + alone[1].weights_var) / 4, atol=s.error_bound)


def test_a_small_correlation_changes_little_and_the_two_routes_meet_there():
    """By Price's theorem the cross-covariance is about c E f'g': linear in c, so c and 2c tell."""
    m = torch.tensor([[0.3, 0.0], [0.1, 0.2]], dtype=torch.float64)
    found = []
    for c in (1e-4, 2e-4):
        C = torch.zeros(2, 2, 2, dtype=torch.float64)
        C[0] = torch.tensor([[1.0, c], [c, 0.5]])
        raw = cross_moments(m, C, torch.eye(2, dtype=torch.float64), full=True)
        apart = [cross_moments(m, C * torch.eye(2), torch.eye(2).double())]
        assert apart == [0.0]
        first = spread_means(m, C)
        found.append(float(raw.product[0, 0]) - first[0] * first[1])
    assert found[1] == pytest.approx(2 * found[0], rel=1e-3)
    assert 0 < found[0] < 1e-4 / 16


def spread_means(m, C):
    from qkv.noise.moments.single_head import head_moments

    eye = torch.eye(2, dtype=torch.float64)
    return [float(head_moments(m[h], C[:, h, h], eye).mean[0]) for h in (0, 1)]


def test_cross_moments_too_wide_to_integrate_are_refused_with_a_way_out():
    memory = qkv.Memory(np.eye(3), np.eye(3))
    with pytest.raises(QkvError, match=r"qkv\.noise\.sample"):
        reading_moments(memory, 3000 * np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), Gaussian(isotropic=0.5))


def correlated_pair(variance: float, covariance: float) -> torch.Tensor:
    return torch.tensor([[[variance, covariance], [covariance, variance]]], dtype=torch.float64)


@pytest.mark.parametrize("variance", [0.01, 1.0, 30.0])
def test_the_nodes_of_the_common_part_end_with_the_first_beyond_the_tail(variance):
    (group,) = _group_by_width(torch.tensor([0]), correlated_pair(variance, variance / 2), FINE.digits)
    assert float(group.z[-2]) <= NORMAL_TAIL < float(group.z[-1])


def test_where_the_normal_density_alone_sets_the_step_it_is_the_widest_one():
    (group,) = _group_by_width(torch.tensor([0]), correlated_pair(0.01, 0.005), FINE.digits)
    assert float(group.z[1] - group.z[0]) == pytest.approx(2 * math.pi / math.sqrt(2 * FINE.digits), rel=1e-12)


def test_the_rough_grid_costs_an_eighth_or_less():
    m, v = torch.linspace(-1, 1, 6, dtype=torch.float64), torch.full((6,), 0.5, dtype=torch.float64)
    fine, rough = (len(compressed_rule(m, v, grid.step, grid.reach).u) for grid in (FINE, ROUGH))
    z = [len(_group_by_width(torch.tensor([0]), correlated_pair(0.5, 0.2), grid.digits)[0].z) for grid in (FINE, ROUGH)]
    assert (fine / rough) ** 2 * z[0] / z[1] > 8


# Each function by itself


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def test_limits_are_what_they_are_said_to_be():
    assert (FINE.step, FINE.reach, FINE.digits, FINE.one_head_step, FINE.one_head_reach) == (
        0.28,
        32.0,
        35.0,
        0.25,
        37.0,
    )
    assert Grid(0.55, 16.0, 18.0, 0.4, 20.0) == ROUGH
    assert (head_pairs.MAX_ENTRIES, head_pairs.MAX_MATRIX_ENTRIES, head_pairs.MAX_RECORDED_ENTRIES) == (
        2**20, 2**27, 2**24
    )  # fmt: skip
    assert (head_pairs.MAX_PRODUCTS, head_pairs.MAX_PHASES, head_pairs.MAX_FREQUENCIES) == (3e11, 2**21, 400)
    assert (head_pairs.INNER_ERROR, head_pairs.MAX_IGNORED, head_pairs.KEYS_A_LOGARITHM) == (2e-13, 1e-11, 16)
    assert (head_pairs.MIN_COMMON, head_pairs.MIN_VARIANCE, NORMAL_TAIL) == (0.05, 1e-16, 8.0)


def test_correlations_of_least_effect_are_left_out_up_to_the_limit():
    """A sixteenth of each covariance, of which 4e-12 and 6e-12 are left out together, and 7e-12 not."""
    size = double([7e-12 * 16, 6e-12 * 16, 0.0, 3.99e-12 * 16])
    correlated, ignored = head_pairs._split_by_effect(size, None)
    assert correlated.tolist() == [0] and ignored == pytest.approx(9.99e-12, rel=1e-9, abs=0)
    squares = double([[0.25, 0.01, 1.0, -1.0], [0.25, 0.04, 1.0, 0.5]])
    correlated, ignored = head_pairs._split_by_effect(double([1.0, 4e-10, 1.6e-10, 1.0]), squares)
    # 1/16, 4e-10 √(0.0004) = 8e-12, 1e-11, and 0 where a square is not above 0
    assert correlated.tolist() == [0, 2] and ignored == pytest.approx(8e-12, rel=1e-9, abs=0)


def pair_of(*covariances):
    return double([[[a, c], [c, b]] for a, b, c in covariances])


def test_common_parts_of_scores_have_their_covariance_and_leave_the_rest_of_their_variances():
    C = pair_of((1.0, 4.0, 0.5), (4.0, 1.0, -0.5), (0.25, 9.0, 1.0), (1.0, 1.0, 1.0), (0.04, 0.04, 1e-4))
    for group in _group_by_width(torch.arange(5), C, 35.0):
        slopes, rests = group.slopes_and_rests(C)
        for k, row in enumerate(group.rows.tolist()):
            assert float(slopes[0, k] * slopes[1, k]) == pytest.approx(float(C[row, 0, 1]), rel=1e-12)
            for head in (0, 1):
                own = float(slopes[head, k] ** 2 + rests[head, k])
                assert own == pytest.approx(float(C[row, head, head]), rel=1e-12)
                assert float(rests[head, k]) >= 0


def test_the_narrower_score_has_a_slope_of_the_root_of_the_covariance_where_that_is_within_its_deviation():
    C = pair_of((1.0, 4.0, 0.25), (4.0, 0.25, 0.9), (0.01, 4.0, 1e-6), (1e-4, 4.0, 1e-6), (0.0, 1.0, 0.0))
    common, deviations = [0.5, 0.5, 0.05, 0.01, 1e-8], [1.0, 0.5, 0.1, 0.01, 1e-8]
    found = {}
    for group in _group_by_width(torch.arange(5), C, 35.0):
        for k, row in enumerate(group.rows.tolist()):
            found[row] = (int(group.narrow[k]), float(group.share[k]), len(group.z))
    assert [found[i][0] for i in range(5)] == [0, 1, 0, 0, 0]
    assert [found[i][1] for i in range(5)] == pytest.approx([c / s for c, s in zip(common, deviations, strict=True)])
    assert found[1][2] > found[0][2]  # of width 1.8 and 0.5


@pytest.mark.parametrize(
    ("width", "bins"), [((0.39, 0.1), 1), ((0.39, 0.41), 2), ((0.41, 0.79), 1), ((0.79, 0.81), 2), ((0.1, 3.0, 0.9), 3)]
)
def test_keys_are_grouped_by_doublings_of_the_width_from_four_tenths(width, bins):
    C = pair_of(*((w * w, w * w, w * w) for w in width))
    groups = _group_by_width(torch.arange(len(width)), C, 35.0)
    assert len(groups) == bins and sorted(r for g in groups for r in g.rows.tolist()) == list(range(len(width)))
    for group in groups:
        widest = max(width[r] for r in group.rows.tolist())
        best = min(math.pi / 2 / widest, math.sqrt(70))
        step = 2 * math.pi * best / (35 + best**2 / 2)
        assert float(group.z[1] - group.z[0]) == pytest.approx(step, rel=1e-9)
        assert float(group.z[len(group.z) // 2]) == 0 and torch.equal(group.z, -group.z.flip(0))
        assert float(group.density.sum()) == pytest.approx(1, rel=1e-14)
        assert float(group.density[0] / group.density.max()) == pytest.approx(math.exp(-(float(group.z[0]) ** 2) / 2))


def test_perfectly_correlated_scores_have_no_rest():
    C = pair_of((1.0, 4.0, 2.0), (1.0, 4.0, 2.0 * (1 - 1e-14)), (1.0, 4.0, 2.0 * (1 - 1e-12)))
    rests = torch.zeros(2, 3, dtype=torch.float64)
    for group in _group_by_width(torch.arange(3), C, 35.0):
        rests[:, group.rows] = group.slopes_and_rests(C)[1]
    assert rests[1, 0] == rests[1, 1] == 0 and float(rests[1, 2]) == pytest.approx(8e-12, rel=0.01)


def test_four_integrals_over_what_is_common_are_sums_over_z():
    rng = torch.Generator().manual_seed(0)
    (group,) = _group_by_width(torch.tensor([0, 1]), pair_of((1.0, 1.0, 0.25), (1.0, 1.0, 0.25)), 35.0)
    z = len(group.z)
    one, two = (torch.rand(2, 2, z, n, generator=rng, dtype=torch.float64) for n in (3, 4))
    found = head_pairs._four(group, one, two)
    for part, (p, q) in zip(found, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=True):
        assert torch.allclose(part, torch.einsum("kzu,z,kzw->kuw", one[p], group.density, two[q]), rtol=1e-12)


def test_scores_given_z_are_those_of_a_shifted_mean(monkeypatch):
    (group,) = _group_by_width(torch.tensor([1, 2]), pair_of((0, 0, 0), (1.0, 1.0, 0.25), (1.0, 1.0, 0.25)), 35.0)
    m, slope, rest = double([9.0, 0.5, -1.0]), double([0.5, -0.5]), double([0.75, 0.0])
    nodes = double([-2.0, 0.0, 1.0])
    found = head_pairs._given_z(m, slope, rest, group, nodes)
    assert found.shape == (2, 2, len(group.z), 3)
    for k in range(2):
        mean = m[k + 1] + slope[k] * group.z
        L, P = head_pairs._survival_and_density(mean, rest[k].expand_as(mean), nodes)
        assert torch.allclose(found[0, k], L, atol=1e-13) and torch.allclose(found[1, k], P, atol=1e-13)
    calls = []
    true = head_pairs._survival_and_density
    monkeypatch.setattr(head_pairs, "_survival_and_density", lambda *a: calls.append(len(a[0])) or true(*a))
    for phases, parts in ((len(group.z) * 400 * 2, 1), (len(group.z) * 400 * 2 - 1, 2), (1, 2)):
        calls.clear()
        monkeypatch.setattr(head_pairs, "MAX_PHASES", phases)
        assert torch.allclose(head_pairs._given_z(m, slope, rest, group, nodes), found, atol=1e-13)
        assert len(calls) == parts


@pytest.mark.parametrize("keys", [1, 15, 16, 17, 32, 40])
def test_the_logarithm_of_a_product_is_the_sum_of_logarithms(keys):
    K = torch.rand(keys, 2, 3, generator=torch.Generator().manual_seed(keys), dtype=torch.float64) + 0.01
    assert torch.allclose(head_pairs._log_of_product(K.clone()), K.log().sum(0), rtol=1e-12)
    recorded = K.clone().requires_grad_()
    head_pairs._log_of_product(recorded).sum().backward()
    assert torch.allclose(recorded.grad, 1 / K, rtol=1e-12)
    smallest = torch.full((keys, 1), 1e-15, dtype=torch.float64)
    assert float(head_pairs._log_of_product(smallest)) == pytest.approx(keys * math.log(1e-15), rel=1e-12)


def test_ratios_vanish_with_the_survival():
    K, A = double([0.5, 1e-15, 2e-15]), double([0.25, 1.0, 1e-15])
    a, b, both = head_pairs._ratios(K, A, 2 * A, 3 * A)
    assert a.tolist() == pytest.approx([0.5, 0.0, 0.5]) and b.tolist() == pytest.approx([1.0, 0.0, 1.0])
    assert both.tolist() == pytest.approx([1.5, 0.0, 1.5])
    assert head_pairs._deviation(double([4.0, 0.0, 1e-20])).tolist() == pytest.approx([2.0, 1e-8, 1e-8])


def test_survival_and_density_of_scores_with_and_without_noise():
    m, v, w = double([0.0, 0.5, 80.0]), double([0.0, 1.0, 0.0]), double([-1.0, 1.0])
    L, P = head_pairs._survival_and_density(m, v, w)
    x = torch.exp(w)
    assert torch.allclose(L[0], torch.exp(-x)) and torch.allclose(P[0], x * torch.exp(-x))
    noisy = smoothed(m[1:2], v[1:2], w, 2)
    assert torch.equal(L[1], noisy[0, 0]) and torch.equal(P[1], noisy[1, 0])
    assert float(L[2].max()) < 1e-100 and float(P[2].max()) < 1e-100
    still = head_pairs._survival_and_density(m[:1], v[:1], w)
    assert torch.equal(still[0], L[:1]) and torch.equal(still[1], P[:1])


@pytest.mark.parametrize("limit", ["MAX_MATRIX_ENTRIES", "MAX_PRODUCTS", "MAX_RECORDED_ENTRIES"])
def test_integrals_are_refused_just_above_each_limit(monkeypatch, limit):
    groups = _group_by_width(torch.arange(3), pair_of(*[(1.0, 1.0, 0.25)] * 3), 35.0)
    rows = 3 * len(groups[0].z)
    work = {"MAX_MATRIX_ENTRIES": rows * 2 * 7, "MAX_PRODUCTS": rows * 5 * 7, "MAX_RECORDED_ENTRIES": 3 * 5 * 7}[limit]
    monkeypatch.setattr(head_pairs, limit, work)
    head_pairs._check_cost(5, 7, groups, True)
    monkeypatch.setattr(head_pairs, limit, work - 1)
    with pytest.raises(QkvError, match="3 correlated keys, over 5 × 7 nodes"):
        head_pairs._check_cost(5, 7, groups, True)
    if limit == "MAX_RECORDED_ENTRIES":
        head_pairs._check_cost(5, 7, groups, False)


def one_correlated_key():
    m = double([[0.3, 0.8, -0.2, 0.1], [-0.5, 0.1, 0.4, 0.0]])
    C = torch.zeros(4, 2, 2, dtype=torch.float64)
    C[1] = double([[1.2, -0.5], [-0.5, 0.9]])
    C[2] = double([[0.5, 0.0], [0.0, 0.25]])
    return m, C


def test_the_error_of_cross_moments_is_composed_of_all_its_parts():
    m, C = one_correlated_key()
    values = torch.eye(4, dtype=torch.float64)
    found = cross_moments(m, C, values)
    v = C.diagonal(dim1=1, dim2=2).mT
    rules = [compressed_rule(m[h] - m[h].max(), v[h], FINE.step, FINE.reach) for h in (0, 1)]
    length = rules[0].length + rules[1].length
    outer = 2 * outer_error(FINE.step, 1) + rules[0].error + rules[1].error
    each = 2e-13 + 4e-15 + 20 * math.exp(-35)
    assert found.error == pytest.approx(outer + each * (2 * 4 + length), rel=1e-9, abs=0)
    assert found.total_error == pytest.approx(outer + each * 2 * 4 * (1 + length), rel=1e-9, abs=0)
    C[3] = double([[1.0, 1e-10], [1e-10, 1.0]])
    nearly = cross_moments(m, C, values)
    v = C.diagonal(dim1=1, dim2=2).mT
    rules = [compressed_rule(m[h] - m[h].max(), v[h], FINE.step, FINE.reach) for h in (0, 1)]
    length, ignored = rules[0].length + rules[1].length, 1e-10 / 16
    outer = 2 * outer_error(FINE.step, 1) + rules[0].error + rules[1].error + ignored
    assert nearly.error == pytest.approx(outer + each * (2 * 4 + length), rel=1e-9, abs=0)
    assert nearly.total_error == pytest.approx(outer + 3 * ignored + each * 8 * (1 + length), rel=1e-9, abs=0)
    C[1, 0, 1] = C[1, 1, 0] = 0
    assert cross_moments(m, C, values) == pytest.approx(ignored, rel=1e-12, abs=0)


def test_moments_are_the_same_in_parts_and_with_all_products(monkeypatch):
    m, C = one_correlated_key()
    values = double([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0], [0.0, 3.0, 1.0], [2.0, 1.0, -1.0]])
    whole = cross_moments(m, C, values, full=True)
    assert torch.allclose(whole.output_square, values.mT @ whole.product @ values, atol=1e-12)
    assert torch.equal(whole.product.diagonal(), whole.square)
    assert float(whole.product.sum()) == pytest.approx(1.0, abs=1e-11)
    assert cross_moments(m, C, values).product is None
    sizes = []
    true = head_pairs._four
    monkeypatch.setattr(head_pairs, "_four", lambda g, a, b: sizes.append(a.shape[-1]) or true(g, a, b))
    nodes = len(compressed_rule(m[1] - m[1].max(), C[:, 1, 1], FINE.step, FINE.reach).u)
    for entries, full, size in ((nodes * 4 * 5, True, 5), (nodes * 3 * 7, False, 7), (1, False, 1)):
        sizes.clear()
        monkeypatch.setattr(head_pairs, "MAX_ENTRIES", entries)
        pieces = cross_moments(m, C, values, full=full)
        assert max(sizes) == size and torch.allclose(pieces.square, whole.square, atol=1e-13)
        assert torch.allclose(pieces.output_square, whole.output_square, atol=1e-12)
        assert not full or torch.allclose(pieces.product, whole.product, atol=1e-13)


def test_with_gradients_every_noisy_key_counts_as_correlated(monkeypatch):
    m, C = one_correlated_key()
    seen = []
    true = head_pairs._group_by_width
    monkeypatch.setattr(head_pairs, "_group_by_width", lambda rows, *a: seen.append(rows.tolist()) or true(rows, *a))
    values = torch.eye(4, dtype=torch.float64)
    plain = cross_moments(m, C, values, grid=ROUGH)
    recorded = cross_moments(m.clone().requires_grad_(), C, values, grid=ROUGH)
    with torch.no_grad():
        cross_moments(m.clone().requires_grad_(), C, values, grid=ROUGH)
    cross_moments(m, C.clone().requires_grad_(), values, grid=ROUGH)
    assert seen == [[1], [1, 2], [1], [1, 2]]
    assert torch.allclose(plain.square, recorded.square, atol=1e-6)
