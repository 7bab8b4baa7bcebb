"""The law of a weight in a mix of independent heads, by Kolmogorov and Smirnov's test against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from marks import some
from scipy.special import expit, logsumexp
from scipy.stats import kstest

from qkv.noise.laws.independent_heads import mixed_law


def tensors(*rows):
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


def drawn(m, v, item, draws=20_000, seed=0):
    scores = m + np.sqrt(v) * np.random.default_rng(seed).standard_normal((draws, len(m)))
    return expit(scores[:, item] - logsumexp(np.delete(scores, item, 1), axis=1))


@pytest.mark.parametrize("mix", some([(0.5, 0.5), (0.2, 0.3, 0.5), (0.125,) * 8], [(0.2, 0.3, 0.5)]))
@pytest.mark.parametrize("noise", [1e-4, 0.05, 1.0])
def test_heads_that_are_independent_add_up(mix, noise):
    h, n = len(mix), 10
    m = np.zeros((h, n))
    m[np.arange(h), np.arange(h)] = 4.0
    v = np.full((h, n), noise)
    v[0, 0] += 2.0
    C = torch.diag_embed(torch.from_numpy(v).mT)
    law = mixed_law(*tensors(m), C, *tensors(mix), 0)
    total = sum(mix[i] * drawn(m[i], v[i], 0, seed=i) for i in range(h))
    assert kstest(total, law.below).pvalue > 1e-4
    assert law.low - 1e-9 <= total.min() and total.max() <= law.high + 1e-9
    fine, at = mixed_law(*tensors(m), C, *tensors(mix), 0, points=2048), np.linspace(law.low, law.high, 301)
    assert float(np.abs(law.below(at) - fine.below(at)).max()) < 1e-3
    assert law.mean == pytest.approx(total.mean(), abs=5 * total.std() / math.sqrt(len(total)))
    assert law.variance == pytest.approx(total.var(), rel=0.1)


def test_heads_whose_scores_are_correlated_have_no_such_law():
    C = torch.tensor([[[1.0, 0.5], [0.5, 1.0]]] * 3, dtype=torch.float64)
    assert mixed_law(*tensors([[1.0, 0, 0], [0, 1.0, 0]]), C, *tensors([0.5, 0.5]), 0) is None


def test_a_mix_that_is_not_positive_has_no_such_law():
    C = torch.eye(2, dtype=torch.float64).expand(3, 2, 2)
    assert mixed_law(*tensors([[1.0, 0, 0], [0, 1.0, 0]]), C, *tensors([1.5, -0.5]), 0) is None


def test_one_head_with_a_mix_is_the_scaled_law_of_the_head():
    from qkv.noise.laws.single_head import weight_law

    (m, v), at = tensors([0.5, 0.0, -0.3], [0.4, 0.2, 0.1]), np.linspace(0.0, 0.8, 50)
    mixed, alone = (
        mixed_law(m[None], v[:, None, None], torch.tensor([0.8], dtype=torch.float64), 0),
        weight_law(m, v, 0),
    )
    assert np.array_equal(mixed.below(at), alone.below(at / 0.8))
    assert mixed.mean == pytest.approx(0.8 * alone.mean) and mixed.variance == pytest.approx(0.64 * alone.variance)
