"""The equal-length kernel against torch's own attention, sequence by sequence, and its gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from qkv.core.kernels.equal_length import equal_length_causal
from qkv.core.rotary import apply_rotary


def case(count, length, n_head, n_kv_head, d=4, dtype=torch.float64):
    torch.manual_seed(0)
    qkv = torch.randn(count * length, n_head + 2 * n_kv_head, d, dtype=dtype)
    angle = torch.randn(count * length, 1, d // 2, dtype=torch.float64)
    return qkv, torch.polar(torch.ones_like(angle), angle)


def reference(qkv, length, n_head, n_kv_head, rotation):
    if rotation is not None:
        qk = apply_rotary(qkv[:, : n_head + n_kv_head], rotation)
        qkv = torch.cat((qk, qkv[:, n_head + n_kv_head :]), dim=1)
    q, k, v = qkv.unflatten(0, (-1, length)).transpose(1, 2).split((n_head, n_kv_head, n_kv_head), dim=1)
    k, v = (x.repeat_interleave(n_head // n_kv_head, dim=1) for x in (k, v))
    return scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7).transpose(1, 2).flatten(0, 1)


@given(
    count=st.integers(1, 5),
    length=st.integers(1, 9),
    n_kv_head=st.sampled_from([1, 2, 4]),
    rotate=st.booleans(),
)
def test_it_equals_attention_of_each_sequence(count, length, n_kv_head, rotate):
    qkv, rotation = case(count, length, 4, n_kv_head)
    rotation = rotation if rotate else None
    got = equal_length_causal(qkv, length, n_kv_head, 0.7, rotation)
    torch.testing.assert_close(got, reference(qkv, length, 4, n_kv_head, rotation), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_kv_head", [1, 2, 4])
@pytest.mark.parametrize("rotate", [False, True])
def test_gradients(n_kv_head, rotate):
    qkv, rotation = case(2, 3, 4, n_kv_head)
    qkv.requires_grad_(True)
    rotation = rotation if rotate else None
    assert torch.autograd.gradcheck(lambda x: equal_length_causal(x, 3, n_kv_head, 0.7, rotation), (qkv,))


def test_half_precision_stays_half_and_close():
    qkv, rotation = case(2, 6, 4, 2, dtype=torch.float32)
    rotation = rotation.to(torch.complex64)
    half = qkv.bfloat16().requires_grad_(True)
    got = equal_length_causal(half, 6, 2, 0.7, rotation)
    got.float().sum().backward()
    assert got.dtype == half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), equal_length_causal(qkv, 6, 2, 0.7, rotation), rtol=0.05, atol=0.05)


def test_under_autocast_values_and_gradients_keep_single_precision():
    qkv, _ = case(2, 5, 2, 1, dtype=torch.float32)
    exact = qkv.double().requires_grad_()
    (reference(exact, 5, 2, 1, None) ** 2).sum().backward()
    own = qkv.clone().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = equal_length_causal(own, 5, 1, 0.7)
        (out.float() ** 2).sum().backward()
    torch.testing.assert_close(own.grad.double(), exact.grad, rtol=0, atol=1e-5)
