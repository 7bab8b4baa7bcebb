"""Conditional Monte Carlo: in agreement with plain draws, and with intervals that hold as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from qkv import Memory
from qkv.noise import Gaussian, HeadMix, Quantised, sample, success_probability
from qkv.noise.probability.conditional_mc import bounded_mean, conditional_draws

WANTED = {"a": 0.5, "b": 0.5}


def memory_of(n):
    return Memory(torch.eye(n, dtype=torch.float64), labels=["a", "b", *range(3, n + 1)])


def test_where_no_variable_dominates_there_are_no_conditional_draws():
    memory = memory_of(5)
    one = HeadMix.single(3 * (memory.keys[0] + memory.keys[1]))
    assert conditional_draws(Gaussian(isotropic=0.1).on(memory), one, 10, 0) is None
    assert conditional_draws(Quantised(3).on(memory), one, 10, 0) is None
    both = HeadMix.of(memory, [3 * memory.keys[0], 3 * memory.keys[0] + memory.keys[1]])
    assert conditional_draws(Gaussian(along={"a": 1.0}).on(memory), both, 10, 0) is None


def test_without_other_noise_nothing_is_drawn():
    """A variance of the size of rounding is no noise either."""
    memory = Memory.orthonormal(7, 9, labels=list("abcdefg"))
    heads = HeadMix.of(memory, [5 * memory.keys[0], 5 * memory.keys[1]])
    keys = Gaussian(along={"a": 0.5}).on(memory)
    assert float(keys.score_covariance(heads.queries)[0, 1, 1]) > 0
    assert conditional_draws(keys, heads, 10, 0) is None
    assert success_probability(memory, heads, Gaussian(along={"a": 0.5}), WANTED, 0.2).method == "exact"


@pytest.mark.parametrize("query", [(4.0, 4.0, 0.0, 0.0), (5.0, 0.5, -1.0, 0.0)])
def test_with_other_noise_the_interval_holds_the_share_of_plain_draws(query):
    memory, noise = memory_of(4), Gaussian(isotropic=1e-2, along={"a": 0.8})
    heads = HeadMix.single(torch.tensor(query, dtype=torch.float64))
    found = conditional_draws(noise.on(memory), heads, 2000, 0)
    assert len(found.logit) == len(found.weights) == 2000
    goal = 0.5 * memory.values[0] + 0.5 * memory.values[1]
    p, low, high = found.probability_within(memory.values, goal, 0.4, 0.99)
    counted = success_probability(memory, heads, noise, WANTED, 0.4, n_draws=200_000, seed=5)
    assert counted.method == "monte_carlo"
    assert low <= counted.high and counted.low <= high and low <= p <= high
    drawn = sample(memory, heads, noise, n_draws=200_000, seed=5, keep_items=["a", "b"])
    edges = torch.tensor([0.1, 0.4, 0.7], dtype=torch.float64)
    for item, label in ((0, "a"), (1, "b")):
        below, error = found.below(item, edges)
        counts = (drawn.kept_weights[label][:, None] <= edges).double().mean(0)
        assert torch.allclose(below, counts, atol=5 * (error + math.sqrt(0.25 / 200_000)))


def test_draws_that_all_miss_leave_room_for_what_they_did_not_see():
    """A window that one draw in a thousand reaches: none of a hundred draws shows it, and the interval still holds it.

    The standard error of these draws is 0.
    """
    memory = Memory(np.array([[0.0], [-9.0], [-12.0]]), np.eye(3))
    noise = Gaussian(diagonal={0: [9.0], 1: [2.0]})
    keys, heads = noise.on(memory), HeadMix.of(memory, [1.0])
    truth = success_probability(memory, [1.0], noise, [0.0, 0.9, 0.1], 0.02)
    assert truth.method == "quadrature" and truth.probability > 1e-7
    held = 0
    for seed in range(200):
        p, low, high = conditional_draws(keys, heads, 100, seed).probability_within(
            memory.values, torch.tensor([0.0, 0.9, 0.1], dtype=torch.float64), 0.02, 0.9
        )
        held += low <= truth.probability <= high
        assert low <= p <= high
    assert held >= 180


@pytest.mark.parametrize(
    "draw",
    [
        lambda random, n: (random.random(n) < 1e-3).astype(float),
        lambda random, n: 0.5 + 0.01 * random.standard_normal(n).clip(-4, 4),
        lambda random, n: random.random(n),
        lambda random, n: np.where(random.random(n) < 0.02, 1.0, 1e-6),
    ],
)
def test_an_interval_of_a_mean_holds_as_often_as_it_says(draw):
    random = np.random.default_rng(0)
    truth = float(draw(np.random.default_rng(1), 4_000_000).mean())
    held = 0
    for _ in range(300):
        p, low, high = bounded_mean(draw(random, 200), 0.0, 1.0, 0.9)
        assert 0 <= low <= p <= high <= 1
        held += low <= truth <= high
    assert held >= 270


def test_draws_between_close_bounds_have_a_short_interval():
    drawn = 0.3 + 1e-6 * np.random.default_rng(0).random(500)
    _, low, high = bounded_mean(drawn, 0.3, 0.3 + 1e-6, 0.95)
    assert high - low <= 1e-6
