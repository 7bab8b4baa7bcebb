"""Products by the faster library: the same numbers, whatever the shape, and gradients against float64."""

from __future__ import annotations

import pytest
import torch

from qkv.model import products
from qkv.model.products import LARGE, STEADY, Linear, product


@pytest.mark.parametrize("rows", [STEADY, 5 * STEADY, STEADY + 1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_float64(rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    x, weight, g = torch.randn(rows, 240), torch.randn(320, 240), torch.randn(rows, 320)
    b = torch.randn(320) if bias else None
    assert weight.numel() > LARGE
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


def test_only_steady_rows_of_large_float32_matrices_leave_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = products._rows

    def counted(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return real(x, weight, bias)

    monkeypatch.setattr(products, "_rows", counted)
    layer = Linear(256, 512)
    layer(torch.randn(STEADY + 1, 256))
    layer.double()(torch.randn(STEADY, 256, dtype=torch.float64))
    layer.float()(torch.randn(2, STEADY, 256))
    Linear(8, 8)(torch.randn(STEADY, 8))
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(STEADY, 256))
    assert not seen
    layer(torch.randn(STEADY, 256))
    assert seen == [(STEADY, 256)] or not torch.backends.mkldnn.is_available()


def test_no_gradient_is_computed_that_nobody_wants() -> None:
    layer = Linear(256, 512)
    layer.weight.requires_grad_(False)
    x = torch.randn(STEADY, 256)
    layer(x).sum().backward()
    assert layer.weight.grad is None and x.grad is None
    assert torch.equal(layer.bias.grad, torch.full((512,), float(STEADY)))
