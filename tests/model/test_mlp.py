"""The MLPs: in-place backward against float64 autograd, and parity with transformers' GPT-2 and Llama."""

from __future__ import annotations

import copy

import pytest
import torch

from qkv.model import linear
from qkv.model.config import ModelConfig
from qkv.model.linear import ONEDNN_ROW_MULTIPLE, prefers_onednn
from qkv.model.mlp import MLP, SwiGLU


@pytest.fixture(params=["oneDNN", "fallback"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With torch's private operator, and as if torch had none."""
    if request.param == "fallback":
        monkeypatch.setattr(linear, "_find_onednn_linear", lambda: torch.nn.functional.linear)
    return str(request.param)


@pytest.mark.parametrize("kind", [MLP, SwiGLU])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_in_place_backward_pass_gives_the_gradients_of_float64(
    library: str, kind: type[MLP | SwiGLU], activation: str, bias: bool
) -> None:
    torch.manual_seed(1)
    mlp = kind(ModelConfig(vocab_size=8, d_model=16, n_head=2, bias=bias, activation=activation))
    x, g = torch.randn(2 * ONEDNN_ROW_MULTIPLE, 16), torch.randn(2 * ONEDNN_ROW_MULTIPLE, 16)
    exact = copy.deepcopy(mlp).double()
    results = []
    for each, dtype in ((mlp, torch.float32), (exact, torch.float64)):
        inputs = [x.to(dtype).requires_grad_(), *each.parameters()]
        assert prefers_onednn(inputs[0], each.wide.weight) == (dtype == torch.float32)
        out = each(inputs[0])
        results.append([out, *torch.autograd.grad(out, inputs, g.to(dtype), retain_graph=True)])
        again = torch.autograd.grad(out, inputs, g.to(dtype))
        assert all(
            torch.equal(a, b) for a, b in zip(results[-1][1:], again, strict=True)
        )  # a second pass finds the saved tensors intact
    for ours, want in zip(*results, strict=True):
        assert float((ours.detach().double() - want.detach()).abs().max() / want.detach().abs().max()) < 1e-5


def test_frozen_weights_of_an_mlp_get_no_gradient() -> None:
    for kind in (MLP, SwiGLU):
        mlp = kind(ModelConfig(vocab_size=8, d_model=16, n_head=2))
        mlp.wide.weight.requires_grad_(False)
        mlp(torch.randn(ONEDNN_ROW_MULTIPLE, 16)).sum().backward()
        assert mlp.wide.weight.grad is None and mlp.out.weight.grad is not None


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_the_mlp_is_gpt2s(activation: str) -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

    torch.manual_seed(0)
    name = {"gelu": "gelu", "gelu_tanh": "gelu_new"}[activation]
    config = transformers.GPT2Config(n_embd=16, resid_pdrop=0.0, activation_function=name)
    theirs, ours = GPT2MLP(64, config).double(), MLP(ModelConfig(d_model=16, activation=activation)).double()
    with torch.no_grad():
        for one, two in ((ours.wide, theirs.c_fc), (ours.out, theirs.c_proj)):
            one.weight.copy_(two.weight.T)
            one.bias.copy_(two.bias.add_(torch.randn_like(two.bias)))
    x = torch.randn(5, 16, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-12)


def test_swiglu_is_llamas() -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaMLP

    torch.manual_seed(0)
    ours = SwiGLU(ModelConfig(attention="rope", d_model=16)).double()
    theirs = LlamaMLP(transformers.LlamaConfig(hidden_size=16, num_attention_heads=4, intermediate_size=48)).double()
    with torch.no_grad():
        ours.wide.weight.copy_(torch.cat((theirs.gate_proj.weight, theirs.up_proj.weight)))
        ours.out.weight.copy_(theirs.down_proj.weight)
    x = torch.randn(5, 16, dtype=torch.float64)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-12)
