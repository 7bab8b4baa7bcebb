"""Causal attention with stored weights against torch's fused kernel, and its gradients."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from qkv.core.kernels.causal import causal_bias, stored_causal


def case(*batch, n=5, d=4, dv=3):
    torch.manual_seed(0)
    return [torch.randn(*batch, n, size, dtype=torch.float64, requires_grad=True) for size in (d, d, dv)]


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (1, 2, 2)])
@pytest.mark.parametrize("scale", [0.5, -2.0])
def test_values_and_gradients_are_those_of_torch(batch, scale):
    q, k, v = case(*batch)
    got = stored_causal(q, k, v, scale)
    want = scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    grad = torch.randn_like(want)
    for ours, theirs in zip(
        torch.autograd.grad(got, (q, k, v), grad), torch.autograd.grad(want, (q, k, v), grad), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_gradients():
    assert torch.autograd.gradcheck(lambda q, k, v: stored_causal(q, k, v, 0.7), case(2))


def test_second_derivatives_are_refused():
    """The stored weights carry no graph, so a second derivative would silently leave out their part."""
    q, k, v = case()
    (first,) = torch.autograd.grad(stored_causal(q, k, v, 0.7).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_large_scores_do_not_overflow():
    q, k, v = (1e4 * x.detach() for x in case())
    got = stored_causal(q, k, v, 1.0)
    assert got.isfinite().all()
    torch.testing.assert_close(got, scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0))


def test_the_bias_is_minus_infinity_at_later_tokens():
    bias = causal_bias(3, torch.float64, repeat=2)
    assert bias.shape == (1, 6, 3)
    for i in range(6):
        assert [bool(x == 0) for x in bias[0, i]] == [j <= i % 3 for j in range(3)]
    assert set(bias.unique().tolist()) == {0.0, -torch.inf}
