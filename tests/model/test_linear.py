"""Linear layers through oneDNN and by the fallback: the same numbers, whatever the shape, and gradients of float64."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from qkv.model import linear as module
from qkv.model.linear import ONEDNN_ROW_MULTIPLE, Linear, linear, onednn_linear
from qkv.train.data.objectives import Example
from qkv.train.data.packing import count_targets, pack


@pytest.fixture(params=["oneDNN", "fallback"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With torch's private operator, and as if torch had none."""
    if request.param == "fallback":
        monkeypatch.setattr(module, "_find_onednn_linear", lambda: F.linear)
    return str(request.param)


@pytest.mark.parametrize("rows", [ONEDNN_ROW_MULTIPLE, 5 * ONEDNN_ROW_MULTIPLE, ONEDNN_ROW_MULTIPLE + 1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_float64(library: str, rows: int, bias: bool) -> None:
    torch.manual_seed(rows)
    x, weight, g = torch.randn(rows, 24), torch.randn(40, 24), torch.randn(rows, 40)
    b = torch.randn(40) if bias else None
    results = []
    for dtype in (torch.float32, torch.float64):
        inputs = [t.to(dtype).requires_grad_() for t in (x, weight, *([b] if b is not None else []))]
        if dtype == torch.float32:
            out = linear(inputs[0], inputs[1], inputs[2] if bias else None)
        else:
            out = inputs[0] @ inputs[1].T + (inputs[2] if bias else 0)
        results.append([out, *torch.autograd.grad(out, inputs, g.to(dtype))])
    for ours, exact in zip(*results, strict=True):
        assert float((ours.detach().double() - exact.detach()).abs().max() / exact.detach().abs().max()) < 1e-5


def test_gradients_by_finite_differences(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """gradcheck needs float64, which oneDNN does not have: the autograd function is checked with float64 products."""
    monkeypatch.setattr(module, "_find_onednn_linear", lambda: F.linear)
    torch.manual_seed(0)
    inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (5, 4), (5,))]
    assert torch.autograd.gradcheck(module._Linear.apply, inputs)
    assert torch.autograd.gradcheck(lambda x, w: module._Linear.apply(x, w, None), inputs[:2])


def test_the_private_operator_and_the_fallback_agree() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(64, 24), torch.randn(40, 24), torch.randn(40)
    for b in (bias, None):
        torch.testing.assert_close(onednn_linear(x, weight, b), F.linear(x, weight, b), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(onednn_linear(torch.randn(64, 40), weight.t()).shape, torch.Size([64, 24]))


@pytest.mark.parametrize("why", ["no namespace", "no operator", "another signature", "not built in", "another result"])
def test_without_a_working_private_operator_the_public_one_is_taken(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    def refuse(*arguments: object) -> torch.Tensor:
        raise {"another signature": TypeError, "not built in": RuntimeError}[why](why)

    wrong = {"another result": lambda x, *_: torch.zeros(len(x), 1)}.get(why, refuse)
    spaces = {
        "no namespace": SimpleNamespace(),
        "no operator": SimpleNamespace(mkldnn=SimpleNamespace()),
    }
    operator = SimpleNamespace(_linear_pointwise=SimpleNamespace(default=wrong))
    monkeypatch.setattr(torch, "ops", spaces.get(why, SimpleNamespace(mkldnn=operator)))
    find = module._find_onednn_linear.__wrapped__
    assert find() is F.linear


def test_here_the_private_operator_is_found() -> None:
    if not torch.backends.mkldnn.is_available():
        pytest.skip("torch was built without oneDNN")
    assert module._find_onednn_linear() is not F.linear


def test_only_multiples_of_rows_in_float32_while_training_go_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = module.onednn_linear

    def counted(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        seen.append(tuple(x.shape))
        return real(x, weight, bias)

    monkeypatch.setattr(module, "onednn_linear", counted)
    layer = Linear(8, 4)
    layer(torch.randn(ONEDNN_ROW_MULTIPLE + 1, 8))
    layer.double()(torch.randn(ONEDNN_ROW_MULTIPLE, 8, dtype=torch.float64))
    layer.float()(torch.randn(2, ONEDNN_ROW_MULTIPLE, 8))
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(ONEDNN_ROW_MULTIPLE, 8))
    with torch.no_grad():
        layer(torch.randn(ONEDNN_ROW_MULTIPLE, 8))
    assert not seen
    layer(torch.randn(ONEDNN_ROW_MULTIPLE, 8))
    assert seen == [(ONEDNN_ROW_MULTIPLE, 8)] or not torch.backends.mkldnn.is_available()


def test_no_gradient_is_computed_that_nobody_wants() -> None:
    layer = Linear(8, 4)
    layer.weight.requires_grad_(False)
    x = torch.randn(ONEDNN_ROW_MULTIPLE, 8)
    layer(x).sum().backward()
    assert layer.weight.grad is None and x.grad is None
    assert torch.equal(layer.bias.grad, torch.full((4,), float(ONEDNN_ROW_MULTIPLE)))


@pytest.mark.parametrize("lengths", [[3], [64, 64], [5, 9, 40], [7] * 30, [64] * 3 + [1]])
def test_rows_are_filled_with_tokens_that_ask_for_nothing(lengths: list[int]) -> None:
    examples = [Example(list(range(3, n + 4)), 1) for n in lengths]
    batch, plain = pack(examples, exact=True), pack(examples)
    assert len(batch.tokens) % ONEDNN_ROW_MULTIPLE == 0 and len(batch.tokens) - sum(lengths) < ONEDNN_ROW_MULTIPLE
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
