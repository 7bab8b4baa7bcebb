"""within: closed forms, direct counting, and the interval that it promises."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, Quantised, SuccessProbability, sample, success_probability

EYE = qkv.Memory(np.eye(3), np.eye(3)[:, :1], labels=["a", "b", "c"])


def test_one_noisy_key_has_the_probability_of_an_interval_of_its_score():
    """The output is α_a, so |α_a − ½| ≤ 0.2 says that s_a lies between two logits."""
    q = 2 * (np.eye(3)[0] + np.eye(3)[1])
    found = success_probability(EYE, q, Gaussian(along={"a": 0.5}), [0.5], 0.2)
    rest = math.log(math.exp(2) + 1)
    low, high = (rest + math.log(p / (1 - p)) for p in (0.3, 0.7))
    sd = 2 * math.sqrt(0.5)
    true = norm.cdf((high - 2) / sd) - norm.cdf((low - 2) / sd)
    assert found.method == "exact"
    assert found.low <= true <= found.high
    assert found.high - found.low < 1e-12


def test_two_noisy_keys_are_integrated_and_agree_with_counting():
    memory = qkv.Memory.orthonormal(6, 8, labels=list("abcdef"))
    q = 4 * (memory.keys[0] + memory.keys[1])
    noise = Gaussian(along={"a": 0.5, "b": 0.3})
    found = success_probability(memory, q, noise, {"a": 0.5, "b": 0.5}, 1.0)
    counted = success_probability(memory, q, Gaussian(along={"a": 0.5, "b": 0.3, "c": 1e-12}, isotropic=1e-14),
                     {"a": 0.5, "b": 0.5}, 1.0, n_draws=400_000, confidence=0.9999)  # fmt: skip
    assert (found.method, counted.method) == ("quadrature", "monte_carlo")
    assert found.high - found.low < 1e-3
    assert counted.low < found.probability < counted.high


def test_two_heads_on_one_noisy_key_are_integrated_too():
    memory = qkv.Memory.orthonormal(6, 8, labels=list("abcdef"))
    heads = [3 * memory.keys[0], 3 * (memory.keys[0] + memory.keys[1])]
    noise = Gaussian(along={"a": 0.5})
    found = success_probability(memory, heads, noise, {"a": 0.75, "b": 0.25}, 0.8)
    assert found.method == "quadrature"
    drawn = sample(memory, heads, noise, n_draws=200_000, keep_items=list("abcdef"))
    alpha = torch.stack([drawn.kept_weights[x] for x in "abcdef"], dim=1)
    goal = 0.75 * memory.values[0] + 0.25 * memory.values[1]
    share = float(((alpha @ memory.values - goal).norm(dim=1) <= 0.8).double().mean())
    assert found.probability == pytest.approx(share, abs=5 * math.sqrt(0.25 / 200_000))


def test_without_noise_the_output_is_within_or_it_is_not():
    q = np.array([1.0, 0.0, 0.0])
    output = float(EYE.read(q).output[0])
    near, far = (success_probability(EYE, q, Gaussian(), [output + 0.1], tol) for tol in (0.11, 0.09))
    assert (near.low, near.probability, near.high) == (1.0, 1.0, 1.0)
    assert (far.low, far.probability, far.high) == (0.0, 0.0, 0.0)


def test_intervals_by_sampling_hold_the_truth_as_often_as_they_say():
    q = 2 * (np.eye(3)[0] + np.eye(3)[1])
    true = success_probability(EYE, q, Gaussian(along={"a": 0.5}), [0.5], 0.2).probability
    crowd = Gaussian(along={"a": 0.5}, isotropic=1e-18)  # three noisy keys, all but one of them in name only
    held = 0
    for seed in range(100):
        found = success_probability(EYE, q, crowd, [0.5], 0.2, n_draws=400, seed=seed, confidence=0.9)
        assert found.method == "monte_carlo"
        held += found.low <= true <= found.high
    assert held >= 83  # Clopper and Pearson promise 90; 83 is 2.3 standard deviations below


def test_rounding_is_sampled_for_real():
    found = success_probability(EYE, [1.0, 0.5, 0.2], Quantised(2), [0.4], 0.1, n_draws=2000)
    assert found.method == "monte_carlo"


@pytest.mark.parametrize(
    ("target", "tol", "more", "says"),
    [
        ([0.5], 0.0, {}, "radius"),
        ([0.5], -1.0, {}, "radius"),
        ([0.5], math.nan, {}, "radius"),
        ([0.5, 0.5], 0.1, {}, "spaces"),
        ([math.inf], 0.1, {}, "infinite"),
        ({"z": 1.0}, 0.1, {}, "'z'"),
        ({"a": 0.7}, 0.1, {}, "sum to 0.7"),
        ([0.5], 0.1, {"n_draws": 0}, "draws"),
        ([0.5], 0.1, {"confidence": 1.0}, "confidence"),
    ],
)
def test_questions_without_an_answer_are_refused(target, tol, more, says):
    with pytest.raises(QkvError, match=says):
        success_probability(EYE, [1.0, 0.0, 0.0], Gaussian(along={"a": 0.1}), target, tol, **more)


def test_the_card_names_the_confidence_of_an_interval_from_draws():
    drawn = SuccessProbability.from_counts(90, 100, radius=0.1, confidence=0.9)
    assert drawn.card().facts[1][0] == "90 % interval"
    integrated = replace(drawn, method="exact", n_draws=0, confidence=1.0)
    assert integrated.card().facts[1][0] == "bounds"
