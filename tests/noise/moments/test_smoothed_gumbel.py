"""The smoothed Gumbel law, against plain quadrature in twenty-five digits."""

from __future__ import annotations

import mpmath as mp
import pytest
import torch

from qkv.noise.moments import smoothed_gumbel
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, logs_and_ratios, smoothed


def reference(y: float, sd: float) -> list[float]:
    """E ℓ, E p, E q at y + N(0, sd²): the trapezoid rule in s, fine enough for both factors."""
    with mp.workdps(25):
        h = mp.mpf(min(0.15, 0.4 * sd))
        total = [mp.mpf(0)] * 3
        for k in range(-int(10 * sd / h), int(10 * sd / h) + 1):
            x = mp.e ** (y + k * h)
            term = mp.e ** (-((k * h / sd) ** 2) / 2 - x)
            total = [total[0] + term, total[1] + term * x, total[2] + term * x * x]
        return [float(t * h / (sd * mp.sqrt(2 * mp.pi))) for t in total]


@pytest.mark.parametrize("sd", [1e-4, 0.1, 0.2499, 0.25, 0.7, 1.0, 3.0, 9.0])
def test_the_three_functions_are_right_to_the_promised_digits(sd):
    ys = [-36.0, -20.3, -5.0 - sd, -1.7, 0.0, 0.9, 2.5, 3.0 + 2 * sd]
    m = torch.tensor([0.3, -1.1], dtype=torch.float64)
    for shift in range(2):
        u = torch.tensor(ys, dtype=torch.float64) - m[shift]
        found = smoothed(m, torch.full((2,), sd**2, dtype=torch.float64), u)
        for i, y in enumerate(ys):
            for f, true in zip(found, reference(y, sd), strict=True):
                assert abs(float(f[shift, i]) - true) < FUNCTION_ERROR


def test_far_outside_its_window_a_key_is_out_of_the_way_or_all_in_it():
    u = torch.tensor([0.0], dtype=torch.float64)
    L, P, Q = smoothed(torch.tensor([-1e6, 1e6]).double(), torch.tensor([4.0, 4.0]).double(), u)
    assert L[:, 0].tolist() == [1.0, 0.0]
    assert P.abs().max() == Q.abs().max() == 0


@pytest.mark.parametrize("sd", [0.02, 0.3, 1.0, 5.0])
def test_only_the_sum_of_score_and_node_counts_however_large_both_are(sd):
    y = torch.arange(-320, 32, dtype=torch.float64) / 8  # sums with powers of two are exact
    v = torch.tensor([sd**2], dtype=torch.float64)
    near = smoothed(torch.tensor([0.0], dtype=torch.float64), v, y)
    for shift in (64.0, 1024.0, -8192.0):
        far = smoothed(torch.tensor([-shift], dtype=torch.float64), v, y + shift)
        assert max(float((a - b).abs().max()) for a, b in zip(near, far, strict=True)) < FUNCTION_ERROR


def test_keys_of_many_widths_together_are_as_they_are_alone():
    v = torch.tensor([0.0, 1e-6, 0.3, 2.0, 50.0, 900.0], dtype=torch.float64)
    m = torch.linspace(-2, 1, 6, dtype=torch.float64)
    u = torch.linspace(-20, 3, 40, dtype=torch.float64)
    together = logs_and_ratios(m, v, u)
    for i in range(6):
        for whole, alone in zip(together, logs_and_ratios(m[i : i + 1], v[i : i + 1], u), strict=True):
            assert torch.allclose(whole[i], alone[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sd", [0.0, 1e-4, 0.2, 0.2499, 0.26, 0.49, 0.7, 0.99, 1.01, 3.0, 40.0])
@pytest.mark.parametrize("step", [0.125, 0.25, 0.3, 0.5])
def test_few_keys_have_the_same_functions_as_many(monkeypatch, sd, step):
    from qkv.noise.moments import smoothed_gumbel

    m = torch.tensor([-7.0, 0.0, 0.3, 5.0], dtype=torch.float64)
    v = torch.full_like(m, sd**2)
    u = -30 + step * torch.arange(200, dtype=torch.float64)
    few = smoothed_gumbel.logs_and_ratios(m, v, u)
    monkeypatch.setattr(smoothed_gumbel, "MAX_SMALL_ENTRIES", 0)
    many = smoothed_gumbel.logs_and_ratios(m, v, u)
    if sd == 0:
        assert all(torch.allclose(a, b, rtol=1e-13) for a, b in zip(few, many, strict=True))
        return
    L, also = few[0].exp(), many[0].exp()
    assert float((L - also).abs().max()) < 2 * smoothed_gumbel.FUNCTION_ERROR
    alive = torch.minimum(L, also) > 1e-14  # below it, what is left is left out
    for a, b in zip(few[1:], many[1:], strict=True):
        assert float(((a * L - b * also).abs() * alive).max()) < 2 * smoothed_gumbel.FUNCTION_ERROR


def test_the_tail_that_is_left_out_is_rounding():
    assert 1e-17 < mp.erfc(smoothed_gumbel.NORMAL_TAIL / mp.sqrt(2)) < 1e-16


@pytest.mark.parametrize("step", sorted(smoothed_gumbel.TABLE_LENGTH))
def test_factors_are_cached_for_equidistant_nodes_only(step):
    nodes = -3 + smoothed_gumbel._table_nodes(step)[:9]
    assert smoothed_gumbel._cached_step(nodes) == step
    assert smoothed_gumbel._cached_step(nodes * 1.01) is None
    assert smoothed_gumbel._cached_step(nodes[:1]) is None


def test_gradients_never_go_through_direct_quadrature(monkeypatch):
    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr(smoothed_gumbel, "smoothed_direct", never)
    m = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    v = torch.full((2,), 0.01, dtype=torch.float64)
    u = torch.linspace(-4, 2, 8, dtype=torch.float64)
    assert torch.isfinite(logs_and_ratios(m, v, u)).all()
    with pytest.raises(AssertionError):
        logs_and_ratios(m.detach(), v, u)
