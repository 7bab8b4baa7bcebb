"""The softmax gradient by torch's private kernel and by public operations, against autograd and each other."""

import pytest
import torch

from qkv.core.kernels import softmax_backward as module
from qkv.core.kernels.causal import stored_causal
from qkv.core.kernels.equal_length import equal_length_causal
from qkv.core.kernels.ragged import RaggedPlan, ragged_causal
from qkv.core.kernels.softmax_backward import softmax_backward, softmax_backward_public


@pytest.fixture(params=["private", "public"])
def way(request, monkeypatch):
    """Both ways; for the public one, torch is made to lack the private function."""
    if request.param == "public":
        monkeypatch.setattr(module, "_FUSED", None)
    else:
        assert module._FUSED is torch._softmax_backward_data
    return request.param


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_it_is_the_gradient_that_autograd_computes(way, dtype):
    torch.manual_seed(0)
    scores = torch.randn(3, 5, 7, dtype=torch.float64).masked_fill(torch.ones(5, 7).triu(1).bool(), -torch.inf)
    scores.requires_grad_(True)
    grad = torch.randn(3, 5, 7, dtype=torch.float64)
    weights = scores.softmax(-1)
    (want,) = torch.autograd.grad(weights, scores, grad)
    got = softmax_backward(grad.to(dtype), weights.detach().to(dtype))
    assert got.dtype == dtype
    tolerance = {torch.float64: 1e-15, torch.float32: 1e-6, torch.bfloat16: 0.05}[dtype]
    torch.testing.assert_close(got.double(), want, rtol=0, atol=tolerance)


def test_both_ways_agree_and_leave_their_inputs_alone():
    torch.manual_seed(1)
    grad, weights = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64).softmax(-1)
    before = grad.clone(), weights.clone()
    fused, public = module._FUSED(grad, weights, -1, weights.dtype), softmax_backward_public(grad, weights)
    torch.testing.assert_close(fused, public, rtol=0, atol=1e-15)
    assert torch.equal(grad, before[0]) and torch.equal(weights, before[1])


def test_every_kernel_has_right_gradients_either_way(way):
    torch.manual_seed(2)
    q, k, v = (torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    qkv = torch.randn(6, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q, k, v: stored_causal(q, k, v, 0.7), (q, k, v))
    assert torch.autograd.gradcheck(lambda x: equal_length_causal(x, 3, 1, 0.7), (qkv,))
    assert torch.autograd.gradcheck(lambda x: ragged_causal(x, RaggedPlan([2, 4]), 1, 0.7), (qkv,))
