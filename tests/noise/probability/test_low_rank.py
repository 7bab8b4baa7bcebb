"""Few noisy directions: merged scores are the full softmax, and what is left out of a score is bounded."""

from __future__ import annotations

import pytest
import torch

from qkv.noise.probability.low_rank import LowRankScores, noise_directions

RANDOM = torch.Generator().manual_seed(4)


def test_merged_scores_give_the_weights_and_outputs_of_all_items():
    m = torch.randn(2, 6, generator=RANDOM, dtype=torch.float64)
    C = torch.zeros(6, 2, 2, dtype=torch.float64)
    C[3] = torch.tensor([[0.7, 0.2], [0.2, 0.4]])
    directions = noise_directions(C).moves
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
    assert noise_directions(C).moves.shape == (2, 2, 3)
    C[1, 0, 0] = 1
    assert noise_directions(C) is None
    assert noise_directions(0 * C).moves.shape == (0, 2, 3)


def test_what_the_variables_leave_out_of_a_score_is_bounded():
    C = torch.zeros(3, 2, 2, dtype=torch.float64)
    C[0] = torch.tensor([[1.0, 1.0], [1.0, 1.0]]) + torch.tensor([[0.0, 0.0], [0.0, 1e-15]])
    found = noise_directions(C)
    assert len(found) == 1
    left = C[0] - torch.einsum("rh,rg->hg", found.moves[:, :, 0], found.moves[:, :, 0])
    assert bool((left.diagonal().clamp(min=0).sqrt() <= found.left_out).all())
    assert bool((found.error == 9 * found.left_out).all())


def test_uncorrelated_heads_have_their_own_variables_without_rounding():
    C = torch.zeros(3, 2, 2, dtype=torch.float64)
    C[0] = torch.diag(torch.tensor([1e8, 1e-12], dtype=torch.float64))
    found = noise_directions(C)
    assert len(found) == 2 and float(found.left_out.max()) == 0
    assert sorted(found.moves.abs().flatten(1).amax(1).tolist()) == pytest.approx([1e-6, 1e4], rel=1e-14)


def test_a_single_item_has_no_noise():
    assert len(noise_directions(torch.ones(1, 2, 2, dtype=torch.float64))) == 0
