"""The min-variance query: as good as the search of harden at the same scale, and least on its line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import qkv
from qkv import Memory, QkvError
from qkv.noise import Gaussian, harden, min_variance_query, reading_moments
from qkv.noise.robust.min_variance import total_variances

WANTED = {"a": 0.5, "b": 0.5}


def memory_of(n):
    return Memory(torch.eye(n, dtype=torch.float64), labels=["a", "b", *range(3, n + 1)])


@pytest.mark.parametrize(("isotropic", "along"), [(1e-3, 0.3), (1e-2, 0.5), (0.1, 1.0)])
def test_it_is_as_good_as_the_search_over_all_queries(isotropic, along):
    memory, noise = memory_of(10), Gaussian(isotropic=isotropic, along={"a": along})
    hard = harden(memory, WANTED, noise, tol=1e-2)
    found = min_variance_query(memory, WANTED, noise, math.log(8 * 0.99 / (2 * 0.01)))
    target = torch.tensor([0.5, 0.5, *[0.0] * 8], dtype=torch.float64)
    assert float(reading_moments(memory, found.query, noise).squared_error(target)) <= 1.02 * hard.squared_error


def test_all_queries_of_the_line_read_the_same_and_the_one_found_varies_least():
    memory, noise = memory_of(6), Gaussian(isotropic=1e-2, along={"a": 0.5})
    found = min_variance_query(memory, WANTED, noise, 4.0)
    tried = [found.query + c for c in (-2.0, -0.5, 0.0, 0.5, 2.0)]
    readings = torch.stack([memory.read(q).weights for q in tried])
    assert torch.allclose(readings, readings[:1].expand_as(readings))
    variances = [float(reading_moments(memory, q, noise).weights_var.sum()) for q in tried]
    assert min(variances) == variances[2] == pytest.approx(found.variance, rel=1e-4)
    assert torch.allclose(
        total_variances(noise.on(memory), torch.stack(tried)), torch.tensor(variances).double(), atol=1e-5
    )


def test_unequal_blends_and_longer_keys_keep_their_ratio():
    memory = Memory(3 * torch.eye(5, dtype=torch.float64), labels=["a", "b", *"cde"])
    found = min_variance_query(memory, {"a": 0.75, "b": 0.25}, Gaussian(isotropic=1e-4, along={"a": 0.2}), 6.0)
    alpha = memory.read(found.query).weights
    assert float(alpha[0] / alpha[1]) == pytest.approx(3) and float(alpha[2:].sum()) < 0.01


def test_keys_that_are_not_orthogonal_and_negative_scales_are_refused():
    with pytest.raises(QkvError, match="harden"):
        min_variance_query(Memory([[1, 0], [1, 1]], labels=["a", "b"]), WANTED, Gaussian(isotropic=0.1), 1.0)
    with pytest.raises(QkvError, match="scale is -1"):
        min_variance_query(memory_of(4), WANTED, Gaussian(isotropic=0.1), -1.0)


def test_it_shows_itself():
    found = min_variance_query(memory_of(4), WANTED, Gaussian(isotropic=0.1), 3.0)
    assert found.card().title == "Least variance: 0.5 of a + 0.5 of b"


@pytest.mark.parametrize(
    ("weights", "along", "scale"),
    [
        ({"a": 0.99, "b": 0.01}, {"b": 5.0}, 0.0),
        ({"a": 0.99, "b": 0.01}, {"a": 0.5}, 1.0),
        ({"a": 0.999, "b": 0.001}, {"a": 0.5}, 6.0),
    ],
)
def test_uneven_weights_have_their_least_variance_anywhere_on_the_line(weights, along, scale):
    memory = qkv.Memory.orthonormal(6, 8, labels=list("abcdef"))
    noise = qkv.noise.Gaussian(isotropic=1e-6, along=along)
    found = qkv.noise.min_variance_query(memory, weights, noise, scale)
    line = memory.keys.sum(0)
    for c in np.linspace(-6, 12, 91):
        query = found.query + (c - found.wanted_score) * line
        total = float(qkv.noise.reading_moments(memory, query, noise).weights_var.sum())
        assert total >= found.variance * 0.99 - 1e-9
