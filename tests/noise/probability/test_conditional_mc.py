"""Conditional Monte Carlo: exact without other noise, and in agreement with plain draws elsewhere."""

from __future__ import annotations

import math

import pytest
import torch

from qkv import Memory
from qkv.noise import Gaussian, HeadMix, Quantised, reference_layouts, sample, success_probability
from qkv.noise.probability.conditional_mc import conditional_draws

WANTED = {"a": 0.5, "b": 0.5}


def memory_of(n):
    return Memory(torch.eye(n, dtype=torch.float64), labels=["a", "b", *range(3, n + 1)])


def test_without_other_noise_the_result_is_exact():
    memory, noise = memory_of(7), Gaussian(along={"a": 0.5})
    for heads in list(reference_layouts(memory, WANTED, noise, 5.0).values())[:2]:
        found = conditional_draws(noise.on(memory), heads, 500, 0)
        goal = torch.tensor([0.5, 0.5, *[0.0] * 5], dtype=torch.float64)
        p, error = found.probability_within(memory.values, goal, 0.2)
        exact = success_probability(memory, heads, noise, WANTED, 0.2)
        assert (
            error == 0
            and found.method == "exact"
            and exact.method == "quadrature"
            and p == pytest.approx(exact.probability, abs=1e-9)
        )


def test_where_no_variable_dominates_there_are_no_conditional_draws():
    memory = memory_of(5)
    one = HeadMix.single(3 * (memory.keys[0] + memory.keys[1]))
    assert conditional_draws(Gaussian(isotropic=0.1).on(memory), one, 10, 0) is None
    assert conditional_draws(Quantised(3).on(memory), one, 10, 0) is None
    both = HeadMix.of(memory, [3 * memory.keys[0], 3 * memory.keys[0] + memory.keys[1]])
    assert conditional_draws(Gaussian(along={"a": 1.0}).on(memory), both, 10, 0) is None


@pytest.mark.parametrize("query", [(4.0, 4.0, 0.0, 0.0), (5.0, 0.5, -1.0, 0.0)])
def test_with_other_noise_the_estimate_is_within_its_standard_error_of_plain_draws(query):
    memory, noise = memory_of(4), Gaussian(isotropic=1e-2, along={"a": 0.8})
    heads = HeadMix.single(torch.tensor(query, dtype=torch.float64))
    found = conditional_draws(noise.on(memory), heads, 2000, 0)
    assert found.method == "conditional_mc"
    goal = 0.5 * memory.values[0] + 0.5 * memory.values[1]
    p, error = found.probability_within(memory.values, goal, 0.4)
    counted = success_probability(memory, heads, noise, WANTED, 0.4, n_draws=200_000, seed=5)
    assert counted.method == "monte_carlo"
    assert p == pytest.approx(counted.probability, abs=5 * (error + math.sqrt(0.25 / 200_000)))
    drawn = sample(memory, heads, noise, n_draws=200_000, seed=5, keep_items=["a", "b"])
    edges = torch.tensor([0.1, 0.4, 0.7], dtype=torch.float64)
    for item, label in ((0, "a"), (1, "b")):
        below, error = found.below(item, edges)
        counts = (drawn.kept_weights[label][:, None] <= edges).double().mean(0)
        assert torch.allclose(below, counts, atol=5 * (error + math.sqrt(0.25 / 200_000)))
