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
from qkv.noise.moments.head_pairs import (
    FINE,
    NORMAL_TAIL,
    ROUGH,
    CrossMoments,
    Grid,
    _group_by_width,
    cross_moments,
)
from qkv.noise.moments.outer_rule import compressed_rule


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
