"""Moments of one head: direct integrals over the scores, finer grids, and the reported error."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from qkv.errors import QkvError
from qkv.noise.moments import single_head
from qkv.noise.moments.outer_rule import compressed_rule, compression, outer_error, shift_variance, widest_step
from qkv.noise.moments.single_head import head_moments
from qkv.noise.moments.smoothed_gumbel import logs_and_ratios


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


# Each function by itself


def double(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def test_limits_are_what_they_are_said_to_be():
    assert (single_head.STEP, single_head.MIN_COMPRESSED_ENTRIES, single_head.MAX_COMPRESSION) == (0.25, 2**16, 0.7)
    assert (single_head.MAX_NODES, single_head.LONG_RULE, single_head.MAX_LONG_ENTRIES) == (2**21, 2**13, 2**23)


def test_the_ends_of_the_interval_are_those_of_the_sum_and_of_the_strongest_key():
    m, v = double(0.0, -1.0, 2.0), double(4.0, 0.0, 1.0)
    low, high = single_head._ends(m, v, 20.0)
    assert low == pytest.approx(-math.log(math.exp(2.0) + math.exp(-1.0) + math.exp(2.5)) - 20, rel=1e-14)
    assert high == pytest.approx(min(3.9 + 16.8, 3.9 + 1.0, 3.9 - 2.0 + 8.4), rel=1e-14)


def test_the_upper_end_is_where_the_product_has_vanished():
    """Of n keys without noise log Λ = -n e^u, which must be below -42."""
    m, v = torch.zeros(100).double(), torch.zeros(100).double()
    grid = np.linspace(-30, 10, 33)
    expected = next(u for u in grid if 100 * math.exp(u) > 42)
    assert single_head._upper_end(m, v, -30.0, 10.0) == pytest.approx(expected, rel=1e-12)
    assert single_head._upper_end(m, v, -30.0, -20.0) == -20.0


def test_only_long_intervals_of_several_keys_are_shortened(monkeypatch):
    m, v = torch.zeros(5).double(), torch.full((5,), 4.0).double()
    low, high = single_head._ends(m, v, 37.0)
    assert single_head.outer_interval(m, v) == (low, high)
    monkeypatch.setattr(single_head, "LONG_INTERVAL", high - low)
    assert single_head.outer_interval(m, v) == (low, high)
    monkeypatch.setattr(single_head, "LONG_INTERVAL", (high - low) * (1 - 1e-12))
    assert single_head.outer_interval(m, v) == (low, single_head._upper_end(m, v, low, high))
    assert single_head.outer_interval(m, v)[1] < high
    one = single_head._ends(m[:1], v[:1], 37.0)
    monkeypatch.setattr(single_head, "LONG_INTERVAL", 1)
    assert single_head.outer_interval(m[:1], v[:1]) == one


def test_nodes_cover_the_interval():
    m, v = double(0.0, 1.0), double(1.0, 0.25)
    low, high = single_head.outer_interval(m, v, 20.0)
    u = single_head.outer_nodes(m, v, 0.3, 20.0)
    assert float(u[0]) == low and high < float(u[-1]) <= high + 0.6 and float(u[-3]) < high
    assert u.diff().tolist() == pytest.approx([0.3] * (len(u) - 1))


def test_the_rule_of_few_keys_has_equal_steps_and_the_error_of_the_step():
    m, v = double(0.0, 1.0), double(1.0, 0.25)
    rule = single_head.outer_rule(m, v, 0.25)
    assert torch.equal(rule.u, single_head.outer_nodes(m, v, 0.25)) and (rule.weight == 0.25).all()
    assert rule.length == pytest.approx(float(rule.u[-1] - rule.u[0])) and rule.error == outer_error(0.25, 2)
    shorter = single_head.outer_rule(m, v, 0.25, 20.0)
    assert shorter.error == pytest.approx(outer_error(0.25, 2) + 2 * math.exp(-20), rel=1e-12, abs=0)
    wide = single_head.outer_rule(m, 100 * v, 0.25)
    step = widest_step(0.25, 100 * v)
    assert step > 0.25 and (wide.weight == step).all()
    assert wide.error == pytest.approx(outer_error(step, 2, shift_variance(100 * v)), rel=1e-12, abs=0)


def test_many_keys_take_a_compressed_rule(monkeypatch):
    m, v = torch.zeros(40).double(), torch.ones(40).double()
    low, high = single_head._ends(m, v, 37.0)
    entries = 40 * (high - low) / 0.25
    plain, compressed = single_head.outer_nodes(m, v, 0.25), compressed_rule(m, v, 0.25)
    part = compression(m, v, low, high)
    for limits, short in (
        ({"MIN_COMPRESSED_ENTRIES": entries * (1 + 1e-12)}, False),
        ({"MIN_COMPRESSED_ENTRIES": entries * (1 - 1e-12), "MAX_COMPRESSION": part * (1 + 1e-12)}, True),
        ({"MAX_COMPRESSION": part}, False),
        ({"MAX_COMPRESSION": 1.0, "MAX_COMPRESSED_STEP": 0.25}, True),
        ({"MAX_COMPRESSED_STEP": 0.249}, False),
    ):
        for name, value in limits.items():
            monkeypatch.setattr(single_head, name, value)
        rule = single_head.outer_rule(m, v, 0.25)
        assert torch.equal(rule.u, compressed.u if short else plain), limits
        if short:
            assert rule.error == pytest.approx(compressed.error + outer_error(0.25, 2), rel=1e-12, abs=0)
            assert rule.length == compressed.length and torch.equal(rule.weight, compressed.weight)


def test_rules_of_too_many_nodes_are_refused_just_above_the_limit(monkeypatch):
    m, v = double(0.0, 1.0, 2.0), double(9.0, 0.25, 0.0)
    nodes = len(single_head.outer_nodes(m, v, 0.25))
    monkeypatch.setattr(single_head, "LONG_RULE", nodes - 1)
    monkeypatch.setattr(single_head, "MAX_LONG_ENTRIES", 2 * nodes)
    assert len(single_head.outer_rule(m, v, 0.25).u) == nodes
    monkeypatch.setattr(single_head, "MAX_LONG_ENTRIES", 2 * nodes - 1)
    with pytest.raises(QkvError, match="2 scores vary with standard deviations up to 3, and others hardly"):
        single_head.outer_rule(m, v, 0.25)
    monkeypatch.setattr(single_head, "LONG_RULE", nodes)
    assert len(single_head.outer_rule(m, v, 0.25).u) == nodes


def test_without_noise_the_moments_are_those_of_the_softmax():
    m, values = double(0.0, math.log(2.0), math.log(5.0)), double(1.0, 2.0, -3.0)[:, None] * double(1.0, 0.5)
    found = head_moments(m + 700, torch.zeros(3).double(), values, full=True)
    alpha = double(0.125, 0.25, 0.625)
    assert torch.allclose(found.mean, alpha, atol=1e-13) and torch.allclose(found.square, alpha**2, atol=1e-13)
    assert torch.allclose(found.product, alpha[:, None] * alpha, atol=1e-13)
    output = values.mT @ alpha
    assert torch.allclose(found.output, output, atol=1e-13)
    assert torch.allclose(found.output_square, output[:, None] * output, atol=1e-12)
    assert (
        found.error
        == found.total_error
        == pytest.approx(1e-15 + outer_error(0.25, 2) + 1e-16 * 3**0.5, rel=1e-9, abs=0)
    )
    assert head_moments(m, torch.zeros(3).double(), values).product is None


def test_the_error_counts_every_noisy_key_and_the_length_of_the_rule():
    m, v = double(0.0, 1.0, 2.0), double(1.0, 0.25, 0.0)
    found = head_moments(m, v, torch.eye(3).double())
    rule = single_head.outer_rule(m - 2.0, v, 0.25)
    rounding = 1e-15 + rule.error + 1e-16 * 3**0.5
    assert found.error == pytest.approx(rounding + 4e-15 * (2 + rule.length), rel=1e-9, abs=0)
    assert found.total_error == pytest.approx(rounding + 4e-15 * 2 * (1 + rule.length), rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("n", "nodes", "entries", "sizes"), [(5, 3, 6, [2, 2, 1]), (3, 9, 1, [1, 1, 1]), (4, 2, 8, [4])]
)
def test_parts_hold_so_many_entries(monkeypatch, n, nodes, entries, sizes):
    monkeypatch.setattr(single_head, "MAX_ENTRIES", entries)
    parts = list(single_head._slices(n, nodes))
    assert [p.stop - p.start for p in parts] == sizes and parts[0].start == 0 and parts[-1].stop == n
    assert all(a.stop == b.start for a, b in itertools.pairwise(parts))


def test_keys_are_evaluated_in_parts_only_where_there_are_too_many(monkeypatch):
    m, v, values = double(0.0, 1.0, 2.0), double(1.0, 0.25, 0.0), torch.eye(3).double()
    nodes = len(single_head.outer_rule(m - 2.0, v, 0.25).u)
    asked = []
    true = single_head._slices
    monkeypatch.setattr(single_head, "_slices", lambda *a: asked.append(a) or true(*a))
    whole = head_moments(m, v, values, full=True)
    for entries, in_parts in ((3 * nodes, False), (3 * nodes - 1, True)):
        asked.clear()
        monkeypatch.setattr(single_head, "MAX_ENTRIES", entries)
        found = head_moments(m, v, values, full=True)
        assert bool(asked) is in_parts
        for name in ("mean", "square", "output", "output_square", "product"):
            assert torch.allclose(getattr(found, name), getattr(whole, name), atol=1e-14)


@pytest.mark.parametrize(("kinds", "once"), [(2, True), (3, False)])
def test_equal_keys_are_evaluated_once_where_they_are_half_or_fewer(monkeypatch, kinds, once):
    m = double(0.0, 1.0, 0.0, 1.0) if kinds == 2 else double(0.0, 1.0, 0.0, 2.0)
    v, u = torch.full((4,), 0.5).double(), double(-2.0, 0.0, 1.0)
    expected = logs_and_ratios(m, v, u)
    sizes = []
    monkeypatch.setattr(single_head, "logs_and_ratios", lambda m, *a: sizes.append(len(m)) or logs_and_ratios(m, *a))
    assert torch.allclose(single_head._for_distinct_scores(m, v, u), expected, atol=1e-12)
    assert sizes == [2 if once else 4]


def test_equal_keys_have_the_gradients_of_each():
    """Raising one of four equal scores by ε moves its mean weight by ε E α(1 - α), and each other one by -ε E αα'."""
    m = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    v, values = torch.full((4,), 0.5).double(), torch.eye(4).double()
    found = head_moments(m, v, values, full=True)
    (slope,) = torch.autograd.grad(found.mean[0], m)
    expected = -found.product[0].detach()
    expected[0] += found.mean[0].detach()
    assert torch.allclose(slope, expected, atol=1e-12) and float(slope[0]) > 0.1
