"""The law of a weight: closed-form quantiles, drawn ones, and bins that hold what they should."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, Quantised, reading_moments, weight_distribution

MEMORY = qkv.Memory(np.eye(3), labels=["a", "b", "c"])
Q = np.array([2.0, 2.0, 0.0])


def weight_at(z: float, sd: float = math.sqrt(0.5)) -> float:
    s = 2 * (1 + sd * z)
    return 1 / (1 + (math.exp(2) + 1) * math.exp(-s))


def test_with_one_noisy_key_quantiles_are_those_of_its_score():
    law = weight_distribution(MEMORY, Q, Gaussian(along={"a": 0.5}), "a")
    assert law.method == "exact"
    for p in (0.01, 0.3, 0.5, 0.95):
        middle, low, high = law.quantile(p)
        assert low <= weight_at(norm.ppf(p)) <= high
        assert high - low < 2e-3
        assert middle == pytest.approx(weight_at(norm.ppf(p)), abs=1e-3)


def test_the_share_of_a_bin_is_the_probability_of_an_interval_of_scores():
    law = weight_distribution(MEMORY, Q, Gaussian(along={"a": 0.5}), "a", bins=4)

    def chance_below(x: float) -> float:
        s = math.log(x / (1 - x) * (math.exp(2) + 1))
        return norm.cdf((s / 2 - 1) / math.sqrt(0.5))

    edges = [0.0, chance_below(0.25), chance_below(0.5), chance_below(0.75), 1.0]
    for i in range(4):
        assert float(law.low[i]) <= edges[i + 1] - edges[i] <= float(law.high[i])
    assert float(law.share.sum()) == pytest.approx(1)


@pytest.mark.slow
def test_two_directions_under_two_heads_and_draws_tell_of_the_same_law():
    heads = [Q, [0.0, 1.0, 1.0]]  # both heads see the key of b, so that their scores hang together
    few = weight_distribution(MEMORY, heads, Gaussian(along={"a": 0.5, "b": 0.3}), "a", bins=10)
    drawn = weight_distribution(
        MEMORY, heads, Gaussian(along={"a": 0.5, "b": 0.3}, isotropic=1e-16), "a", bins=10, n_draws=200_000
    )
    assert (few.method, drawn.method) == ("quadrature", "monte_carlo")
    assert few.error_bound < 0.01
    assert float((few.share - drawn.share).abs().max()) < 2 * (few.error_bound + drawn.error_bound)
    for p in (0.1, 0.5, 0.9):
        assert drawn.quantile(p)[1] - 1e-3 <= few.quantile(p)[0] <= drawn.quantile(p)[2] + 1e-3


def test_the_mean_of_the_law_is_the_exact_mean():
    noise = Gaussian(along={"a": 0.5, "b": 0.3})
    law = weight_distribution(MEMORY, [Q, 0.5 * Q], Gaussian(along={"a": 0.5}), "a", mix=[0.25, 0.75])
    mass = torch.cat([law.below[:1], law.below.diff()])
    exact = reading_moments(MEMORY, [Q, 0.5 * Q], Gaussian(along={"a": 0.5}), mix=[0.25, 0.75])
    assert float(law.weights @ mass) == pytest.approx(float(exact.weights_mean[0]), abs=1e-7)
    law = weight_distribution(MEMORY, Q, noise, "b")
    mass = torch.cat([law.below[:1], law.below.diff()])
    assert float(law.weights @ mass) == pytest.approx(
        float(reading_moments(MEMORY, Q, noise).weights_mean[1]), abs=1e-5
    )


def test_without_noise_the_law_is_one_point():
    law = weight_distribution(MEMORY, Q, Gaussian(), "a")
    assert law.quantile(0.0)[0] == law.quantile(1.0)[0] == pytest.approx(float(MEMORY.read(Q).weights[0]))


def test_rounding_is_drawn_and_a_law_shows_itself():
    law = weight_distribution(MEMORY, Q, Quantised(3), "a", n_draws=500)
    assert law.method == "monte_carlo"
    assert law.card().rows[2][0] == "50%"
    assert json.loads(json.dumps(law.to_json()))["item"] == "a"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"item": "z"}, "'z'"),
        ({"bins": 0}, "bins"),
        ({"n_draws": 0}, "draws"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_laws_that_make_no_sense_are_refused(more, says):
    with pytest.raises(QkvError, match=says):
        weight_distribution(MEMORY, Q, Gaussian(along={"a": 0.5}), **{"item": "a", **more})


def test_a_quantile_beyond_one_is_refused():
    with pytest.raises(QkvError, match="p is 1"):
        weight_distribution(MEMORY, Q, Gaussian(along={"a": 0.5}), "a").quantile(1.2)


def test_more_bins_than_memory_holds_are_refused_at_once():
    memory = qkv.Memory.orthonormal(4, 4)
    with pytest.raises(QkvError, match="bins"):
        weight_distribution(memory, memory.keys[0], Gaussian(isotropic=0.1), 0, bins=10**10)
