"""The noise scenario: orthonormal keys, equal wanted weights, three layouts."""

import pytest
import torch

from qkv.errors import QkvError
from qkv.noise import reading_moments
from qkv.web.noise_scenario import NoiseScenario, layouts


def test_keys_are_orthonormal_and_labels_are_letters_then_numbers():
    memory = NoiseScenario(10, 0.5, 0.0, 2).memory
    assert torch.equal(memory.keys, torch.eye(10, dtype=torch.float64)) and torch.equal(memory.values, memory.keys)
    assert memory.labels == (*"abcdefgh", 9, 10)
    assert NoiseScenario(3, 0.5, 0.0, 2).memory.labels == ("a", "b", "c")


def test_wanted_weights_are_equal_and_sum_to_one():
    assert NoiseScenario(9, 0.5, 0.0, 4).wanted == dict.fromkeys("abcd", 0.25)


def test_as_many_heads_as_items_are_refused():
    with pytest.raises(QkvError, match="4 heads for 4 items"):
        NoiseScenario(4, 0.5, 0.0, 4)


def test_noise_varies_the_first_key_along_itself_and_all_keys_in_every_direction():
    """Exact variances of the weights against draws of the keys."""
    scenario = NoiseScenario(4, 0.5, 0.01, 2)
    query = 2.0 * (scenario.memory.keys[0] + scenario.memory.keys[1])
    exact = reading_moments(scenario.memory, query, scenario.noise).weights_var
    rng = torch.Generator().manual_seed(0)
    keys = torch.eye(4) + 0.01**0.5 * torch.randn(200_000, 4, 4, generator=rng)
    keys[:, 0, 0] += 0.5**0.5 * torch.randn(200_000, generator=rng)
    drawn = torch.softmax(keys @ query.float(), -1).var(0)
    assert torch.allclose(exact, drawn.double(), rtol=0.03)


def test_layouts_read_the_wanted_average_without_noise():
    scenario = NoiseScenario(6, 0.5, 1e-6, 3)
    found = layouts(scenario, 12.0)
    assert [len(layout.queries) for layout in found.values()] == [1, 3, 1]
    for layout in found.values():
        weights = layout.mix @ torch.softmax(layout.queries @ scenario.memory.keys.T, -1)
        assert torch.allclose(weights[:3], torch.full((3,), 1 / 3, dtype=torch.float64), atol=1e-4)
    assert layouts(scenario, 12.0) is found  # cached
