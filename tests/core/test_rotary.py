"""Rotary positions: both conventions against complex numbers, each other, and transformers' Llama."""

from __future__ import annotations

import cmath

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qkv.core.rotary import (
    THETA,
    apply_rotary,
    apply_rotary_backward_,
    interleaved_order,
    rotary_table,
    rotate,
    rotate_half_split,
    rotations_at,
)
from qkv.errors import QkvError


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_rotating_by_given_angles_is_rotating_by_positions():
    x, at = normal(5, 6), torch.arange(5.0, dtype=torch.float64)
    angles = at[:, None] * 10000 ** -(torch.arange(3.0, dtype=torch.float64) / 3)
    torch.testing.assert_close(rotate_half_split(x, angles.cos(), angles.sin()), rotate(x, at), rtol=0, atol=1e-14)


@settings(deadline=None)
@given(st.floats(-1000, 1000), st.floats(-1000, 1000), st.floats(-1000, 1000))
def test_the_score_of_rotated_vectors_depends_on_the_difference_of_positions_alone(i, j, shift):
    q, k = normal(1, 8), normal(1, 8, seed=1)

    def score(at, to):
        at, to = torch.tensor([[at], [to]], dtype=torch.float64)
        return float(rotate(q, at) @ rotate(k, to).T)

    assert score(i + shift, j + shift) == pytest.approx(score(i, j), abs=1e-10)
    assert score(i - j, 0.0) == pytest.approx(score(i, j), abs=1e-10)


def test_rotating_keeps_lengths_and_leaves_position_zero_alone():
    x = normal(5, 6)
    got = rotate(x, torch.arange(5) * 1000)
    torch.testing.assert_close(got.norm(dim=-1), x.norm(dim=-1), rtol=1e-14, atol=0)
    assert torch.equal(got[0], x[0])


def test_positions_may_differ_from_sequence_to_sequence():
    x, at = normal(2, 3, 4), torch.tensor([[0, 1, 2], [7, 8, 9]])
    got = rotate(x, at)
    assert torch.equal(got[1], rotate(x[1], at[1]))


def test_far_positions_are_rotated_as_exactly_in_float32_as_it_can_hold():
    x, far = normal(1, 4), torch.tensor([10**8 + 1])
    torch.testing.assert_close(rotate(x.float(), far), rotate(x, far).float(), rtol=0, atol=1e-6)


def test_vectors_of_odd_dimension_cannot_be_rotated():
    with pytest.raises(QkvError, match="their dimension is 3"):
        rotate(normal(2, 3), torch.arange(2))


@pytest.mark.parametrize("theta", [THETA, 500.0])
def test_rotating_is_multiplying_pairs_by_unit_complex_numbers(theta):
    x, positions = normal(5, 8), [0, 1, 2, 7, 300]
    got = rotate(x, torch.tensor(positions), theta).numpy()
    for row, out, p in zip(x.numpy(), got, positions, strict=True):
        pairs = [complex(row[c], row[c + 4]) * cmath.exp(1j * p * theta ** (-c / 4)) for c in range(4)]
        assert np.allclose(out, [z.real for z in pairs] + [z.imag for z in pairs], rtol=0, atol=1e-11)


def test_the_two_conventions_differ_by_the_order_of_coordinates():
    """Projecting with reordered rows and rotating interleaved pairs is rotating half-split pairs and reordering."""
    n_rotated, n_other, d, n = 3, 2, 8, 6
    weight, x = normal((n_rotated + n_other) * d, 5), normal(n, 5, seed=1)
    order = interleaved_order(n_rotated, n_other, d)
    assert sorted(order.tolist()) == list(range(len(weight)))
    rotation = rotations_at(rotary_table(20, d, THETA).double(), torch.arange(n) + 3)
    got = apply_rotary((x @ weight[order].T).view(n, -1, d)[:, :n_rotated], rotation)
    heads = (x @ weight.T).view(n, -1, d)
    want = rotate(heads[:, :n_rotated].transpose(0, 1), (torch.arange(n) + 3)).transpose(0, 1)
    pairs = order[:d]  # the order within one head
    torch.testing.assert_close(got, want[..., pairs], rtol=0, atol=2e-6)  # the table is rounded to float32
    assert torch.equal((x @ weight[order].T).view(n, -1, d)[:, n_rotated:], heads[:, n_rotated:])


def test_the_table_is_that_of_transformers_llama():
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = transformers.LlamaConfig(hidden_size=32, num_attention_heads=4, max_position_embeddings=50)
    x = torch.zeros(1, 50, 32)
    cos, sin = LlamaRotaryEmbedding(config=config)(x, torch.arange(50)[None])
    table = rotary_table(50, 8, THETA)
    assert torch.equal(table[..., 0], cos[0, :, :4]) and torch.equal(table[..., 1], sin[0, :, :4])


def test_the_backward_pass_is_the_gradient():
    x, angle = normal(4, 2, 6).requires_grad_(True), normal(4, 1, 3, seed=1)
    rotation = torch.polar(torch.ones_like(angle), angle)
    assert torch.autograd.gradcheck(lambda x: apply_rotary(x, rotation), (x,))
    grad = normal(4, 2, 6, seed=2)
    (want,) = torch.autograd.grad(apply_rotary(x, rotation), x, grad)
    apply_rotary_backward_(grad, rotation)
    torch.testing.assert_close(grad, want, rtol=0, atol=1e-14)


def test_half_precision_is_rotated_in_float32_and_rounded_once():
    x, angle = normal(4, 2, 6).bfloat16(), normal(4, 1, 3, seed=1).float()
    rotation = torch.polar(torch.ones_like(angle), angle)
    got = apply_rotary(x, rotation)
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, apply_rotary(x.float(), rotation).bfloat16())
    back = got.clone()
    apply_rotary_backward_(back, rotation)
    torch.testing.assert_close(back.float(), x.float(), rtol=0.02, atol=0.02)
