"""Few noisy directions: merged scores are the full softmax, and level sets have the right normal measure."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import chi2, norm

from qkv.noise.probability.low_rank import LowRankScores, noise_directions, normal_measure

RANDOM = torch.Generator().manual_seed(4)


def test_merged_scores_give_the_weights_and_outputs_of_all_items():
    m = torch.randn(2, 6, generator=RANDOM, dtype=torch.float64)
    C = torch.zeros(6, 2, 2, dtype=torch.float64)
    C[3] = torch.tensor([[0.7, 0.2], [0.2, 0.4]])
    directions = noise_directions(C)
    assert directions.shape == (2, 2, 6)
    assert torch.allclose(torch.einsum("rhn,rgn->nhg", directions, directions), C)
    few, values = LowRankScores.of(m, directions), torch.randn(6, 3, generator=RANDOM, dtype=torch.float64)
    z = torch.randn(5, 2, generator=RANDOM, dtype=torch.float64)
    full = torch.softmax(m + torch.einsum("pr,rhn->phn", z, directions), -1)
    assert torch.allclose(torch.einsum("phk,hkd->phd", few.weights(z), few.values(values)), full @ values)
    for item in range(6):
        column, share = few.column_of(item)
        assert torch.allclose(few.weights(z)[:, :, column] * share, full[:, :, item])


def test_more_than_two_variables_are_not_integrated():
    C = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1)
    assert noise_directions(C) is None
    C[1:] = 0
    assert noise_directions(C).shape == (2, 2, 3)
    C[1, 0, 0] = 1
    assert noise_directions(C) is None
    assert noise_directions(0 * C).shape == (0, 2, 3)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (0.3, 0.31), (2.0, 9.0)])
def test_the_measure_of_an_interval_is_a_difference_of_normal_distribution_functions(low, high):
    found, error = normal_measure(lambda z: (z[:, 0] - low) * (z[:, 0] - high), 1)
    assert abs(found - (norm.cdf(high) - norm.cdf(low))) < 1e-12 <= error


@pytest.mark.parametrize("radius", [0.5, 1.5, 3.0])
def test_the_measure_of_a_disc_is_a_chi_square_distribution_function(radius):
    found, error = normal_measure(lambda z: z.square().sum(-1) - radius**2, 2)
    assert abs(found - chi2.cdf(radius**2, 2)) < error < 1e-3


def test_the_measure_of_a_half_plane_does_not_depend_on_its_direction():
    for angle in (0.1, 0.9, 2.0):
        found, error = normal_measure(lambda z, a=angle: z @ torch.tensor([math.cos(a), math.sin(a)]).double() - 0.4, 2)
        assert abs(found - norm.cdf(0.4)) < error + 1e-6


def test_without_variables_the_measure_is_zero_or_one():
    assert normal_measure(lambda z: torch.full((len(z),), -1.0), 0) == (1.0, 0.0)
    assert normal_measure(lambda z: torch.full((len(z),), 1.0), 0) == (0.0, 0.0)
