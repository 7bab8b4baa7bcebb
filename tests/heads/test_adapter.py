"""Captured attention is the model's own, for every family, and watching changes nothing."""

import pytest
import torch
from families import CONFIGS, UNWATCHED, VOCABULARY, tiny

from qkv.errors import QkvError
from qkv.heads.adapter import Adapter


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("family", CONFIGS)
def test_captured_weights_are_those_of_eager_attention(family, padded):
    model = tiny(family)
    ids = torch.randint(3, VOCABULARY, (2, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    if padded:
        mask[1, 15:] = 0
    adapter, calls = Adapter(model), []
    with torch.no_grad():
        own = model(input_ids=ids, attention_mask=mask, output_attentions=True)
        with adapter.attached(calls.append):
            watched = model(input_ids=ids, attention_mask=mask)
    assert [c.layer for c in calls] == [0, 1, 2]
    assert torch.equal(own[0], watched[0])
    for call, weights in zip(calls, own.attentions, strict=True):
        assert torch.equal(call.weights, weights)
        # from queries, keys, mask, scaling, cap and sinks alone, without the model
        again = call.softmax(call.scores())
        assert (again[0] - weights[0]).abs().max() <= 1e-6
    assert model.config._attn_implementation == "eager"


def test_a_model_that_was_watched_is_as_before_even_after_an_error():
    model = tiny("llama")
    adapter = Adapter(model)

    def fail(call):
        raise RuntimeError("the tap failed")

    with pytest.raises(RuntimeError, match="the tap failed"), adapter.attached(fail):
        model(input_ids=torch.tensor([[3, 4, 5]]))
    assert model.config._attn_implementation == "eager" and adapter.tap is None


@pytest.mark.parametrize("family", UNWATCHED)
def test_a_family_that_cannot_be_watched_is_refused(family):
    with pytest.raises(QkvError, match="computes attention in code of its own"):
        Adapter(tiny(family))


def test_two_models_are_watched_apart():
    one, two = tiny("llama", 0), tiny("llama", 1)
    first, second = Adapter(one), Adapter(two)
    ids, calls = torch.tensor([[3, 4, 5]]), ([], [])
    with torch.no_grad(), first.attached(calls[0].append), second.attached(calls[1].append):
        one(input_ids=ids)
        two(input_ids=ids)
        two(input_ids=ids)
    assert len(calls[0]) == 3 and len(calls[1]) == 6


def test_changed_keys_and_outputs_reach_the_model():
    model, ids = tiny("llama"), torch.tensor([[3, 4, 5, 6]])
    adapter = Adapter(model)
    with torch.no_grad():
        base = model(input_ids=ids).logits
        with adapter.attached(keys=lambda layer, k, v: (k, v), output=lambda layer, out: out):
            assert torch.equal(model(input_ids=ids).logits, base)
        with adapter.attached(keys=lambda layer, k, v: (k * 0, v)):
            assert not torch.allclose(model(input_ids=ids).logits, base)
