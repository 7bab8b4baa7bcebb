"""Products by the faster library: the same numbers, whatever the shape, and gradients against float64."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

from qkv.model import linear
from qkv.model.config import ModelConfig
from qkv.model.linear import STEADY, Linear, product, steady
from qkv.model.mlp import MLP, SwiGLU
from qkv.train.data.objectives import Example
from qkv.train.data.packing import count_targets, pack


@pytest.mark.parametrize("rows", [STEADY, 5 * STEADY, STEADY + 1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_float64(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    x, weight, g = torch.randn(rows, 24), torch.randn(40, 24), torch.randn(rows, 40)
    b = torch.randn(40) if bias else None
    results = []
    for dtype in (torch.float32, torch.float64):
        inputs = [t.to(dtype).requires_grad_() for t in (x, weight, *([b] if b is not None else []))]
        if dtype == torch.float32:
            out = product(inputs[0], inputs[1], inputs[2] if bias else None)
        else:
            out = inputs[0] @ inputs[1].T + (inputs[2] if bias else 0)
        results.append([out, *torch.autograd.grad(out, inputs, g.to(dtype))])
    for ours, exact in zip(*results, strict=True):
        assert float((ours.double() - exact).abs().max() / exact.abs().max()) < 1e-5


@pytest.mark.parametrize("kind", [MLP, SwiGLU])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("bias", [True, False])
def test_thinking_in_place_is_thinking_in_float64(kind: type[MLP | SwiGLU], activation: str, bias: bool) -> None:
    torch.manual_seed(1)
    mlp = kind(ModelConfig(vocab_size=8, d_model=16, n_head=2, bias=bias, activation=activation))
    x, g = torch.randn(2 * STEADY, 16), torch.randn(2 * STEADY, 16)
    exact = copy.deepcopy(mlp).double()
    results = []
    for each, dtype in ((mlp, torch.float32), (exact, torch.float64)):
        inputs = [x.to(dtype).requires_grad_(), *each.parameters()]
        assert steady(inputs[0], each.wide.weight) == (dtype == torch.float32)
        out = each(inputs[0])
        results.append([out, *torch.autograd.grad(out, inputs, g.to(dtype), retain_graph=True)])
        again = torch.autograd.grad(out, inputs, g.to(dtype))
        assert all(torch.equal(a, b) for a, b in zip(results[-1][1:], again, strict=True))  # nothing saved was spoiled
    for ours, want in zip(*results, strict=True):
        assert float((ours.double() - want).abs().max() / want.abs().max()) < 1e-5


def test_frozen_weights_of_an_mlp_get_no_gradient() -> None:
    for kind in (MLP, SwiGLU):
        mlp = kind(ModelConfig(vocab_size=8, d_model=16, n_head=2))
        mlp.wide.weight.requires_grad_(False)
        mlp(torch.randn(STEADY, 16)).sum().backward()
        assert mlp.wide.weight.grad is None and mlp.out.weight.grad is not None


def test_only_steady_rows_in_float32_leave_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = linear.times

    def counted(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return real(x, weight, bias)

    monkeypatch.setattr(linear, "times", counted)
    layer = Linear(8, 4)
    layer(torch.randn(STEADY + 1, 8))
    layer.double()(torch.randn(STEADY, 8, dtype=torch.float64))
    layer.float()(torch.randn(2, STEADY, 8))
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(STEADY, 8))
    with torch.no_grad():
        layer(torch.randn(STEADY, 8))
    assert not seen
    layer(torch.randn(STEADY, 8))
    assert seen == [(STEADY, 8)] or not torch.backends.mkldnn.is_available()


def test_no_gradient_is_computed_that_nobody_wants() -> None:
    layer = Linear(8, 4)
    layer.weight.requires_grad_(False)
    x = torch.randn(STEADY, 8)
    layer(x).sum().backward()
    assert layer.weight.grad is None and x.grad is None
    assert torch.equal(layer.bias.grad, torch.full((4,), float(STEADY)))


@pytest.mark.parametrize("lengths", [[3], [64, 64], [5, 9, 40], [7] * 30, [64] * 3 + [1]])
def test_rows_are_filled_with_tokens_that_ask_for_nothing(lengths: list[int]) -> None:
    examples = [Example(list(range(3, n + 4)), 1) for n in lengths]
    batch, plain = pack(examples, exact=True), pack(examples)
    assert len(batch.tokens) % STEADY == 0 and len(batch.tokens) - sum(lengths) < STEADY
    assert max(t for _, t in batch.layout.shapes) == max(lengths)
    for one in (batch, plain):
        assert int((one.targets >= 0).sum()) == count_targets(examples)
        assert sorted(one.targets[one.targets >= 0].tolist()) == sorted(i for e in examples for i in e.ids[1:])


def test_filling_changes_no_loss() -> None:
    from qkv.model.config import preset
    from qkv.model.gpt import GPT

    torch.manual_seed(0)
    model = GPT(preset("tiny", vocab_size=80)).eval()
    examples = [Example(torch.randint(3, 80, (n + 1,)).tolist(), max(1, n // 2)) for n in (5, 17, 30)]
    batch = pack(examples, exact=True)
    whole = float(model(batch.tokens, batch.layout, batch.keep, batch.targets))
    alone = 0.0
    for e in examples:
        logits = model(torch.tensor([e.ids[:-1]]))[0]
        alone += float(F.cross_entropy(logits[e.start - 1 :], torch.tensor(e.ids[e.start :]), reduction="sum"))
    assert whole == pytest.approx(alone, rel=1e-5)
