"""HeadMix: every form in which a layout can be given, and refusals of what is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import qkv
from qkv.errors import QkvError
from qkv.noise import Gaussian, HeadMix, harden, min_variance_query, reading_moments

MEMORY = qkv.Memory.orthonormal(5, 6, labels=list("abcde"))
Q = torch.stack([3 * MEMORY.keys[0], 2 * MEMORY.keys[1]])
MIX = torch.tensor([0.25, 0.75], dtype=torch.float64)
HALF = {"a": 0.5, "b": 0.5}
NOISE = Gaussian(isotropic=1e-3, along={"a": 0.3})


@pytest.mark.parametrize("query", [Q[0], Q[0].numpy(), Q[0].tolist(), Q[:1], tuple(Q[0].tolist())])
def test_one_query_is_one_head_of_weight_one(query):
    heads = HeadMix.of(MEMORY, query)
    assert torch.equal(heads.queries, Q[:1]) and heads.mix.tolist() == [1.0] and len(heads) == 1


@pytest.mark.parametrize(
    "queries", [Q, Q.numpy(), Q.tolist(), [Q[0], Q[1]], (Q[0], Q[1]), [Q[0].tolist(), Q[1].numpy()]]
)
def test_several_queries_are_averaged_unless_a_mix_is_given(queries):
    assert torch.equal(HeadMix.of(MEMORY, queries).queries, Q)
    assert HeadMix.of(MEMORY, queries).mix.tolist() == [0.5, 0.5]
    assert torch.equal(HeadMix.of(MEMORY, queries, [0.25, 0.75]).mix, MIX)


@pytest.mark.parametrize("pair", [(Q, MIX), (Q.numpy(), [0.25, 0.75]), (Q.tolist(), MIX), ([Q[0], Q[1]], MIX.tolist())])
def test_a_pair_is_queries_with_their_mix(pair):
    heads = HeadMix.of(MEMORY, pair)
    assert torch.equal(heads.queries, Q) and torch.equal(heads.mix, MIX)


def test_results_of_designs_and_searches_are_layouts():
    design = qkv.design.blend(MEMORY, HALF)
    assert torch.equal(HeadMix.of(MEMORY, design).queries[0], design.query)
    steady = min_variance_query(MEMORY, HALF, NOISE, 4.0)
    assert torch.equal(HeadMix.of(MEMORY, steady).queries[0], steady.query)
    robust = harden(MEMORY, HALF, NOISE, heads=2)
    assert torch.equal(HeadMix.of(MEMORY, robust).queries, robust.queries)
    assert torch.equal(HeadMix.of(MEMORY, robust).mix, robust.mix)
    assert HeadMix.of(MEMORY, robust, [0.1, 0.9]).mix.tolist() == [0.1, 0.9]
    again = HeadMix.of(MEMORY, HeadMix(Q, MIX))
    assert torch.equal(again.queries, Q) and torch.equal(again.mix, MIX)
    assert all(isinstance(layout, HeadMix) for layout in robust.layouts.values())


def test_every_form_gives_the_same_moments():
    expected = reading_moments(MEMORY, Q, NOISE, MIX)
    for value in ((Q, MIX), HeadMix(Q, MIX), (Q.tolist(), MIX.tolist())):
        assert torch.equal(reading_moments(MEMORY, value, NOISE).output_cov, expected.output_cov)


def test_weights_without_noise_are_the_mixed_softmax():
    scores = (Q @ MEMORY.keys.mT).numpy()
    e = np.exp(scores - scores.max(1, keepdims=True))
    assert np.allclose(HeadMix(Q, MIX).weights(MEMORY.keys), MIX.numpy() @ (e / e.sum(1, keepdims=True)), atol=1e-15)


def test_gradients_pass_through_queries_and_mix_until_they_are_detached():
    queries, mix = Q.clone().requires_grad_(), MIX.clone().requires_grad_()
    heads = HeadMix.of(MEMORY, queries, mix)
    heads.weights(MEMORY.keys)[0].backward()
    assert queries.grad is not None and mix.grad is not None
    assert not heads.detach().queries.requires_grad and not heads.detach().mix.requires_grad


@pytest.mark.parametrize(
    ("value", "mix", "says"),
    [
        ([1.0, 2.0], None, "different spaces"),
        (np.zeros((2, 2, 6)), None, "shape"),
        ([[0.0] * 6, [0.0] * 5], None, "different spaces"),
        ("abc", None, "numbers"),
        ([float("nan")] * 6, None, "NaN"),
        (Q, [1.0], "2 queries and 1 mix"),
        ((Q, MIX), MIX, "twice"),
    ],
)
def test_what_is_no_layout_is_refused(value, mix, says):
    with pytest.raises(QkvError, match=says):
        HeadMix.of(MEMORY, value, mix, request="testing")
