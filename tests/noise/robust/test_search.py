"""The search behind harden: its loss is the mean squared error, and each step keeps what it promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import qkv
from qkv.design.specs import BlendSpec
from qkv.errors import QkvError
from qkv.noise import Gaussian, HeadMix
from qkv.noise.robust.search import (
    RobustProblem,
    best_single_head,
    least_loss,
    refine,
    split_items_among_heads,
    with_more_heads,
)

MEMORY = qkv.Memory.orthonormal(6, 8, labels=list("abcdef"))
NOISE = Gaussian(isotropic=1e-3, along={"a": 0.4})


def problem(weights, tol=0.02, memory=MEMORY, noise=NOISE):
    return RobustProblem(memory, noise.on(memory), BlendSpec.of(memory, weights, tol))


def test_the_loss_is_the_mean_squared_error_of_drawn_keys():
    """Whole keys are drawn from their covariances; nothing but those is the library's."""
    task = problem({"a": 0.25, "b": 0.75})
    heads = HeadMix.of(MEMORY, [3 * MEMORY.keys[0], 4 * MEMORY.keys[1]], [0.25, 0.75])
    rng, draws = np.random.default_rng(0), 40_000
    roots = [np.linalg.cholesky(task.keys.covariance(j).numpy()) for j in range(6)]
    keys = MEMORY.keys.numpy() + np.stack([rng.normal(size=(draws, 8)) @ root.T for root in roots], axis=1)
    e = np.exp(np.einsum("xjd,hd->xhj", keys, heads.queries.numpy()))
    output = heads.mix.numpy() @ (e / e.sum(-1, keepdims=True)) @ MEMORY.values.numpy()
    goal = 0.25 * MEMORY.values[0].numpy() + 0.75 * MEMORY.values[1].numpy()
    each = ((output - goal) ** 2).sum(-1)
    assert task.value(heads) == pytest.approx(each.mean(), abs=5 * each.std() / np.sqrt(draws))


def test_the_distance_is_total_variation_without_noise():
    task = problem({"a": 0.5, "b": 0.5})
    heads = HeadMix.single(2 * MEMORY.keys[0])
    weights = MEMORY.read(2 * MEMORY.keys[0]).weights
    assert float(task.distance(heads)) == pytest.approx(0.5 * float((weights - task.target).abs().sum()))


def test_refining_never_raises_the_loss_nor_leaves_the_tolerance():
    task = problem({"a": 0.5, "b": 0.5})
    start = best_single_head(task)
    found = refine(task, start)
    assert task.value(found) <= task.value(start)
    assert float(task.distance(found)) <= max(task.wanted.tol, float(task.distance(start)))


def test_more_heads_read_the_same_until_they_are_refined():
    task = problem({"a": 0.5, "b": 0.5})
    one = best_single_head(task)
    three = with_more_heads(one, 3)
    assert len(three) == 3 and float(three.mix.sum()) == pytest.approx(1)
    assert torch.allclose(three.weights(MEMORY.keys), one.weights(MEMORY.keys))
    assert task.value(three) == pytest.approx(task.value(one), abs=1e-9)


def test_items_are_split_so_that_the_mix_is_their_weight():
    task = problem({"a": 0.2, "b": 0.3, "c": 0.5})
    two = split_items_among_heads(task, 2)
    assert two.mix.tolist() == pytest.approx([0.7, 0.3])  # a and c, b
    assert float(task.distance(two)) < 0.05
    assert split_items_among_heads(task, 1) is None


def test_the_layout_of_least_loss_is_chosen():
    task = problem({"a": 0.5, "b": 0.5})
    good, bad = best_single_head(task), HeadMix.single(0 * MEMORY.keys[0])
    assert least_loss(task, [bad, good]) is good
    assert best_single_head(task, good).queries.shape == (1, 8)


def test_items_that_no_query_reads_alone_are_refused():
    """The key of e is the mean of the others."""
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
    memory = qkv.Memory(keys, np.eye(5), labels=list("abcde"))
    with pytest.raises(QkvError, match="no query reads only these items"):
        best_single_head(problem({"e": 1.0}, memory=memory, noise=Gaussian(isotropic=0.01)))


@pytest.mark.filterwarnings("error")
def test_noise_beyond_float64_is_refused_without_a_warning_of_numpy():
    memory = qkv.Memory.orthonormal(4, 8, 0)
    with pytest.raises(QkvError, match="exceed the range of float64"):
        qkv.noise.harden(memory, {0: 0.5, 1: 0.5}, Gaussian(isotropic=1e308))
