"""The smoothed Gumbel law, against plain quadrature in twenty-five digits."""

from __future__ import annotations

import cmath
import math

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


# Each function by itself


def test_constants_are_where_they_are_said_to_be():
    assert 8e-17 < mp.e**-smoothed_gumbel.REACH < 1e-16
    end = mp.e**smoothed_gumbel.GUMBEL_END
    assert 1e-20 < (1 + end) * mp.e**-end < 6e-20
    assert smoothed_gumbel.MAX_FACTORS == 2**20 and smoothed_gumbel.MAX_SMALL_ENTRIES == 2**17
    assert smoothed_gumbel.MIN_SURVIVAL == 1e-15 and FUNCTION_ERROR == 4e-15
    assert smoothed_gumbel.TABLE_LENGTH == {0.125: 128.0, 0.25: 256.0, 0.5: 256.0}


def test_the_left_end_moves_by_half_the_variance_or_by_the_tail():
    v = torch.tensor([0.0, 4.0, 16.8**2, 900.0], dtype=torch.float64)
    assert smoothed_gumbel.left_tail(v).tolist() == pytest.approx([0.0, 2.0, 8.4 * 16.8, 8.4 * 30], rel=1e-14)


def test_keys_are_grouped_by_powers_of_two_of_their_deviation():
    sd = torch.tensor([1.0, 0.1, 0.0, 0.25, 1.99, 0.249, 4.0, 0.5], dtype=torch.float64)
    groups = {b: rows.tolist() for b, rows in smoothed_gumbel._groups_by_width(sd**2)}
    assert groups == {0: [0, 4], -99: [1, 5], -100: [2], -2: [3], 2: [6], -1: [7]}
    assert smoothed_gumbel._groups_by_width(torch.tensor([1.0, 3.9], dtype=torch.float64)) == [(0, None)]
    assert smoothed_gumbel._sd_range(0) == (1.0, 2.0) and smoothed_gumbel._sd_range(3) == (8.0, 16.0)
    assert smoothed_gumbel._sd_range(-1) == (0.5, 1.0) and smoothed_gumbel._sd_range(-99) == (0.0, 0.25)


def test_results_of_groups_come_back_in_the_order_of_the_keys():
    groups = [(0, torch.tensor([2, 0])), (1, torch.tensor([1]))]
    found = [torch.tensor([[[2.0], [0.0]]]), torch.tensor([[[1.0]]])]
    assert smoothed_gumbel._in_order(found, groups).tolist() == [[[0.0], [1.0], [2.0]]]
    alone = torch.ones(1, 1, 1)
    assert smoothed_gumbel._in_order([alone], [(0, None)]) is alone
    x = torch.tensor([5.0, 6.0, 7.0])
    assert smoothed_gumbel._take(x, None) is x and smoothed_gumbel._take(x, torch.tensor([2, 0])).tolist() == [7.0, 5.0]


@pytest.mark.parametrize("b", [-99, -2, 0, 3])
def test_the_series_of_a_bin_is_that_of_its_widest_key(b):
    """Ends, odd harmonics up to where the terms vanish, and the transforms Γ(1 - iω) and Γ(2 - iω) of p and q."""
    low, high = (0.0, 0.25) if b == -99 else (2.0**b, 2.0 ** (b + 1))
    A, B, omega, exponents, coefficients = smoothed_gumbel._series(b)
    assert pytest.approx(37 + min(high**2 / 2, 8.4 * high), rel=1e-14) == A
    assert pytest.approx(3.9 + 8.4 * high, rel=1e-14) == B
    T = A + B
    assert omega.tolist() == pytest.approx([float(mp.pi * (2 * k + 1) / T) for k in range(len(omega))], rel=1e-14)
    assert exponents.tolist() == pytest.approx([-(w**2) / 2 for w in omega.tolist()], rel=1e-14)
    for k in (0, 1, len(omega) // 2):
        w = float(omega[k])
        P, Q = 2 / T * mp.gamma(1 - 1j * w), 2 / T * mp.gamma(2 - 1j * w)
        for found, true in zip(coefficients[:, k].tolist(), (-P / (1j * w), P, Q), strict=True):
            assert abs(found - complex(true)) <= 1e-12 * abs(complex(true))

    def size(w):
        """The largest of the transforms of p and q, times the Gaussian of the narrowest key."""
        return float(abs(mp.gamma(2 - 1j * w)) * mp.e ** (-((low * w) ** 2) / 2))

    last = float(omega[-1])
    assert size(last) < 1e-16 < size(last / 1.15)


def test_the_window_holds_the_nodes_where_a_key_is_not_constant():
    u = torch.arange(-10.0, 11.0, dtype=torch.float64)
    m = torch.tensor([0.5, -1.5], dtype=torch.float64)
    start, stop = smoothed_gumbel._window(m, u, 3.0, 4.0)
    inside = [i for i, x in enumerate(u.tolist()) if -3.0 - 0.5 < x < 4.0 + 1.5]
    assert (start, stop) == (inside[0], inside[-1] + 1)
    assert smoothed_gumbel._window(m, u + 100, 3.0, 4.0) == (0, 0)
    assert smoothed_gumbel._window(m, u - 100, 3.0, 4.0) == (21, 21)


@pytest.mark.parametrize("step", [0.125, 0.25, 0.5])
def test_factors_are_cached_up_to_the_length_of_the_table(step):
    count = int({0.125: 128, 0.25: 256, 0.5: 256}[step] / step)
    nodes = smoothed_gumbel._table_nodes(step)
    assert len(nodes) == count and nodes[:3].tolist() == [0.0, step, 2 * step]
    assert smoothed_gumbel._cached_step(nodes - 7) == step
    longer = step * torch.arange(count + 1, dtype=torch.float64)
    assert smoothed_gumbel._cached_step(longer) is None
    assert smoothed_gumbel._cached_step(nodes[:2] - 7) == step and smoothed_gumbel._cached_step(nodes[:1]) is None
    bent = nodes[:5].clone()
    bent[4] += 1e-9
    assert smoothed_gumbel._cached_step(bent) is None


def test_factors_of_nodes_are_rotated_coefficients_modulo_the_period():
    omega = torch.tensor([0.5, 1.5], dtype=torch.float64)
    period = 2 * math.pi / 0.5
    coefficients = torch.tensor([[1 + 2j, 3 - 1j]], dtype=torch.complex128)
    u = torch.tensor([0.0, 1.0, 0.4 * period, 0.6 * period, -0.6 * period, 3 * period + 0.25], dtype=torch.float64)
    found = smoothed_gumbel._node_factors(coefficients, omega, u, period)
    assert found.shape == (1, 4, 6)
    for g, x in enumerate(u.tolist()):
        for k, (w, c) in enumerate(zip((0.5, 1.5), (1 + 2j, 3 - 1j), strict=True)):
            turned = c * cmath.exp(1j * w * x)
            assert float(found[0, k, g]) == pytest.approx(turned.real, abs=1e-13)
            assert float(found[0, k + 2, g]) == pytest.approx(-turned.imag, abs=1e-13)


def test_logs_and_ratios_of_keys_without_noise_have_a_closed_form():
    m, u = torch.tensor([0.0, 1.0], dtype=torch.float64), torch.tensor([-1.0, 0.5], dtype=torch.float64)
    found = logs_and_ratios(m, torch.zeros(2, dtype=torch.float64), u)
    x = torch.exp(m[:, None] + u)
    assert torch.equal(found, torch.stack([-x, x, x * x]))
    assert logs_and_ratios(m, torch.zeros(2, dtype=torch.float64), u, 2).shape == (2, 2, 2)


def test_where_a_key_has_vanished_the_ratios_are_0():
    functions = torch.tensor([[[0.5, 1e-15, 2e-15]], [[0.25, 0.5, 1e-15]]], dtype=torch.float64)
    found = smoothed_gumbel._logs(functions)
    assert found[0, 0].tolist() == pytest.approx([math.log(0.5), math.log(1e-15), math.log(2e-15)], rel=1e-14)
    assert found[1, 0].tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_direct_quadrature_is_for_few_narrow_keys(monkeypatch):
    asked = []
    true = smoothed_gumbel.smoothed_direct

    def recorded(mean, sd, u, parts, max_sd):
        asked.append((len(mean), max_sd))
        return true(mean, sd, u, parts, max_sd)

    monkeypatch.setattr(smoothed_gumbel, "smoothed_direct", recorded)
    u = torch.linspace(-4, 2, 8, dtype=torch.float64)
    m = torch.zeros(3, dtype=torch.float64)
    for sd, limit in ((0.1, 0.25), (0.3, 0.5), (0.7, 1.0), (1.0, None), (3.0, None)):
        asked.clear()
        logs_and_ratios(m, torch.full((3,), sd**2, dtype=torch.float64), u)
        assert asked == ([(3, limit)] if limit else [])
    v = torch.full((3,), 0.01, dtype=torch.float64)
    for entries, direct in ((24, True), (23, False)):
        asked.clear()
        monkeypatch.setattr(smoothed_gumbel, "MAX_SMALL_ENTRIES", entries)
        logs_and_ratios(m, v, u)
        assert bool(asked) is direct


def test_distinct_scores_are_found_once_with_their_places():
    m = torch.tensor([[1.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    v = torch.tensor([[0.5, 0.5], [0.5, 0.25]], dtype=torch.float64)
    mean, variance, where = smoothed_gumbel.distinct_scores(m, v)
    assert len(mean) == 3 and torch.equal(mean[where], m) and torch.equal(variance[where], v)


def test_nodes_outside_and_in_parts_change_nothing(monkeypatch):
    """A narrow key among the nodes of a wide one, and more factors than are held at once."""
    m, v = torch.tensor([0.3, -0.5], dtype=torch.float64), torch.tensor([1.0, 1.5], dtype=torch.float64)
    u = -300 + 0.3 * torch.arange(1600, dtype=torch.float64)
    found = smoothed(m, v, u)
    part = smoothed(m, v, u[800:1070])
    assert float((found[:, :, 800:1070] - part).abs().max()) < 2 * FUNCTION_ERROR
    assert torch.equal(found[:, :, 0], torch.tensor([[1.0, 1.0], [0, 0], [0, 0]], dtype=torch.float64))
    assert not found[:, :, -1].any()
    monkeypatch.setattr(smoothed_gumbel, "MAX_FACTORS", 700)
    assert float((smoothed(m, v, u[800:1070]) - part).abs().max()) < 2 * FUNCTION_ERROR
    calls = []
    true = smoothed_gumbel._node_factors
    monkeypatch.setattr(smoothed_gumbel, "_node_factors", lambda *a: calls.append(len(a[2])) or true(*a))
    smoothed(m, v, u[980:1040])
    width = len(smoothed_gumbel._series(0)[2])
    assert max(calls) == 700 // width and sum(calls) == 60
    calls.clear()
    monkeypatch.setattr(smoothed_gumbel, "MAX_FACTORS", 1)
    smoothed(m, v, u[980:983])
    assert calls == [1, 1, 1]
