"""The smoothed Gumbel functions by direct quadrature, against mpmath and against the Fourier series."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
import torch

from qkv.noise.moments import smoothed_gumbel_direct as direct
from qkv.noise.moments.smoothed_gumbel import FUNCTION_ERROR, smoothed
from qkv.noise.moments.smoothed_gumbel_direct import (
    MAX_DIRECT_ENTRIES,
    NORMAL_TAIL,
    _quadrature_rule,
    direct_is_cheaper,
    smoothed_direct,
)


def reference(y: float, sd: float, power: int) -> float:
    """E x^power e^(−x) with x = e^(y + sd z), by the trapezoid rule in z in twenty-five digits."""
    with mp.workdps(25):
        h, total = mp.mpf("0.1"), mp.mpf(0)
        for k in range(-110, 111):
            x = mp.e ** (y + sd * k * h)
            total += x**power * mp.e ** (-x - (k * h) ** 2 / 2)
        return float(total * h / mp.sqrt(2 * mp.pi))


@pytest.mark.parametrize(
    ("sd", "max_sd"), [(1e-4, 0.25), (0.1, 0.25), (0.2499, 0.25), (0.3, 0.5), (0.7, 1.0), (0.99, 1.0)]
)
def test_the_three_functions_are_right_to_the_stated_error(sd, max_sd):
    y = torch.tensor([-30.0, -5.0, -1.7, 0.0, 0.9, 2.5, 3.5], dtype=torch.float64)
    m = torch.tensor([0.0, 0.75], dtype=torch.float64)
    found = smoothed_direct(m, torch.full_like(m, sd), y, 3, max_sd)
    assert found.shape == (3, 2, len(y))
    for i in range(len(y)):
        for key in range(2):
            for power in range(3):
                true = reference(float(y[i] + m[key]), sd, power)
                assert abs(float(found[power, key, i]) - true) < FUNCTION_ERROR


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_it_agrees_with_the_fourier_series_on_a_whole_grid(parts):
    u = -40 + 0.25 * torch.arange(190, dtype=torch.float64)
    m, sd = torch.linspace(-6, 0, 9, dtype=torch.float64), torch.linspace(0.5, 0.99, 9, dtype=torch.float64)
    own, series = smoothed_direct(m, sd, u, parts, 1.0), smoothed(m, sd**2, u, parts)
    assert own.shape == series.shape == (parts, 9, 190)
    assert float((own - series).abs().max()) < 2 * FUNCTION_ERROR


def test_it_is_used_for_few_keys_and_nodes_only():
    assert direct_is_cheaper(3, 200, 0.25)
    assert not direct_is_cheaper(MAX_DIRECT_ENTRIES, 1, 0.25)


@pytest.mark.parametrize("max_sd", [0.1, 0.5, 1.0])
def test_the_nodes_end_with_the_first_beyond_the_tail(max_sd):
    z, weights = _quadrature_rule(max_sd)
    assert float(z[-2]) <= NORMAL_TAIL < float(z[-1]) and torch.equal(z, -z.flip(0))
    assert float(weights.sum()) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("max_sd", [0.05, 0.1, 0.25, 0.5, 1.0])
def test_the_step_is_the_widest_whose_error_has_the_digits(max_sd):
    """The line may be moved by c, three quarters of the way to where the integrand grows, or to c = √74."""
    z, weights = _quadrature_rule(max_sd)
    c = min(0.75 * math.pi / 2 / max_sd, math.sqrt(74))
    step = 2 * math.pi / (37 / c + c / 2)
    assert float(z[1] - z[0]) == pytest.approx(step, rel=1e-9)
    assert weights.tolist() == pytest.approx([step * math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in z.tolist()])
    assert len(z) % 2 == 1 and float(z[len(z) // 2]) == 0


def test_constants_are_where_they_are_said_to_be():
    assert direct.DIGITS == 37 and 1e-18 < mp.erfc(NORMAL_TAIL / mp.sqrt(2)) < 1e-17
    assert direct.GUMBEL_END == 4.0 and direct.MIN_EXPONENT == -100 and MAX_DIRECT_ENTRIES == 2**20


def test_it_is_cheaper_up_to_the_limit(monkeypatch):
    z = len(_quadrature_rule(0.5)[0])
    monkeypatch.setattr(direct, "MAX_DIRECT_ENTRIES", 3 * 5 * z)
    assert direct_is_cheaper(3, 5, 0.5) is True
    monkeypatch.setattr(direct, "MAX_DIRECT_ENTRIES", 3 * 5 * z - 1)
    assert direct_is_cheaper(3, 5, 0.5) is False


def test_far_to_the_right_all_functions_have_vanished_and_to_the_left_survival_is_1():
    u = torch.tensor([-500.0, 500.0, 1e6], dtype=torch.float64)
    L, P, Q = smoothed_direct(torch.zeros(1).double(), torch.full((1,), 0.3).double(), u, 3, 0.5)
    assert L[0].tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-14)
    assert float(P.max()) < 1e-16 and float(Q.max()) < 1e-15 and bool(torch.isfinite(Q).all())
