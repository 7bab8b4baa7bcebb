"""Norms, dropout and row selection against torch's own."""

import pytest
import torch
from torch.nn.functional import rms_norm

from qkv.model.config import ModelConfig
from qkv.model.layers import RMSNorm, dropout, norm, select_rows


def test_dropout_drops_the_share_it_should_and_keeps_the_mean():
    torch.manual_seed(0)
    x = torch.ones(300, 1001, requires_grad=True)
    y = dropout(x, 0.1)
    y.sum().backward()
    assert float((y == 0).float().mean()) == pytest.approx(26 / 256, abs=2e-3)
    assert float(y.detach().mean()) == pytest.approx(1, abs=2e-3)
    assert torch.equal(x.grad, y.detach())
    torch.manual_seed(0)
    assert torch.equal(dropout(x, 0.1), y)
    assert dropout(x, 0.0) is x


def test_selecting_rows_passes_gradients_back_to_them():
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: select_rows(x, torch.tensor([4, 0, 2])), (x,))


def test_the_quick_norm_is_torchs_norm():
    torch.manual_seed(0)
    layer = RMSNorm(12, 1e-5)
    x, weight = torch.randn(7, 12, requires_grad=True), layer.weight
    with torch.no_grad():
        weight.add_(torch.randn(12))
    want = rms_norm(x.double(), (12,), weight.double(), 1e-5)
    torch.testing.assert_close(layer(x).double(), want, rtol=0, atol=1e-6)
    grad = torch.randn(7, 12)
    for a, b in zip(
        torch.autograd.grad(layer(x), (x, weight), grad),
        torch.autograd.grad(want, (x, weight), grad.double()),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_the_norm_of_each_kind_is_torchs():
    torch.manual_seed(0)
    x = torch.randn(5, 16)
    assert isinstance(norm(ModelConfig(attention="rope", d_model=16)), RMSNorm)
    plain, biased = norm(ModelConfig(d_model=16, bias=False)), norm(ModelConfig(d_model=16))
    assert plain.bias is None and biased.bias is not None
    torch.testing.assert_close(biased(x), torch.nn.functional.layer_norm(x, (16,), eps=1e-5))


def test_in_float64_the_norm_rounds_where_llama_does():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.models.llama.modeling_llama.LlamaRMSNorm(12, eps=1e-5).double()
    ours = RMSNorm(12, 1e-5).double()
    with torch.no_grad():
        theirs.weight.copy_(ours.weight.add_(torch.randn(12)))
    x = torch.randn(7, 12, dtype=torch.float64)
    assert torch.equal(ours(x), theirs(x))
    with torch.no_grad():
        assert torch.equal(ours.float()(x.float()), theirs.float()(x.float()))


def test_without_rows_nothing_is_selected():
    x = torch.randn(3, 2)
    assert select_rows(x, None) is x
    assert torch.equal(select_rows(x, torch.tensor([2, 0])), x[[2, 0]])
