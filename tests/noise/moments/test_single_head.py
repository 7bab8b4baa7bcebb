"""Moments of one head: direct integrals over the scores, finer grids, and the reported error."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from qkv.noise.moments import single_head
from qkv.noise.moments.single_head import head_moments


def test_moments_of_two_noisy_keys_are_the_double_integral_of_the_softmax():
    m, v, third = (0.7, -0.4), (1.3, 0.6), 0.2
    values = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]], dtype=torch.float64)

    def alpha(x: float, y: float) -> list[float]:
        e = [math.exp(m[0] + math.sqrt(v[0]) * x), math.exp(m[1] + math.sqrt(v[1]) * y), math.exp(third)]
        return [each / sum(e) for each in e]

    def expect(f):
        def integrand(x: float, y: float) -> float:
            return f(alpha(x, y)) * math.exp(-(x * x + y * y) / 2) / (2 * math.pi)

        return integrate.dblquad(integrand, -8, 8, -8, 8, epsabs=1e-9, epsrel=1e-9)[0]

    scores = torch.tensor([*m, third]).double()
    found = head_moments(scores, torch.tensor([*v, 0.0]).double(), values, full=True)
    assert abs(float(found.mean[0]) - expect(lambda a: a[0])) < 1e-8
    assert abs(float(found.square[1]) - expect(lambda a: a[1] ** 2)) < 1e-8
    assert abs(float(found.product[0, 1]) - expect(lambda a: a[0] * a[1])) < 1e-8
    assert torch.allclose(found.output_square, values.mT @ found.product @ values, atol=1e-13)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_finer_grids_change_nothing_beyond_the_reported_error(scale):
    rng = torch.Generator().manual_seed(3)
    m, v = scale * torch.randn(2, 40, generator=rng, dtype=torch.float64)
    values = torch.randn(40, 3, generator=rng, dtype=torch.float64)
    coarse, fine = (head_moments(m, v**2, values, step=h) for h in (single_head.STEP, 0.11))
    for name in ("mean", "square"):
        assert float((getattr(coarse, name) - getattr(fine, name)).abs().max()) < coarse.error
    assert abs(float(coarse.mean.sum()) - 1) < coarse.total_error


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(1, 2))
@settings(max_examples=settings.default.max_examples * 4 // 5, deadline=None, derandomize=True)
def test_the_true_error_is_below_the_reported_one(seed, n, noisy):
    """One or two noisy scores of any width, integrated directly: softmax has no pole within π of the line."""
    rng = np.random.default_rng(seed)
    m = rng.normal(size=n) * 10 ** rng.uniform(-1, 1.3)
    sd = 10 ** rng.uniform(-4, 1.7 if noisy == 1 else 0.3, size=noisy)
    grids = [np.arange(-int(8.6 / h) - 1, int(8.6 / h) + 2) * h for h in np.minimum(0.5, 0.25 / sd)]
    z = np.stack([axis.ravel() for axis in np.meshgrid(*grids)], axis=1)
    mass = norm.pdf(z).prod(1) * math.prod(axis[1] - axis[0] for axis in grids)
    scores = np.tile(m, (len(z), 1))
    scores[:, :noisy] += z * sd
    alpha = np.exp(scores - scores.max(1, keepdims=True))
    alpha /= alpha.sum(1, keepdims=True)
    values = rng.normal(size=(n, 2))
    values /= np.linalg.norm(values, axis=1).max()
    v = np.concatenate([sd**2, np.zeros(n - noisy)])
    found = head_moments(torch.from_numpy(m), torch.from_numpy(v), torch.from_numpy(values))
    assert np.abs(mass @ alpha - found.mean.numpy()).max() < found.error < 1e-11
    assert np.abs(mass @ alpha**2 - found.square.numpy()).max() < found.error
    output = alpha @ values
    assert np.abs((output * mass[:, None]).T @ output - found.output_square.numpy()).max() < found.total_error


def test_a_step_too_large_errs_by_no_more_than_poisson_says():
    """The bound on the outer sum is shown at work where it is large enough to be seen."""
    m, v = torch.tensor([0.3, -1.0, 0.0]).double(), torch.tensor([0.0, 0.5, 0.0]).double()
    true = head_moments(m, v, torch.eye(3).double()).square
    for step in (0.9, 0.7, 0.5):
        off = float(((head_moments(m, v, torch.eye(3).double(), step=step).square - true).abs() / true).max())
        assert 1e-3 * single_head.outer_error(step, 2) < off <= single_head.outer_error(step, 2)


def test_many_keys_in_pieces_are_the_same_as_in_one(monkeypatch):
    rng = torch.Generator().manual_seed(1)
    m, v = torch.randn(300, generator=rng).double(), torch.rand(300, generator=rng).double()
    values = torch.randn(300, 5, generator=rng).double()
    whole = head_moments(m, v, values, full=True)
    monkeypatch.setattr(single_head, "MAX_ENTRIES", 5000)
    pieces = head_moments(m, v, values, full=True)
    for name in ("mean", "square", "output", "output_square", "product"):
        assert torch.allclose(getattr(whole, name), getattr(pieces, name), atol=1e-14)


def test_with_one_noisy_key_the_error_of_an_entry_is_that_of_all_and_holds_the_rounding_of_the_sum():
    n = 40_000
    v = torch.zeros(n).double()
    v[0] = 0.25
    found = head_moments(torch.zeros(n).double(), v, torch.zeros(n, 1).double())
    assert found.error == found.total_error > 1e-15 + 1e-16 * math.sqrt(n)
